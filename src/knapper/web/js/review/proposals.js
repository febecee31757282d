/** The list of changes that wait for a person's word, and of what became of earlier ones. */

import { byId, count, el, fill } from "../dom.js";
import { Latest } from "../latest.js";

const OPEN = new Set(["open", "stale"]);

export class Proposals {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("./proposal.js").ProposalView} view
   */
  constructor(api, view, does) {
    this.api = api;
    this.view = view;
    this.does = does;
    this.list = byId("proposals");
    this.waiting = byId("waiting-count");
    this.latest = new Latest();
    this.all = byId("proposals-all");
    this.all.addEventListener("change", () => this.load());
  }

  load() {
    return this.latest.of(this.api.get("/proposals", { limit: 100 }), {
      use: ({ results }) => this.#draw(results),
      fail: (error) => error.isOffline || fill(this.list, el("li", { class: "quiet" }, error.message)),
    });
  }

  #draw(all) {
    const open = all.filter((one) => OPEN.has(one.status));
    this.does.known(new Map(all.map((one) => [one.id, one])));
    fill(this.waiting, open.length ? String(open.length) : "");
    this.waiting.setAttribute("aria-label", open.length ? `, ${count(open.length, "change")} waiting` : "");
    const focused = document.activeElement?.dataset?.proposal;
    const shown = this.all.checked ? all : open;
    fill(
      this.list,
      shown.length ? shown.map((one) => this.#row(one)) : el("li", { class: "quiet" }, "Nothing waits for you."),
    );
    if (focused) this.list.querySelector(`[data-proposal="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #row(one) {
    const name = one.files > 1 ? `${one.path} and ${one.files - 1} more` : one.path;
    const items = Object.entries(one.items).map(([state, number]) => `${number} ${state}`);
    const about = [...items, `by ${one.client}`, one.tainted ? "others' text was read" : ""]
      .filter(Boolean)
      .join(" · ");
    const open = () => {
      this.does.shown();
      this.view.open(one.id);
    };
    const own = { type: "button", class: "entry", "data-proposal": one.id, onclick: open };
    return el(
      "li",
      {},
      el("button", own, el("span", { class: "entry-name" }, name), el("span", { class: "quiet" }, about)),
    );
  }
}
