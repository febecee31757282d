/** One conversation: sent, followed over lost connections and reloads, stopped, answered, and started over from any message. */

import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { converse, Failure, failureOf, follow, isAbort, type Client, type ServerEvent } from "../../client";
import type { Sessions } from "./sessions";
import { isOver, newTurn, readMessages, reduce, withTrace, type Turn } from "./turn";

/** What is sent: a message of the chat, or a task with what was chosen for it. */
export interface Order {
  kind: Turn["kind"];
  text: string;
  /** The model that answers; empty for the configured one. */
  model: string;
  /** Of a task: as `POST /ask` takes it. */
  body?: Readonly<Record<string, unknown>>;
}

export interface ConversationHooks {
  /** Told when another conversation is shown, or a new one has got its id; empty for a new one. */
  onSession(id: string): void;
  /** Told when what is kept has changed: a message began or ended. */
  onChange(): void;
  debugging?: Debugging | undefined;
}

/** Whoever wants the models' prompts and replies. */
export interface Debugging {
  /** Asked before each message. */
  isOn(): boolean;
  take(data: Readonly<Record<string, unknown>>): void;
}

interface Running {
  turn: Signal<Turn>;
  abort: AbortController;
  root: "/chat" | "/ask";
  isStopped: boolean;
}

const PAGE = 40;
const MAX_PAGE = 500;

export class Conversation {
  /** The session's id; empty for one that isn't kept yet. */
  readonly id: Signal<string> = signal("");
  readonly title: Signal<string> = signal("");
  /** The note that is talked about; empty for none. */
  readonly about: Signal<string> = signal("");
  readonly forkedFrom: Signal<string> = signal("");
  readonly turns: Signal<readonly Signal<Turn>[]> = signal([]);
  /** How many turns lie before those that are shown. */
  readonly earlier: Signal<number> = signal(0);
  readonly isLoading: Signal<boolean> = signal(false);
  readonly failure: Signal<Failure | null> = signal(null);
  /** For screen readers: what has just happened. */
  readonly said: Signal<string> = signal("");
  readonly isBusy: ReadonlySignal<boolean>;
  private readonly running: Signal<Running | null> = signal(null);
  private opened = 0;

  constructor(
    private readonly client: Client,
    private readonly sessions: Sessions,
    private readonly hooks: ConversationHooks,
  ) {
    this.isBusy = computed(() => this.running.value !== null);
  }

  /** Begin a conversation that isn't kept yet. */
  begin(): void {
    this.opened += 1;
    this.leave();
    this.show("", "", []);
  }

  /** Show a kept conversation, and follow what runs in it. */
  async open(id: string): Promise<void> {
    if (id === this.id.value && !this.failure.value) return;
    const number = (this.opened += 1);
    this.leave();
    this.show(id, this.sessions.title(id), []);
    this.isLoading.value = true;
    try {
      const page = await this.client.get("/sessions/{session_id}", { path: { session_id: id }, query: { limit: PAGE } });
      if (number !== this.opened) return; // the person has gone elsewhere meanwhile
      const { session, messages, offset } = page;
      batch(() => {
        this.show(id, session.title, readMessages(messages).map((turn) => signal(turn)));
        this.earlier.value = offset;
        this.forkedFrom.value = session.forked_from ?? "";
        this.about.value = session.active_file ?? "";
      });
      if (session.running) void this.resume("/chat", session.running);
      else if (session.task) void this.resume("/ask", session.task);
      else void this.findQuestion(number);
      await this.showWaiting();
    } catch (error) {
      if (number === this.opened) this.failure.value = failureOf(error);
    } finally {
      if (number === this.opened) this.isLoading.value = false;
    }
  }

