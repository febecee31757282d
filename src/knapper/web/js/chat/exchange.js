/** Show one turn: a question, the steps, and the answer as it comes. */

import { atNextFrame, button, count, el, fill } from "../dom.js";
import { render } from "../markdown/render.js";
import { follow } from "../shell/cited.js";
import { card } from "./card.js";
import { Steps } from "./steps.js";

const STATES = {
  limit: "It stopped at a limit.",
  cancelled: "Stopped.",
  failed: "It failed.",
};

export class Exchange {
  /**
   * @param {string} question
   * @param {{openCitation: Function, openNote: Function, openProposal: Function, say: Function, again: Function, undo: Function}} does
   */
  constructor(question, does) {
    this.question = question;
    this.does = does;
    this.text = "";
    this.drawn = "";
    this.step = 0;
    this.citations = [];
    this.steps = new Steps();
    this.answer = el("div", { class: "prose answer" });
    this.extras = el("div", { class: "extras" });
    this.foot = el("footer", { class: "quiet" });
    this.connection = el(
      "p",
      { class: "notice", hidden: true },
      "The connection is lost. The answer goes on at the server; reconnecting …",
    );
    this.waiting = el(
      "p",
      { class: "waiting" },
      "thinking",
      el("span", { class: "dots", "aria-hidden": "true" }, " …"),
    );
    const asked = el("div", { class: "question" }, el("h3", { class: "unseen" }, "You"), el("p", {}, question));
    const body = el(
      "div",
      { class: "reply" },
      el("h3", { class: "unseen" }, "Knapper"),
      this.steps.node,
      this.answer,
      this.waiting,
      this.connection,
      this.extras,
      this.foot,
    );
    this.node = el("article", { class: "exchange" }, asked, body);
    this.draw = atNextFrame(() => this.redraw());
  }

  /** Take one event of the turn. */
  take(event) {
    this.taking(event)[event.type]?.();
  }

  /** Say what is done with an event, by its type. */
  taking(event) {
    return {
      text: () => this.said(event),
      tool_call: () => this.called(event),
      tool_result: () => this.steps.result(event),
      proposal: () => this.propose(event.proposal),
      question: () => this.asks(event),
      usage: () => this.used(event),
      error: () => this.wrong(event),
      done: () => this.settle(event),
      gap: () => this.tell("Some of what happened was missed; the answer will be whole."),
    };
  }

  /**
   * Show a turn as a session kept it.
   *
   * @param {() => Promise<Array<object>>} details Gives its steps with arguments and answers.
   */
  static kept(asked, answered, does, details) {
    const shown = new this(asked.content, does);
    const done = answered?.outcome ?? {};
    if (done.trace?.length) shown.steps.kept(done.trace, details);
    else for (const tool of done.tools ?? []) shown.steps.keptBriefly(tool);
    for (const id of done.proposals ?? []) shown.propose({ id });
    shown.settle(done);
    return shown;
  }

  lost(isLost) {
    this.connection.hidden = !isLost;
  }

  fail(error) {
    this.wrong({ error: error.message, hint: error.hint });
    this.settle({ state: "failed", answer: this.text });
  }

  said({ text, step }) {
    if (step !== this.step) {
      this.steps.aside(this.text);
      this.text = "";
      this.step = step;
    }
    this.text += text;
    this.waiting.hidden = true;
    this.draw();
  }

  called(event) {
    this.steps.aside(this.text);
    this.text = "";
    this.waiting.hidden = false;
    this.steps.call(event);
    this.draw();
  }

  propose(proposal) {
    const made = card(proposal, this.does.openProposal);
    const known = [...this.extras.children].find((one) => one.dataset.proposal === proposal.id);
    if (known) known.replaceWith(made);
    else this.extras.append(made);
  }

  /** Show what the model asks; it can be answered once the turn has ended. */
  asks({ question, options = [] }) {
    this.asked = question;
    const own = { disabled: true };
    const choices = options.map((option) => button(String(option), () => this.does.say(String(option)), own));
    this.extras.append(
      el("div", { class: "card asks" }, el("p", {}, el("strong", {}, question)), el("div", { class: "row" }, choices)),
    );
  }

  used({ input_tokens: read = 0, output_tokens: written = 0, requests = 0, cost_usd: cost = null }) {
    const price = cost === null ? "" : ` · $${cost.toFixed(4)}`;
    this.usage = `${count(read, "token")} read · ${written.toLocaleString("en")} written · ${count(requests, "request")}${price}`;
    fill(this.foot, this.usage);
  }

  wrong({ error, hint = "" }) {
    const again = button("Try again", () => this.does.again(this.question));
    this.extras.append(
      el(
        "div",
        { class: "card wrong", role: "alert" },
        el("p", {}, el("strong", {}, error)),
        hint ? el("p", {}, hint) : null,
        again,
      ),
    );
  }

  settle(done) {
    this.waiting.hidden = true;
    this.connection.hidden = true;
    this.steps.end();
    for (const choice of this.extras.querySelectorAll(".asks:not(.of-run) button")) choice.disabled = false;
    this.citations = done.citations ?? [];
    this.text = done.answer || this.text;
    if (this.asked === this.text) this.text = "";
    this.redraw();
    if (STATES[done.state]) this.tell(STATES[done.state]);
    for (const one of done.removed ?? [])
      this.tell(`A citation didn't hold and was left out: ${one.citation} (${one.reason})`);
    for (const note of new Set(done.notes ?? [])) this.tell(String(note));
    for (const id of done.changes ?? []) this.changed(id);
    if (done.usage?.requests) this.used(done.usage);
    if (done.model) fill(this.foot, [done.model, this.usage].filter(Boolean).join(" · "));
  }

  changed(id) {
    const line = el("p", {}, el("strong", {}, "A note was changed. "));
    const undo = button("Undo", async () => {
      undo.disabled = true;
      line.append(await this.does.undo(id));
    });
    this.extras.append(el("div", { class: "card" }, line, undo));
  }

  tell(text) {
    this.extras.append(el("p", { class: "notice" }, text));
  }

  /** Show the text, where it isn't shown yet: drawing anew would take the focus from what it holds. */
  redraw() {
    if (this.drawn === this.text) return;
    this.drawn = this.text;
    fill(
      this.answer,
      render(this.text, (link, number) => follow(link, number, this.citations, this.does)),
    );
  }
}
