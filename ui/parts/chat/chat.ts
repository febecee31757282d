/** All that a chat holds in one shell: its conversations, the one that is open, and what the next message is sent with. */

import { batch, effect, signal, untracked, type Signal } from "@preact/signals";
import { failureOf } from "../../client";
import { sentence } from "../format";
import type { Host } from "../host";
import { resource } from "../resource";
import { Choice, type Preset } from "./choice";
import { Conversation, type Debugging, type Order } from "./conversation";
import { AGENT_NAME, joinMessage, MAX_MESSAGE_CHARS, noteLink, splitMessage, type Attachment } from "./message";
import { Sessions, type WaitingTask } from "./sessions";
import { Spending, type Keep } from "./spending";
import { usedOf, type Turn, type UsedNotes } from "./turn";

export interface ChatOptions {
  keep: Keep;
  /** Let all agents be off: then nothing can be sent. */
  canRest?: boolean;
  /** Keep the agents in this shell alone, rather than for all clients of the server. */
  keepsAgents?: boolean;
  /** Set numbers of a small range by sliders. */
  hasSliders?: boolean;
  /** Keep Web off where the server doesn't allow it. */
  isGuarded?: boolean;
  /** Show what agents do while they do it, and fold it away at the end. */
  showsSteps?: boolean;
  /** Shows all that goes in, in a window of the shell's own. */
  onContext?: (gathered: Gathered) => void;
  /** Leave the focus where it is when the box is drawn first. */
  isQuiet?: boolean;
  /** Told which conversation is shown, so that the shell's address says it; empty for a new one. */
  onSession: (id: string) => void;
  debugging?: Debugging;
}

/** What would go with the next message, as `POST /ask/context` tells it. */
export interface Gathered extends UsedNotes {
  notices: readonly string[];
  cut: string;
  isExplored: boolean;
}

const WAIT_MS = 300;
const AGENTS_KEPT = "chat-agents";