  /** Show what was said before what is shown. */
  async loadEarlier(): Promise<void> {
    const [id, before] = [this.id.value, this.earlier.value];
    if (!id || !before) return;
    const offset = Math.max(0, before - PAGE);
    const query = { limit: before - offset, offset };
    const { messages } = await this.client.get("/sessions/{session_id}", { path: { session_id: id }, query });
    if (id !== this.id.value || before !== this.earlier.value) return;
    batch(() => {
      this.earlier.value = offset;
      this.turns.value = [...readMessages(messages).map((turn) => signal(turn)), ...this.turns.value];
    });
  }

  /** Send a message, and follow what comes of it to its end. */
  async send(order: Order): Promise<void> {
    if (!order.text.trim() || this.isBusy.value) return;
    const turn = signal({ ...newTurn(order.kind, order.text, new Date().toISOString()), model: order.model });
    const isNew = !this.id.value;
    batch(() => {
      if (!this.turns.value.length) this.title.value = titleOf(order.text);
      this.turns.value = [...this.turns.value, turn];
    });
    await this.follow(turn, order.kind === "task" ? "/ask" : "/chat", (running) => this.deliver(order, running));
    if (isNew && turn.value.problem && !turn.value.id) await this.forget();
  }

  /** Answer what a task asks; it goes on where it was. */
  async answer(turn: Signal<Turn>, text: string): Promise<void> {
    const { asked, id } = turn.value;
    if (!asked || !text.trim() || this.isBusy.value) return;
    turn.value = { ...turn.value, asked: { ...asked, answer: text.trim() }, problem: null, state: "running" };
    await this.follow(turn, "/ask", (running) =>
      converse(this.client, "/ask/stream", "/ask", { run_id: id, answer: text.trim() }, this.listening(running)),
    );
    const now = turn.value;
    if (now.problem && now.state === "failed" && now.asked && !now.text) turn.value = { ...now, state: "asked", asked: { ...now.asked, answer: "" } };
  }

  /** Stop what is being answered; what there is so far is kept. */
  async stop(): Promise<void> {
    const running = this.running.value;
    if (!running) return;
    running.isStopped = true; // where it has no id yet, it is stopped as soon as it has one
    const { id } = running.turn.value;
    if (id) await this.client.raw("POST", `${running.root}/${encodeURIComponent(id)}/cancel`, { body: {} });
  }

  /** Take a turn that failed away, so that it can be sent again in its place. */
  drop(turn: Signal<Turn>): void {
    this.turns.value = this.turns.value.filter((known) => known !== turn);
  }

  /** Go on from before a turn with another message, in a copy of the conversation: the one before stays as it is. */
  async branch(turn: Signal<Turn>, order: Order): Promise<void> {
    await this.numberOf(turn);
    const { number, question } = turn.value;
    const title = number > 1 ? this.title.value : titleOf(order.text);
    const id = await this.sessions.fork(this.id.value, Math.max(0, number - 1), order.text === question ? this.title.value : title);
    await this.open(id);
    this.hooks.onSession(id);
    await this.send(order);
  }

  /** Load arguments and answers of a kept turn's steps. */
  async loadTrace(turn: Signal<Turn>): Promise<void> {
    const { number, steps } = turn.value;
    if (!number || steps.every((step) => step.kind !== "call" || step.given !== undefined)) return;
    const { trace } = await this.client.get("/sessions/{session_id}/trace", { path: { session_id: this.id.value }, query: { number } });
    if (trace.length) turn.value = withTrace(turn.value, trace);
  }

  /** Show the tasks of this conversation that wait for an answer, where they aren't shown yet. */
  async showWaiting(): Promise<void> {
    const id = this.id.value;
    await this.sessions.waiting.load();
    if (!id || id !== this.id.value) return;
    for (const run of this.sessions.waiting.data.value?.results ?? []) if (run.session_id === id) this.wait(run);
  }

