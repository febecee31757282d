/** The box that a message is written in, and the buttons that send it and stop what comes of it. */

import { byId } from "../dom.js";

const MOST_ROWS = 8;

export class Box {
  /** @param {{say: (text: string) => void, cancel: () => void}} does */
  constructor(does) {
    this.does = does;
    this.node = byId("message");
    this.send = byId("send");
    this.stop = byId("stop");
    this.isBusy = false;
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      does.say(this.node.value);
    });
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("input", () => this.#fit());
    this.stop.addEventListener("click", () => does.cancel());
  }

  focus() {
    this.node.focus({ preventScroll: true });
  }

  /** Put a text in the place of what is written. */
  write(text) {
    this.node.value = text;
    this.#fit();
    if (text) this.node.focus();
  }

  /** Say whether something is being answered. */
  busy(isBusy) {
    this.isBusy = isBusy;
    this.stop.hidden = !isBusy;
    this.send.hidden = isBusy;
  }

  #key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.does.say(this.node.value);
    }
    if (event.key === "Escape" && this.isBusy) {
      event.stopPropagation();
      this.does.cancel();
    }
  }

  /** Give the box as many rows as its text has, up to a few. */
  #fit() {
    this.node.rows = Math.min(MOST_ROWS, Math.max(1, this.node.value.split("\n").length));
  }
}
