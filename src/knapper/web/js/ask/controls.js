/** What folds out below the message: which notes go with a task, and what may be done to them. */

import { byId, el, fill } from "../dom.js";
import { CAN, EDITABLE } from "./choice.js";
import * as finding from "./finding.js";
import { Picker, chips } from "./picker.js";

const EDITS = { current: "the open note", linked: "that and what it links with", context: "every note that goes in" };
const MAY = { add: "add lines", delete: "replace and delete", create: "make notes", navigate: "open notes for me" };

export class Controls {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("./choice.js").Choice} choice
   * @param {{about: (path: string) => void, file: () => string, close: () => void}} does
   * @param {HTMLElement} gathered What would go in.
   * @param {HTMLElement} presets
   */
  constructor(api, choice, does, gathered, presets) {
    this.choice = choice;
    this.does = does;
    const notes = (typed) => finding.notes(api, typed);
    const folders = (typed) => finding.folders(api, typed);
    this.open = new Picker("Find the note to begin with", notes, (path) => does.about(path));
    this.adding = new Picker("Find a note to add", notes, (path) => this.#put("added", path));
    this.walls = new Picker("Find a folder to leave out", folders, (path) => this.#put("excluded", path));
    this.parts = Object.fromEntries(["file", "depth", "added", "excluded", "rules"].map((one) => [one, el("div")]));
    const left = [this.#openNote(), this.#links(), this.#added(), this.#excluded(), gathered];
    const node = el(
      "div",
      { class: "choosing-body", onkeydown: (event) => this.#key(event) },
      el("div", { class: "choosing-columns" }, el("div", {}, left), el("div", {}, this.parts.rules, presets)),
    );
    fill(byId("choosing"), node);
  }

  /** Show what is chosen; the focus stays where it is. */
  draw() {
    const { choice, parts } = this;
    const focused = document.activeElement?.dataset?.control;
    const file = this.does.file();
    const none = el(
      "p",
      { class: "quiet" },
      "None is open. Without one, and with none added, the scout looks for notes.",
    );
    fill(parts.file, file ? chips([file], "Open note", () => this.does.about("")) : none);
    fill(
      parts.depth,
      this.#depth(),
      this.#check("same-folder", "the notes of its folder", choice.isFolder, "isFolder"),
    );
    fill(
      parts.added,
      chips(choice.added, "Added notes", (path) => this.#drop("added", path)),
    );
    fill(
      parts.excluded,
      chips(choice.excluded, "Folders left out", (path) => this.#drop("excluded", path)),
    );
    fill(parts.rules, this.#rules(), this.#limits());
    if (focused) byId("choosing").querySelector(`[data-control="${focused}"]`)?.focus({ preventScroll: true });
  }

  #openNote() {
    return group("Open note", this.parts.file, this.open.node);
  }

  #links() {
    return group("Links followed from it, out and back", this.parts.depth);
  }

  #added() {
    return group("Added notes", this.parts.added, this.adding.node);
  }

  #excluded() {
    return group("Folders left out", this.parts.excluded, this.walls.node);
  }

  #depth() {
    const { choice } = this;
    const all = Array.from({ length: choice.deepest + 1 }, (_, depth) => depth);
    const radios = all.map((depth) => {
      const own = { type: "radio", name: "depth", value: depth, "data-control": `depth-${depth}` };
      const radio = el("input", { ...own, checked: depth === choice.depth, onchange: () => choice.set({ depth }) });
      return el("label", { class: "radio" }, radio, depth ? String(depth) : "none");
    });
    return el("div", { class: "row", role: "radiogroup", "aria-label": "Link depth" }, radios);
  }

  #rules() {
    const { choice } = this;
    const scopes = EDITABLE.map((one) => el("option", { value: one, selected: one === choice.editable }, EDITS[one]));
    const change = (event) => choice.set({ editable: event.target.value });
    const own = { id: "editable", "data-control": "editable", onchange: change };
    const select = el("select", own, scopes);
    const can = CAN.map((one) => this.#may(one));
    return group("What may be edited", el("label", { class: "unseen", for: "editable" }, "May be edited"), select, can);
  }

  #may(one) {
    const { choice } = this;
    const flip = (event) => {
      choice.set({ can: CAN.filter((each) => (each === one ? event.target.checked : choice.can.includes(each))) });
    };
    return check(`can-${one}`, MAY[one], choice.can.includes(one), flip);
  }

  #limits() {
    const { choice } = this;
    const { least, most } = choice.token;
    const own = { type: "number", id: "token-limit", "data-control": "token-limit", min: least, step: 1_000 };
    const input = el("input", { ...own, max: most || null, value: choice.limit, onchange: () => this.#limit(input) });
    return group(
      "Limits",
      el("label", { class: "beside", for: "token-limit" }, "Tokens of notes at most ", input),
      this.#check("route", "a model chooses which agents work, and in which order", choice.isRouting, "isRouting"),
    );
  }

  /** Take a limit as it can be used. */
  #limit(input) {
    const { least, most, limit } = this.choice.token;
    const said = Math.round(Number(input.value)) || limit;
    this.choice.set({ limit: Math.min(Math.max(said, least), most || said) });
    input.value = this.choice.limit;
  }

  #check(name, text, isOn, field) {
    return check(name, text, isOn, (event) => this.choice.set({ [field]: event.target.checked }));
  }

  #put(field, value) {
    if (!this.choice[field].includes(value)) this.choice.set({ [field]: [...this.choice[field], value] });
  }

  #drop(field, value) {
    this.choice.set({ [field]: this.choice[field].filter((one) => one !== value) });
    const picker = field === "added" ? this.adding : this.walls;
    picker.input.focus({ preventScroll: true });
  }

  #key(event) {
    if (event.key === "Escape") this.does.close();
  }
}

/** Make a part with a name of its own. */
export function group(name, ...content) {
  return el("fieldset", { class: "group" }, el("legend", {}, name), content);
}

function check(name, text, isOn, onchange) {
  const own = { type: "checkbox", "data-control": name, checked: isOn, onchange };
  return el("label", { class: "check" }, el("input", own), text);
}