function readToggles(kept: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(kept || "{}");
    return found !== null && typeof found === "object" ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export class Chat {
  readonly sessions: Sessions;
  readonly spending: Spending;
  readonly choice: Choice;
  readonly conversation: Conversation;
  readonly gathered;
  readonly presets;
  readonly agents;
  /** What is being written. */
  readonly text: Signal<string> = signal("");
  readonly attachments: Signal<readonly Attachment[]> = signal([]);
  /** What is selected in an answer or a note, and may go with the message. */
  readonly selection: Signal<Attachment | null> = signal(null);
  readonly isSheetOpen: Signal<boolean> = signal(false);
  /** Grows when something was changed or decided elsewhere: cards look again. */
  readonly news: Signal<number> = signal(0);
  /** Grows when the focus belongs into the message's box. */
  readonly focused: Signal<number> = signal(0);
  private readonly end: () => void;
  private timer: number | undefined;

  constructor(
    readonly host: Host,
    readonly options: ChatOptions,
  ) {
    const { client } = host;
    this.choice = new Choice(options.isGuarded);
    this.sessions = new Sessions(client);
    this.spending = new Spending(client, options.keep);
    this.conversation = new Conversation(client, this.sessions, {
      onSession: options.onSession,
      debugging: options.debugging,
      onChange: () => void Promise.all([this.sessions.load(), this.loadUsage()]),
    });
    this.presets = resource((abort) => client.get("/presets", { signal: abort }));
    this.agents = resource((abort) => client.get("/agents", { signal: abort }));
    this.gathered = resource(async (abort): Promise<Gathered> => {
      const found = await client.post("/ask/context", { body: this.choice.body(this.conversation.about.peek()), signal: abort });
      return { ...usedOf(found), notices: found.notices, cut: found.cut ?? "", isExplored: found.explored };
    });
    if (options.keepsAgents) this.choice.restore(readToggles(options.keep.load(AGENTS_KEPT)));
    const endEffect = effect(() => {
      const isShown = this.isSheetOpen.value || !this.choice.isChat.value;
      void [this.choice.toggles.value, this.choice.chosen.value, this.conversation.about.value]; // gathered anew when one of these changes
      window.clearTimeout(this.timer);
      if (isShown && this.choice.isLearned.value) this.timer = window.setTimeout(() => void this.gathered.load(), WAIT_MS);
    });
    const endNews = host.onNews?.((event) => {
      this.news.value = untracked(() => this.news.value) + 1;
      if (event.data["kind"] === "task") void this.sessions.waiting.load();
    });
    this.end = () => {
      endEffect();
      endNews?.();
    };
  }

  /** Listen to nothing any more, such as when the view is closed; what runs goes on at the server. */
  close(): void {
    this.end();
    window.clearTimeout(this.timer);
    this.conversation.leave();
  }

  /** Load what stands around a conversation. */
  async load(): Promise<void> {
    await Promise.all([this.learn().catch(() => undefined), this.sessions.load(), this.spending.models.load(), this.presets.load(), this.agents.load(), this.loadUsage()]);
  }

  /** Ask what is configured at the server, and allowed there. */
  async learn(): Promise<void> {
    this.choice.learn(await this.host.client.get("/ask/defaults"));
  }

  async loadUsage(): Promise<void> {
    await this.spending.usage.load(this.conversation.id.value);
  }

  /** Show a conversation, or a new one where the id is empty. */
  async show(id: string): Promise<void> {
    // What couldn't begin has no id, and stays in view until something else is asked for.
    if (id) await this.conversation.open(id);
    else if (this.conversation.id.value) this.conversation.begin();
    await this.loadUsage();
  }

  /** Send what is written, with what goes with it. */
  async send(text: string = this.text.value): Promise<void> {
    const message = joinMessage(text, this.attachments.value);
    if (!message || this.conversation.isBusy.value || this.choice.isResting.value) return;
    if (message.length > MAX_MESSAGE_CHARS) {
      this.host.floaters.toast({ tone: "removed", text: `The message is too long: ${message.length.toLocaleString("en")} characters`, hint: `The limit is ${MAX_MESSAGE_CHARS.toLocaleString("en")}; remove an attachment.` });
      return;
    }
    batch(() => {
      this.text.value = "";
      this.attachments.value = [];
      this.isSheetOpen.value = false;
    });
    await this.conversation.send(this.order(message));
  }

  order(text: string): Order {
    const isChat = this.choice.isChat.value || AGENT_NAME.test(text.trim());
    const model = this.spending.model.value;
    return isChat ? { kind: "chat", text, model } : { kind: "task", text, model, body: this.choice.body(this.conversation.about.value) };
  }

  /** Send a message again that failed: in its place where it never began. */
  async again(turn: Signal<Turn>): Promise<void> {
    const { question, id } = turn.value;
    if (!id) this.conversation.drop(turn);
    await this.conversation.send(this.order(question));
  }

  /** Answer a message anew, or another one in its place, in a copy of the conversation. */
  async branch(turn: Signal<Turn>, text: string = turn.value.question): Promise<void> {
    try {
      await this.conversation.branch(turn, this.order(text));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Put a text where a message is written, such as one that failed. */
  write(message: string): void {
    const { text, attachments } = splitMessage(message);
    batch(() => {
      this.text.value = text;
      this.attachments.value = attachments;
    });
    this.focus();
  }

  /** Have a note talked about, and with it what was selected there. */
  about(path: string, quote = ""): void {
    this.conversation.about.value = path;
    if (quote) this.attachments.value = [...this.attachments.value, { kind: "selection", name: noteLink(path), text: quote }];
    this.focus();
  }

  /** Name notes in the message; where notes were chosen for a task, they go in as well. */
  addNotes(paths: readonly string[]): void {
    const { text } = this;
    const links = paths.map(noteLink).join(" ");
    text.value = text.value && !/\s$/.test(text.value) ? `${text.value} ${links} ` : `${text.value}${links} `;
    if (!this.choice.isChat.value) for (const path of paths) this.choice.add(path);
    this.focus();
  }

  attach(...attachments: readonly Attachment[]): void {
    this.attachments.value = [...this.attachments.value, ...attachments];
    this.focus();
  }

  focus(): void {
    this.focused.value = untracked(() => this.focused.value) + 1;
  }

  async stop(): Promise<void> {
    try {
      await this.conversation.stop();
    } catch (error) {
      this.fail(error);
    }
    this.focus();
  }

  /** Show a task that waits for an answer, in its conversation if it has one. */
  async openWaiting(run: WaitingTask, go: (id: string) => void): Promise<void> {
    if (run.session_id) go(run.session_id);
    else {
      go("");
      this.conversation.begin();
      this.conversation.wait(run);
    }
  }

  async takePreset(preset: Preset): Promise<void> {
    this.choice.take(preset);
    this.host.floaters.toast({ text: `Using ${preset.name} from the next message on` });
  }

  async savePreset(name: string): Promise<void> {
    await this.host.client.put("/presets/{name}", { path: { name }, body: this.choice.preset() as never });
    await this.presets.load();
  }

  async deletePreset(name: string): Promise<void> {
    await this.host.client.delete("/presets/{name}", { path: { name } });
    await this.presets.load();
  }

  /** Keep which agents are on, for the next visit. */
  async keepToggles(): Promise<void> {
    if (this.options.keepsAgents) return this.options.keep.save(AGENTS_KEPT, JSON.stringify(this.choice.wished.value));
    await this.host.client.put("/ask/switches", { body: this.choice.wished.value }).catch((error: unknown) => this.fail(error));
  }

  /** Copy the texts of notes, to be put in elsewhere. */
  async copyTexts(paths?: readonly string[]): Promise<void> {
    const alone = { toggles: { scout: false, web: false, task: true }, scope: { link_depth: 0, include_same_folder: false }, added: paths, token_limit: 1_000_000 };
    const body = { ...(paths ? alone : this.choice.body(this.conversation.about.value)), texts: true };
    try {
      const { notes } = await this.host.client.post("/ask/context", { body: body as never });
      const rows = notes as unknown as readonly { path: string; text: string }[];
      await this.host.copy(rows.map((note) => `# ${note.path}\n\n${note.text.trimEnd()}\n`).join("\n"));
      this.host.floaters.toast({ text: `Copied the text of ${rows.length === 1 ? "1 note" : `${rows.length} notes`}` });
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    const { message, hint } = failureOf(error);
    this.host.floaters.toast({ text: sentence(message), tone: "removed", ...(hint ? { hint } : {}) });
  }
}
