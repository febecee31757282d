/** Carry on one conversation: send, follow, stop, and show what was said before. */

import { byId, el, fill } from "../dom.js";
import * as keep from "../keep.js";
import { settle } from "./card.js";
import { Exchange } from "./exchange.js";
import { Turn } from "./stream.js";

const MOST_TURNS = 200;

export class Conversation {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does What else the page does: open citations and proposals, tell what happened.
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.log = byId("log");
    this.box = byId("message");
    this.send = byId("send");
    this.stop = byId("stop");
    this.sessionId = "";
    this.file = "";
    this.turn = null;
    this.isSending = false;
    this.opened = 0;
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.say(this.box.value);
    });
    this.box.addEventListener("keydown", (event) => this.#key(event));
    this.box.addEventListener("input", () => this.#fit());
    this.stop.addEventListener("click", () => this.cancel());
    byId("about-clear").addEventListener("click", () => this.about(""));
    this.#welcome();
  }

  /** Begin a conversation that isn't kept yet. */
  clear() {
    this.opened++;
    this.#leave();
    this.sessionId = "";
    keep.save("session", "");
    this.#welcome();
  }

  #welcome() {
    fill(byId("title"), "New conversation");
    fill(
      this.log,
      welcome((text) => this.#suggest(text)),
    );
    this.box.focus({ preventScroll: true });
  }

  /** Show a session, and go on with what is being answered in it. */
  async open(id) {
    const number = ++this.opened;
    const { session, messages } = await this.api.get(`/sessions/${encodeURIComponent(id)}`, { limit: MOST_TURNS });
    if (number !== this.opened) return; // the person has gone elsewhere meanwhile
    this.#leave();
    this.sessionId = id;
    keep.save("session", id);
    fill(byId("title"), session.title || "Conversation");
    fill(
      this.log,
      paired(messages).map(([asked, answered]) => Exchange.kept(asked, answered, this.#doing()).node),
    );
    this.#toEnd(true);
    this.does.opened();
    if (session.running) await this.#resume(session.running);
  }

  /** Name the note that is talked about; empty for none. */
  about(path) {
    this.file = path;
    byId("about").hidden = !path;
    fill(byId("about-path"), path);
    if (path) this.box.focus();
  }

  /** Show what became of the changes that were proposed here. */
  settle(known) {
    settle(this.log, known);
  }

  /** Send a message. */
  async say(text) {
    const message = text.trim();
    if (!message || this.turn || this.isSending) return;
    this.isSending = true;
    this.box.value = "";
    this.#fit();
    const shown = this.#begin(message);
    const body = { message, ...(this.file ? { active_file: this.file } : {}) };
    const path = await this.#path(shown);
    this.isSending = false;
    if (path && shown.node.isConnected) await this.#follow(shown, (turn) => turn.send(path, body));
  }

  /** Stop what is being answered. */
  async cancel() {
    try {
      await this.turn?.cancel();
    } catch (error) {
      this.does.fail(error);
    }
  }

  /** Find where a message goes: into this session, or into a new one. */
  async #path(shown) {
    try {
      if (!this.sessionId && !this.file) {
        this.sessionId = (await this.api.post("/sessions")).session.id;
      }
    } catch (error) {
      this.#end();
      shown.fail(error);
      return "";
    }
    return this.sessionId ? `/sessions/${encodeURIComponent(this.sessionId)}/chat/stream` : "/chat/stream";
  }

  #begin(question) {
    if (!this.log.querySelector(".exchange")) {
      fill(this.log);
      fill(byId("title"), question.split("\n")[0].slice(0, 80));
    }
    for (const choice of this.log.querySelectorAll(".asks button")) choice.disabled = true;
    const shown = new Exchange(question, this.#doing());
    this.log.append(shown.node);
    this.#toEnd(true);
    return shown;
  }

  async #follow(shown, start) {
    const turn = new Turn(
      this.api,
      (event) => this.#hear(shown, turn, event),
      (isLost) => this.#lost(shown, isLost),
    );
    this.turn = turn;
    this.#busy(true);
    try {
      await start(turn);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.code === "no_turn" && this.sessionId) await this.open(this.sessionId);
      else shown.fail(error);
    } finally {
      if (this.turn === turn) this.#end();
    }
  }

  #hear(shown, turn, event) {
    if (this.turn !== turn) return;
    if (turn.sessionId && turn.sessionId !== this.sessionId) this.sessionId = turn.sessionId;
    if (turn.id && !turn.isNoted) {
      turn.isNoted = true;
      keep.save("session", this.sessionId);
      keep.save("asked", JSON.stringify({ turn: turn.id, question: shown.question }));
      this.does.changed();
    }
    shown.take(event);
    if (event.type === "done") this.#settled(shown, event);
    if (event.type === "proposal") this.does.proposed();
    this.#toEnd(false);
  }

  #settled(shown, done) {
    keep.save("asked", "");
    this.does.tell(
      done.state === "complete"
        ? `Answered: ${shown.answer.textContent.slice(0, 500)}`
        : `The answer ended: ${done.state}`,
    );
    this.does.changed();
  }

  /** Go on with a turn that was begun before the page was loaded anew, or in another window. */
  async #resume(turnId) {
    const asked = JSON.parse(keep.load("asked") || "{}");
    const shown = this.#begin(asked.turn === turnId ? asked.question : "(asked in another window)");
    await this.#follow(shown, (turn) => turn.resume(turnId));
    if (asked.turn !== turnId && shown.node.isConnected) await this.open(this.sessionId); // to show what was asked
  }

  #lost(shown, isLost) {
    shown.lost(isLost);
    if (isLost) this.does.tell("The connection is lost; reconnecting");
  }

  #end() {
    this.turn = null;
    this.#busy(false);
    this.#toEnd(false);
  }

  #leave() {
    this.turn?.leave();
    this.turn = null;
    this.#busy(false);
  }

  #busy(isBusy) {
    this.stop.hidden = !isBusy;
    this.send.hidden = isBusy;
    this.log.setAttribute("aria-busy", String(isBusy));
  }

  #doing() {
    return { ...this.does, say: (text) => this.say(text), again: (text) => this.#suggest(text) };
  }

  #suggest(text) {
    this.box.value = text;
    this.#fit();
    this.box.focus();
  }

  #key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.say(this.box.value);
    }
    if (event.key === "Escape" && this.turn) {
      event.stopPropagation();
      this.cancel();
    }
  }

  /** Give the box as many rows as its text has, up to eight. */
  #fit() {
    this.box.rows = Math.min(8, Math.max(1, this.box.value.split("\n").length));
  }

  /** Show the end, unless the person has scrolled up to read. */
  #toEnd(always) {
    const view = byId("talk");
    const isNear = view.scrollHeight - view.scrollTop - view.clientHeight < 160;
    if (always || isNear) requestAnimationFrame(() => view.scrollTo({ top: view.scrollHeight }));
  }
}

/** Pair each question with its answer. */
function paired(messages) {
  const answers = new Map(messages.filter((one) => one.role === "assistant").map((one) => [one.number, one]));
  return messages.filter((one) => one.role === "user").map((one) => [one, answers.get(one.number)]);
}

function welcome(suggest) {
  const asks = ["What did I write about …?", "Which tasks are open?", "Summarise the notes that changed this week"];
  return el(
    "div",
    { class: "welcome" },
    el("h2", {}, "Ask your notes"),
    el("p", {}, "Answers name the note and the lines that they come from. Changes wait until you have looked at them."),
    el(
      "ul",
      {},
      asks.map((text) => el("li", {}, el("button", { type: "button", onclick: () => suggest(text) }, text))),
    ),
  );
}
