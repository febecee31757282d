/** Tell how things stand: whether the server answers, and whether the index is whole. */

import { byId, count, fill } from "../dom.js";

const EVERY_MS = 15_000;
const OFFLINE_MS = 3_000;

export class Standing {
  /** @param {import("../api.js").Api} api */
  constructor(api, onBack) {
    this.api = api;
    this.onBack = onBack;
    this.node = byId("standing");
    this.banner = byId("offline");
    this.isOffline = false;
    this.timer = 0;
    api.onReach = (isReached) => this.#reach(isReached);
    addEventListener("online", () => this.look());
    addEventListener("offline", () => this.#reach(false));
    document.addEventListener("visibilitychange", () => this.look());
    byId("offline-again").addEventListener("click", () => this.look());
  }

  /** Look now, and again every while, as long as somebody sees the page. */
  async look() {
    clearTimeout(this.timer);
    if (document.hidden || !this.api.key) return;
    try {
      this.#show(await this.api.tool("vault_status"));
    } catch (error) {
      if (!error.isOffline) this.#say("unsure", error.message);
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.isOffline ? OFFLINE_MS : EVERY_MS);
  }

  #show(status) {
    const notes = count(status.notes, "note");
    if (status.index_incomplete && !status.notes) this.#say("working", "the index is being made");
    else if (status.index_incomplete) this.#say("working", `${notes}, not all indexed yet`);
    else if (status.pending)
      this.#say("working", `${notes}, ${count(status.pending, "passage")} still without meaning`);
    else if (status.problems) this.#say("unsure", `${notes}, ${count(status.problems, "file")} not read whole`);
    else this.#say("good", `${notes}, up to date`);
  }

  #reach(isReached) {
    if (isReached === !this.isOffline) return;
    this.isOffline = !isReached;
    this.banner.hidden = isReached;
    document.body.classList.toggle("is-offline", !isReached);
    if (isReached) {
      this.onBack();
      this.look();
      return;
    }
    this.#say("bad", "no connection");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), OFFLINE_MS);
  }

  #say(state, text) {
    if (this.node.dataset.state === state && this.node.textContent === text) return;
    this.node.dataset.state = state;
    fill(this.node, text);
  }
}
