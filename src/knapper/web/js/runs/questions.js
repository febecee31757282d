/** Ask the person what a run asks: where little was found for something on which much depends. */

import { button, el } from "../dom.js";

export class Questions {
  /** @param {{answer: (id: string, text: string) => Promise<boolean>, openPart: Function}} does */
  constructor(does) {
    this.does = does;
    this.cards = new Map();
    this.node = el("div", { class: "questions" });
  }

  clear() {
    this.cards.clear();
    this.node.replaceChildren();
  }

  /**
   * Take a question, or what became of one.
   *
   * @returns {boolean} Whether it is new, and waits.
   */
  take(point) {
    const known = this.cards.get(point.node_id);
    const isOver = Boolean(point.answer) || Boolean(point.unattended);
    if (isOver || !point.id) {
      known?.remove();
      this.cards.delete(point.node_id);
      return false;
    }
    if (known) return false;
    const card = this.#card(point);
    this.cards.set(point.node_id, card);
    this.node.append(card);
    return true;
  }

  #card(point) {
    const id = `where-${point.node_id}`;
    const where = el("input", { type: "text", id, maxlength: "2000", placeholder: "A note's name, or where to look" });
    const form = el(
      "form",
      { class: "where-form" },
      el("label", { for: id }, "Where to look"),
      el("div", { class: "where-row" }, where, el("button", { type: "submit" }, "Look there")),
    );
    const choices = (point.options ?? []).map((option) =>
      button(sentence(option), () => this.#say(point, card, option)),
    );
    const card = el(
      "div",
      { class: "card asks" },
      el("p", {}, el("strong", {}, point.question)),
      el(
        "div",
        { class: "row" },
        choices,
        button("Show the part", () => this.does.openPart(point.node_id)),
      ),
      form,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (where.value.trim()) this.#say(point, card, where.value.trim());
    });
    return card;
  }

  async #say(point, card, text) {
    const inputs = [...card.querySelectorAll("button, input")];
    for (const one of inputs) one.disabled = true;
    if (await this.does.answer(point.id, text)) this.take({ ...point, answer: text });
    else for (const one of inputs) one.disabled = false;
  }
}

function sentence(option) {
  return option.charAt(0).toUpperCase() + option.slice(1);
}
