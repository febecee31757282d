/** One turn of a conversation as it is shown: made of events while it runs, or of what the session has kept. */

import { hintForPerson, textOf, type ServerEvent } from "../../client";
import type { Citation } from "../markdown";

export type Step =
  | { kind: "text"; text: string }
  | { kind: "round"; number: number; limit: number }
  | {
      kind: "call";
      id: string;
      name: string;
      /** `broken`: no answer came. */
      state: "open" | "good" | "failed" | "broken";
      summary: string;
      /** Undefined where they weren't loaded yet. */
      given?: unknown;
      answer?: unknown;
      /** Where the model was given only a part of the answer: how many characters it has. */
      cutFrom?: number;
    };

export interface Phase {
  phase: string;
  state: "started" | "going_on" | "ended" | "broken";
  text: string;
}

export interface Asked {
  question: string;
  options: readonly string[];
  /** What the person has answered; empty while the question is open. */
  answer: string;
}

export interface Problem {
  message: string;
  code: string;
  hint: string;
}

export interface Spent {
  requests: number;
  input_tokens: number;
  output_tokens: number;
  /** Null where no price is known. */
  cost_usd: number | null;
  /** By agent; of tasks only. */
  phases: Readonly<Record<string, Spent>>;
}

/** A note that goes in, or was chosen or left out, with the reason. */
export interface ScopedNote {
  path: string;
  why: string;
  reason: string;
  tokens: number | null;
  /** Where it comes from: `current`, `linked`, `folder`, `semantic` or `manual`, several where several hold. */
  sources: readonly string[];
  /** How near it is in meaning, 0 to 1; null where that wasn't asked. */
  score: number | null;
}

export interface Selection {
  notes: readonly ScopedNote[];
  reasoning: string;
  confidence: string;
  summary: string;
  ended: string;
}

export interface WebSource {
  title: string;
  url: string;
  date: string;
  text: string;
}

export interface WebFindings {
  sources: readonly WebSource[];
  queries: readonly string[];
  reasoning: string;
  findings: string;
  problem: string;
}

export interface UsedNotes {
  notes: readonly ScopedNote[];
  removed: readonly ScopedNote[];
  tokens: number;
}

export type TurnState = "sending" | "running" | "complete" | "limit" | "asked" | "cancelled" | "failed";

export interface Turn {
  kind: "chat" | "task";
  /** The server's id of the turn or run; empty before it is known. */
  id: string;
  /** In its session, from 1; 0 before it is kept. */
  number: number;
  question: string;
  at: string;
  state: TurnState;
  /** When the connection was lost; 0 while it stands. */
  lostAt: number;
  steps: readonly Step[];
  text: string;
  /** Which reply of the model the text belongs to. */
  reply: number;
  citations: readonly Citation[];
  removed: readonly { citation: string; reason: string }[];
  proposals: readonly string[];
  changes: readonly string[];
  notices: readonly string[];
  /** Notes that the agent opened for the person. */
  opened: readonly string[];
  asked: Asked | null;
  phases: readonly Phase[];
  selection: Selection | null;
  web: WebFindings | null;
  context: UsedNotes | null;
  model: string;
  spent: Spent | null;
  problem: Problem | null;
}

/** A turn that is about to be sent. */
export function newTurn(kind: Turn["kind"], question: string, at: string): Turn {
  return {
    kind, question, at, id: "", number: 0, state: "sending", lostAt: 0, steps: [], text: "", reply: 0, citations: [], removed: [],
    proposals: [], changes: [], notices: [], opened: [], asked: null, phases: [], selection: null, web: null, context: null, model: "",
    spent: null, problem: null,
  };
}

export function isOver(turn: Turn): boolean {
  return turn.state !== "sending" && turn.state !== "running";
}

/** The turn after one more event; an event of an unknown kind changes nothing. */
export function reduce(turn: Turn, event: ServerEvent): Turn {
  const known = Object.hasOwn(REDUCERS, event.event) ? REDUCERS[event.event] : undefined;
  return known ? known({ ...turn, lostAt: 0, state: turn.state === "sending" ? "running" : turn.state }, record(event.data)) : turn;
}

