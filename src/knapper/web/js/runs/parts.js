/** Show the parts of a run: the tree, and beside it the part that the person has chosen. */

import { atNextFrame, el } from "../dom.js";
import { address } from "./acts.js";
import { Part } from "./part.js";
import { Tree } from "./tree.js";
import { isGoing } from "./words.js";

const ROOT = "root";

export class Parts {
  /**
   * @param {import("../api.js").Api} api
   * @param {{openCitation: Function, openNote: Function, replay: (run: object, node: object) => void}} does
   */
  constructor(api, does) {
    this.api = api;
    this.run = null;
    this.id = "";
    this.looking = "";
    this.isStale = false;
    this.tree = new Tree((id, isByKey) => this.open(id, isByKey));
    this.part = new Part({
      ...does,
      openPart: (id) => this.open(id, true),
      replay: (id) => does.replay(this.run, this.#node(id)),
      back: () => this.tree.focus(this.id),
    });
    const title = el("h3", { id: "parts-title" }, "Parts");
    const tree = el("section", { "aria-labelledby": "parts-title" }, title, this.tree.node);
    this.node = el("div", { class: "run-parts" }, tree, this.part.node);
    this.look = atNextFrame(() => this.#look());
  }

  clear() {
    this.run = null;
    this.id = "";
    this.tree.clear();
    this.part.clear();
  }

  /** Show the parts of a run as they are; at first the whole task. */
  take(run) {
    this.run = run;
    this.tree.keep(new Set(run.nodes.map((node) => node.id)));
    for (const node of run.nodes) this.tree.put(node);
    if (this.#node(this.id)) this.#look();
    else this.#show(ROOT);
  }

  /** Show how a part stands now. */
  change(node, doing) {
    this.tree.put(node, doing);
    this.touch(node.id);
  }

  /** Look a part up again, if it is the one that is shown. */
  touch(id) {
    if (id === this.id) this.look();
  }

  /** Show a part, and go there: always by the keys, and where it stands below the tree. */
  async open(id, isByKey) {
    await this.#show(id);
    if (this.id !== id) return;
    if (this.#isStacked()) this.part.node.scrollIntoView();
    if (isByKey) this.part.heading.focus();
  }

  async #show(id) {
    const node = this.#node(id);
    if (!node) return;
    this.id = id;
    this.tree.open(id);
    this.part.wait(node.title);
    await this.#look();
  }

  /** Look up the part that is shown; what changes meanwhile is looked up after that. */
  async #look() {
    const { run, id } = this;
    if (!run || !id) return;
    const key = `${run.id} ${id}`;
    this.isStale = this.looking === key;
    if (this.isStale) return;
    this.looking = key;
    await this.#fetch(run, id);
    if (this.looking === key) this.looking = "";
    if (this.isStale) this.look();
  }

  async #fetch(run, id) {
    const isShown = () => this.run?.id === run.id && this.id === id;
    try {
      const node = await this.api.get(`${address(run.id)}/nodes/${encodeURIComponent(id)}`);
      if (!isShown()) return;
      const isAbove = id === ROOT && node.answer && this.run.answer.startsWith(node.answer.trimEnd());
      if (isAbove) Object.assign(node, { answer: "", citations: [], removed: [] });
      this.part.show(node, (other) => this.#node(other)?.title ?? "", !isGoing(this.run));
    } catch (error) {
      if (isShown() && !error.isOffline) this.part.fail(error);
    }
  }

  #node(id) {
    return this.run?.nodes.find((node) => node.id === id);
  }

  #isStacked() {
    return this.part.node.getBoundingClientRect().left < this.tree.node.getBoundingClientRect().right;
  }
}
