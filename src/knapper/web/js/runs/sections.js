/** Show parts of a view that change one by one: what stays as it is isn't made anew, so that nothing folds up or loses the focus. */

import { el } from "../dom.js";

export class Sections {
  /** @param {Record<string, unknown>} attributes Of the element around them. */
  constructor(attributes) {
    this.node = el("div", attributes);
    this.shown = new Map();
  }

  /** @param {Array<[string, unknown, () => unknown]>} sections Names, what each shows, and how it is made. */
  show(sections) {
    const names = new Set(sections.map(([name]) => name));
    for (const [name, { nodes }] of this.shown) {
      if (names.has(name)) continue;
      for (const one of nodes) one.remove();
      this.shown.delete(name);
    }
    let before = null;
    for (const [name, data, make] of sections) {
      const key = JSON.stringify(data) ?? "";
      const known = this.shown.get(name);
      const nodes = known?.key === key ? known.nodes : [make()].flat(3).filter(Boolean);
      if (known && known.nodes !== nodes) for (const one of known.nodes) one.remove();
      for (const one of nodes) {
        const next = before ? before.nextSibling : this.node.firstChild;
        if (next !== one) this.node.insertBefore(one, next);
        before = one;
      }
      this.shown.set(name, { key, nodes });
    }
  }

  clear() {
    this.show([]);
  }
}