type Data = Readonly<Record<string, unknown>>;

const REDUCERS: Readonly<Record<string, (turn: Turn, data: Data) => Turn>> = {
  start: (turn, data) => restart(turn, data),
  text: (turn, data) => {
    const reply = numberOf(data["step"]);
    const isNext = turn.reply !== 0 && reply !== turn.reply;
    return { ...turn, steps: isNext ? withAside(turn) : turn.steps, text: (isNext ? "" : turn.text) + textOf(data["text"]), reply };
  },
  round: (turn, data) => ({ ...turn, steps: [...turn.steps, { kind: "round", number: numberOf(data["number"]), limit: numberOf(data["limit"]) }] }),
  tool_call: (turn, data) => ({ ...turn, text: "", steps: [...withAside(turn), callOf(data)] }),
  tool_result: (turn, data) => ({ ...turn, steps: withResult(turn.steps, data) }),
  proposal: (turn, data) => ({ ...turn, proposals: added(turn.proposals, textOf(record(data["proposal"])["id"])) }),
  question: (turn, data) => ({ ...turn, asked: askedOf(data) }),
  usage: (turn, data) => ({ ...turn, spent: spentOf(data) ?? turn.spent }),
  error: (turn, data) => ({ ...turn, problem: { message: textOf(data["error"]), code: textOf(data["code"]), hint: hintForPerson(textOf(data["hint"])) } }),
  progress: (turn, data) => ({ ...turn, phases: withPhase(turn.phases, data) }),
  selection: (turn, data) => ({ ...turn, selection: selectionOf(data["scout"]) }),
  sources: (turn, data) => ({ ...turn, web: webOf(data["web"]) }),
  context: (turn, data) => ({ ...turn, context: usedOf(data["context"]) }),
  navigate: (turn, data) => ({ ...turn, opened: added(turn.opened, textOf(data["path"])) }),
  notice: (turn, data) => ({ ...turn, notices: added(turn.notices, textOf(data["text"])) }),
  gap: (turn) => ({ ...turn, notices: added(turn.notices, "Some steps couldn't be shown live; the answer is complete.") }),
  done: (turn, data) => settle(turn, data),
  outcome: (turn, data) => settle(turn, data),
};

/** Where a turn is told from its beginning, such as after a reload, what was shown of it must not stand there twice. */
function restart(turn: Turn, data: Data): Turn {
  const id = textOf(data["turn_id"] ?? data["run_id"]) || turn.id;
  const question = turn.question || textOf(data["message"] ?? data["task"]);
  const isResumed = Boolean(turn.asked?.answer); // by the person's answer: what came before it stays
  const kept = isResumed ? turn : { ...newTurn(turn.kind, question, turn.at), number: turn.number, model: turn.model };
  return { ...kept, id, question, state: "running" };
}

/** The turn with what its last event, or the session, says of it. */
export function settle(turn: Turn, data: Data): Turn {
  const pipeline = record(data["pipeline"]);
  const question = data["question"] ? askedOf(record(data["question"])) : null;
  const asked = question && turn.asked?.question === question.question ? turn.asked : (question ?? closed(turn.asked, data));
  const answer = textOf(data["answer"]) || turn.text;
  const notices = [...list(data["notes"]), ...list(data["notices"])].map(textOf);
  const failures = list(record(data["edit_results"])["failures"]).map((row) => `${textOf(record(row)["file"])} can't be edited: ${textOf(record(row)["error"])}`);
  const error = data["error"] ? record(data["error"]) : null;
  return {
    ...turn,
    lostAt: 0,
    id: textOf(data["run_id"]) || turn.id,
    state: stateOf(data["state"]),
    steps: turn.steps.map((step) => (step.kind === "call" && step.state === "open" ? { ...step, state: "broken" } : step)),
    phases: turn.phases.map((phase) => (phase.state === "ended" ? phase : { ...phase, state: phase.phase === "orchestrator" ? "ended" : "broken" })),
    text: asked && asked.question === answer ? "" : answer,
    citations: list(data["citations"]) as Citation[],
    removed: list(data["removed"]).map((row) => ({ citation: textOf(record(row)["citation"]), reason: textOf(record(row)["reason"]) })),
    proposals: list(data["proposals"]).map(textOf).reduce(added, turn.proposals),
    changes: list(data["changes"]).map(textOf).reduce(added, turn.changes),
    notices: [...notices, ...failures].reduce(added, turn.notices),
    asked,
    selection: pipeline["scout"] ? selectionOf(pipeline["scout"]) : turn.selection,
    web: pipeline["web"] ? webOf(pipeline["web"]) : turn.web,
    context: list(record(data["context"])["notes"]).length ? usedOf(data["context"]) : turn.context,
    model: textOf(data["model"]) || turn.model,
    spent: spentOf(data["usage"]) ?? turn.spent,
    problem: turn.problem ?? (error ? { message: textOf(error["error"]), code: textOf(error["code"]), hint: hintForPerson(textOf(error["hint"])) } : null),
  };
}

