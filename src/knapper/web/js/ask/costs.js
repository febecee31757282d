/** Tell what a task took: in all, and by agent. */

import { count, el } from "../dom.js";

const HEADS = ["Agent", "Read", "Written", "Requests", "Cost"];
const NAMES = { scout: "Scout", web: "Web", task: "Task", orchestrator: "Choosing agents" };

/**
 * @param {object} usage As the server counts it.
 * @param {string} model
 */
export function costs(usage, model) {
  const { total_tokens: total = 0, requests = 0, cost_usd: cost = null, phases = {} } = usage;
  const told = [model, count(total, "token"), count(requests, "request"), cost === null ? "" : price(cost)];
  const head = el("summary", {}, told.filter(Boolean).join(" · "));
  const rows = Object.entries(phases).map(([phase, spent]) => row(NAMES[phase] ?? phase, spent));
  if (!rows.length) return el("p", {}, told.filter(Boolean).join(" · "));
  const top = el(
    "tr",
    {},
    HEADS.map((text) => el("th", { scope: "col" }, text)),
  );
  const table = el("table", {}, el("thead", {}, top), el("tbody", {}, rows));
  const own = { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Tokens and cost by agent" };
  return el("details", { class: "costs" }, head, el("div", own, table));
}

function row(name, { input_tokens: read = 0, output_tokens: written = 0, requests = 0, cost_usd: cost = null }) {
  const cells = [read, written, requests].map((number) => el("td", {}, number.toLocaleString("en")));
  return el("tr", {}, el("th", { scope: "row" }, name), cells, el("td", {}, cost === null ? "–" : price(cost)));
}

function price(cost) {
  return `$${cost.toFixed(4)}`;
}
