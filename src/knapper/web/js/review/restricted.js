/** List who only proposes because of what was read, and trust them again. */

import { button, byId, count, el, fill } from "../dom.js";
import { Latest } from "../latest.js";
import { confirm } from "../shell/dialogs.js";

const MOST = 20;
const TIME = { dateStyle: "medium", timeStyle: "short" };

export class Restricted {
  /**
   * @param {import("../api.js").Api} api
   * @param {{tell: Function, fail: Function}} does
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.section = byId("restricted-section");
    this.list = byId("restricted");
    this.number = byId("restricted-count");
    this.latest = new Latest();
    byId("trust-all").addEventListener("click", () => this.#all());
  }

  load() {
    const use = ({ results, total }) => this.#draw(results, total);
    return this.latest.of(this.api.get("/trust", { limit: MOST }), {
      use,
      fail: (error) => error.isOffline || this.does.fail(error),
    });
  }

  #draw(shown, total) {
    this.section.hidden = !total;
    fill(this.number, total ? String(total) : "");
    this.number.setAttribute("aria-label", total ? `, ${count(total, "entry")}` : "");
    const more = total > shown.length ? el("li", { class: "quiet" }, `and ${total - shown.length} more`) : null;
    const focused = document.activeElement?.dataset?.trusts;
    fill(
      this.list,
      shown.map((one) => this.#row(one)),
      more,
    );
    if (focused) this.list.querySelector(`[data-trusts="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #row(one) {
    const name = one.run ? `${one.client} in ${one.run}` : one.client;
    const until = one.until ? ` · until ${new Date(one.until).toLocaleString(undefined, TIME)}` : "";
    const trust = button("Trust", () => this.#trust({ client: one.client, run: one.run }, name), {
      class: "small",
      "aria-label": `Trust ${name} again`,
      "data-trusts": `${one.client} ${one.run}`,
    });
    return el(
      "li",
      { class: "restricted" },
      el("span", { class: "entry-name" }, name),
      el("span", { class: "quiet" }, `read ${one.source}${until}`),
      trust,
    );
  }

  async #all() {
    const about = "Clients, runs and sessions that have read other people's text may change notes again, as configured.";
    if (await confirm("Trust all again?", about, "Trust all")) await this.#trust({ all: true }, "everybody");
  }

  async #trust(who, name) {
    try {
      await this.api.post("/trust", who);
      this.does.tell(`${name} is trusted again`);
    } catch (error) {
      if (error.code !== "not_tainted") this.does.fail(error);
    }
    await this.load();
  }
}
