/** How the index stands, what is missing and why, and bringing it up to date with its progress. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { failureOf, follow, isAbort, type Client, type Failure, type Reply } from "../../client";
import { Button, Icon } from "../basic";
import { ago, bytes, count, dateTime } from "../format";
import { useHost } from "../host";
import { resource, type Resource } from "../resource";
import { FailureNotice, Notice, SkeletonText } from "../rows";

type Status = Reply<"post", "/tools/vault_status">;

interface Going {
  id: string;
  phase: string;
  done: number;
  total: number;
}

interface Outcome {
  state: string;
  indexed: number;
  removed: number;
  embedded: number;
  problems: readonly string[];
}

const PHASES: Readonly<Record<string, string>> = { scan: "Scanning the vault", read: "Reading notes", embed: "Computing embeddings" };

/** The index of a vault, and the refresh that goes on, if one does. */
export class IndexState {
  readonly status: Resource<Status>;
  readonly going: Signal<Going | null> = signal(null);
  readonly outcome: Signal<Outcome | null> = signal(null);
  readonly failure: Signal<Failure | null> = signal(null);

  constructor(private readonly client: Client) {
    this.status = resource((abort) => client.post("/tools/vault_status", { body: {}, signal: abort }));
  }

  /** Begin a refresh, or join the one that goes on, and follow it to its end. */
  async refresh(isFull = false): Promise<void> {
    if (this.going.value) return;
    this.outcome.value = null;
    this.failure.value = null;
    this.going.value = { id: "", phase: "scan", done: 0, total: 0 };
    try {
      const { job_id: id } = await this.client.post("/index", { body: isFull ? { full: true } : {} });
      this.going.value = { ...this.going.value, id };
      for await (const { event, data } of follow(this.client, `/index/${encodeURIComponent(id)}/events`, { isLast: (one) => one.event === "indexed" })) this.hear(event, data);
    } catch (error) {
      if (!isAbort(error)) this.failure.value = failureOf(error);
    }
    this.going.value = null;
    await this.status.load();
  }

  async cancel(): Promise<void> {
    const id = this.going.value?.id;
    if (id) await this.client.post("/index/{job_id}/cancel", { path: { job_id: id } }).catch((error: unknown) => (this.failure.value = failureOf(error)));
  }

  private hear(event: string, data: Readonly<Record<string, unknown>>): void {
    const number = (name: string): number => Number(data[name] ?? 0) || 0;
    if (event === "progress" && this.going.value) this.going.value = { ...this.going.value, phase: String(data["phase"]), done: number("done"), total: number("total") };
    else if (event === "indexed") {
      const problems = Array.isArray(data["problems"]) ? data["problems"].map(String) : [];
      this.outcome.value = { state: String(data["state"]), indexed: number("indexed"), removed: number("removed"), embedded: number("embedded"), problems };
    }
  }
}

/** What is missing for a search that finds everything, and why; empty where nothing is. */
export function missingParts(status: Status): string[] {
  const { pending, embedded, problems, index_incomplete: isIncomplete, indexing: isIndexing, embedding: isEmbedding, stale, unchecked, model, replaced_model: replaced, notes, watch_failed: failedSince } = status;
  const parts = [];
  if (failedSince) parts.push(`Following changes has failed since ${dateTime(failedSince)}, and is tried again by itself. Until then page and embeddings are late; “Update now” takes changes in, or says what is wrong.`);
  if (isIncomplete) parts.push(notes ? "Indexing isn't finished: notes that haven't been read can't be found yet." : "The vault isn't indexed yet, so nothing can be found.");
  else if (stale) parts.push(`${count(stale, "changed file")} ${stale === 1 ? "isn't" : "aren't"} in the index yet${isIndexing ? ", which is being written right now" : "; “Update now” takes them in, and a running “knap watch” or server does so by itself"}.`);
  else if (unchecked) parts.push("Not every file could be checked for changes in time; “Update now” checks them all.");
  if (!model) parts.push("Search by meaning is off (embeddings.kind is none), so notes are found by words only.");
  else if (pending) parts.push(`${pending.toLocaleString("en")} of ${count(pending + embedded, "passage")} ${pending === 1 ? "has" : "have"} no embedding yet${replaced ? ` from ${model}, which replaced ${replaced}` : ""}, so ${pending === 1 ? "it is" : "they are"} found by words only.${isEmbedding ? " Embeddings are being computed right now." : ""}`);
  if (problems) parts.push(`${count(problems, "file")} couldn't be read in full.`);
  return parts;
}

