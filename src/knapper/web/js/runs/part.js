/** Show one part of a run: what it was to do, what it found, what it says, and what it cost. */

import { button, el } from "../dom.js";
import { answer } from "./cited.js";
import { retrieval } from "./retrieval.js";
import { Sections } from "./sections.js";
import { nodeState, used } from "./words.js";

const IMPACTS = {
  security: "security",
  data_model: "how data is kept",
  architecture: "how things are built",
  contract: "what others rely on",
};

export class Part {
  /** @param {{openCitation: Function, openNote: Function, openPart: Function, replay: Function, back: Function}} does */
  constructor(does) {
    this.does = does;
    this.heading = el("h3", { tabindex: "-1", class: "detail-title" });
    this.sections = new Sections({ class: "detail-body" });
    const back = button("Back to the parts", () => does.back(), { class: "small back" });
    this.node = el(
      "section",
      { class: "detail", "aria-label": "The part", hidden: true },
      el("header", {}, this.heading, back),
      this.sections.node,
    );
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      does.back();
    });
  }

  clear() {
    this.node.hidden = true;
    this.sections.clear();
  }

  /** Say that a part is looked up. */
  wait(title) {
    this.heading.textContent = title;
    this.node.hidden = false;
    this.sections.show([["wait", title, () => el("p", { class: "quiet" }, "opening …")]]);
  }

  fail(error) {
    this.sections.show([["error", error.message, () => el("p", { role: "alert" }, error.message)]]);
  }

  /**
   * @param {object} node As the server tells it, whole.
   * @param {(id: string) => string} nameOf Gives other parts' names.
   * @param {boolean} canReplay Whether the run rests.
   */
  show(node, nameOf, canReplay) {
    this.heading.textContent = node.id === "root" ? "The whole task" : `${node.id} ${node.title}`;
    this.node.hidden = false;
    const { does } = this;
    const others = [...node.hard, ...node.soft, ...node.children].map((id) => [id, nameOf(id)]);
    const state = [node.state, node.reason, node.cached];
    this.sections.show([
      ["state", state, () => standing(node)],
      ["task", node.task, () => el("p", { class: "task" }, node.task)],
      ["why", [node.why, node.impact, node.high_impact, others], () => reasons(node, nameOf, does)],
      ["said", [node.answer, node.citations, node.removed], () => said(node, does)],
      ["found", [node.retrieval, node.sources], () => node.retrieval && retrieval(node.retrieval, node.sources, does)],
      ["asked", node.checkpoint, () => asked(node.checkpoint)],
      ["notes", node.notes, () => node.notes.map((note) => el("p", { class: "notice" }, note))],
      ["cost", node.usage, () => cost(node.usage)],
      ["acts", [node.id, canReplay], () => canReplay && acts(node, does)],
    ]);
  }
}

function standing(node) {
  return el(
    "p",
    {},
    nodeState(node.state),
    node.cached ? " from the cache" : null,
    node.reason ? el("span", { class: "part-reason" }, " ", node.reason) : null,
  );
}

function reasons(node, nameOf, does) {
  const named = (ids) =>
    ids.map((id) => [button(`${id} ${nameOf(id)}`, () => does.openPart(id), { class: "cite" }), " "]);
  const rows = [
    ["Needs", node.hard],
    ["Uses", node.soft],
    ["Split into", node.children],
  ].filter(([, ids]) => ids.length);
  const word = node.children.length ? "Why it was split" : "Why it wasn't split";
  const weight = IMPACTS[node.impact]
    ? `It decides on ${IMPACTS[node.impact]}.`
    : node.high_impact
      ? "Much depends on it."
      : "";
  const terms = [
    node.why ? [el("dt", {}, word), el("dd", {}, node.why)] : null,
    rows.map(([name, ids]) => [el("dt", {}, name), el("dd", {}, named(ids))]),
    weight ? [el("dt", {}, "Weight"), el("dd", {}, weight)] : null,
  ];
  return node.why || rows.length || weight ? el("dl", { class: "facts" }, terms) : null;
}

function said(node, does) {
  const parts = answer(node, does);
  return parts.length ? el("section", { class: "said" }, el("h4", {}, "Answer"), parts) : null;
}

function asked(point) {
  if (!point) return null;
  const came = point.unattended
    ? "Nobody was there, and it went on."
    : point.answer
      ? `Answered: ${point.answer}`
      : "It waits for an answer.";
  return el("section", {}, el("h4", {}, "Asked"), el("p", {}, point.question), el("p", {}, came));
}

function cost(usage) {
  return usage?.total_tokens ? el("p", { class: "quiet" }, `By itself: ${used(usage)}`) : null;
}

function acts(node, does) {
  const label = node.id === "root" ? "Do all of it again" : "Do this part again";
  return el(
    "div",
    { class: "row" },
    button(label, () => does.replay(node.id)),
  );
}
