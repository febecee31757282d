/** A run as a whole: how it stands, what it asks, its answer, and its tree with the timeline. */

import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { failureOf } from "../../client";
import { Button, Chip, Field, Icon, IconButton, type IconName } from "../basic";
import { DialogFrame, FormDialog } from "../floating";
import { count, date, dateTime, duration, sentence } from "../format";
import { useHost, type Host } from "../host";
import { Empty, isNarrow, Notice, SkeletonText } from "../rows";
import { LimitFields } from "./begin";
import { Answer } from "./answer";
import { ALL_NOTES, changedLimits, fileName, isGoing, limitsText, minutesOf, runState, spentText, timelineOf, type Question, type Run } from "./model";
import type { RunList, RunWatch } from "./runs";
import { RunTree, TimelineKey } from "./tree";

interface RunViewProps {
  watch: RunWatch;
  list: RunList;
  /** The part that is shown beside; empty for none. */
  part: string;
  focusing: Signal<number>;
  onOpenPart: (id: string) => void;
}

const LONG_TASK = 400;

export function RunView(props: RunViewProps): JSX.Element {
  const { watch, part, focusing, onOpenPart } = props;
  const run = watch.run.value;
  const failure = watch.failure.value;
  if (!run) {
    if (!failure) return <SkeletonText lines={6} />;
    return (
      <Empty icon="circle-alert" title={failure.isOffline ? "The server can't be reached" : "This run can't be shown"}>
        {failure.isOffline ? "It loads as soon as the server is back." : sentence([failure.message, failure.hint].filter(Boolean).join(": "))}
      </Empty>
    );
  }
  const isOver = !isGoing(run);
  const reasons = isOver ? [...new Set(run.reasons)] : [];
  return (
    <div class="k-run" aria-busy={!isOver}>
      <header class="k-run-about">
        <RunFacts watch={watch} run={run} />
        <Task text={run.task} />
        {watch.isLost.value && <Notice tone="warning">Connection lost. The run continues on the server; reconnecting…</Notice>}
        {failure && <Notice tone="removed">{sentence(failure.message)}</Notice>}
        {!isOver && run.notice && <Notice tone="warning">{sentence(run.notice)}</Notice>}
        {reasons.length > 0 && (
          <Notice tone="warning">
            <ul class="k-plain" aria-label="Why it isn't complete">
              {reasons.map((reason) => (
                <li key={reason}>{sentence(reason)}</li>
              ))}
            </ul>
          </Notice>
        )}
      </header>
      {!isOver && run.checkpoints.map((question) => <QuestionCard key={question.id} watch={watch} question={question} onOpenPart={onOpenPart} />)}
      {isOver && run.answer && (
        <section class="k-run-said" aria-label="Answer">
          <Answer text={run.answer} citations={run.citations} removed={run.removed} prefix="run-" />
        </section>
      )}
      <section class="k-run-parts" aria-label="Parts and timeline">
        <RunTree nodes={run.nodes} doing={watch.doing} now={watch.now.value} selected={part} focusing={focusing} onOpen={onOpenPart} />
        <TimelineKey nodes={run.nodes} />
      </section>
    </div>
  );
}

function RunFacts({ watch, run }: { watch: RunWatch; run: Run }): JSX.Element {
  const state = runState(run.state);
  const { ms } = timelineOf(run.nodes, watch.now.value);
  return (
    <>
      <p class="k-run-facts">
        <span class="k-run-state" role="status">
          <Chip tone={state.tone}>{state.name}</Chip>
        </span>
        <span>{count(run.node_count, "part")}</span>
        {ms > 0 && <span>{duration(ms)}</span>}
        <span>{spentText(run.usage, run.limits.tokens)}</span>
        {run.cached > 0 && <span>{run.cached} from the cache</span>}
        <span title={dateTime(run.created)}>{date(run.created)}</span>
      </p>
      <details class="k-run-more">
        <summary>
          {run.strategy === "auto" ? "Strategy chosen by the model" : `Strategy: ${run.strategy}`}
          {run.also.length > 0 && `, also searches ${run.also.join(", ")}`}
        </summary>
        <p class="k-quiet">
          {[run.code_mode ? "Scripts find the notes (Code Mode)" : "Search finds the notes", run.model, `by ${run.client}`].filter(Boolean).join(" · ")}
        </p>
        <p class="k-quiet">Limits: {limitsText(run.limits)}</p>
      </details>
    </>
  );
}