  /** Show a task that waits, such as one that was begun at the terminal. */
  wait(run: { run_id: string; task: string; question: string; options: unknown[]; at: string }): void {
    if (this.turns.value.some((turn) => turn.value.id === run.run_id)) return;
    const asked = { question: run.question, options: run.options.map(String), answer: "" };
    const turn = signal<Turn>({ ...newTurn("task", run.task, run.at), id: run.run_id, state: "asked", asked });
    if (!this.turns.value.length && !this.id.value) this.title.value = titleOf(run.task);
    this.turns.value = [...this.turns.value, turn];
    void this.replay(turn);
  }

  /** Listen no more; what runs goes on at the server. */
  leave(): void {
    this.running.value?.abort.abort();
    this.running.value = null;
  }

  private show(id: string, title: string, turns: readonly Signal<Turn>[]): void {
    batch(() => {
      this.id.value = id;
      this.title.value = title;
      this.turns.value = turns;
      this.earlier.value = 0;
      this.forkedFrom.value = "";
      this.failure.value = null;
      this.isLoading.value = false;
      if (!id) this.about.value = "";
    });
  }

  private async *deliver(order: Order, running: Running): AsyncGenerator<ServerEvent> {
    const session: string = this.id.value || (await this.keepAs());
    const path = order.kind === "task" ? "/ask/stream" : `/sessions/${encodeURIComponent(session)}/chat/stream`;
    const model = order.model ? { model: order.model } : {};
    const about = this.about.value ? { active_file: this.about.value } : {};
    const debug = this.hooks.debugging?.isOn() ? { debug: true } : {};
    const body = order.kind === "task" ? { task: order.text, session_id: session, ...model, ...debug, ...order.body } : { message: order.text, ...model, ...debug, ...about };
    yield* converse(this.client, path, running.root, body, this.listening(running));
  }

  private async keepAs(): Promise<string> {
    const about = this.about.value ? { active_file: this.about.value } : {};
    const { session } = await this.client.post("/sessions", { body: about });
    this.id.value = session.id;
    this.hooks.onSession(session.id);
    return session.id;
  }

  /** A conversation whose first message couldn't begin isn't kept. */
  private async forget(): Promise<void> {
    const id = this.id.value;
    if (!id) return;
    this.id.value = "";
    this.hooks.onSession("");
    await this.sessions.delete(id).catch(() => undefined);
  }

  private listening(running: Running) {
    const onConnection = (isLost: boolean) => {
      const turn = running.turn.value;
      if (isLost === turn.lostAt > 0) return;
      running.turn.value = { ...turn, lostAt: isLost ? Date.now() : 0 };
      this.said.value = isLost ? "Connection lost; reconnecting" : "Reconnected";
    };
    return { signal: running.abort.signal, onConnection };
  }

  private async resume(root: Running["root"], id: string): Promise<void> {
    const turn = signal<Turn>({ ...newTurn(root === "/ask" ? "task" : "chat", "", new Date().toISOString()), id, state: "running" });
    this.turns.value = [...this.turns.value, turn];
    await this.follow(turn, root, (running) => follow(this.client, `${root}/${encodeURIComponent(id)}/events`, this.listening(running)));
  }

  /** Follow a turn to its end; what goes wrong stands in the turn. */
  private async follow(turn: Signal<Turn>, root: Running["root"], events: (running: Running) => AsyncGenerator<ServerEvent>): Promise<void> {
    const running: Running = { turn, root, abort: new AbortController(), isStopped: false };
    this.running.value = running;
    const drawing = new Drawing(turn);
    try {
      for await (const event of events(running)) {
        if (running.abort.signal.aborted) return;
        this.hear(running, drawing, event);
      }
    } catch (error) {
      drawing.flush();
      if (isAbort(error) || running.abort.signal.aborted) return;
      if (error instanceof Failure && error.status === 404 && turn.value.id && this.id.value) await this.reopen();
      else turn.value = failed(turn.value, failureOf(error));
    } finally {
      drawing.flush();
      if (this.running.value === running) {
        this.running.value = null;
        this.hooks.onChange();
      }
    }
  }

