/** Show a task of several agents: how far each is, what they found, and what came of it. */

import { Exchange } from "../chat/exchange.js";
import { el, fill } from "../dom.js";
import { copyTexts } from "./copying.js";
import { costs } from "./costs.js";
import { context, selection, sources } from "./findings.js";
import { Phases } from "./phases.js";
import { questionCard } from "./question.js";

const ALONE = {
  toggles: { scout: false, web: false, task: true },
  scope: { link_depth: 0, include_same_folder: false },
};
const ROOMY = 1_000_000;

export class Task extends Exchange {
  constructor(question, does) {
    super(question, does);
    this.runId = "";
    this.told = new Set();
    this.phases = new Phases();
    this.findings = el("div", { class: "findings" });
    this.steps.node.before(this.phases.node);
    this.steps.node.after(this.findings);
    const open = (path) => does.openNote({ target: path });
    this.views = {
      selection: (found) => selection(found, open),
      sources,
      context: (given) => context(given, { openNote: open, copy: (paths) => this.#copy(paths) }),
    };
  }

  taking(event) {
    return {
      ...super.taking(event),
      start: () => (this.runId = event.run_id ?? this.runId),
      progress: () => this.#progress(event),
      round: () => this.steps.round(event),
      selection: () => this.#show("selection", event.scout),
      sources: () => this.#show("sources", event.web),
      context: () => this.#show("context", event.context),
      navigate: () => this.#navigate(event.path),
      notice: () => this.tell(event.text),
      outcome: () => this.settle(event),
    };
  }

  /** Ask the person; the run goes on with what they say. */
  asks(asked) {
    this.asked = asked.question;
    this.asking = asked;
    this.node.dataset.run = this.runId;
    this.node.querySelector(".open-question")?.remove();
    this.extras.append(questionCard(asked, (answer) => this.#answer(answer)));
  }

  /** Say what went wrong; a question that wasn't answered by it is there again. */
  fail(error) {
    const { asking } = this;
    super.fail(error);
    if (asking && error.status !== 404) this.asks(asking);
  }

  /** Show a run that waits for an answer, such as one found after the page was loaded anew. */
  static waiting(run, does) {
    const shown = new Task(run.task, does);
    shown.runId = run.run_id;
    shown.waiting.hidden = true;
    shown.asks(run);
    return shown;
  }

  settle(done) {
    const { pipeline = {}, context: given = {}, question, notices = [] } = done;
    this.runId = done.run_id ?? this.runId;
    this.phases.end();
    if (!question) this.asking = null;
    if (pipeline.scout) this.#show("selection", pipeline.scout);
    if (pipeline.web) this.#show("sources", pipeline.web);
    if (given.notes) this.#show("context", given);
    if (question && !this.node.querySelector(".open-question")) this.asks(question);
    super.settle({ ...done, notes: notices });
    for (const id of done.proposals ?? []) this.#proposed(id);
    for (const one of done.edit_results?.failures ?? [])
      this.tell(`An edit of ${one.file} can't be made: ${one.error}`);
    if (done.error && !this.extras.querySelector(".wrong")) this.wrong(done.error);
    if (done.usage?.requests) fill(this.foot, costs(done.usage, done.model));
  }

  /** Tell something once. */
  tell(text) {
    if (this.told.has(text)) return;
    this.told.add(text);
    super.tell(text);
  }

  #progress(event) {
    this.phases.take(event);
    if (event.state !== "going_on") this.does.tell(event.text);
  }

  #show(kind, found) {
    const made = this.views[kind](found);
    const known = this.findings.querySelector(`[data-finding="${kind}"]`);
    made.open = known?.open ?? false;
    if (known) known.replaceWith(made);
    else this.findings.append(made);
  }

  #navigate(path) {
    this.tell(`It opened ${path} for you.`);
    this.does.openNote({ target: path });
  }

  #proposed(id) {
    const isShown = [...this.extras.children].some((one) => one.dataset.proposal === id);
    if (!isShown) this.propose({ id });
  }

  #answer(answer) {
    this.answer.before(this.extras.querySelector(".asks")); // it came before what is answered next
    this.waiting.hidden = false;
    this.text = "";
    this.redraw();
    this.does.answer(this, answer);
  }

  #copy(paths) {
    return copyTexts(this.does.api, { ...ALONE, added: paths, token_limit: ROOMY }, this.does);
  }
}
