/** Show how a part found its notes: scores, each script that was tried, and the places that came of it. */

import { count, el } from "../dom.js";
import { list } from "./cited.js";
import * as words from "./words.js";

const PARTS = {
  overlap: "words of the task found",
  coverage: "aspects dealt with",
  diversity: "different notes",
  boilerplate: "of no use (counts against)",
};

/**
 * @param {object} found A part's retrieval.
 * @param {Array<object>} read Every note that the part read.
 * @param {{openCitation: Function}} does
 */
export function retrieval(found, read, does) {
  const cited = new Set(found.sources.map((one) => `${one.vault} ${one.path}`));
  const beside = read.filter((one) => !cited.has(`${one.vault} ${one.path}`));
  return el(
    "section",
    { class: "retrieval" },
    el("h4", {}, "What was found"),
    found.tier || found.script ? el("p", {}, words.tier(found.tier)) : null,
    score(found),
    attempts(found),
    (found.notes ?? []).map((note) => el("p", { class: "notice" }, note)),
    list("Sources", found.sources, does),
    list("Read as well", beside, does),
  );
}

function score({ score: total, parts = {}, confidence, context_chars: chars = 0 }) {
  const rows = Object.entries(parts).map(([name, value]) => measure(PARTS[name] ?? name, value));
  const own = confidence ? measure("the script's own confidence", confidence) : null;
  const whole = measure("Score", total, "whole");
  return [
    el("div", { class: "measures" }, whole, rows, own),
    chars ? el("p", { class: "quiet" }, `${count(chars, "character")} of context`) : null,
  ];
}

function measure(name, value, kind = "") {
  const bar = el("meter", { min: "0", max: "1", value: String(value), "aria-hidden": "true" });
  return el("p", { class: `measure ${kind}`.trim() }, el("span", {}, name), bar, el("span", {}, words.number(value)));
}

function attempts({ attempts: tried = [], script = "" }) {
  const rows = tried.map((one, at) => attempt(one, at + 1, Boolean(script) && one.script === script));
  if (!rows.length && script) return el("details", { class: "attempt" }, el("summary", {}, "Script"), source(script));
  return rows.length ? el("div", { class: "attempts" }, rows) : null;
}

function attempt(one, at, isUsed) {
  const isBad = Boolean(one.error) || (one.kind && one.kind !== "ok");
  const told = [
    words.ended(one.kind),
    `score ${words.number(one.score ?? 0)}`,
    one.calls ? count(one.calls, "call") : "",
    one.wall_s ? `${one.wall_s.toFixed(2)} s` : "",
    one.usage?.total_tokens ? count(one.usage.total_tokens, "token") : "",
    isUsed ? "used" : "",
  ].filter(Boolean);
  const sign = el("span", { class: isBad ? "bad" : "good", "aria-hidden": "true" }, isBad ? "✗" : "✓");
  return el(
    "details",
    { class: "attempt" },
    el("summary", {}, sign, ` ${at}. ${words.step(one.step)}`, el("span", { class: "quiet" }, ` ${told.join(" · ")}`)),
    one.error ? el("p", { class: "attempt-error" }, one.error) : null,
    one.script ? source(one.script) : null,
  );
}

function source(text) {
  const rows = text.replace(/\n$/, "").split("\n");
  return el(
    "ol",
    { class: "source script", tabindex: "0", "aria-label": "Script" },
    rows.map((row) => el("li", {}, row || "\u200b")),
  );
}
