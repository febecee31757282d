/** Follow what goes on at the server, over lost connections: as a stream, or by asking again and again. */

import type { Client } from "./client";
import { Failure, isAbort } from "./transport";
import { textOf } from "./values";

export interface ServerEvent {
  /** Grows within its stream; where to go on after a lost connection. */
  id: number;
  /** One word, such as `text`. */
  event: string;
  data: Readonly<Record<string, unknown>>;
}

/** Cuts a stream of text into events, whatever pieces it comes in. */
export class EventReader {
  private rest = "";
  private id = 0;
  private event = "message";
  private rows: string[] = [];

  push(text: string): ServerEvent[] {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    return lines.map((line) => this.line(line)).filter((found) => found !== null);
  }

  private line(line: string): ServerEvent | null {
    if (!line) return this.end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = Number(value) || 0;
    if (field === "event") this.event = value;
    if (field === "data") this.rows.push(value);
    return null;
  }

  private end(): ServerEvent | null {
    const { id, event, rows } = this;
    [this.id, this.event, this.rows] = [0, "message", []];
    if (!rows.length) return null;
    try {
      const data: unknown = JSON.parse(rows.join("\n"));
      return data !== null && typeof data === "object" ? { id, event, data: data as Record<string, unknown> } : null;
    } catch {
      return null;
    }
  }
}

export interface FollowOptions {
  query?: Readonly<Record<string, unknown>>;
  /** The last event that is known; 0 for all. */
  after?: number;
  signal?: AbortSignal;
  /** Whether an event is the last one; a stream without such an event is followed until it is left. */
  isLast?: (event: ServerEvent) => boolean;
  /** Told when the connection is lost, and when it is back. */
  onConnection?: (isLost: boolean) => void;
}

/** The events after which nothing more comes, of turns, tasks, runs and indexing. */
export const LAST_EVENTS: ReadonlySet<string> = new Set(["done", "outcome", "run_done"]);

const PAUSES_MS = [300, 1_000, 2_000, 4_000, 8_000, 15_000];
const POLL_WAIT_S = 20;
/** The server sends a comment every 15 s; a stream that is silent for longer is held back by something between. */
const SILENCE_MS = 40_000;

interface Polled {
  events: ServerEvent[];
  last: number;
  ended: boolean;
}

/** Clients for which streams were seen not to work, though plain requests do. */
const pollers = new WeakSet<Client>();

/**
 * Follow a route of events, such as `/events` or `/runs/ID/events`.
 *
 * Each event comes once, in order. Ends after the last event, or when the signal is aborted; throws what can't pass.
 */
export async function* follow(client: Client, path: string, options: FollowOptions = {}): AsyncGenerator<ServerEvent> {
  const state = { last: options.after ?? 0, isEnded: false };
  const isLast = options.isLast ?? ((event) => LAST_EVENTS.has(event.event));
  let tries = 0;
  while (!state.isEnded && !options.signal?.aborted) {
    const before = state.last;
    let failed = false;
    try {
      const pieces = client.canStream && !pollers.has(client) ? streamed(client, path, options, state) : polled(client, path, options, state);
      for await (const event of pieces) {
        tries = 0;
        options.onConnection?.(false);
        if (event.event === "start") state.last = 0; // it is told anew, such as after the server began again
        if (event.id && event.id <= state.last) continue;
        if (event.id) state.last = event.id;
        yield event;
        if (isLast(event)) return;
      }
    } catch (error) {
      if (options.signal?.aborted || isAbort(error)) return;
      if (!(error instanceof Failure) || !error.isPassing) throw error;
      failed = true;
    }
    if (state.isEnded || options.signal?.aborted) return;
    if (failed || (client.canStream && !pollers.has(client))) {
      tries = state.last > before ? 0 : tries + 1;
      options.onConnection?.(true);
      await pause(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 15_000, options.signal);
    }
  }
}

/**
 * Send what begins a turn or a task, and follow it to its end.
 *
 * @param path The route that answers with a stream, such as `/chat/stream`.
 * @param root Where the work is found again by its id: `/chat`, `/ask`, `/runs`.
 */
