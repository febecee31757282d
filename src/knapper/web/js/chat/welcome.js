/** Greet whoever begins a conversation. */

import { button, el } from "../dom.js";

const ASKS = ["What did I write about …?", "Which tasks are open?", "Summarise the notes that changed this week"];

/** @param {(text: string) => void} suggest */
export function welcome(suggest) {
  return el(
    "div",
    { class: "welcome" },
    el("h2", {}, "Ask your notes"),
    el("p", {}, "Answers name the note and the lines that they come from. Changes wait until you have looked at them."),
    el(
      "ul",
      {},
      ASKS.map((text) =>
        el(
          "li",
          {},
          button(text, () => suggest(text)),
        ),
      ),
    ),
  );
}
