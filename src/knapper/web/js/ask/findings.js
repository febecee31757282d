/** Show what the agents found: the scout's selection, the web's sources, the notes that the task was done with. */

import { button, count, el } from "../dom.js";
import { linked, webAddress } from "../markdown/render.js";
import { leftOut, noteList } from "./gathering.js";

const ENDED = {
  rounds: "it had no rounds left",
  timeout: "it had no time left",
  asked: "it asks you something",
  cancelled: "it was stopped",
  failed: "it failed",
};

/** Show what the scout chose, with the reason for each note. */
export function selection(scout, openNote) {
  const { selected_notes: notes = [], reasoning, confidence, exploration_summary: steps, ended } = scout;
  const how = [confidence, ENDED[ended]].filter(Boolean).join(", ");
  return folded(
    "selection",
    `The scout chose ${count(notes.length, "note")} · ${how}`,
    reasoning ? el("p", {}, reasoning) : null,
    noteList(notes, openNote),
    steps ? el("details", {}, el("summary", {}, "What it did"), el("pre", { tabindex: "0" }, steps)) : null,
  );
}

/** Show what was taken from the web, and from where. */
export function sources(web) {
  const { sources: pages = [], search_queries: queries = [], evaluation_reasoning: why, findings, problem } = web;
  const told = pages.length ? `${count(pages.length, "source")} from the web` : "Nothing was taken from the web";
  return folded(
    "sources",
    told,
    problem ? el("p", { class: "notice warns" }, problem) : null,
    why ? el("p", {}, why) : null,
    queries.length ? el("p", { class: "quiet" }, `Searched for: ${queries.join("; ")}`) : null,
    findings ? el("p", {}, findings) : null,
    pages.length ? el("ol", { class: "source-list" }, pages.map(source)) : null,
  );
}

/** Show the notes that went in, and what the limit left out. */
export function context(given, { openNote, copy }) {
  const { notes = [], removed = [], tokens = 0 } = given;
  return folded(
    "context",
    `${count(notes.length, "note")} went in · ${count(tokens, "token")}`,
    noteList(notes, openNote),
    removed.length ? leftOut(removed, openNote) : null,
    notes.length ? button("Copy their text", () => copy(notes.map((one) => one.path))) : null,
  );
}

function source({ title, url, date, extracted, snippet }) {
  const address = webAddress(url ?? "");
  const name = title || url || "Without a title";
  const isWeb = address && address.protocol !== "mailto:";
  const link = isWeb ? linked(address, [name], name) : el("span", { class: "dead" }, `${name} (${url})`);
  const taken = extracted || snippet;
  return el(
    "li",
    {},
    link,
    isWeb ? el("p", { class: "quiet address" }, address.href) : null,
    date ? el("p", { class: "quiet" }, `of ${date}`) : null,
    taken ? el("blockquote", {}, taken) : null,
  );
}

function folded(kind, title, ...content) {
  return el("details", { class: `finding ${kind}`, "data-finding": kind }, el("summary", {}, title), content);
}
