/** The list of conversations: begin, go on, rename, copy, delete. */

import { byId, count, el, fill, sign } from "../dom.js";
import { Latest } from "../latest.js";
import { askText, confirm } from "./dialogs.js";

const PAGE = 50;

export class Sessions {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("../chat/conversation.js").Conversation} conversation
   * @param {{fail: Function, tell: Function, shown: Function}} does
   */
  constructor(api, conversation, does) {
    this.api = api;
    this.conversation = conversation;
    this.does = does;
    this.list = byId("sessions");
    this.limit = PAGE;
    this.latest = new Latest();
    byId("new").addEventListener("click", () => {
      conversation.clear();
      this.does.shown();
      this.load();
    });
  }

  load() {
    return this.latest.of(this.api.get("/sessions", { limit: this.limit }), {
      use: ({ results, total }) => this.#draw(results, total),
      fail: (error) => error.isOffline || fill(this.list, el("li", { class: "quiet" }, error.message)),
    });
  }

  #draw(sessions, total) {
    const focused = document.activeElement?.dataset?.session;
    const rows = sessions.filter((one) => one.turns !== 0).map((one) => this.#row(one));
    const more =
      total > sessions.length
        ? el("li", {}, el("button", { type: "button", onclick: () => this.#more() }, "Show more"))
        : null;
    fill(this.list, rows.length ? rows : el("li", { class: "quiet" }, "None yet."), more);
    if (focused) this.list.querySelector(`[data-session="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #row(session) {
    const isOpen = session.id === this.conversation.sessionId;
    const name = session.title || "Unnamed";
    const when = session.updated
      ? new Date(session.updated).toLocaleDateString(undefined, { day: "numeric", month: "short" })
      : "";
    const about = [session.busy ? "at work" : "", when, session.turns ? count(session.turns, "turn") : "", session.active_file ?? ""]
      .filter(Boolean)
      .join(" · ");
    const own = {
      type: "button",
      class: "entry",
      "data-session": session.id,
      "aria-current": isOpen ? "true" : null,
      onclick: () => this.#open(session.id),
    };
    const open = el("button", own, el("span", { class: "entry-name" }, name), el("span", { class: "quiet" }, about));
    const acts = el(
      "span",
      { class: "acts" },
      sign("✎", `Rename “${name}”`, () => this.#rename(session.id, name)),
      sign("⧉", `Copy “${name}”`, () => this.#fork(session.id)),
      sign("🗑︎", `Delete “${name}”`, () => this.#delete(session.id, name)),
    );
    return el("li", { class: "with-acts" }, open, acts);
  }

  #open(id) {
    return this.#try(async () => {
      await this.conversation.open(id);
      this.does.shown();
    });
  }

  async #rename(id, name) {
    const chosen = await askText("Rename the conversation", "Name", name);
    if (!chosen) return;
    await this.#try(async () => {
      await this.api.send("PATCH", `/sessions/${encodeURIComponent(id)}`, { title: chosen });
      if (id === this.conversation.sessionId) fill(byId("title"), chosen);
    });
  }

  #fork(id) {
    return this.#try(async () => {
      const made = await this.api.post(`/sessions/${encodeURIComponent(id)}/fork`);
      await this.conversation.open(made.session.id);
      this.does.tell("Copied; you are in the copy");
    });
  }

  async #delete(id, name) {
    if (
      !(await confirm("Delete the conversation?", `“${name}” is deleted for good. Notes stay as they are.`, "Delete"))
    )
      return;
    await this.#try(async () => {
      await this.api.delete(`/sessions/${encodeURIComponent(id)}`);
      if (id === this.conversation.sessionId) this.conversation.clear();
      this.does.tell("Deleted");
    });
  }

  #more() {
    this.limit += PAGE;
    return this.load();
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      this.does.fail(error);
    }
    await this.load();
  }
}
