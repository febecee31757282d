/** Ask which other vaults a run looks through. */

import { el } from "../dom.js";

/** Boxes to tick, one for each other vault. */
export class Others {
  /** @param {string[]} names Of the vaults beside the one that is open. */
  constructor(names) {
    this.boxes = names.map((name) => el("input", { type: "checkbox", value: name }));
    this.node = names.length
      ? el(
          "fieldset",
          { class: "others" },
          el("legend", {}, "Look through other vaults as well"),
          this.boxes.map((box) => el("label", { class: "tick" }, box, ` ${box.value}`)),
        )
      : null;
  }

  /** Name those that are ticked. */
  read() {
    return this.boxes.filter((box) => box.checked).map((box) => box.value);
  }
}

/** Say which other vaults a run looks through; empty where there are none. */
export function alsoIn(names = []) {
  return names.length ? `also looks through ${names.join(", ")}` : "";
}
