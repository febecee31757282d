/** The list of runs: how each stands, its task, and when it was begun. */

import { byId, el, fill } from "../dom.js";
import { Latest } from "../latest.js";
import { asksYou, isGoing, moment, runState } from "./words.js";

const PAGE = 20;
const SOON_MS = 5_000;
const LATER_MS = 30_000;

export class RunList {
  /**
   * @param {import("../api.js").Api} api
   * @param {{open: Function, begin: Function, known: Function, openedId: () => string}} does
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.list = byId("runs");
    this.limit = PAGE;
    this.timer = 0;
    this.latest = new Latest();
    byId("new-run").addEventListener("click", () => does.begin());
  }

  load() {
    clearTimeout(this.timer);
    return this.latest.of(this.api.get("/runs", { limit: this.limit }), {
      use: ({ results, total }) => {
        this.#draw(results, total);
        this.does.known(results);
        this.#after(results.some(isGoing) ? SOON_MS : LATER_MS);
      },
      fail: (error) => {
        this.list.closest("section").hidden = error.status === 404; // a server that has no runs
        if (error.status !== 404) this.#after(LATER_MS);
        if (!error.isOffline) fill(this.list, el("li", { class: "quiet" }, error.message));
      },
    });
  }

  #after(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (document.hidden || !this.api.key ? this.#after(ms) : this.load()), ms);
  }

  #draw(runs, total) {
    const focused = document.activeElement?.dataset?.run;
    const rows = runs.map((run) => this.#row(run));
    const more =
      total > runs.length
        ? el("li", {}, el("button", { type: "button", onclick: () => this.#more() }, "Show more"))
        : null;
    fill(this.list, rows.length ? rows : el("li", { class: "quiet" }, "None yet."), more);
    if (focused) this.list.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #row(run) {
    const own = {
      type: "button",
      class: "entry",
      "data-run": run.id,
      "aria-current": run.id === this.does.openedId() ? "true" : null,
      onclick: () => this.does.open(run.id),
    };
    return el(
      "li",
      {},
      el(
        "button",
        own,
        el("span", { class: "entry-name" }, run.task),
        el("span", { class: "quiet" }, runState(run.state), run.asks ? asksYou() : null, ` · ${moment(run.created)}`),
      ),
    );
  }

  #more() {
    this.limit += PAGE;
    return this.load();
  }
}
