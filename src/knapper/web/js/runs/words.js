/** Say in words and signs how runs and their parts stand, and what they cost. */

import { count, el } from "../dom.js";

const RUNS = {
  pending: ["·", "waits", "idle"],
  running: ["…", "goes on", "working"],
  complete: ["✓", "complete", "good"],
  partial: ["~", "partial", "unsure"],
  failed: ["✗", "failed", "bad"],
  cancelled: ["✂", "cancelled", "unsure"],
  interrupted: ["!", "interrupted", "unsure"],
};
const NODES = {
  pending: ["·", "waits", "idle"],
  running: ["…", "at work", "working"],
  done: ["✓", "done", "good"],
  partial: ["~", "partial", "unsure"],
  failed: ["✗", "failed", "bad"],
  blocked: ["⊘", "blocked", "bad"],
  cut: ["✂", "cut short", "unsure"],
};
const TIERS = {
  "": "The first script was good enough.",
  A: "Tier A: the first script brought too little, and another one was written.",
  B: "Tier B: scripts brought too little, and a broad search was made as well.",
  C: "Tier C: too little was found for something important, so a person was to be asked.",
  direct: "It was found by search, without scripts.",
};
const STEPS = {
  script: "first script",
  mended: "script, mended",
  again: "another script",
  direct: "broad search",
  person: "what the person said",
};
const ENDS = {
  ok: "ran",
  syntax: "isn't Python",
  error: "raised an error",
  refused: "was refused something",
  result: "gave a result that can't be used",
  timeout: "took too long",
  memory: "needed too much memory",
  crash: "broke its interpreter",
};
const GOING = new Set(["pending", "running"]);

/** Tell whether a run goes on, here or in another process. */
export function isGoing(run) {
  return run.is_live ?? GOING.has(run.state);
}

export function runWord(state) {
  return (RUNS[state] ?? ["?", state])[1];
}

/** Show how a run stands: a sign, and the word. */
export function runState(state) {
  return badge(RUNS[state] ?? ["?", state, "idle"]);
}

/** Show that a run asks a person something. */
export function asksYou() {
  return el("span", {}, " · ", badge(["?", "asks you", "unsure"]));
}

/** Show how a part stands; while it is worked on, what it is at. */
export function nodeState(state, doing = "") {
  const [symbol, word, mood] = NODES[state] ?? ["?", state, "idle"];
  return badge([symbol, state === "running" && doing ? doing : word, mood]);
}

export function tier(name) {
  return TIERS[name] ?? `Tier ${name}`;
}

export function step(name) {
  return STEPS[name] ?? name;
}

/** Say how a script ended; empty where none ran. */
export function ended(kind) {
  return kind ? (ENDS[kind] ?? kind) : "";
}

/** Say what was used: of tokens, and of money where prices are known. */
export function used(usage, most = 0) {
  if (!usage) return "";
  const tokens = usage.total_tokens ?? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const limit = most ? ` of at most ${most.toLocaleString("en")}` : "";
  const price = cost(usage.cost_usd);
  return [`${count(tokens, "token")}${limit}`, usage.requests ? count(usage.requests, "request") : "", price]
    .filter(Boolean)
    .join(" · ");
}

export function cost(dollars) {
  return dollars === null || dollars === undefined ? "" : `$${dollars.toFixed(4)}`;
}

export function number(value) {
  return Number(value).toFixed(2);
}

/** Say when something was, shortly. */
export function moment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === new Date().toDateString();
  const form = isToday ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
  return date.toLocaleString(undefined, form);
}

/** Say a whole date and time. */
export function fullMoment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

function badge([symbol, word, mood]) {
  return el(
    "span",
    { class: `state ${mood}` },
    el("span", { class: "state-sign", "aria-hidden": "true" }, symbol),
    word,
  );
}
