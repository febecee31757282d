/** Carry on one conversation: send, follow, stop, and show what was said before. */

import { Failure } from "../api.js";
import { Task } from "../ask/task.js";
import { byId, fill } from "../dom.js";
import * as keep from "../keep.js";
import { Box } from "./box.js";
import { settle } from "./card.js";
import { Turn } from "./stream.js";
import { CHAT, TASK, kept, paired } from "./ways.js";
import { welcome } from "./welcome.js";

const MOST_TURNS = 200;

export class Conversation {
  /**
   * @param {import("../api.js").Api} api
   * @param {object} does What else the page does: say what is chosen, open citations and proposals, tell what happened.
   */
  constructor(api, does) {
    this.api = api;
    this.does = does;
    this.log = byId("log");
    this.box = new Box({ say: (text) => this.say(text), cancel: () => this.cancel() });
    this.sessionId = "";
    this.file = "";
    this.turn = null;
    this.isSending = false;
    this.opened = 0;
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
      welcome((text) => this.box.write(text)),
    );
    this.box.focus();
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
      paired(messages).map((pair) => kept(pair, this.#doing(), id).node),
    );
    this.#toEnd(true);
    this.does.opened();
    const asked = JSON.parse(keep.load("asked") || "{}");
    if (session.running) await this.#resume(session.running, asked);
    else if (isLeft(asked, id, messages)) await this.#resume(asked.turn, asked);
    if (number === this.opened) await this.#showWaiting(id);
  }

  /** Show a task that waits for an answer, in its conversation if there is one. */
  async openRun(run) {
    try {
      if (run.session_id) return await this.open(run.session_id);
    } catch (error) {
      if (error.status !== 404) return this.does.fail(error);
    }
    this.clear();
    this.#wait(run);
  }

  /** Name the note that is talked about; empty for none. */
  about(path) {
    this.file = path;
    byId("about").hidden = !path;
    fill(byId("about-path"), path);
    this.does.chosen();
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
    this.box.write("");
    const way = this.does.isChat() ? CHAT : TASK;
    const shown = this.#begin(message, way);
    const isPlaced = await this.#place(shown, way);
    this.isSending = false;
    if (!isPlaced || !shown.node.isConnected) return;
    const body = way.body(message, { file: this.file, session: this.sessionId, chosen: this.does.body() });
    await this.#follow(shown, way, (turn) => turn.send(way.path(this.sessionId), body));
  }

  /** Say what a task was waiting for; it goes on where it was. */
  async answer(shown, answer) {
    if (this.turn) {
      shown.fail(new Failure("another message is being answered", "session_busy", "wait for it, or stop it"));
      return;
    }
    await this.#follow(shown, TASK, (turn) => turn.send("/ask/stream", { run_id: shown.runId, answer }));
  }

  /** Stop what is being answered. */
  async cancel() {
    try {
      await this.turn?.cancel();
    } catch (error) {
      this.does.fail(error);
    }
  }

  /** Begin a session where a message needs one; tells whether it can be sent. */
  async #place(shown, way) {
    try {
      if (!this.sessionId && way.needsSession(this.file)) {
        const about = this.file ? { active_file: this.file } : {};
        this.sessionId = (await this.api.post("/sessions", about)).session.id;
      }
      return true;
    } catch (error) {
      this.#end();
      shown.fail(error);
      return false;
    }
  }

  #begin(question, way) {
    if (!this.log.querySelector(".exchange")) {
      fill(this.log);
      fill(byId("title"), question.split("\n")[0].slice(0, 80));
    }
    for (const choice of this.log.querySelectorAll(".asks:not(.of-run) button")) choice.disabled = true;
    const shown = new way.Shown(question, this.#doing());
    this.log.append(shown.node);
    this.#toEnd(true);
    return shown;
  }

  async #follow(shown, way, start) {
    const hear = (event) => this.#hear(shown, turn, event);
    const turn = new Turn(this.api, hear, (isLost) => this.#lost(shown, isLost), way.root);
    this.turn = turn;
    this.#busy(true);
    try {
      await start(turn);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 404 && turn.id && this.sessionId) await this.#reopen();
      else shown.fail(error);
    } finally {
      if (this.turn === turn) this.#end();
    }
  }

  #hear(shown, turn, event) {
    if (this.turn !== turn) return;
    if (turn.root === CHAT.root && turn.sessionId) this.sessionId = turn.sessionId; // a task may go on in another's
    if (turn.id && !turn.isNoted) {
      turn.isNoted = true;
      keep.save("session", this.sessionId);
      const { root, id } = turn;
      keep.save("asked", JSON.stringify({ root, turn: id, session: this.sessionId, question: shown.question }));
      this.does.changed();
    }
    shown.take(event);
    if (turn.isDone) this.#settled(shown, event);
    if (event.type === "proposal") this.does.proposed();
    this.#toEnd(false);
  }

  #settled(shown, done) {
    if (done.type === "done" || done.state !== "asked") keep.save("asked", ""); // a task that asks goes on
    if (done.proposals?.length) this.does.proposed();
    this.does.tell(
      done.state === "complete"
        ? `Answered: ${shown.answer.textContent.slice(0, 500)}`
        : `The answer ended: ${done.state}`,
    );
    this.does.changed();
  }

  /** Go on with what was begun before the page was loaded anew, or in another window. */
  async #resume(id, asked) {
    const isOwn = asked.turn === id;
    const way = isOwn && asked.root === TASK.root ? TASK : CHAT;
    const shown = this.#begin(isOwn ? asked.question : "(asked in another window)", way);
    await this.#follow(shown, way, (turn) => turn.resume(id));
    if (!isOwn && shown.node.isConnected) await this.open(this.sessionId); // to show what was asked
  }

  /** Show what the session kept of something that the server doesn't follow any more. */
  async #reopen() {
    keep.save("asked", "");
    await this.open(this.sessionId);
  }

  /** Show the tasks of a session that wait for an answer, where they aren't shown yet. */
  async #showWaiting(id) {
    for (const run of await this.does.waiting()) {
      const isShown = this.log.querySelector(`[data-run="${CSS.escape(run.run_id)}"]`);
      if (run.session_id === id && id === this.sessionId && !isShown) this.#wait(run);
    }
  }

  #wait(run) {
    if (!this.log.querySelector(".exchange")) fill(this.log);
    this.log.append(Task.waiting(run, this.#doing()).node);
    this.#toEnd(true);
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
    this.box.busy(isBusy);
    this.log.setAttribute("aria-busy", String(isBusy));
  }

  #doing() {
    return {
      ...this.does,
      api: this.api,
      say: (text) => this.say(text),
      again: (text) => this.box.write(text),
      answer: (shown, answer) => this.answer(shown, answer),
    };
  }

  /** Show the end, unless the person has scrolled up to read. */
  #toEnd(always) {
    const view = byId("talk");
    const isNear = view.scrollHeight - view.scrollTop - view.clientHeight < 160;
    if (always || isNear) requestAnimationFrame(() => view.scrollTo({ top: view.scrollHeight }));
  }
}

/** Whether something that this browser asked for may still go on, or was answered without anybody seeing it. */
function isLeft(asked, session, messages) {
  const isKept = messages.some((one) => one.outcome?.run_id === asked.turn);
  return asked.root === TASK.root && asked.session === session && !isKept;
}
