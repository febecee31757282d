/** Find something by typing: what fits is listed below, and chosen by the keyboard or by a press. */

import { el, fill } from "../dom.js";

const WAIT_MS = 150;
const AGAIN_MS = 1_000;
let made = 0;

export class Picker {
  /**
   * @param {string} label What is looked for.
   * @param {(typed: string) => Promise<{rows: Array<{value: string, about?: string}>, isPartial?: boolean}>} find
   *   Lists what fits; where that may be more in a moment, it is asked again.
   * @param {(value: string) => void} onPick
   */
  constructor(label, find, onPick) {
    this.find = find;
    this.onPick = onPick;
    this.found = [];
    this.at = -1;
    this.asked = 0;
    const id = `picker-${++made}`;
    this.list = el("ul", { id, class: "picker-list", role: "listbox", "aria-label": "What fits", hidden: true });
    this.input = el("input", {
      type: "text",
      role: "combobox",
      placeholder: label,
      "aria-label": label,
      "aria-controls": id,
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "1000",
      oninput: () => this.#later(),
      onkeydown: (event) => this.#key(event),
      onblur: () => this.#close(),
    });
    this.node = el("div", { class: "picker" }, this.input, this.list);
  }

  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#look(), WAIT_MS);
  }

  async #look() {
    const typed = this.input.value.trim();
    const number = ++this.asked;
    const failed = () => ({ rows: [], isPartial: true });
    const found = typed ? await this.find(typed).catch(failed) : { rows: [] };
    if (number !== this.asked || document.activeElement !== this.input) return;
    const isSame = JSON.stringify(found.rows) === JSON.stringify(this.found) && !this.list.hidden;
    this.found = found.rows;
    if (!isSame) this.#draw(typed);
    if (found.isPartial) this.timer = setTimeout(() => this.#look(), AGAIN_MS);
  }

  #draw(typed) {
    this.at = this.found.length ? 0 : -1;
    const rows = this.found.map(({ value, about }, at) => {
      const own = { id: `${this.list.id}-${at}`, role: "option", onpointerdown: (event) => this.#press(event, at) };
      return el("li", own, value, about ? el("span", { class: "quiet" }, ` ${about}`) : null);
    });
    fill(this.list, rows.length ? rows : el("li", { class: "quiet" }, "nothing fits"));
    this.list.hidden = !typed;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#mark();
  }

  #mark() {
    [...this.list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === this.at)));
    const marked = this.list.children[this.at];
    if (this.found.length && marked) {
      this.input.setAttribute("aria-activedescendant", marked.id);
      marked.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.#mark();
    } else if (event.key === "Enter") this.#pick(this.at);
    else if (event.key === "Escape" && !this.list.hidden) {
      event.stopPropagation();
      this.#close();
    } else return;
    event.preventDefault();
  }

  /** Choose by a press, and keep the focus, which would close the list first. */
  #press(event, at) {
    event.preventDefault();
    this.#pick(at);
  }

  #pick(at) {
    const chosen = this.found[at];
    if (!chosen) return;
    this.input.value = "";
    this.#close();
    this.onPick(chosen.value);
  }

  #close() {
    clearTimeout(this.timer);
    this.asked++;
    this.found = [];
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

/** Show what was chosen, each with a way to take it out again. */
export function chips(values, label, onRemove) {
  const rows = values.map((value) =>
    el(
      "li",
      { class: "chip" },
      el("span", {}, value),
      el(
        "button",
        { type: "button", class: "sign", "aria-label": `Take out ${value}`, onclick: () => onRemove(value) },
        el("span", { "aria-hidden": "true" }, "✕"),
      ),
    ),
  );
  return el("ul", { class: "chips", "aria-label": label, hidden: !values.length }, rows);
}