/** How far a refresh is: `Reading notes: 120 of 2,000`. */
export function progressText({ phase, done, total }: Pick<Going, "phase" | "done" | "total">): string {
  const what = PHASES[phase] ?? "Working";
  if (total) return `${what}: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  return done ? `${what}: ${done.toLocaleString("en")}` : `${what}…`;
}

export function IndexSection({ state }: { state: IndexState }): JSX.Element {
  const { floaters } = useHost();
  const { status, going } = state;
  useEffect(() => void status.load(), []);
  const found = status.data.value;
  const rebuild = async (): Promise<void> => {
    const asked = { title: "Rebuild the index?", text: "The index is deleted and built again from your notes, which can take minutes in a large vault. Notes, history and undo aren't affected.", act: "Rebuild" };
    if (await floaters.confirm(asked)) void state.refresh(true);
  };
  return (
    <section class="k-set-group" aria-label="Index">
      <div class="k-set-head">
        <h2>Index</h2>
        <div class="k-pair-acts">
          <Button icon="refresh-cw" isDisabled={going.value !== null} onClick={() => void state.refresh()}>
            Update now
          </Button>
          <Button kind="quiet" isDisabled={going.value !== null} onClick={() => void rebuild()}>
            Rebuild…
          </Button>
        </div>
      </div>
      <Progress state={state} />
      {!found ? status.failure.value ? <FailureNotice failure={status.failure.value} /> : <SkeletonText lines={4} /> : <Standing status={found} />}
    </section>
  );
}

/** How far the refresh is that goes on, or how the last one ended. */
export function Progress({ state }: { state: IndexState }): JSX.Element | null {
  const { going, outcome, failure } = state;
  const now = going.value;
  if (now) {
    return (
      <div class="k-progress">
        <div class="k-progress-line">
          <span role="status">{progressText(now)}</span>
          <Button kind="quiet" size="small" isDisabled={!now.id} onClick={() => void state.cancel()}>
            Stop
          </Button>
        </div>
        <progress aria-label="Progress of the index" {...(now.total ? { max: now.total, value: now.done } : {})} />
      </div>
    );
  }
  if (failure.value) {
    return <FailureNotice failure={failure.value} />;
  }
  const done = outcome.value;
  if (!done) return null;
  return (
    <p class="k-trial-good" role="status">
      <Icon name={done.state === "complete" ? "circle-check" : "circle-stop"} />
      <span>
        {done.state === "complete" ? "Up to date" : done.state === "cancelled" ? "Stopped; progress is kept" : "Failed; see the server's log"}
        <span class="k-quiet">
          {" "}
          · {count(done.indexed, "note")} read · {count(done.removed, "note")} removed · {count(done.embedded, "passage")} embedded
        </span>
      </span>
    </p>
  );
}

function Standing({ status }: { status: Status }): JSX.Element {
  const missing = missingParts(status);
  return (
    <>
      <dl class="k-figures">
        <Count title="Notes" value={status.notes} detail={status.files > status.notes ? `and ${count(status.files - status.notes, "other file")}` : ""} />
        <Count title="Passages" value={status.chunks} detail={status.model ? `${status.embedded.toLocaleString("en")} embedded` : "words only"} />
        <Count title="Pending" value={status.pending} detail={status.pending ? "not embedded yet" : "none"} />
        <Count title="Problems" value={status.problems} detail={status.problems ? "files" : "none"} />
      </dl>
      <p class="k-small k-quiet">
        {status.built ? (
          <>
            Last indexed{" "}
            <time dateTime={status.built} title={dateTime(status.built)}>
              {ago(status.built)}
            </time>
          </>
        ) : (
          "Not indexed yet"
        )}{" "}
        {status.size_bytes ? `· ${bytes(status.size_bytes)} ` : ""}· embeddings: {status.model || "nothing"}
      </p>
      {missing.length > 0 && (
        <Notice tone="warning">
          {missing.map((text) => (
            <div key={text}>{text}</div>
          ))}
        </Notice>
      )}
      {status.skipped.length > 0 && (
        <details class="k-skipped">
          <summary>Files that couldn't be read in full</summary>
          <ul class="k-plain">
            {status.skipped.map((file) => (
              <li key={`${file.path} ${file.line} ${file.code}`}>
                <bdi>{file.path}</bdi>
                {file.line > 0 && `, line ${file.line}`}: <span class="k-quiet">{file.problem}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Count({ title, value, detail }: { title: string; value: number; detail: string }): JSX.Element {
  return (
    <div class="k-figure">
      <dt>{title}</dt>
      <dd class="k-figure-value">{value.toLocaleString("en")}</dd>
      <dd class="k-small k-quiet">{detail}</dd>
    </div>
  );
}
