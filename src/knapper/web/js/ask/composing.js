/** Put together what stands around the message: switches, notes, rules, presets, and the live count. */

import { Choice } from "./choice.js";
import { Controls } from "./controls.js";
import { Gathering } from "./gathering.js";
import { Presets } from "./presets.js";
import { Switches } from "./switches.js";

export class Composing {
  /**
   * @param {import("../api.js").Api} api
   * @param {{about: Function, file: () => string, openNote: (path: string) => void, fail: Function, tell: Function}} does
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.problems = {};
    this.choice = new Choice(() => this.changed());
    this.presets = new Presets(api, this.choice, does);
    this.gathering = new Gathering(api, {
      ...does,
      body: () => this.body(),
      said: (found) => this.#said(found),
      isChat: () => this.isChat,
      want: () => this.choice.set({ isWanted: true }),
    });
    const close = () => this.switches.fold(false);
    this.controls = new Controls(api, this.choice, { ...does, close }, this.gathering.node, this.presets.node);
    const keep = () => this.#keep();
    this.switches = new Switches(this.choice, { ...does, keep, fold: (isOpen) => this.#folded(isOpen) });
    this.changed();
  }

  /** Learn what is configured, and how the switches were last. */
  async load() {
    this.choice.isTouched = false;
    try {
      const found = await this.api.get("/ask/defaults");
      this.problems = found.problems;
      this.choice.learn(found);
    } catch (error) {
      if (!error.isOffline) this.does.fail(error);
    }
  }

  /** Whether a message goes to the chat, or else to the agents. */
  get isChat() {
    return this.choice.isChat;
  }

  /** Shape the choice as the server takes it, with the open note. */
  body() {
    const note = this.does.file();
    return { ...this.choice.body(), ...(note ? { note } : {}) };
  }

  /** Show what is chosen now. */
  changed() {
    this.switches?.draw(this.problems);
    this.controls?.draw();
    if (this.switches && (this.switches.isOpen || !this.choice.isChat)) this.gathering.later();
  }

  /** Have the server keep the switches for the next visit. */
  async #keep() {
    try {
      await this.api.send("PUT", "/ask/switches", this.choice.toggles);
    } catch (error) {
      if (!error.isOffline) this.does.fail(error);
    }
  }

  #said(found) {
    if (!this.choice.isChat) this.switches.say(found);
  }

  #folded(isOpen) {
    if (!isOpen) return;
    this.presets.load();
    this.gathering.look();
  }
}
