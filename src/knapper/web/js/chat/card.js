/** Show in a conversation that a change waits, and what became of it. */

import { button, count, el, fill } from "../dom.js";

const WAITS = "A change waits for your word.";
const CAME = {
  accepted: "The change was accepted.",
  partly_accepted: "A part of the change was accepted.",
  rejected: "The change was rejected.",
  expired: "The change waited too long, and has expired.",
  superseded: "Another change took this one's place.",
  stale: "A change waits, and doesn't fit its note any more.",
};

/**
 * @param {object} proposal As the server shows it, or its id alone.
 * @param {(id: string) => void} open
 * @returns {HTMLElement}
 */
export function card(proposal, open) {
  const state = el("strong", { class: "card-state" }, WAITS);
  const about = el("span", { class: "card-about" }, told(proposal.files ?? []));
  const review = button("Review", () => open(proposal.id), { class: "main" });
  return el("div", { class: "card", "data-proposal": proposal.id }, el("p", {}, state, " ", about), review);
}

/**
 * Bring cards up to date.
 *
 * @param {HTMLElement} log Where they stand.
 * @param {Map<string, object>} known Proposals as they are listed, by id.
 */
export function settle(log, known) {
  for (const one of log.querySelectorAll("[data-proposal]")) {
    const listed = known.get(one.dataset.proposal);
    if (!listed) continue;
    const about = one.querySelector(".card-about");
    if (!about.textContent) fill(about, listed.files > 1 ? `${listed.path} and ${listed.files - 1} more` : listed.path);
    fill(one.querySelector(".card-state"), CAME[listed.status] ?? WAITS);
    one.querySelector("button").classList.toggle("main", !CAME[listed.status]);
  }
}

function told(files) {
  if (!files.length) return "";
  const places = files.flatMap((file) => file.hunks ?? []).length;
  return `${files[0].path}${files.length > 1 ? ` and ${files.length - 1} more` : ""}: ${count(places, "place")}`;
}
