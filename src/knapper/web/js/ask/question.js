/** Show what a task asks the person, and take the answer: one of the options, or their own words. */

import { button, el, fill } from "../dom.js";

/**
 * @param {{question: string, options?: Array<string>}} asked
 * @param {(answer: string) => void} onAnswer
 */
export function questionCard({ question, options = [] }, onAnswer) {
  const say = (text) => {
    if (!text.trim()) return;
    node.classList.remove("open-question");
    fill(node, el("p", {}, el("strong", {}, question)), el("p", {}, `You: ${text.trim()}`));
    onAnswer(text.trim());
  };
  const box = el("input", { type: "text", "aria-label": "Your own answer", placeholder: "or in your own words" });
  const form = el("form", { class: "row own-answer" }, box, el("button", { type: "submit" }, "Answer"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(box.value);
  });
  const choices = options.map((option) => button(String(option), () => say(String(option))));
  const node = el(
    "div",
    { class: "card asks of-run open-question" },
    el("p", {}, el("strong", {}, question)),
    choices.length ? el("div", { class: "row" }, choices) : null,
    form,
  );
  return node;
}