export async function* converse(
  client: Client,
  path: string,
  root: string,
  body: object,
  options: FollowOptions = {},
): AsyncGenerator<ServerEvent> {
  let id = "";
  let last = 0;
  const isLast = options.isLast ?? ((event: ServerEvent) => LAST_EVENTS.has(event.event));
  const given = { body, ...(options.signal ? { signal: options.signal } : {}) };
  const reader = new EventReader();
  const streams = client.canStream && !pollers.has(client);
  try {
    const begun = streams ? withSilence(await client.pieces("POST", path, given), SILENCE_MS) : [await begin(client, path, given)];
    for await (const piece of begun) {
      for (const event of typeof piece === "string" ? reader.push(piece) : piece) {
        id = textOf(event.data["turn_id"] ?? event.data["run_id"]) || id;
        last = event.id || last;
        yield event;
        if (isLast(event)) return;
      }
    }
    if (id && !streams) {
      yield* follow(client, `${root}/${encodeURIComponent(id)}/events`, { ...options, after: last });
      return;
    }
  } catch (error) {
    if (options.signal?.aborted || isAbort(error)) return;
    if (!(error instanceof Failure) || !error.isPassing || !id) throw error;
  }
  if (!id) throw new Failure("the connection was lost before the answer began", "offline", "send it again");
  options.onConnection?.(true);
  yield* follow(client, `${root}/${encodeURIComponent(id)}/events`, { ...options, after: last });
}

/** Begin where answers can't come in pieces: the reply is there at once, and the events are asked for by the id in it. */
async function begin(client: Client, path: string, given: { body: object; signal?: AbortSignal }): Promise<ServerEvent[]> {
  return (await client.raw<Polled>("POST", path, { ...given, body: { ...given.body, wait: 0 } })).events;
}

interface Position {
  last: number;
  isEnded: boolean;
}

async function* streamed(client: Client, path: string, options: FollowOptions, state: Position): AsyncGenerator<ServerEvent> {
  const headers: Record<string, string> = state.last ? { "last-event-id": String(state.last) } : {};
  const reader = new EventReader();
  let hasPiece = false;
  try {
    const pieces = await client.pieces("GET", path, { query: options.query, headers, signal: options.signal });
    options.onConnection?.(false);
    for await (const piece of withSilence(pieces, SILENCE_MS)) {
      hasPiece = true;
      yield* reader.push(piece);
    }
  } catch (error) {
    if (!hasPiece && error instanceof Failure && error.isOffline && (await canPoll(client, path, options, state))) pollers.add(client);
    throw error;
  }
}

async function* polled(client: Client, path: string, options: FollowOptions, state: Position): AsyncGenerator<ServerEvent> {
  const query = { ...options.query, after: state.last, wait: POLL_WAIT_S };
  const reply = await client.raw<Polled>("GET", path, { query, signal: options.signal });
  if (reply.ended) state.isEnded = true;
  options.onConnection?.(false);
  yield* reply.events;
}

async function canPoll(client: Client, path: string, options: FollowOptions, state: Position): Promise<boolean> {
  try {
    await client.raw("GET", path, { query: { ...options.query, after: state.last, wait: 0 }, signal: options.signal });
    return true;
  } catch {
    return false;
  }
}

async function* withSilence(pieces: AsyncIterable<string>, limitMs: number): AsyncGenerator<string> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      let timer: number | undefined;
      const silence = new Promise<never>((_, reject) => {
        timer = window.setTimeout(() => reject(new Failure("the connection timed out", "offline")), limitMs);
      });
      try {
        const next = await Promise.race([iterator.next(), silence]);
        if (next.done) return;
        yield next.value;
      } finally {
        window.clearTimeout(timer);
      }
    }
  } finally {
    void iterator.return?.().catch(() => undefined);
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      window.clearTimeout(timer);
      window.removeEventListener("online", go);
      signal?.removeEventListener("abort", go);
      resolve();
    };
    const timer = window.setTimeout(go, ms);
    window.addEventListener("online", go);
    signal?.addEventListener("abort", go);
  });
}
