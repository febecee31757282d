/** Show what a model did on the way to its answer: each tool that it called folds out. */

import { count, el, fill } from "../dom.js";

const MOST_CHARS = 6_000;
const TELLING = ["query", "path", "heading", "url", "source", "question", "name", "task", "tag", "folder"];

/** The steps of one turn. */
export class Steps {
  constructor() {
    this.title = el("summary", { class: "steps-title" });
    this.list = el("ol", { class: "steps-list" });
    this.node = el("details", { class: "steps", hidden: true }, this.title, this.list);
    this.calls = new Map();
    this.failed = 0;
  }

  /** Show that a tool is called. */
  call({ id, name, arguments: given = {} }) {
    const result = el("div", { class: "step-result" }, el("p", { class: "quiet" }, "waiting …"));
    const state = el("span", { class: "step-state" }, "…");
    const head = el("summary", {}, state, " ", el("code", {}, name), " ", el("span", { class: "quiet" }, told(given)));
    const body = el(
      "div",
      { class: "step-body" },
      el("h4", {}, "Arguments"),
      code(given),
      el("h4", {}, "Answer"),
      result,
    );
    const node = el("details", { class: "step" }, head, body);
    this.list.append(el("li", {}, node));
    this.calls.set(id, { name, node, state, result, head, isOpen: true });
    this.#retitle();
  }

  /** Show what a tool answered. */
  result(event) {
    if (!this.calls.has(event.id)) this.call({ id: event.id, name: event.name });
    const call = this.calls.get(event.id);
    call.isOpen = false;
    call.state.textContent = event.success ? "✓" : "✗";
    call.node.classList.add(event.success ? "went-well" : "failed");
    if (!event.success) this.failed++;
    call.head.append(el("span", { class: "step-summary" }, ` → ${event.success ? "" : "failed: "}${event.summary}`));
    const cut = event.truncated
      ? el("p", { class: "quiet" }, `The model was given a part of ${count(event.chars, "character")}.`)
      : null;
    fill(call.result, cut, code(event.answer ?? {}));
    this.#retitle();
  }

  /** Show a step as a session kept it: without what was asked and answered. */
  kept({ name, success, summary = "" }) {
    const state = el("span", { class: "step-state" }, success ? "✓" : "✗");
    const line = el("p", {}, state, " ", el("code", {}, name), el("span", { class: "step-summary" }, ` → ${summary}`));
    this.list.append(el("li", { class: `step kept ${success ? "went-well" : "failed"}` }, line));
    this.calls.set(`kept ${this.calls.size}`, { name, isOpen: false });
    if (!success) this.failed++;
    this.#retitle();
  }

  /** Keep what the model said between calls. */
  aside(text) {
    if (!text.trim()) return;
    this.list.append(el("li", { class: "aside" }, text.trim()));
    this.#retitle();
  }

  /** Say that no step goes on any more. */
  end() {
    for (const call of this.calls.values()) {
      if (!call.isOpen) continue;
      call.isOpen = false;
      call.state.textContent = "–";
      fill(call.result, el("p", { class: "quiet" }, "It gave no answer."));
    }
    this.#retitle();
  }

  #retitle() {
    this.node.hidden = this.list.children.length === 0;
    const open = [...this.calls.values()].filter((call) => call.isOpen);
    const names = [...new Set([...this.calls.values()].map((call) => call.name))];
    const failed = this.failed ? `, ${this.failed} failed` : "";
    const text = open.length
      ? `Working: ${open.map((call) => call.name).join(", ")} …`
      : `${count(this.calls.size, "step")}${failed}: ${names.join(", ")}`;
    fill(this.title, text);
  }
}

function told(given) {
  const name = TELLING.find((one) => typeof given[one] === "string" && given[one]);
  return name ? shortened(given[name], 80) : "";
}

function code(value) {
  return el("pre", { tabindex: "0" }, el("code", {}, shortened(JSON.stringify(value, null, 2), MOST_CHARS)));
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most)} …` : text;
}
