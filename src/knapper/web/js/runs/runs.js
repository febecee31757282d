/** Runs on the page: the list, one of them in the middle, and which one the address names. */

import { byId, fill } from "../dom.js";
import { Beginning } from "./beginning.js";
import { RunList } from "./list.js";
import { RunView } from "./view.js";

const TITLE = 80;

export class Runs {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does What else the page does: open citations and proposals, tell what happened.
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.stage = byId("run");
    this.talk = [byId("talk"), byId("composer")];
    this.skip = document.querySelector(".skip");
    this.openedId = "";
    this.title = "";
    this.titleBefore = "";
    const own = { ...does, options: () => this.#options(), changed: () => this.list.load(), gone: () => this.#gone() };
    this.view = new RunView(api, own);
    this.beginning = new Beginning(api, { ...own, begun: (id) => this.open(id) });
    this.list = new RunList(api, {
      open: (id) => this.open(id),
      begin: () => this.begin(),
      openedId: () => this.openedId,
      known: (runs) => this.view.notice(runs),
    });
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => (event.ctrlKey || event.metaKey) && event.key === "/" && this.leave(), true);
    byId("new").addEventListener("click", () => this.leave());
    this.skip.addEventListener("click", (event) => this.#skip(event));
  }

  load() {
    return this.list.load();
  }

  /** Go where the address leads; tells whether that is a run. */
  async follow() {
    const id = new URLSearchParams(location.hash.slice(1)).get("run") ?? "";
    if (id && id !== this.openedId) await this.open(id);
    else if (!id && this.openedId) this.leave();
    return Boolean(this.openedId);
  }

  /** Show a run. */
  async open(id) {
    try {
      if (!(await this.view.open(id))) return;
      this.#show(this.view.node, id, this.view.run.task.split("\n")[0].slice(0, TITLE));
    } catch (error) {
      if (this.openedId !== id) this.#address("");
      this.does.fail(error);
    }
  }

  /** Let the person begin one. */
  begin() {
    this.view.leave();
    this.#show(this.beginning.node, "", "New run");
    return this.beginning.open();
  }

  /** Show the conversation again. */
  leave() {
    if (this.stage.hidden) return;
    this.view.leave();
    this.#stage(false);
    if (byId("title").textContent === this.title) fill(byId("title"), this.titleBefore);
    this.#address("");
  }

  #show(node, id, title) {
    if (this.stage.hidden) this.titleBefore = byId("title").textContent;
    this.title = title;
    fill(byId("title"), title);
    fill(this.stage, node);
    this.#stage(true);
    this.stage.scrollTop = 0;
    this.#address(id);
    this.does.shown();
  }

  #stage(isRun) {
    this.stage.hidden = !isRun;
    for (const one of this.talk) one.hidden = isRun;
    fill(this.skip, isRun ? "To the run" : "To the message box");
  }

  #address(id) {
    this.openedId = id;
    const wanted = id ? `#run=${encodeURIComponent(id)}` : "";
    if (location.hash !== wanted) history.pushState(null, "", wanted || location.pathname);
    this.list.load();
  }

  #gone() {
    this.does.tell("Deleted");
    this.leave();
  }

  #skip(event) {
    if (this.stage.hidden) return;
    event.preventDefault();
    this.stage.focus();
  }

  async #options() {
    return this.api.get("/runs/options");
  }
}
