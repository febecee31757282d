/** Choices under a name: take one, keep this one, delete one. */

import { button, el, fill } from "../dom.js";
import { askText, confirm } from "../shell/dialogs.js";
import { group } from "./controls.js";

export class Presets {
  /**
   * @param {import("../api.js").Api} api
   * @param {import("./choice.js").Choice} choice
   * @param {{fail: Function, tell: Function}} does
   */
  constructor(api, choice, does) {
    this.api = api;
    this.choice = choice;
    this.does = does;
    this.all = [];
    this.list = el("select", { id: "preset", onchange: () => this.#take() });
    this.gone = button("Delete", () => this.#delete());
    const acts = [
      button("Save as …", () => this.#save()),
      this.gone,
      button("As configured", () => this.#reset(), { title: "Forget what is chosen here" }),
    ];
    const label = el("label", { class: "unseen", for: "preset" }, "Preset");
    this.node = group("Presets", label, this.list, el("div", { class: "row" }, acts));
    this.#draw("");
  }

  async load(chosen = this.list.value) {
    try {
      this.all = (await this.api.get("/presets")).results;
      this.#draw(chosen);
    } catch (error) {
      if (!error.isOffline) this.does.fail(error);
    }
  }

  #draw(chosen) {
    const named = this.all.map(({ name }) => el("option", { value: name, selected: name === chosen }, name));
    fill(this.list, el("option", { value: "" }, this.all.length ? "Take a preset …" : "None is saved yet"), named);
    this.list.disabled = !this.all.length;
    this.gone.disabled = !this.list.value;
  }

  #take() {
    const found = this.all.find((one) => one.name === this.list.value);
    this.gone.disabled = !found;
    if (!found) return;
    this.choice.take(found);
    this.does.tell(`${found.name} is taken`);
  }

  #reset() {
    this.list.value = "";
    this.gone.disabled = true;
    this.choice.reset();
  }

  async #save() {
    const name = await askText("Save this choice", "Name", this.list.value);
    if (!name) return;
    const { name: _, ...body } = this.choice.preset(name);
    await this.#try(() => this.api.send("PUT", address(name), body), name, `${name} is saved`);
  }

  async #delete() {
    const name = this.list.value;
    if (!name || !(await confirm("Delete the preset?", `“${name}” is deleted for good.`, "Delete"))) return;
    await this.#try(() => this.api.delete(address(name)), "", `${name} is deleted`);
  }

  async #try(work, chosen, told) {
    try {
      await work();
      this.does.tell(told);
    } catch (error) {
      this.does.fail(error);
    }
    await this.load(chosen);
  }
}

function address(name) {
  return `/presets/${encodeURIComponent(name)}`;
}