function Task({ text }: { text: string }): JSX.Element {
  if (text.length <= LONG_TASK) return <p class="k-run-task">{text}</p>;
  return (
    <details class="k-run-task">
      <summary>{text.slice(0, 200).trimEnd()}…</summary>
      <p>{text}</p>
    </details>
  );
}

function QuestionCard({ watch, question, onOpenPart }: { watch: RunWatch; question: Question; onOpenPart: (id: string) => void }): JSX.Element {
  const host = useHost();
  const where = useSignal("");
  const isBusy = useSignal(false);
  const id = useId();
  const say = async (text: string) => {
    if (!text.trim() || isBusy.value) return;
    isBusy.value = true;
    await attempt(host, () => watch.answer(question.id, text.trim()));
    isBusy.value = false;
  };
  return (
    <section class="k-run-question" aria-labelledby={`${id}-q`}>
      <Icon name="message-circle-question-mark" size={20} />
      <div>
        <p id={`${id}-q`}>
          <strong>{question.question}</strong>
        </p>
        <form
          class="k-run-question-where"
          onSubmit={(event) => {
            event.preventDefault();
            void say(where.value);
          }}
        >
          <label for={id} class="k-only-read">
            Where to look
          </label>
          <input id={id} class="k-input" maxLength={2_000} placeholder="A note, or a hint where to look" value={where.value} onInput={(event) => (where.value = event.currentTarget.value)} />
          <Button type="submit" isDisabled={isBusy.value || !where.value.trim()}>
            Look there
          </Button>
        </form>
        <div class="k-run-question-acts">
          {question.options.map((option) => (
            <Button key={option} size="small" isDisabled={isBusy.value} onClick={() => void say(option)}>
              {optionName(option)}
            </Button>
          ))}
          <Button size="small" kind="quiet" onClick={() => onOpenPart(question.node_id)}>
            View this part
          </Button>
        </div>
      </div>
    </section>
  );
}

function optionName(option: string): string {
  if (option === "go on") return "Continue without";
  return sentence(option);
}

/** The buttons for a run, for the head of whatever shows it. */
export function RunActs({ watch, list, onCompare, onDeleted }: { watch: RunWatch; list: RunList; onCompare?: () => void; onDeleted: () => void }): JSX.Element | null {
  const host = useHost();
  const run = watch.run.value;
  if (!run) return null;
  if (isGoing(run)) {
    return (
      <Button size="small" icon="circle-stop" onClick={() => void attempt(host, () => watch.cancel())}>
        Cancel
      </Button>
    );
  }
  const hasAnswers = run.nodes.some((node) => node.state === "done" || node.state === "partial");
  const graph = host.href({ kind: "graph", run: run.id });
  return (
    <>
      {graph && hasAnswers && (
        <HeadButton icon="waypoints" href={graph}>
          Graph of its notes
        </HeadButton>
      )}
      {run.answer && (
        <HeadButton icon="file-plus" onClick={() => void write(host, watch, run)}>
          Save as a note
        </HeadButton>
      )}
      {run.state !== "complete" && (
        <Button size="small" kind="primary" icon="play" onClick={() => void attempt(host, () => resume(host, watch, list, run))}>
          Resume
        </Button>
      )}
      <IconButton
        icon="ellipsis"
        size="small"
        label="More"
        onClick={(event) =>
          host.floaters.openMenu(event, "More", [
            { title: "Update for changed notes…", icon: "refresh-cw", isDisabled: !hasAnswers, run: () => void attempt(host, () => replayStale(host, watch, run)) },
            ...(onCompare ? [{ title: "Compare with another run…", icon: "git-compare" as const, run: onCompare }] : []),
            { title: "Copy answer", icon: "copy", isDisabled: !run.answer, run: () => void host.copy(run.answer).then(() => host.floaters.toast({ text: "Copied" })) },
            "line",
            { title: "Delete…", icon: "trash", tone: "danger", run: () => void attempt(host, () => remove(host, watch, onDeleted)) },
          ])
        }
      />
    </>
  );
}

