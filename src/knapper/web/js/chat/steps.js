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
    const call = this.#begin(id, name, "waiting …");
    this.#give(call, given);
    this.#retitle();
  }

  /** Show what a tool answered. */
  result(event) {
    if (!this.calls.has(event.id)) this.call({ id: event.id, name: event.name });
    const call = this.calls.get(event.id);
    this.#end(call, event);
    this.#answer(call, event);
    this.#retitle();
  }

  /**
   * Show the steps that a session kept, in their order; what was asked and answered comes once one is folded out.
   *
   * @param {Array<object>} trace
   * @param {() => Promise<Array<object>>} details Gives the same with arguments and answers.
   */
  kept(trace, details) {
    for (const [at, entry] of trace.entries()) {
      if (entry.kind === "text") this.aside(entry.text);
      else if (entry.kind === "round") this.round(entry);
      else this.#keptCall(at, entry, details);
    }
    this.#retitle();
  }

  /** Show a step of a session that kept no more of it. */
  keptBriefly({ name, success, summary = "" }) {
    const state = el("span", { class: "step-state" }, success ? "✓" : "✗");
    const line = el("p", {}, state, " ", el("code", {}, name), el("span", { class: "step-summary" }, ` → ${summary}`));
    this.list.append(el("li", { class: `step kept ${success ? "went-well" : "failed"}` }, line));
    this.calls.set(`kept ${this.calls.size}`, { name, isOpen: false });
    if (!success) this.failed++;
    this.#retitle();
  }

  #keptCall(at, entry, details) {
    const call = this.#begin(`kept ${at}`, entry.name, "opening …");
    if (entry.success === null) this.#broken(call);
    else this.#end(call, entry);
    const open = async () => {
      try {
        const whole = (await details())[at];
        this.#give(call, whole.arguments ?? {});
        if (whole.success !== null) this.#answer(call, whole);
      } catch (error) {
        fill(call.result, el("p", { role: "alert" }, error.message));
        call.node.addEventListener("toggle", open, { once: true });
      }
    };
    call.node.addEventListener("toggle", open, { once: true });
  }

  #begin(id, name, waiting) {
    const result = el("div", { class: "step-result" }, el("p", { class: "quiet" }, waiting));
    const state = el("span", { class: "step-state" }, "…");
    const about = el("span", { class: "quiet" });
    const given = el("div");
    const head = el("summary", {}, state, " ", el("code", {}, name), " ", about);
    const body = el(
      "div",
      { class: "step-body" },
      el("h4", {}, "Arguments"),
      given,
      el("h4", {}, "Answer"),
      result,
    );
    const node = el("details", { class: "step" }, head, body);
    this.list.append(el("li", {}, node));
    const call = { name, node, state, about, given, result, head, isOpen: true };
    this.calls.set(id, call);
    return call;
  }

  #give(call, given) {
    fill(call.about, told(given));
    fill(call.given, code(given));
  }

  #end(call, { success, summary }) {
    call.isOpen = false;
    call.state.textContent = success ? "✓" : "✗";
    call.node.classList.add(success ? "went-well" : "failed");
    if (!success) this.failed++;
    call.head.append(el("span", { class: "step-summary" }, ` → ${success ? "" : "failed: "}${summary}`));
  }

  #answer(call, { answer = {}, truncated = false, chars = 0 }) {
    const cut = truncated ? el("p", { class: "quiet" }, `The model was given a part of ${count(chars, "character")}.`) : null;
    fill(call.result, cut, code(answer));
  }

  #broken(call) {
    call.isOpen = false;
    call.state.textContent = "–";
    fill(call.result, el("p", { class: "quiet" }, "It gave no answer."));
  }

  /** Keep what the model said between calls. */
  aside(text) {
    if (!text.trim()) return;
    this.list.append(el("li", { class: "aside" }, text.trim()));
    this.#retitle();
  }

  /** Show that a round of steps begins. */
  round({ number, limit }) {
    this.list.append(el("li", { class: "round" }, `Round ${number} of ${limit}`));
  }

  /** Say that no step goes on any more. */
  end() {
    for (const call of this.calls.values()) {
      if (call.isOpen) this.#broken(call);
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
  const text = typeof value === "string" ? `${value} …` : JSON.stringify(value, null, 2); // a text is a beginning
  return el("pre", { tabindex: "0" }, el("code", {}, shortened(text, MOST_CHARS)));
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most)} …` : text;
}
