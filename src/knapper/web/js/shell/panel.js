/** The panel at the side: one thing at a time is shown in it, and the focus goes there and back. */

import { byId, fill } from "../dom.js";

export class Panel {
  constructor() {
    this.node = byId("panel");
    this.heading = byId("panel-title");
    this.body = byId("panel-body");
    this.from = null;
    this.number = 0;
    this.narrow = matchMedia("(max-width: 48rem)");
    this.narrow.addEventListener("change", () => this.#cover());
    byId("panel-close").addEventListener("click", () => this.close());
    this.node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /**
   * Show something, under a title.
   *
   * @returns {() => boolean} Tells whether it still is what is shown: the person may have closed it, or opened another.
   */
  show(title, ...content) {
    const active = document.activeElement;
    if (!this.node.contains(active)) this.from = active;
    fill(this.heading, title);
    fill(this.body, content);
    this.node.hidden = false;
    this.#cover();
    this.heading.focus({ preventScroll: true });
    this.body.scrollTop = 0;
    const number = ++this.number;
    return () => number === this.number;
  }

  close() {
    if (this.node.hidden) return;
    this.number++;
    this.node.hidden = true;
    this.#cover();
    const back = this.from?.isConnected && this.from !== document.body ? this.from : byId("message");
    back.focus({ preventScroll: true });
  }

  /** Keep the keyboard out of what the panel covers. */
  #cover() {
    const isCovered = !this.node.hidden && this.narrow.matches;
    for (const one of document.querySelectorAll(".skip, .top, #lists, #middle")) one.inert = isCovered;
  }
}