/** A button of a head; on a phone its icon alone, so that the title has room. */
function HeadButton({ children, ...more }: { children: string; icon: IconName; href?: string; onClick?: () => void }): JSX.Element {
  if (isNarrow()) return <IconButton size="small" label={children} {...more} />;
  return (
    <Button size="small" {...more}>
      {children}
    </Button>
  );
}

/** Do something, and say what the server refuses. */
async function attempt(host: Host, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const failure = failureOf(error);
    host.floaters.toast({ text: sentence(failure.message), ...(failure.hint ? { hint: failure.hint } : {}), tone: "removed" });
  }
}

async function resume(host: Host, watch: RunWatch, list: RunList, run: Run): Promise<void> {
  const options = list.options.data.value ?? (await list.options.load());
  const { seconds: _, parallel: __, ...limits } = run.limits;
  const values: Record<string, number> = { ...limits, minutes: minutesOf(run.limits) };
  const given: Record<string, string> = {};
  let isSure = false;
  await host.floaters.dialog((close) => {
    const done = () => {
      isSure = true;
      close();
    };
    return (
      <FormDialog title="Resume the run" act="Resume" onClose={close} onDone={done}>
        <p class="k-dialog-lead">Finished parts are kept and cost nothing again. Raise any limit that was reached.</p>
        <LimitFields values={values} ranges={options?.ranges ?? {}} onChange={(name, text) => (given[name] = text)} />
      </FormDialog>
    );
  });
  if (isSure) await watch.resume(changedLimits(values, given));
}

/** Do one part again, and all below it. */
export async function replay(host: Host, watch: RunWatch, id: string): Promise<void> {
  const node = watch.run.value?.nodes.find((one) => one.id === id);
  const isSure = await host.floaters.confirm({
    title: "Redo this part?",
    text: `“${node?.title ?? id}” and everything below it runs again, at full cost. Parts that build on it follow if its answer changes.`,
    act: "Redo",
  });
  if (isSure) await attempt(host, () => watch.resume({ replay: id }));
}

async function replayStale(host: Host, watch: RunWatch, run: Run): Promise<void> {
  const found = await watch.stale();
  if (!found.length) {
    await host.floaters.dialog((close) => (
      <DialogFrame title="Nothing changed" onClose={close} acts={<Button onClick={close}>Close</Button>}>
        None of the notes this run read has changed since.
      </DialogFrame>
    ));
    return;
  }
  const titles = new Map(run.nodes.map((node) => [node.id, node.title]));
  const isSure = await host.floaters.confirm({
    title: "Redo parts whose notes changed?",
    text: (
      <>
        <p class="k-dialog-lead">{count(found.length, "part")} read notes that have changed since:</p>
        <ul class="k-plain k-run-stale">
          {found.map(([id, paths]) => (
            <li key={id}>
              <strong>
                {id} {titles.get(id) ?? ""}
              </strong>
              <div class="k-quiet">{paths.map((path) => (path === ALL_NOTES ? "any note" : path)).join(", ")}</div>
            </li>
          ))}
        </ul>
      </>
    ),
    act: "Redo these parts",
  });
  if (isSure) await watch.resume({ replay: "stale" });
}

async function write(host: Host, watch: RunWatch, run: Run): Promise<void> {
  let to = `Runs/${fileName(run.task)}.md`;
  let isSure = false;
  await host.floaters.dialog((close) => {
    const done = () => {
      isSure = to.trim() !== "";
      close();
    };
    return (
      <FormDialog title="Save as a note" act="Propose" onClose={close} onDone={done}>
        <Field label="Note or folder" hint="A note's name ends in .md. In a folder, each part becomes a note too. You review the notes before they are saved.">
          {(attributes) => <input {...attributes} class="k-input" defaultValue={to} onInput={(event) => (to = event.currentTarget.value)} />}
        </Field>
      </FormDialog>
    );
  });
  if (!isSure) return;
  await attempt(host, async () => {
    const { proposal, message } = await watch.write(to.trim());
    if (proposal) host.open({ kind: "proposal", id: proposal });
    else host.floaters.toast({ text: sentence(message) });
  });
}

async function remove(host: Host, watch: RunWatch, onDeleted: () => void): Promise<void> {
  const isSure = await host.floaters.confirm({ title: "Delete the run?", text: "The run, its parts and its scripts will be deleted permanently. Your notes aren't affected.", act: "Delete", isDanger: true });
  if (!isSure) return;
  await watch.delete();
  onDeleted();
}
