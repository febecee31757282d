/** One part of a run: what it was to do, what it found and how, what it says, and what it cost. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { failureOf, type Failure } from "../../client";
import { Button, Chip, Icon, IconButton } from "../basic";
import { count, duration } from "../format";
import { useHost } from "../host";
import { CodeBlock } from "../markdown/code";
import { FailureNotice, Notice, SkeletonText } from "../rows";
import { Answer, Places } from "./answer";
import { doingName, endText, isGoing, nodeState, ROOT, spentText, stepName, tierText, type Run, type RunPart, type Spend } from "./model";
import type { RunWatch } from "./runs";

interface PartProps {
  watch: RunWatch;
  id: string;
  onOpen: (id: string) => void;
  onReplay: (id: string) => void;
}

/** A part with all that is known of it; looked up again whenever it changes. */
export function RunPartView({ watch, id, onOpen, onReplay }: PartProps): JSX.Element {
  const part = useSignal<RunPart | null>(null);
  const failure = useSignal<Failure | null>(null);
  const run = watch.run.value;
  const node = run?.nodes.find((one) => one.id === id);
  const asked = run?.checkpoints.some((one) => one.node_id === id);
  useEffect(() => {
    const abort = new AbortController();
    watch.part(id, abort.signal).then(
      (found) => {
        part.value = found;
        failure.value = null;
      },
      (error: unknown) => {
        if (!abort.signal.aborted && !failureOf(error).isOffline) failure.value = failureOf(error);
      },
    );
    return () => abort.abort();
  }, [id, node, asked]);
  const shown = part.value;
  if (!run) return <SkeletonText />;
  if (failure.value && !shown) return <FailureNotice failure={failure.value} />;
  if (!shown || shown.id !== id) return <SkeletonText />;
  return <PartBody run={run} part={shown} doing={watch.doing.value.get(id) ?? ""} onOpen={onOpen} onReplay={onReplay} />;
}

interface BodyProps {
  run: Run;
  part: RunPart;
  doing: string;
  onOpen: (id: string) => void;
  onReplay: (id: string) => void;
}

function PartBody({ run, part, doing, onOpen, onReplay }: BodyProps): JSX.Element {
  const host = useHost();
  const state = nodeState(part.state);
  // The whole task's answer is the run's own, which stands above the tree.
  const isAbove = part.id === ROOT && part.answer !== "" && run.answer.startsWith(part.answer.trimEnd());
  const answer = isAbove ? "" : part.answer;
  return (
    <div class="k-part">
      <p class="k-part-facts">
        <Chip tone={state.tone}>{part.state === "running" && doing ? doingName(doing) : state.name}</Chip>
        {part.cached && <Chip>From the cache</Chip>}
        {part.usage.total_tokens > 0 && <span class="k-quiet k-small">This part: {spentText(part.usage)}</span>}
      </p>
      {part.reason && <Notice tone={part.state === "failed" || part.state === "blocked" ? "removed" : "warning"}>{part.reason}</Notice>}
      <p class="k-part-task">{part.task}</p>
      <Relations run={run} part={part} onOpen={onOpen} />
      {(answer || (!isAbove && (part.citations.length > 0 || part.removed.length > 0))) && (
        <section class="k-part-said" aria-label="Answer">
          <div class="k-part-head">
            <h3>Answer</h3>
            <IconButton icon="copy" size="small" label="Copy answer" onClick={() => void host.copy(answer).then(() => host.floaters.toast({ text: "Copied" }))} />
          </div>
          <Answer text={answer} citations={part.citations} removed={part.removed} prefix={`part-${part.id}-`} />
        </section>
      )}
      {part.retrieval && <Retrieval found={part.retrieval} read={part.sources} />}
      {part.checkpoint && (
        <section>
          <h3>Asked</h3>
          <p>{part.checkpoint.question}</p>
          <p class="k-quiet">{part.checkpoint.unattended ? "No one was there to answer, so it continued." : part.checkpoint.answer ? `Answered: ${part.checkpoint.answer}` : "Waiting for an answer."}</p>
        </section>
      )}
      {part.notes.map((note, index) => (
        <Notice key={index}>{note}</Notice>
      ))}
      {!isGoing(run) && (
        <div>
          <Button icon="rotate-cw" onClick={() => onReplay(part.id)}>
            {part.id === ROOT ? "Redo everything" : "Redo this part"}
          </Button>
        </div>
      )}
    </div>
  );
}

const IMPACTS: Readonly<Record<string, string>> = {
  security: "security",
  data_model: "the data model",
  architecture: "the architecture",
  contract: "a contract that others rely on",
};

