/** Say what a run is and how it stands: state, task, reasons, limits, cost. */

import { count, el } from "../dom.js";
import { told } from "./limits.js";
import { alsoIn } from "./others.js";
import { fullMoment, isGoing, runState, used } from "./words.js";

const LONG = 600;

export function state(run) {
  return el("p", { class: "run-state" }, runState(run.state));
}

/** Say why a run isn't complete. */
export function reasons(run) {
  const all = isGoing(run) ? [] : [...new Set(run.reasons)];
  const rows = all.map((reason) => el("li", {}, reason));
  return rows.length ? el("ul", { class: "reasons" }, rows) : null;
}

/** Show the task; a long one folds out. */
export function task(text) {
  if (text.length <= LONG) return el("p", { class: "task" }, text);
  return el(
    "details",
    { class: "long-task" },
    el("summary", {}, `${text.slice(0, 200)} …`),
    el("p", { class: "task" }, text),
  );
}

export function facts(run) {
  const how = [
    run.strategy === "auto" ? "strategy chosen by the model" : `strategy ${run.strategy}`,
    run.code_mode ? "Code Mode" : "search without scripts",
    run.model,
    alsoIn(run.also),
    fullMoment(run.created),
  ];
  const sums = [
    count(run.node_count ?? run.nodes.length, "part"),
    run.cached ? `${run.cached} from the cache` : "",
    used(run.usage, run.limits.tokens),
  ];
  return el(
    "div",
    { class: "run-facts" },
    el("p", { class: "quiet" }, how.filter(Boolean).join(" · ")),
    el("p", { class: "quiet run-sums" }, sums.filter(Boolean).join(" · ")),
    el("p", { class: "quiet" }, `Limits: ${told(run.limits)}`),
  );
}
