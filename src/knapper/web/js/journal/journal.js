/** Show what was changed in the vault: who, when, what; and take it back. */

import { button, count, el, fill } from "../dom.js";
import { lineView, turned } from "./lines.js";

const PAGE = 30;

export class Journal {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("../shell/panel.js").Panel} panel
   * @param {{tell: Function, openNote: (path: string) => void, undone: Function}} does
   */
  constructor(api, panel, does) {
    this.api = api;
    this.panel = panel;
    this.does = does;
    this.limit = PAGE;
    this.all = [];
    this.list = el("ul", { class: "journal" });
    this.more = button("Show more", () => this.#more());
  }

  async open() {
    this.limit = PAGE;
    const isShown = this.panel.show("Journal", el("p", { class: "quiet" }, "opening …"));
    try {
      await this.#load();
      if (isShown()) this.panel.show("Journal", this.list, this.more);
    } catch (error) {
      if (isShown()) this.panel.show("Journal", el("p", { role: "alert" }, error.message));
    }
  }

  async #load() {
    const { results, total } = await this.api.get("/changes", { limit: this.limit });
    this.all = results;
    const none = el("li", { class: "quiet" }, "Nothing was changed here yet.");
    fill(this.list, results.length ? results.map((one) => this.#entry(one)) : none);
    this.more.hidden = total <= results.length;
  }

  async #more() {
    this.limit += PAGE;
    await this.#load().catch((error) => this.does.tell(error.message));
  }

  #entry(change) {
    const name = told(change);
    const view = el("div", { class: "change-view" });
    const problem = el("div", { role: "alert" });
    const show = button("What changed", () => this.#look(change, show, view), {
      "aria-expanded": "false",
      "aria-label": `What changed: ${name}`,
    });
    const undo = button("Undo", () => this.#undo(change, undo, problem), { "aria-label": `Undo: ${name}` });
    const about = [moment(change.at), `by ${change.client}`, change.reason].filter(Boolean).join(" · ");
    const state = change.undone ? el("span", { class: "badge" }, "taken back") : null;
    return el(
      "li",
      { class: "change", "data-change": change.id },
      el("p", {}, el("strong", {}, name), " ", state),
      el("p", { class: "quiet" }, about),
      el("div", { class: "row" }, show, change.undone ? null : undo),
      problem,
      view,
    );
  }

  async #look(change, show, view) {
    const isOpen = show.getAttribute("aria-expanded") !== "true";
    show.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return void fill(view);
    try {
      const files = await this.#differences(change);
      fill(
        view,
        files.map((file) => this.#file(file)),
      );
    } catch (error) {
      fill(view, el("p", { class: "notice" }, `It can't be shown: ${error.message}`));
    }
  }

  /** Tell how the files changed: the other way round from what taking it back would do now. */
  async #differences(change) {
    const inverse = change.undone ? this.all.find((one) => one.undoes?.includes(change.id)) : null;
    const asked = inverse ?? change;
    const { files } = await this.api.post(address(asked.id), { dry_run: true });
    return files.map((file) => ({ ...file, diff: inverse || !file.diff ? (file.diff ?? "") : turned(file.diff) }));
  }

  #file({ path, target, diff }) {
    const open = button(target ?? path, () => this.does.openNote(target ?? path), { class: "cite" });
    const none = el("p", { class: "quiet" }, "Its text is the same.");
    return el("section", {}, el("h3", {}, open), diff ? lineView(diff) : none);
  }

  async #undo(change, undo, problem) {
    undo.disabled = true;
    try {
      await this.api.post(address(change.id));
      this.does.tell("It is taken back");
      this.does.undone();
      await this.#load();
      this.list.querySelector(`[data-change="${CSS.escape(change.id)}"] button`)?.focus();
    } catch (error) {
      undo.disabled = false;
      fill(problem, el("p", { class: "card wrong" }, error.message, error.hint ? `: ${error.hint}` : ""));
    }
  }
}

function address(id) {
  return `/changes/${encodeURIComponent(id)}/undo`;
}

/** Say what a change did, in a few words. */
function told({ files, undoes, hidden_files: hiddenFiles = 0 }) {
  const [first, ...rest] = files;
  const back = undoes?.length ? "taken back: " : "";
  if (!first) return `${back}${count(hiddenFiles, "hidden file")}`;
  const where = first.target ? `${first.path} → ${first.target}` : first.path;
  return `${back}${first.action} ${where}${rest.length ? ` and ${rest.length} more` : ""}`;
}

function moment(at) {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
