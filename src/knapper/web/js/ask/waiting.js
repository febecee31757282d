/** List the tasks that wait for a person's answer, whoever began them, and wherever. */

import { byId, count, el, fill } from "../dom.js";
import { Latest } from "../latest.js";

export class Waiting {
  /**
   * @param {import("../api.js").Api} api
   * @param {{open: (run: object) => void, shown: Function}} does
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.section = byId("questions-section");
    this.list = byId("questions");
    this.all = [];
    this.latest = new Latest();
  }

  /** Look which there are, and list them; gives them, or what is listed where they can't be had. */
  async load() {
    const answer = await this.latest.of(this.api.get("/ask/waiting"), { use: ({ results }) => this.#draw(results) });
    return answer?.results ?? this.all;
  }

  #draw(all) {
    this.all = all;
    this.section.hidden = !this.all.length;
    fill(byId("questions-count"), this.all.length ? String(this.all.length) : "");
    byId("questions-count").setAttribute("aria-label", `, ${count(this.all.length, "question")} waiting`);
    fill(
      this.list,
      this.all.map((run) => this.#row(run)),
    );
  }

  #row(run) {
    const open = () => {
      this.does.shown();
      this.does.open(run);
    };
    const own = { type: "button", class: "entry", "data-run": run.run_id, onclick: open };
    return el(
      "li",
      {},
      el("button", own, el("span", { class: "entry-name" }, run.question), el("span", { class: "quiet" }, run.task)),
    );
  }
}
