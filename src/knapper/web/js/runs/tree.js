/** The tree of a run's parts, for mouse and keys: arrows go through it, Enter opens a part. */

import { el, fill } from "../dom.js";
import { nodeState, number } from "./words.js";

const TIERS = new Set(["A", "B", "C"]);

export class Tree {
  /** @param {(id: string, isByKey: boolean) => void} onOpen Told which part the person wants to see. */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.items = new Map();
    this.openedId = "";
    this.node = el("ul", { class: "tree", role: "tree", "aria-label": "Parts of the run" });
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("click", (event) => this.#click(event));
  }

  /** Begin with other parts. */
  clear() {
    this.items.clear();
    this.openedId = "";
    fill(this.node);
  }

  /** Show how a part stands; one that is new goes to its place. */
  put(node, doing = "") {
    const item = this.items.get(node.id) ?? this.#grow(node);
    item.children = node.children;
    fill(item.row, line(node, doing, node.id === "root"));
    this.#order(item);
  }

  /** Keep these parts alone, such as after a part was split in another way. */
  keep(ids) {
    for (const [id, item] of this.items) {
      if (ids.has(id)) continue;
      item.node.remove();
      this.items.delete(id);
    }
    const first = this.node.querySelector("[role=treeitem]");
    if (first && !this.node.querySelector("[tabindex='0']")) first.tabIndex = 0;
  }

  /** Mark the part that is shown. */
  open(id) {
    this.items.get(this.openedId)?.node.setAttribute("aria-selected", "false");
    this.openedId = id;
    const item = this.items.get(id);
    if (!item) return;
    item.node.setAttribute("aria-selected", "true");
    this.#reach(item.node);
  }

  focus(id = this.openedId) {
    const item = this.items.get(id)?.node ?? this.node.querySelector("[role=treeitem]");
    if (item) this.#go(item);
  }

  #grow(node) {
    const name = `part-${node.id}`;
    const row = el("div", { class: "part", id: name });
    const group = el("ul", { role: "group" });
    const own = { role: "treeitem", "data-node": node.id, "aria-labelledby": name, "aria-selected": "false" };
    const item = {
      node: el("li", { ...own, tabindex: this.items.size ? "-1" : "0" }, row, group),
      row,
      group,
      children: [],
    };
    const parent = this.items.get(node.parent);
    (parent?.group ?? this.node).append(item.node);
    this.items.set(node.id, item);
    if (parent) this.#order(parent);
    return item;
  }

  /** Keep parts in the order of the plan, whichever is told first. */
  #order(item) {
    const known = item.children.map((id) => this.items.get(id)?.node).filter(Boolean);
    for (const [at, one] of known.entries()) {
      if (item.group.children[at] !== one) item.group.insertBefore(one, item.group.children[at] ?? null);
    }
    if (!item.group.children.length) item.node.removeAttribute("aria-expanded");
    else if (!item.node.hasAttribute("aria-expanded")) item.node.setAttribute("aria-expanded", "true");
  }

  #click(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || !event.target.closest(".part")) return;
    if (event.target.closest(".twist") && item.hasAttribute("aria-expanded")) this.#fold(item, !isOpen(item));
    else this.onOpen(item.dataset.node, false);
    this.#go(item);
  }

  #key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowDown: () => this.#step(item, 1),
      ArrowUp: () => this.#step(item, -1),
      ArrowRight: () => this.#into(item),
      ArrowLeft: () => this.#outOf(item),
      Home: () => this.#go(this.#seen()[0]),
      End: () => this.#go(this.#seen().at(-1)),
      Enter: () => this.onOpen(item.dataset.node, true),
      " ": () => this.onOpen(item.dataset.node, true),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #step(item, by) {
    const seen = this.#seen();
    this.#go(seen[Math.min(seen.length - 1, Math.max(0, seen.indexOf(item) + by))]);
  }

  #into(item) {
    if (!item.hasAttribute("aria-expanded")) return;
    if (!isOpen(item)) this.#fold(item, true);
    else this.#step(item, 1);
  }

  #outOf(item) {
    if (isOpen(item)) this.#fold(item, false);
    else {
      const above = item.parentElement.closest("[role=treeitem]");
      if (above) this.#go(above);
    }
  }

  #fold(item, toOpen) {
    item.setAttribute("aria-expanded", String(toOpen));
  }

  /** List the parts that aren't folded away. */
  #seen() {
    const folded = (item) => item.parentElement.closest("[role=treeitem][aria-expanded=false]");
    return [...this.node.querySelectorAll("[role=treeitem]")].filter((item) => !folded(item));
  }

  #go(item) {
    this.#reach(item);
    item.focus({ preventScroll: true });
    item.querySelector(".part").scrollIntoView({ block: "nearest" });
  }

  /** Let the tab key come to this part. */
  #reach(item) {
    for (const one of this.node.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    item.tabIndex = 0;
  }
}

function line(node, doing, isRoot) {
  const told = [
    node.score === null || node.score === undefined ? "" : `score ${number(node.score)}`,
    TIERS.has(node.tier) ? `tier ${node.tier}` : "",
    node.citation_count ? `${node.citation_count} cited` : "",
    node.tokens ? `${node.tokens.toLocaleString("en")} tokens` : "",
    node.cached ? "from the cache" : "",
  ].filter(Boolean);
  return [
    el("span", { class: "twist", "aria-hidden": "true" }),
    el(
      "span",
      { class: "part-text" },
      el(
        "span",
        { class: "part-head" },
        nodeState(node.state, doing),
        " ",
        isRoot ? null : el("span", { class: "part-id" }, node.id),
        " ",
        el("span", { class: "part-title" }, node.title),
      ),
      told.length ? el("span", { class: "quiet" }, " ", told.join(" · ")) : null,
      node.reason ? el("span", { class: "part-reason" }, " ", node.reason) : null,
    ),
  ];
}

function isOpen(item) {
  return item.getAttribute("aria-expanded") === "true";
}
