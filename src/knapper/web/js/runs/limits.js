/** Ask how much a run may take. */

import { el } from "../dom.js";

const NAMES = {
  depth: ["Levels", "below the task"],
  nodes: ["Parts", ""],
  minutes: ["Minutes", ""],
  tokens: ["Tokens", "0 for no limit"],
  cents: ["Cents (US)", "0 for no limit; counts where prices are known"],
};

/** Fields for the limits of a run. */
export class Limits {
  /**
   * @param {Record<string, number>} values What is usual, or what the run has.
   * @param {Record<string, {least: number, most: number}>} ranges
   * @param {string} prefix Of the fields' ids.
   */
  constructor(values, ranges, prefix) {
    this.values = values;
    const names = Object.keys(NAMES).filter((name) => values[name] !== undefined);
    this.inputs = new Map(names.map((name) => [name, input(name, values[name], ranges[name] ?? {}, prefix)]));
    this.node = el(
      "div",
      { class: "limits" },
      names.map((name) => field(name, this.inputs.get(name))),
    );
  }

  /** Give the limits that are other than before. */
  read() {
    const said = [...this.inputs].filter(([, one]) => one.value.trim() !== "");
    return Object.fromEntries(
      said.map(([name, one]) => [name, Number(one.value)]).filter(([name, value]) => value !== this.values[name]),
    );
  }
}

/** Read the limits that a run has. */
export function limitsOf({ seconds, ...limits }) {
  return { ...limits, minutes: Math.round((seconds / 60) * 100) / 100 };
}

/** Say a run's limits in a line. */
export function told(limits) {
  const { depth, nodes, minutes, tokens, cents } = limitsOf(limits);
  return [
    `${depth} levels`,
    `${nodes} parts`,
    `${minutes} minutes`,
    tokens ? `${tokens.toLocaleString("en")} tokens` : "any number of tokens",
    cents ? `${cents} cents` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

function input(name, value, { least = 0, most }, prefix) {
  const step = name === "minutes" ? "any" : "1";
  return el("input", {
    type: "number",
    id: `${prefix}-${name}`,
    min: least,
    max: most ?? null,
    step,
    value,
    inputmode: "decimal",
  });
}

function field(name, one) {
  const [label, hint] = NAMES[name];
  const most = one.max ? `at most ${Number(one.max).toLocaleString("en")}` : "";
  const told = [most, hint].filter(Boolean).join("; ");
  const about = told ? el("span", { class: "quiet", id: `${one.id}-hint` }, told) : null;
  if (about) one.setAttribute("aria-describedby", about.id);
  return el("div", { class: "limit" }, el("label", { for: one.id }, label), one, about);
}