  private hear(running: Running, drawing: Drawing, event: ServerEvent): void {
    const before = running.turn.value.id;
    if (event.event === "debug") this.hooks.debugging?.take(event.data);
    drawing.take(event);
    const turn = running.turn.value;
    if (!before && turn.id) {
      this.hooks.onChange();
      if (running.isStopped) void this.stop();
    }
    if (isOver(turn)) this.said.value = turn.state === "complete" ? `Answered: ${turn.text.slice(0, 500)}` : ENDS[turn.state] ?? "";
  }

  /** Show what the session has kept of something that the server doesn't follow any more. */
  private async reopen(): Promise<void> {
    const id = this.id.value;
    this.id.value = "";
    await this.open(id);
  }

  /** Give a turn's number in its session; 0 where the session hasn't kept it. */
  async numberOf(turn: Signal<Turn>): Promise<number> {
    if (!turn.value.number) await this.number();
    return turn.value.number;
  }

  /** Learn the numbers of turns that were sent here, from what the session has kept. */
  private async number(): Promise<void> {
    const query = { limit: MAX_PAGE };
    const { messages } = await this.client.get("/sessions/{session_id}", { path: { session_id: this.id.value }, query });
    const kept = readMessages(messages);
    for (const turn of this.turns.value.toReversed()) {
      const index = kept.findLastIndex((one) => one.question === turn.value.question);
      if (index < 0) continue; // it never began
      turn.value = { ...turn.value, number: kept[index]?.number ?? 0 };
      kept.length = index;
    }
  }

  /** The last answer may be a question of the model, whose options stand in what was kept of its steps. */
  private async findQuestion(number: number): Promise<void> {
    const last = this.turns.value.at(-1);
    if (!last || last.value.kind !== "chat" || last.value.state !== "asked") return;
    await this.loadTrace(last).catch(() => undefined);
    const call = last.value.steps.findLast((step) => step.kind === "call" && step.name === "ask_user");
    if (number !== this.opened || call?.kind !== "call") return;
    const given = (call.given ?? {}) as { question?: unknown; options?: unknown };
    if (typeof given.question !== "string") return;
    const options = Array.isArray(given.options) ? given.options.map(String) : [];
    const { text } = last.value;
    last.value = { ...last.value, asked: { question: given.question, options, answer: "" }, text: text === given.question ? "" : text };
  }

  /** Show the steps of a task up to its question, where the server still knows them. */
  private async replay(turn: Signal<Turn>): Promise<void> {
    let shown = turn.value;
    try {
      for await (const event of follow(this.client, `/ask/${encodeURIComponent(shown.id)}/events`)) shown = reduce(shown, event);
    } catch {
      return; // the question alone is shown
    }
    if (turn.value.state === "asked" && !turn.value.asked?.answer && shown.asked) turn.value = shown;
  }
}

function titleOf(text: string): string {
  return text.split("\n", 1)[0]?.slice(0, 80) ?? "";
}

const ENDS: Readonly<Partial<Record<Turn["state"], string>>> = {
  asked: "The model has a question for you",
  cancelled: "Stopped",
  failed: "The answer failed",
  limit: "The answer reached a limit",
};

function failed(turn: Turn, failure: Failure): Turn {
  const problem = { message: failure.message, code: failure.code || `http_${failure.status}`, hint: failure.hint };
  return { ...turn, lostAt: 0, state: "failed", problem: turn.problem ?? problem };
}

/** Draws text once a frame however fast it comes, and everything else at once. */
class Drawing {
  private pending: ServerEvent[] = [];
  private timer: number | undefined;

  constructor(private readonly shown: Signal<Turn>) {}

  take(event: ServerEvent): void {
    this.pending.push(event);
    if (event.event !== "text") this.flush();
    else this.timer ??= window.setTimeout(() => this.flush(), 32);
  }

  flush(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    const events = this.pending.splice(0);
    if (events.length) this.shown.value = events.reduce(reduce, this.shown.value);
  }
}
