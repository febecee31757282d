/** Runs as they are shown: words for their states, the tree, the timeline, what an event changes, two runs compared. No DOM. */

import type { Reply, ServerEvent } from "../../client";
import type { Tone } from "../basic";
import { cost, count, duration, tokens } from "../format";

export type Run = Reply<"get", "/runs/{run_id}"> & {
  /** What it waits for just now, such as a model that is asked again; until something goes on. */
  notice?: string;
};
export type RunRow = Reply<"get", "/runs">["results"][number];
export type RunNode = Run["nodes"][number];
export type RunPart = Reply<"get", "/runs/{run_id}/nodes/{node_id}">;
export type RunOptions = Reply<"get", "/runs/options">;
export type Question = Run["checkpoints"][number];
type RunEvent = Reply<"get", "/runs/{run_id}/events">["events"][number]["data"];
export type Citation = Run["citations"][number];
export type Limits = Run["limits"];
export type Spend = Run["usage"];

export const ROOT = "root";
/** A source that stands for all notes: what found nothing could find something in any of them. */
export const ALL_NOTES = "**";

interface StateName {
  name: string;
  tone: Tone;
}

const RUN_STATES: Readonly<Record<string, StateName>> = {
  pending: { name: "Waiting to start", tone: "plain" },
  running: { name: "Running", tone: "accent" },
  complete: { name: "Complete", tone: "added" },
  partial: { name: "Partial", tone: "warning" },
  failed: { name: "Failed", tone: "removed" },
  cancelled: { name: "Cancelled", tone: "plain" },
  interrupted: { name: "Interrupted", tone: "warning" },
};
const NODE_STATES: Readonly<Record<string, StateName>> = {
  pending: { name: "Waiting", tone: "plain" },
  running: { name: "Running", tone: "accent" },
  done: { name: "Done", tone: "added" },
  partial: { name: "Partial", tone: "warning" },
  failed: { name: "Failed", tone: "removed" },
  blocked: { name: "Blocked", tone: "removed" },
  cut: { name: "Stopped early", tone: "warning" },
};

export function runState(state: string): StateName {
  return RUN_STATES[state] ?? { name: state, tone: "plain" };
}

export function nodeState(state: string): StateName {
  return NODE_STATES[state] ?? { name: state, tone: "plain" };
}

const DOINGS: Readonly<Record<string, string>> = {
  deciding: "Deciding whether to split",
  planning: "Planning parts",
  planned: "Working on its parts",
  waiting: "Queued",
  retrieving: "Searching the notes",
  asking: "Asking you",
  answering: "Writing the answer",
  joining: "Combining the answers",
};

/** What a node is at, in words. */
export function doingName(doing: string): string {
  return DOINGS[doing] ?? doing;
}

/** Whether something is done in a span, rather than waited for. */
export function isWork(doing: string): boolean {
  return doing !== "waiting" && doing !== "planned" && doing !== "asking";
}

const TIERS: Readonly<Record<string, string>> = {
  "": "The first script found enough.",
  A: "Tier A: the first script found too little, so another was written.",
  B: "Tier B: scripts found too little, so a broad search was added.",
  C: "Tier C: too little was found for something important, so a person had to be asked.",
  direct: "Found by search, without scripts.",
};
const STEPS: Readonly<Record<string, string>> = {
  script: "First script",
  mended: "Script, repaired",
  again: "Another script",
  direct: "Broad search",
  person: "Your answer",
};
const ENDS: Readonly<Record<string, string>> = {
  ok: "ran",
  syntax: "isn't Python",
  error: "raised an error",
  refused: "was denied access",
  result: "returned an unusable result",
  timeout: "took too long",
  memory: "ran out of memory",
  crash: "crashed the interpreter",
};

export function tierText(tier: string): string {
  return TIERS[tier] ?? `Tier ${tier}`;
}

export function stepName(step: string): string {
  return STEPS[step] ?? step;
}

export function endText(kind: string): string {
  return kind ? (ENDS[kind] ?? kind) : "";
}

/** Whether a run is carried out now, here or in another process. */
export function isGoing(run: { is_live?: boolean; state: string }): boolean {
  return run.is_live ?? (run.state === "pending" || run.state === "running");
}

/** What was used: `12.3k tokens of 1M · 14 requests · $0.12`. */
export function spentText(usage: Partial<Spend> | undefined, most = 0): string {
  if (!usage) return "";
  const all = usage.total_tokens ?? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const price = usage.cost_usd === null || usage.cost_usd === undefined ? "" : cost(usage.cost_usd);
  return [`${tokens(all)} tokens${most ? ` of ${tokens(most)}` : ""}`, usage.requests ? count(usage.requests, "request") : "", price].filter(Boolean).join(" · ");
}

