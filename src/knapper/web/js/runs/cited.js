/** Show an answer with what it cites: links open the passages that were checked, and what didn't hold is named. */

import { button, el } from "../dom.js";
import { render } from "../markdown/render.js";
import { follow } from "../shell/cited.js";
import { told } from "../shell/places.js";

/** What a part rests on that found nothing, or whose script called tools: any note could change that. */
export const ALL = "**";
export const ALL_NOTES = "no note; any that changes may tell more";

/**
 * @param {{answer: string, citations?: Array<object>, removed?: Array<object>}} said
 * @param {{openCitation: Function, openNote: Function}} does
 * @returns {Array<HTMLElement>} Nothing where there is no answer.
 */
export function answer({ answer: text, citations = [], removed = [] }, does) {
  const prose = el(
    "div",
    { class: "prose answer" },
    render(text ?? "", (link, number) => follow(link, number, citations, does)),
  );
  return [text ? prose : null, list("Cites", citations, does), dropped(removed)].filter(Boolean);
}

/** List places in notes, each of which opens. */
export function list(title, places, does) {
  if (!places.length) return null;
  const rows = unique(places).map((one) => el("li", {}, place(one, does)));
  return el("section", {}, el("h4", {}, title), el("ul", { class: "places" }, rows));
}

/** Name a place in a note, as something to press. */
export function place(one, does) {
  if (one.path === ALL) return el("span", {}, one.vault ? `${one.vault}: ${ALL_NOTES}` : ALL_NOTES);
  const heading = (one.heading ?? "").replace(/^#+\s*/, "");
  const name = [one.path.replace(/\.md$/, ""), heading].filter(Boolean).join(" › ");
  const lines = told({ first: one.start_line, last: one.end_line });
  const label = [
    one.vault ? `${one.vault}: ` : "",
    name,
    lines ? " " : "",
    lines ? el("span", { class: "lines" }, lines) : null,
  ];
  return button(label, () => does.openCitation({ heading, ...one }), { class: "cite" });
}

function dropped(removed) {
  if (!removed.length) return null;
  const rows = removed.map((one) => el("li", {}, el("q", {}, one.citation), ` ${one.reason}`));
  return el("section", {}, el("h4", {}, "Left out, as it doesn't hold"), el("ul", { class: "places dropped" }, rows));
}

function unique(places) {
  const keys = places.map((one) => JSON.stringify([one.vault, one.path, one.heading, one.start_line, one.end_line]));
  return places.filter((_, at) => keys.indexOf(keys[at]) === at);
}
