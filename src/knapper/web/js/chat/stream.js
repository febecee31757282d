/** Follow the events of what goes on at the server, over lost connections. */

import { Failure } from "../api.js";

const WAITS_MS = [300, 1_000, 2_000, 4_000, 8_000, 15_000];
const LAST = new Set(["done", "outcome", "run_done"]);

/** A turn, a task or a run that goes on at the server, whether anybody listens or not. */
export class Turn {
  /**
   * @param {import("../api.js").Api} api
   * @param {(event: object) => void} onEvent Takes each event once, in order.
   * @param {(isLost: boolean) => void} onConnection Told when the connection is lost, and when it is back.
   * @param {string} root Where its routes are: `/chat`, `/ask` or `/runs`.
   */
  constructor(api, onEvent, onConnection, root = "/chat") {
    this.api = api;
    this.onEvent = onEvent;
    this.onConnection = onConnection;
    this.root = root;
    this.query = ""; // such as which vault's
    this.id = "";
    this.sessionId = "";
    this.last = 0;
    this.isDone = false;
    this.isStopped = false;
    this.leaving = new AbortController();
  }

  /** Send a message, and follow what comes of it to its end. */
  async send(path, message) {
    const response = await this.api.open("POST", path, { body: message, signal: this.leaving.signal });
    await this.#follow(response);
  }

  /** Take up a turn that was begun before, such as before the page was loaded anew. */
  async resume(turnId) {
    this.id = turnId;
    await this.#follow(await this.#again());
  }

  /** Stop the turn itself; what there is, is kept. */
  async cancel() {
    this.isStopped = true; // where it hasn't got an id yet, it is stopped as soon as it has one
    if (this.id && !this.isDone) await this.api.bare("POST", `${this.root}/${encodeURIComponent(this.id)}/cancel`);
  }

  /** Listen no more; the turn goes on. */
  leave() {
    this.leaving.abort();
  }

  async #follow(response) {
    let tries = 0;
    let current = response;
    while (!this.isDone) {
      const before = this.last;
      try {
        current ??= await this.#again();
        this.onConnection(false);
        await this.#read(current);
      } catch (error) {
        if (this.leaving.signal.aborted) return;
        if (error instanceof Failure && !error.isOffline && error.status !== 429 && error.status !== 503) throw error;
      }
      if (this.isDone) return;
      if (!this.id) throw new Failure("the connection was lost before the answer began", "offline", "send it again");
      current = null;
      tries = this.last > before ? 0 : tries + 1;
      this.onConnection(true);
      await this.#pause(WAITS_MS[Math.min(tries, WAITS_MS.length - 1)]);
    }
  }

  #again() {
    const headers = this.last ? { "last-event-id": String(this.last) } : {};
    const path = `${this.root}/${encodeURIComponent(this.id)}/events${this.query}`;
    return this.api.open("GET", path, { headers, signal: this.leaving.signal });
  }

  async #read(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    while (!this.isDone) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const event of parser.take(value)) this.#hear(event);
    }
    reader.cancel().catch(() => {}); // the last event is the end, however long the server takes to close
  }

  #hear({ id, name, data }) {
    if (name === "start") this.last = 0; // it is told anew, such as after the server began again
    if (id && id <= this.last) return;
    if (id) this.last = id;
    const event = { type: name, ...data };
    const isNew = !this.id;
    this.id = event.turn_id ?? event.run_id ?? this.id;
    if (isNew && this.id && this.isStopped) this.cancel().catch(() => {});
    this.sessionId = event.session_id || this.sessionId;
    if (LAST.has(event.type)) this.isDone = true;
    this.onEvent(event);
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer);
        removeEventListener("online", go);
        resolve();
      };
      const timer = setTimeout(go, ms);
      addEventListener("online", go);
      this.leaving.signal.addEventListener("abort", go);
    });
  }
}

/** Read server-sent events out of pieces of text. */
export class Parser {
  constructor() {
    this.rest = "";
    this.event = { id: 0, name: "message", rows: [] };
  }

  /** @returns {Array<{id: number, name: string, data: object}>} The events that are whole now. */
  take(text) {
    const rows = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = rows.pop();
    return rows.map((row) => this.#row(row)).filter(Boolean);
  }

  #row(row) {
    if (!row) return this.#end();
    const colon = row.indexOf(":");
    const field = colon < 0 ? row : row.slice(0, colon);
    const value = colon < 0 ? "" : row.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.event.id = Number(value) || 0;
    if (field === "event") this.event.name = value;
    if (field === "data") this.event.rows.push(value);
    return null;
  }

  #end() {
    const { id, name, rows } = this.event;
    this.event = { id: 0, name: "message", rows: [] };
    if (!rows.length) return null;
    try {
      return { id, name, data: JSON.parse(rows.join("\n")) };
    } catch {
      return null;
    }
  }
}
