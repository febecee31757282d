/** The row below the message: which agents work, and the way to what they are given. */

import { byId, count, el, fill } from "../dom.js";
import { AGENTS } from "./choice.js";

const ABOUT = {
  scout: ["Scout", "looks through the vault and chooses the notes that the task needs"],
  web: ["Web", "searches the web where the notes don't answer"],
  task: ["Task", "answers, or proposes edits"],
};

export class Switches {
  /**
   * @param {import("./choice.js").Choice} choice
   * @param {{fold: (isOpen: boolean) => void, tell: Function}} does
   */
  constructor(choice, does) {
    this.choice = choice;
    this.does = does;
    this.buttons = new Map(AGENTS.map((name) => [name, this.#toggle(name)]));
    this.opener = el(
      "button",
      {
        type: "button",
        class: "opener",
        "aria-expanded": "false",
        "aria-controls": "choosing",
        onclick: () => this.fold(!this.isOpen),
      },
      "Notes",
      el("span", { class: "wide-only" }, " and rules"),
    );
    this.told = el("span", { class: "quiet told", role: "status" });
    const group = el("div", { class: "toggles", role: "group", "aria-label": "Agents" }, [...this.buttons.values()]);
    fill(byId("agents"), group, this.opener, this.told);
  }

  get isOpen() {
    return !byId("choosing").hidden;
  }

  /** Open or close what folds out. */
  fold(isOpen) {
    byId("choosing").hidden = !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
    this.does.fold(isOpen);
    if (!isOpen) this.opener.focus({ preventScroll: true });
  }

  /** Show how the switches are. */
  draw({ web: closed }) {
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(this.choice.toggles[name]));
    }
    const web = this.buttons.get("web");
    web.title = closed ? `${closed.error}: ${closed.hint}` : ABOUT.web[1];
    web.classList.toggle("lacking", Boolean(closed));
    this.opener.classList.toggle("chosen", this.choice.isChosen);
    if (this.choice.isChat) fill(this.told, "plain chat");
  }

  /** Say how much would go in. */
  say({ notes, tokens, explored }) {
    const size = `${count(notes.length, "note")} · ${count(tokens, "token")}`;
    if (!explored) fill(this.told, size);
    else fill(this.told, notes.length ? `${size}, and what the scout finds` : "the scout finds the notes");
  }

  #toggle(name) {
    const [label, title] = ABOUT[name];
    const own = { type: "button", class: "toggle", "aria-pressed": "false", title };
    const press = () => {
      if (this.choice.flip(name)) this.does.keep();
      else this.does.tell(`${label} stays on: one agent has to work`);
    };
    return el("button", { ...own, onclick: press }, label);
  }
}