export function limitsText(limits: Limits): string {
  const minutes = minutesOf(limits);
  return [
    count(limits.depth, "level"),
    count(limits.nodes, "part"),
    count(minutes, "minute"),
    limits.tokens ? `${tokens(limits.tokens)} tokens` : "unlimited tokens",
    limits.cents ? count(limits.cents, "cent") : "",
  ]
    .filter(Boolean)
    .join(", ");
}

export function minutesOf(limits: { seconds: number }): number {
  return Math.round((limits.seconds / 60) * 100) / 100;
}

/** Which limits differ from what they were; what is empty or no number is left out. */
export function changedLimits(values: Readonly<Record<string, number>>, given: Readonly<Record<string, string>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, text]) => text.trim() !== "" && Number.isFinite(Number(text)))
      .map(([name, text]): [string, number] => [name, Number(text)])
      .filter(([name, value]) => value !== values[name]),
  );
}

const LONGEST_NAME = 60;

/** A name for a note about a task, which every system can keep. */
export function fileName(task: string): string {
  const words = task
    .replace(/[^\p{L}\p{N} _-]+/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
    .split(" ");
  let name = (words.shift() ?? "").slice(0, LONGEST_NAME);
  for (const word of words) {
    if (name.length + word.length >= LONGEST_NAME) break;
    name += ` ${word}`;
  }
  return name || "Run";
}

// The tree

export interface TreeRow {
  node: RunNode;
  depth: number;
  /** Undefined where there is nothing below. */
  isExpanded: boolean | undefined;
  place: number;
  siblings: number;
}

/** The rows of a run's tree, in the order of its plan; what is folded away is left out. */
export function treeRows(nodes: readonly RunNode[], folded: ReadonlySet<string>): TreeRow[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const rows: TreeRow[] = [];
  const seen = new Set<string>();
  const add = (node: RunNode, depth: number, place: number, siblings: number): void => {
    if (seen.has(node.id)) return;
    seen.add(node.id);
    const children = node.children.map((id) => byId.get(id)).filter((child) => child !== undefined);
    rows.push({ node, depth, isExpanded: children.length ? !folded.has(node.id) : undefined, place, siblings });
    if (!folded.has(node.id)) children.forEach((child, index) => add(child, depth + 1, index + 1, children.length));
  };
  const roots = nodes.filter((node) => !byId.has(node.parent));
  roots.forEach((node, index) => add(node, 0, index + 1, roots.length));
  return rows;
}

/** Whether a node found less than those before it at its step would need: what the score says. */
export function isWeak(node: RunNode): boolean {
  return node.score !== null && (node.score < 0.5 || node.tier === "B" || node.tier === "C");
}

// The timeline

export interface Bar {
  doing: string;
  isWork: boolean;
  /** In percent of the whole. */
  left: number;
  width: number;
  text: string;
}

export interface Timeline {
  /** How long the run has worked, without the breaks. */
  ms: number;
  bars: ReadonlyMap<string, Bar[]>;
  /** Where nothing was done for long, such as until it was resumed: percent, and how long. */
  breaks: { left: number; text: string }[];
}

interface Interval {
  from: number;
  to: number;
}

/** A pause that is longer than this share of the work, and than a minute, is a break. */
const BREAK_SHARE = 0.25;
const BREAK_MS = 60_000;
const BREAK_WIDTH = 0.03;

/** Lay the spans of all nodes out on one axis; long pauses are cut out. */
export function timelineOf(nodes: readonly RunNode[], now: number): Timeline {
  const all = nodes.flatMap((node) => node.spans.map((span) => ({ from: Date.parse(span.started), to: span.ended ? Date.parse(span.ended) : now }))).filter((span) => span.to >= span.from);
  const busy = merged(all);
  const ms = busy.reduce((sum, part) => sum + part.to - part.from, 0);
  const limit = Math.max(BREAK_MS, ms * BREAK_SHARE);
  const stretches = joined(busy, limit);
  const length = stretches.reduce((sum, part) => sum + part.to - part.from, 0);
  const gap = length * BREAK_WIDTH;
  const whole = length + gap * Math.max(0, stretches.length - 1) || 1;
  let begin = 0;
  const breaks: Timeline["breaks"] = [];
  const starts = stretches.map((part, index) => {
    const before = stretches[index - 1];
    if (before) {
      breaks.push({ left: ((begin + gap / 2) / whole) * 100, text: duration(part.from - before.to) });
      begin += gap;
    }
    const at = begin;
    begin += part.to - part.from;
    return at;
  });
  const place = (time: number): number => {
    const index = stretches.findLastIndex((part) => time >= part.from);
    const part = stretches[Math.max(0, index)];
    return part ? (((starts[Math.max(0, index)] ?? 0) + Math.min(Math.max(time - part.from, 0), part.to - part.from)) / whole) * 100 : 0;
  };
  const bars = new Map<string, Bar[]>();
  for (const node of nodes) {
    const own = node.spans.map((span): Bar => {
      const [from, to] = [Date.parse(span.started), span.ended ? Date.parse(span.ended) : now];
      const left = place(from);
      return { doing: span.doing, isWork: isWork(span.doing), left, width: Math.max(0, place(Math.max(from, to)) - left), text: `${doingName(span.doing)}: ${duration(Math.max(0, to - from))}` };
    });
    bars.set(node.id, own);
  }
  return { ms, bars, breaks };
}

function merged(intervals: readonly Interval[]): Interval[] {
  return joined([...intervals].sort((one, other) => one.from - other.from), 0);
}

/** Join intervals, sorted by their beginning, that are no farther apart than that. */
function joined(intervals: readonly Interval[], apart: number): Interval[] {
  const found: Interval[] = [];
  for (const interval of intervals) {
    const last = found.at(-1);
    if (last && interval.from - last.to <= apart) last.to = Math.max(last.to, interval.to);
    else found.push({ ...interval });
  }
  return found;
}

/** How long a node was worked on by itself; waiting doesn't count. */
export function workMs(node: RunNode, now: number): number {
  return node.spans.filter((span) => isWork(span.doing)).reduce((sum, span) => sum + Math.max(0, (span.ended ? Date.parse(span.ended) : now) - Date.parse(span.started)), 0);
}

// Events

/** A run after an event of it; the same one where it says nothing new of it. */
export function afterEvent(run: Run, { data }: ServerEvent): Run {
  const told = data as RunEvent;
  switch (told.type) {
    case "run_started":
      return { ...run, ...told.run, is_live: true };
    case "node": {
      const { node } = told;
      const isKnown = run.nodes.some((one) => one.id === node.id);
      const nodes = isKnown ? run.nodes.map((one) => (one.id === node.id ? node : one)) : [...run.nodes, node];
      const spent = nodes.reduce((sum, one) => sum + (one.cached ? 0 : one.tokens), 0); // told sooner than the whole run's
      const usage = spent > run.usage.total_tokens ? { ...run.usage, total_tokens: spent } : run.usage;
      return { ...run, nodes, usage, node_count: nodes.length, cached: nodes.filter((one) => one.cached).length, notice: "" };
    }
    case "checkpoint": {
      const others = run.checkpoints.filter((one) => one.node_id !== told.node_id);
      const isOver = Boolean(told.answer) || told.unattended || !told.id;
      return { ...run, checkpoints: isOver ? others : [...others, told] };
    }
    case "usage":
      return { ...run, usage: { ...told, total_tokens: told.input_tokens + told.output_tokens }, notice: "" };
    case "notice":
      return { ...run, notice: told.text };
    default:
      return run;
  }
}

// Comparing

export interface ComparedPart {
  title: string;
  one: RunNode | undefined;
  other: RunNode | undefined;
}

/** The parts of two runs beside each other: by their titles, then those that only one has. */
export function comparedParts(one: Run, other: Run): ComparedPart[] {
  const left = [...other.nodes];
  const take = (fits: (node: RunNode) => boolean): RunNode | undefined => {
    const index = left.findIndex(fits);
    return index < 0 ? undefined : left.splice(index, 1)[0];
  };
  const title = (node: RunNode): string => (node.id === ROOT ? "The whole task" : node.title);
  const rows = one.nodes.map((node): ComparedPart => {
    const same = node.id === ROOT ? take((candidate) => candidate.id === ROOT) : take((candidate) => candidate.id !== ROOT && plain(candidate.title) === plain(node.title));
    return { title: title(node), one: node, other: same };
  });
  return [...rows, ...left.map((node) => ({ title: title(node), one: undefined, other: node }))];
}

function plain(text: string): string {
  return text.trim().toLowerCase().replace(/\s+/g, " ");
}
