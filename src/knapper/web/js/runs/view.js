/** Show one run in the middle, and follow it as long as it goes on. */

import { atNextFrame, byId, el, fill } from "../dom.js";
import { Turn } from "../chat/stream.js";
import { Acts, address } from "./acts.js";
import { answer } from "./cited.js";
import * as head from "./head.js";
import { Part } from "./part.js";
import { Questions } from "./questions.js";
import { Sections } from "./sections.js";
import { Tree } from "./tree.js";
import { isGoing, runWord } from "./words.js";

export class RunView {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does What else the page does: open citations and proposals, tell what happened.
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.run = null;
    this.turn = null;
    this.opened = 0;
    this.partId = "";
    this.looking = "";
    this.isStale = false;
    const open = {
      openCitation: (one) => this.#aside(() => does.openCitation(one)),
      openNote: (link) => this.#aside(() => does.openNote(link)),
    };
    this.opening = open;
    this.acts = new Acts(api, { ...does, again: () => this.open(this.run.id) });
    this.head = new Sections({ class: "run-head" });
    this.said = new Sections({ class: "run-said" });
    this.questions = new Questions({
      answer: (id, text) => this.#answer(id, text),
      openPart: (id) => this.#openPart(id, true),
    });
    this.tree = new Tree((id, isByKey) => this.#openPart(id, isByKey));
    this.part = new Part({
      ...open,
      openPart: (id) => this.#openPart(id, true),
      replay: (id) => this.acts.replay(this.run, this.#node(id)),
      back: () => this.tree.focus(this.partId),
    });
    this.#build();
    this.draw = atNextFrame(() => this.#draw());
    this.look = atNextFrame(() => this.#look());
  }

  #build() {
    this.lost = el(
      "p",
      { class: "notice", hidden: true },
      "The connection is lost. The run goes on at the server; reconnecting …",
    );
    this.problem = el("div", { role: "alert" });
    const parts = el(
      "section",
      { "aria-labelledby": "parts-title" },
      el("h3", { id: "parts-title" }, "Parts"),
      this.tree.node,
    );
    this.node = el(
      "div",
      { class: "run" },
      this.head.node,
      this.lost,
      this.problem,
      this.questions.node,
      this.said.node,
      el("div", { class: "run-parts" }, parts, this.part.node),
    );
  }

  /** Show a run, and go on with it where it goes on. */
  async open(id) {
    const number = ++this.opened;
    const run = await this.api.get(address(id));
    if (number !== this.opened) return false; // the person has gone elsewhere meanwhile
    this.#leave();
    const isOther = this.run?.id !== run.id;
    if (isOther) this.#clear();
    fill(this.problem);
    this.#take(run);
    if (isOther) this.#showPart("root");
    if (isGoing(run)) this.#follow(run.id, number);
    return true;
  }

  /** Take up a run that goes on again, such as by another window's word. */
  notice(runs) {
    const found = this.run && !this.turn && runs.find((one) => one.id === this.run.id);
    const isOther = found && (isGoing(found) || found.state !== this.run.state || found.updated !== this.run.updated);
    if (isOther) this.open(found.id).catch((error) => error.isOffline || this.#fail(error));
  }

  /** Show none any more. */
  leave() {
    this.opened++;
    this.#leave();
    this.run = null;
  }

  #leave() {
    this.turn?.leave();
    this.turn = null;
    this.lost.hidden = true;
  }

  #clear() {
    for (const part of [this.head, this.said, this.questions, this.tree, this.part]) part.clear();
    this.partId = "";
  }

  #take(run) {
    this.run = run;
    this.tree.keep(new Set(run.nodes.map((node) => node.id)));
    for (const node of run.nodes) this.tree.put(node);
    if (this.partId && !this.#node(this.partId)) this.#showPart("root");
    if (isGoing(run)) for (const point of run.checkpoints ?? []) this.#ask(point);
    this.#draw();
    this.#look();
  }

  async #follow(id, number) {
    const turn = new Turn(
      this.api,
      (event) => this.turn === turn && this.#hear(event),
      (isLost) => this.turn === turn && this.#lose(isLost),
      "/runs",
    );
    turn.query = this.api.placing();
    this.turn = turn;
    try {
      await turn.resume(id);
    } catch (error) {
      if (error.name !== "AbortError" && this.turn === turn) this.#fail(error);
    }
    if (this.turn !== turn || number !== this.opened) return;
    this.turn = null;
    await this.#settle();
  }

