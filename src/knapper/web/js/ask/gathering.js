/** Tell, while somebody chooses, which notes would go with a task: how many, how long, and why each. */

import { button, count, el, fill } from "../dom.js";
import { copyTexts } from "./copying.js";
import { group } from "./controls.js";

const WAIT_MS = 300;

export class Gathering {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does
   * @param {() => object} does.body Gives what is chosen.
   * @param {() => boolean} does.isChat Tells whether a message would be plain chat all the same.
   * @param {() => void} does.want Has the notes go with the next message.
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.number = 0;
    this.head = el("p", { class: "quiet" });
    this.list = el("div");
    this.copy = button("Copy their text", () => copyTexts(api, does.body(), does));
    this.node = group("What goes in", this.head, this.list, el("div", { class: "row" }, this.copy));
  }

  /** Look again in a moment, once however often it is asked for. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), WAIT_MS);
  }

  /** Look now. */
  async look() {
    clearTimeout(this.timer);
    const number = ++this.number;
    try {
      const found = await this.api.post("/ask/context", this.does.body());
      if (number !== this.number) return; // something else was chosen meanwhile
      this.#draw(found);
      this.does.said(found);
    } catch (error) {
      if (number !== this.number || error.isOffline) return;
      fill(this.head, error.message, error.hint ? `: ${error.hint}` : "");
      fill(this.list);
      this.copy.disabled = true;
    }
  }

  #draw(found) {
    const { notes, removed = [], notices = [], cut } = found;
    const others = notices.filter((text) => !text.startsWith("the token limit"));
    fill(this.head, `${count(notes.length, "note")}, ${count(found.tokens, "token")}`);
    fill(
      this.list,
      noteList(notes, this.does.openNote),
      removed.length ? leftOut(removed, this.does.openNote) : null,
      cut ? el("p", { class: "notice" }, `Only the beginning of ${cut} goes in.`) : null,
      found.explored ? el("p", { class: "quiet" }, "The scout chooses more, once the task begins.") : null,
      this.does.isChat() ? this.#plain() : null,
      others.map((text) => el("p", { class: "notice" }, text)),
    );
    this.copy.disabled = !notes.length;
  }

  /** Say that nothing of it goes in yet, and offer that it does. */
  #plain() {
    const text = "In plain chat, the model looks for notes by itself. ";
    return el(
      "p",
      { class: "notice" },
      text,
      button("Give it these notes", () => this.does.want(), { class: "small" }),
    );
  }
}

/** List notes, each with the reason why it is there. */
export function noteList(notes, openNote) {
  const rows = notes.map((one) => {
    const name = button(short(one.path), () => openNote(one.path), { class: "cite", title: one.path });
    const about = [one.why ?? one.source, one.tokens ? count(one.tokens, "token") : ""].filter(Boolean).join(" · ");
    const reason = one.reason ? el("p", { class: "reason" }, one.reason) : null;
    return el("li", {}, name, " ", el("span", { class: "quiet" }, about), reason);
  });
  return el("ul", { class: "note-list" }, rows);
}

/** List what a limit left out. */
export function leftOut(removed, openNote) {
  const head = el("summary", {}, `The limit leaves out ${count(removed.length, "note")}`);
  return el("details", { class: "left-out", open: removed.length <= 3 }, head, noteList(removed, openNote));
}

function short(path) {
  return path.split("/").at(-1).replace(/\.md$/, "");
}