function Relations({ run, part, onOpen }: Omit<BodyProps, "doing" | "onReplay">): JSX.Element | null {
  const titles = new Map(run.nodes.map((node) => [node.id, node.title]));
  const named = (ids: readonly string[]) =>
    ids.map((id) => (
      <button type="button" class="k-link" key={id} onClick={() => onOpen(id)}>
        {id} {titles.get(id) ?? ""}
      </button>
    ));
  const impact = IMPACTS[part.impact];
  const rows: [string, JSX.Element | JSX.Element[] | string | false][] = [
    [part.children.length ? "Why it was split" : "Why it wasn't split", part.why.charAt(0).toUpperCase() + part.why.slice(1)],
    ["Needs", part.hard.length > 0 && named(part.hard)],
    ["Uses", part.soft.length > 0 && named(part.soft)],
    ["Split into", part.children.length > 0 && named(part.children)],
    ["Impact", impact ? `High impact: affects ${impact}.` : part.high_impact ? "High impact." : false],
  ];
  const shown = rows.filter(([, value]) => Boolean(value));
  if (!shown.length) return null;
  return (
    <dl class="k-part-relations">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const MEASURES: Readonly<Record<string, string>> = {
  overlap: "Task terms found",
  coverage: "Aspects covered",
  diversity: "Variety of notes",
  boilerplate: "Irrelevant results (penalty)",
};

type Found = NonNullable<RunPart["retrieval"]>;

function Retrieval({ found, read }: { found: Found; read: RunPart["sources"] }): JSX.Element {
  const sources = new Set(found.sources.map((one) => `${one.vault} ${one.path}`));
  const beside = read.filter((one) => !sources.has(`${one.vault} ${one.path}`));
  return (
    <section class="k-retrieval" aria-label="What was found">
      <h3>What was found</h3>
      {(found.tier || found.script) && <p class="k-quiet k-small">{tierText(found.tier)}</p>}
      <dl class="k-measures">
        <Measure name="Score" value={found.score} isWhole />
        {Object.entries(found.parts).map(([name, value]) => (
          <Measure key={name} name={MEASURES[name] ?? name} value={value} />
        ))}
        {found.confidence > 0 && <Measure name="The script's own confidence" value={found.confidence} />}
      </dl>
      {found.context_chars > 0 && <p class="k-quiet k-small">{count(found.context_chars, "character")} of context</p>}
      <Attempts found={found} />
      {found.notes.map((note, index) => (
        <Notice key={index}>{note}</Notice>
      ))}
      <Places title="Sources" places={found.sources} />
      <Places title="Also read" places={beside} />
    </section>
  );
}

function Measure({ name, value, isWhole = false }: { name: string; value: number; isWhole?: boolean }): JSX.Element {
  return (
    <div class="k-measure" data-whole={isWhole ? "" : undefined}>
      <dt>{name}</dt>
      <dd>
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect class="k-measure-all" width="100" height="4" rx="2" />
          <rect class="k-measure-is" width={Math.max(0, Math.min(1, value)) * 100} height="4" rx="2" />
        </svg>
        <span>{value.toFixed(2)}</span>
      </dd>
    </div>
  );
}

interface Attempt {
  step?: string;
  kind?: string;
  error?: string;
  score?: number;
  calls?: number;
  wall_s?: number;
  usage?: Partial<Spend>;
  script?: string;
}

function Attempts({ found }: { found: Found }): JSX.Element | null {
  const tried = found.attempts as readonly Attempt[];
  if (!tried.length && !found.script) return null;
  if (!tried.length) {
    return (
      <details class="k-attempt">
        <summary>
          <Icon name="chevron-right" />
          <span>Script</span>
        </summary>
        <CodeBlock text={found.script} language="python" />
      </details>
    );
  }
  return (
    <div class="k-attempts">
      {tried.map((one, index) => (
        <AttemptView key={index} attempt={one} number={index + 1} isUsed={Boolean(found.script) && one.script === found.script} />
      ))}
    </div>
  );
}

function AttemptView({ attempt, number, isUsed }: { attempt: Attempt; number: number; isUsed: boolean }): JSX.Element {
  const isBad = Boolean(attempt.error) || (attempt.kind !== undefined && attempt.kind !== "" && attempt.kind !== "ok");
  const told = [
    endText(attempt.kind ?? ""),
    `score ${(attempt.score ?? 0).toFixed(2)}`,
    attempt.calls ? count(attempt.calls, "call") : "",
    attempt.wall_s ? duration(attempt.wall_s * 1_000) : "",
    attempt.usage?.total_tokens ? count(attempt.usage.total_tokens, "token") : "",
  ].filter(Boolean);
  return (
    <details class="k-attempt" data-bad={isBad ? "" : undefined}>
      <summary>
        <Icon name="chevron-right" />
        <span>
          {number}. {stepName(attempt.step ?? "")}
        </span>
        <span class="k-quiet">{told.join(" · ")}</span>
        {isUsed && <Chip tone="added">Used</Chip>}
      </summary>
      {attempt.error && <p class="k-attempt-error">{attempt.error}</p>}
      {attempt.script && <CodeBlock text={attempt.script.replace(/\n$/, "")} language="python" />}
    </details>
  );
}
