/** Show a difference word by word: what goes is struck out, what comes is marked. */

import { el, hidden } from "../dom.js";

const SIDES = { removed: ["del", "removed: "], added: ["ins", "added: "] };

/**
 * @param {Array<[string, string]>} words Pairs of a side (same, removed, added) and the text.
 * @returns {HTMLElement}
 */
export function difference(words) {
  const parts = words.map(([side, text]) => {
    const [tag, said] = SIDES[side] ?? [];
    return tag ? el(tag, {}, hidden(said), ended(text)) : text;
  });
  return el(
    "div",
    { class: "difference", tabindex: "0" },
    parts.length ? parts : el("span", { class: "quiet" }, "nothing"),
  );
}

/** Show line ends where they are all that differs. */
function ended(text) {
  return /^[\r\n]+$/.test(text) ? text.replaceAll(/\r?\n/g, "⏎\n") : text;
}