/** A question of a chat stays open for the next message; one of a task was answered where the task doesn't ask it any more. */
function closed(asked: Asked | null, data: Data): Asked | null {
  return asked && data["pipeline"] && !asked.answer ? null : asked;
}

/** A turn as a session has kept it: the question, and the answer where there is one. */
export function readKept(question: Data, answer: Data | undefined): Turn {
  const outcome = record(answer?.["outcome"]);
  const turn = newTurn(outcome["pipeline"] ? "task" : "chat", textOf(question["content"]), textOf(question["at"]));
  const trace = list(outcome["trace"]).map(record);
  const steps = trace.length ? trace.map(keptStep) : list(outcome["tools"]).map((tool) => keptStep({ kind: "call", ...record(tool) }));
  return { ...settle({ ...turn, steps }, outcome), number: numberOf(question["number"]) };
}

const ENDS: Readonly<Partial<Record<Turn["state"], string>>> = { limit: "Stopped at a limit.", cancelled: "Stopped." };

/** How a turn ended, where it isn't plainly answered, and which citations it lost: each once, however often they stood there. */
export function endTexts(turn: Turn): string[] {
  // A session keeps that an answer failed, and not why.
  const end = turn.state === "failed" && !turn.problem && !turn.text ? "No answer came." : ENDS[turn.state];
  const counts = new Map<string, number>();
  for (const { citation, reason } of turn.removed) {
    const text = `${citation} (${reason})`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const removed = [...counts].map(([text, times]) => `A citation couldn't be verified and was removed${times > 1 ? `, ${times} times` : ""}: ${text}`);
  return [...(end ? [end] : []), ...removed];
}

/** Pair each question of a session with its answer. */
export function readMessages(messages: readonly Data[]): Turn[] {
  const answers = new Map(messages.filter((row) => row["role"] === "assistant").map((row) => [row["number"], row]));
  return messages.filter((row) => row["role"] === "user").map((row) => readKept(row, answers.get(row["number"])));
}

/** The steps with arguments and answers, as `GET /sessions/ID/trace` gives them. */
export function withTrace(turn: Turn, trace: readonly Data[]): Turn {
  return { ...turn, steps: trace.map(keptStep) };
}

function keptStep(entry: Data): Step {
  if (entry["kind"] === "text") return { kind: "text", text: textOf(entry["text"]) };
  if (entry["kind"] === "round") return { kind: "round", number: numberOf(entry["number"]), limit: numberOf(entry["limit"]) };
  const success = entry["success"];
  return {
    kind: "call",
    id: textOf(entry["id"]),
    name: textOf(entry["name"]),
    state: success === true ? "good" : success === false ? "failed" : "broken",
    summary: textOf(entry["summary"]),
    ...("arguments" in entry ? { given: entry["arguments"] } : {}),
    ...("answer" in entry ? { answer: entry["answer"] } : {}),
    ...(entry["truncated"] ? { cutFrom: numberOf(entry["chars"]) } : {}),
  };
}

function withAside(turn: Turn): Step[] {
  return turn.text.trim() ? [...turn.steps, { kind: "text", text: turn.text.trim() }] : [...turn.steps];
}

function callOf(data: Data): Step {
  return { kind: "call", id: textOf(data["id"]), name: textOf(data["name"]), state: "open", summary: "", given: data["arguments"] ?? {} };
}

function withResult(steps: readonly Step[], data: Data): Step[] {
  const id = textOf(data["id"]);
  const index = steps.findLastIndex((step) => step.kind === "call" && step.id === id);
  const call = index < 0 ? callOf(data) : steps[index];
  const ended = {
    ...call,
    state: data["success"] ? "good" : "failed",
    summary: textOf(data["summary"]),
    answer: data["answer"] ?? {},
    ...(data["truncated"] ? { cutFrom: numberOf(data["chars"]) } : {}),
  } as Step;
  return index < 0 ? [...steps, ended] : steps.map((step, at) => (at === index ? ended : step));
}

function withPhase(phases: readonly Phase[], data: Data): Phase[] {
  const next = { phase: textOf(data["phase"]), state: textOf(data["state"]) as Phase["state"], text: textOf(data["text"]) };
  const isKnown = phases.some((phase) => phase.phase === next.phase);
  return isKnown ? phases.map((phase) => (phase.phase === next.phase ? next : phase)) : [...phases, next];
}

function askedOf(data: Data): Asked {
  return { question: textOf(data["question"]), options: list(data["options"]).map(textOf), answer: "" };
}

function selectionOf(value: unknown): Selection {
  const data = record(value);
  return {
    notes: list(data["selected_notes"]).map(scopedNote),
    reasoning: textOf(data["reasoning"]),
    confidence: textOf(data["confidence"]),
    summary: textOf(data["exploration_summary"]),
    ended: textOf(data["ended"]),
  };
}

function webOf(value: unknown): WebFindings {
  const data = record(value);
  const sources = list(data["sources"]).map(record);
  return {
    sources: sources.map((row) => ({ title: textOf(row["title"]), url: textOf(row["url"]), date: textOf(row["date"]), text: textOf(row["extracted"] || row["snippet"]) })),
    queries: list(data["search_queries"]).map(textOf),
    reasoning: textOf(data["evaluation_reasoning"]),
    findings: textOf(data["findings"]),
    problem: textOf(data["problem"]),
  };
}

/** What goes in, and what the limit leaves out, as `POST /ask/context` and the events tell it. */
export function usedOf(value: unknown): UsedNotes {
  const data = record(value);
  return { notes: list(data["notes"]).map(scopedNote), removed: list(data["removed"]).map(scopedNote), tokens: numberOf(data["tokens"]) };
}

function scopedNote(value: unknown): ScopedNote {
  const row = record(value);
  return {
    path: textOf(row["path"]),
    why: textOf(row["why"] || row["source"]),
    reason: textOf(row["reason"]),
    tokens: typeof row["tokens"] === "number" ? row["tokens"] : null,
    sources: list(row["sources"] ?? [row["source"]]).map(textOf).filter(Boolean),
    score: typeof row["semantic_score"] === "number" ? row["semantic_score"] : null,
  };
}

/** What was used; null where no model was asked. */
export function spentOf(value: unknown): Spent | null {
  const data = record(value);
  if (!numberOf(data["requests"])) return null;
  const phases = Object.entries(record(data["phases"])).map(([name, own]) => [name, spentOf(own)] as const);
  return {
    requests: numberOf(data["requests"]),
    input_tokens: numberOf(data["input_tokens"]),
    output_tokens: numberOf(data["output_tokens"]),
    cost_usd: typeof data["cost_usd"] === "number" ? data["cost_usd"] : null,
    phases: Object.fromEntries(phases.filter((row): row is [string, Spent] => row[1] !== null)),
  };
}

const STATES: readonly TurnState[] = ["complete", "limit", "asked", "cancelled", "failed"];

function stateOf(value: unknown): TurnState {
  return STATES.find((state) => state === value) ?? "complete";
}

function added(known: readonly string[], one: string): readonly string[] {
  return !one || known.includes(one) ? known : [...known, one];
}

function record(value: unknown): Data {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Data) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