  #hear(event) {
    const take = {
      run_started: () => Object.assign(this.run, event.run),
      node: () => this.#change(event),
      checkpoint: () => this.#ask(event),
      usage: () => (this.run.usage = { ...event, total_tokens: event.input_tokens + event.output_tokens }),
      error: () => this.#fail({ message: event.error, hint: event.hint }),
    }[event.type];
    take?.();
    this.draw();
  }

  #change({ node, doing }) {
    const known = this.run.nodes.findIndex((one) => one.id === node.id);
    if (known < 0) this.run.nodes.push(node);
    else this.run.nodes[known] = node;
    this.run.node_count = this.run.nodes.length;
    this.run.cached = this.run.nodes.filter((one) => one.cached).length;
    this.tree.put(node, doing);
    if (node.id === this.partId) this.look();
  }

  #ask(point) {
    if (this.questions.take(point)) this.does.tell(`The run asks: ${point.question}`);
    if (point.node_id === this.partId) this.look();
  }

  #lose(isLost) {
    const isBack = !isLost && !this.lost.hidden;
    this.lost.hidden = !isLost;
    if (isLost) this.does.tell("The connection is lost; reconnecting");
    if (isBack) this.#again();
  }

  /** Show a run as it is now. */
  async #again() {
    const number = this.opened;
    const run = await this.api.get(address(this.run.id));
    if (number === this.opened) this.#take(run);
  }

  /** Show how a run has ended. */
  async #settle() {
    const number = this.opened;
    try {
      const run = await this.api.get(address(this.run.id));
      if (number !== this.opened) return;
      this.questions.clear();
      const isGoing = run.state === "running"; // elsewhere, and the server looks no more
      this.#take({ ...run, is_live: isGoing });
      if (!isGoing) this.does.tell(`The run has ended: ${runWord(run.state)}`);
    } catch (error) {
      if (!error.isOffline) this.#fail(error);
    }
    this.does.changed();
  }

  #draw() {
    const { run } = this;
    if (!run) return;
    const isOver = !isGoing(run);
    this.head.show([
      ["state", run.state, () => head.state(run)],
      ["task", run.task, () => head.task(run.task)],
      ["reasons", [run.reasons, isOver], () => head.reasons(run)],
      ["facts", [run.usage, run.node_count, run.cached, run.limits, run.model, run.strategy], () => head.facts(run)],
      [
        "acts",
        [run.state, isOver, Boolean(run.answer)],
        () => el("div", { class: "row acts-row" }, this.acts.buttons(run)),
      ],
    ]);
    this.said.show([
      ["answer", isOver && [run.answer, run.citations, run.removed], () => isOver && this.#answered(run)],
    ]);
    this.node.setAttribute("aria-busy", String(!isOver));
  }

  #answered(run) {
    const parts = answer(run, this.opening);
    return parts.length ? el("section", { "aria-label": "Answer" }, el("h3", {}, "Answer"), parts) : null;
  }

  /** Show a part, and go there: always by the keys, and where it stands below the tree. */
  async #openPart(id, isByKey) {
    await this.#showPart(id);
    if (this.partId !== id) return;
    if (this.#isStacked()) this.part.node.scrollIntoView();
    if (isByKey) this.part.heading.focus();
  }

  async #showPart(id) {
    if (!this.#node(id)) return;
    this.partId = id;
    this.tree.open(id);
    this.part.wait(this.#node(id).title);
    await this.#look();
  }

  /** Open something at the side, and keep in sight what was pressed: the room here gets narrower by that. */
  #aside(open) {
    const pressed = document.activeElement;
    open();
    if (this.node.contains(pressed)) pressed.scrollIntoView({ block: "nearest" });
  }

  /** Look the part up that is opened, and show it; what changes meanwhile is looked up after that. */
  async #look() {
    const { run, partId } = this;
    if (!run || !partId) return;
    this.isStale = this.looking === partId;
    if (this.isStale) return;
    this.looking = partId;
    await this.#fetch(run, partId);
    if (this.looking === partId) this.looking = "";
    if (this.isStale) this.look();
  }

  async #fetch(run, partId) {
    try {
      const node = await this.api.get(`${address(run.id)}/nodes/${encodeURIComponent(partId)}`);
      if (this.run?.id !== run.id || this.partId !== partId) return;
      const isAbove = node.id === "root" && node.answer && this.run.answer.startsWith(node.answer.trimEnd());
      if (isAbove) Object.assign(node, { answer: "", citations: [], removed: [] });
      this.part.show(node, (id) => this.#node(id)?.title ?? "", !isGoing(this.run));
    } catch (error) {
      if (this.partId === partId && !error.isOffline) this.part.fail(error);
    }
  }

  async #answer(id, text) {
    try {
      await this.api.post(`${address(this.run.id)}/checkpoints/${encodeURIComponent(id)}`, { answer: text });
      return true;
    } catch (error) {
      this.does.fail(error);
      return false;
    }
  }

  #fail(error) {
    fill(
      this.problem,
      el("p", { class: "card wrong" }, el("strong", {}, error.message), error.hint ? ` ${error.hint}` : ""),
    );
  }

  #node(id) {
    return this.run?.nodes.find((node) => node.id === id);
  }

  #isStacked() {
    return this.part.node.getBoundingClientRect().left < this.tree.node.getBoundingClientRect().right;
  }
}
