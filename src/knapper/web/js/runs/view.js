/** Show one run in the middle, and follow it as long as it goes on. */

import { atNextFrame, el, fill } from "../dom.js";
import { Turn } from "../chat/stream.js";
import { Acts, address } from "./acts.js";
import { answer } from "./cited.js";
import * as head from "./head.js";
import { Parts } from "./parts.js";
import { Questions } from "./questions.js";
import { Sections } from "./sections.js";
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
    this.opening = {
      openCitation: (one) => this.#aside(() => does.openCitation(one)),
      openNote: (link) => this.#aside(() => does.openNote(link)),
    };
    this.acts = new Acts(api, { ...does, again: () => this.open(this.run.id) });
    this.head = new Sections({ class: "run-head" });
    this.said = new Sections({ class: "run-said" });
    this.questions = new Questions({
      answer: (id, text) => this.#answer(id, text),
      openPart: (id) => this.parts.open(id, true),
    });
    this.parts = new Parts(api, { ...this.opening, replay: (run, node) => this.acts.replay(run, node) });
    this.#build();
    this.draw = atNextFrame(() => this.#draw());
  }

  #build() {
    this.lost = el(
      "p",
      { class: "notice", hidden: true },
      "The connection is lost. The run goes on at the server; reconnecting …",
    );
    this.problem = el("div", { role: "alert" });
    this.node = el(
      "div",
      { class: "run" },
      this.head.node,
      this.lost,
      this.problem,
      this.questions.node,
      this.said.node,
      this.parts.node,
    );
  }

  /** Show a run, and go on with it where it goes on. */
  async open(id) {
    const number = ++this.opened;
    const run = await this.api.get(address(id));
    if (number !== this.opened) return false; // the person has gone elsewhere meanwhile
    this.#leave();
    if (this.run?.id !== run.id) this.#clear();
    fill(this.problem);
    this.#take(run);
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
    for (const part of [this.head, this.said, this.questions, this.parts]) part.clear();
  }

  #take(run) {
    this.run = run;
    this.parts.take(run);
    if (isGoing(run)) for (const point of run.checkpoints ?? []) this.#ask(point);
    this.#draw();
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
    this.parts.change(node, doing);
  }

  #ask(point) {
    if (this.questions.take(point)) this.does.tell(`The run asks: ${point.question}`);
    this.parts.touch(point.node_id);
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
    try {
      const run = await this.api.get(address(this.run.id));
      if (number === this.opened) this.#take(run);
    } catch (error) {
      if (number === this.opened && !error.isOffline) this.#fail(error);
    }
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

  /** Open something at the side, and keep in sight what was pressed: the room here gets narrower by that. */
  #aside(open) {
    const pressed = document.activeElement;
    open();
    if (this.node.contains(pressed)) pressed.scrollIntoView({ block: "nearest" });
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
}
