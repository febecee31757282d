/** The chat in the sidebar: each note has its own conversation, and the one of the open note is shown. */

import { computed, effect, signal, untracked } from "@preact/signals";
import { Notice, TFile } from "obsidian";
import type { JSX } from "preact";
import { Button, Icon, IconButton } from "../../ui/parts/basic";
import { Chat, Composer, ComposerFoot, Conversations, openSessionMenu, ScopeSheet, selectedText, Transcript } from "../../ui/parts/chat";
import { noteLink } from "../../ui/parts/chat/message";
import type { Turn } from "../../ui/parts/chat/turn";
import { count, noteName } from "../../ui/parts/format";
import { ContextDialog } from "./context";
import { DrawnView, ViewHead } from "./drawn";
import { noteFiles } from "./dragging";
import { lastNote } from "./host";

export const CHAT_VIEW = "knapper-chat";

/** What the chat is opened with. */
export interface ChatOrder {
  /** A conversation by its id. */
  session?: string;
  /** A note that is to be talked about; empty for none. */
  note?: string;
  quote?: string;
  /** What is written into the box, or sent at once. */
  text?: string;
  isSent?: boolean;
}

const SUGGESTIONS = ["Summarize this note", "What did I write about ", "Which tasks are still open?"];
const MAX_SESSIONS = 500;
const SELECTION_MS = 200;

export class ChatView extends DrawnView {
  private chat!: Chat;
  /** The note that the person looks at; empty for none. */
  private readonly note = signal("");
  private readonly isHistory = signal(false);
  private timer = 0;
  private isLoaded = false;
  private follows = Promise.resolve();

  getViewType(): string {
    return CHAT_VIEW;
  }

  getDisplayText(): string {
    return "Vault chat";
  }

  override getIcon(): string {
    return "messages-square";
  }

  protected override onOpen(): Promise<void> {
    const { workspace, vault } = this.app;
    this.chat = new Chat(this.host, { keep: this.plugin.keep, keepsAgents: true, canRest: true, hasSliders: true, isQuiet: true, isGuarded: true, showsSteps: true, onContext: (gathered) => new ContextDialog(this.plugin, gathered).open(), onSession: () => undefined, debugging: this.debugging });
    this.register(() => this.chat.close());
    this.note.value = workspace.getActiveFile()?.path ?? "";
    this.chat.conversation.about.value = this.note.value;
    this.registerEvent(workspace.on("file-open", () => this.switchNote()));
    this.registerEvent(vault.on("rename", (file, before) => file instanceof TFile && this.rename(before, file.path)));
    this.listen();
    this.register(this.contentEl.onWindowMigrated(() => this.listen()));
    this.registerDomEvent(this.contentEl, "drop", (event) => this.drop(event), { capture: true });
    this.register(() => window.clearTimeout(this.timer));
    this.register(
      effect(() => {
        // Whoever has no agent on is told once why nothing can be sent.
        if (this.chat.choice.isResting.value) new Notice("Enable at least one agent to send");
      }),
    );
    const { chat } = this;
    this.register(effect(() => this.tellLeftOut(chat.conversation.turns.value.at(-1)?.value)));
    this.registerEvent(workspace.on("active-leaf-change", (leaf) => leaf === this.leaf && this.relearn()));
    // Switching while an answer is written waits until its end.
    this.register(effect(() => void (chat.conversation.isBusy.value || untracked(() => this.follow()))));
    return super.onOpen();
  }

  /** Listen in the window that the view is in now. */
  private listen(): void {
    const { ownerDocument } = this.contentEl;
    this.registerDomEvent(ownerDocument, "selectionchange", () => this.noticeSelection());
    // What the server allows may have been changed elsewhere, such as on its page in another window.
    this.registerDomEvent(ownerDocument.defaultView ?? window, "focus", () => this.relearn());
  }

  protected refill(): void {
    const isFirst = !this.isLoaded;
    this.isLoaded = true;
    void this.chat.load();
    if (isFirst) void this.follow(true);
  }

  /** Take up what is configured at the server, such as after a setting was changed. */
  reloadDefaults(): void {
    void this.chat.load();
  }

  private relearn(): void {
    if (this.plugin.connection.isReady) this.chat.learn().catch(() => undefined); // the state of the connection is shown
  }

  /** The answer whose notes were told to be left out last. */
  private toldOut = "";

  /** Say which notes a limit has taken away from an answer that is on its way. */
  private tellLeftOut(turn: Turn | undefined): void {
    const removed = turn?.context?.removed ?? [];
    if (!turn || !removed.length || turn.id === this.toldOut || !this.chat.conversation.isBusy.peek()) return;
    this.toldOut = turn.id;
    const names = removed.slice(0, 5).map(({ path }) => noteName(path));
    new Notice(`${count(removed.length, "note")} left out by a limit: ${names.join(", ")}${removed.length > 5 ? ` and ${removed.length - 5} more` : ""}`);
  }

  /** Take an order up, such as of a command. */
  async take(order: ChatOrder): Promise<void> {
    const { chat } = this;
    this.isHistory.value = false;
    await this.follows;
    if (order.session) await chat.show(order.session);
    if (order.note !== undefined && order.note !== chat.conversation.about.value) await this.showNote(order.note);
    if (order.quote) chat.attach({ kind: "selection", name: noteLink(chat.conversation.about.value), text: order.quote });
    if (order.text && order.isSent) await chat.send(order.text);
    else if (order.text) chat.write(order.text);
    chat.focus();
  }

  /** The last answer of the conversation that is shown; empty for none. */
  get lastAnswer(): string {
    return this.chat.conversation.turns.value.at(-1)?.value.text ?? "";
  }

  /** What the models were told and said for the last answer, where debug mode is on. */
  get prompts(): string {
    return this.told.join("\n\n");
  }

  private told: string[] = [];

  private readonly debugging = {
    isOn: () => {
      this.told = [];
      return this.plugin.settings.debug;
    },
    take: (data: Readonly<Record<string, unknown>>) => this.told.push(`# ${String(data["phase"])}: ${String(data["title"])}\n\n${String(data["text"])}`),
  };

  private switchNote(): void {
    const path = this.app.workspace.getActiveFile()?.path ?? "";
    if (path === this.note.value) return;
    const { plugin } = this;
    if (path && path === plugin.navigated) this.shownFor = path;
    plugin.navigated = "";
    this.note.value = path;
    void this.follow();
  }

  private rename(before: string, path: string): void {
    const { about } = this.chat.conversation;
    if (this.showing === before) this.showing = path;
    if (this.shownFor === before) this.shownFor = path; // the conversation goes on, as the server moves it along
    if (about.value === before) about.value = path;
    if (this.note.value === before) this.note.value = path;
  }

  private shownFor: string | undefined;
  /** The note whose conversation is on its way. */
  private showing = "";

  /** Show the conversation of the open note, unless an answer is being written in the one that is shown. */
  private follow(isFirst = false): Promise<void> {
    const path = this.note.value;
    if (!this.isLoaded || this.chat.conversation.isBusy.peek() || (!isFirst && path === this.shownFor)) return this.follows;
    this.shownFor = path;
    this.follows = this.follows.then(() => (this.note.value === path ? this.showNote(path, isFirst) : undefined)).catch((error: unknown) => this.chat.fail(error));
    return this.follows;
  }

  private async showNote(path: string, isFirst = false): Promise<void> {
    const { chat } = this;
    const { conversation } = chat;
    if (conversation.id.value || conversation.turns.value.length) conversation.begin();
    this.showing = path;
    conversation.about.value = path; // a message that is sent meanwhile is about it already
    const isAnew = this.plugin.settings.clearOnSwitch && !isFirst;
    const id = isAnew ? "" : await this.findSession(path);
    if (!id || conversation.turns.value.length) return;
    await chat.show(id);
    conversation.about.value = this.showing; // it may have been renamed meanwhile
  }

  /** The conversation about a note that was used last; empty where there is none. */
  private async findSession(path: string): Promise<string> {
    for (let offset = 0; ; offset += MAX_SESSIONS) {
      const { results } = await this.plugin.host.client.get("/sessions", { query: { limit: MAX_SESSIONS, offset } });
      const id = results.find((session) => (session.active_file ?? "") === path)?.id;
      if (id || results.length < MAX_SESSIONS) return id ?? "";
    }
  }

  private noticeSelection(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const own = selectedText(this.contentEl.ownerDocument.getSelection());
      const view = lastNote(this.app);
      const text = view?.editor.getSelection() ?? "";
      const noted = view?.file && text.trim() ? ({ kind: "selection", name: noteLink(view.file.path), text } as const) : null;
      this.chat.selection.value = own ?? noted;
    }, SELECTION_MS);
  }

  /** Notes that are dragged out of Obsidian's own lists. */
  private drop(event: DragEvent): void {
    const paths = noteFiles(this.app);
    if (!paths.length || !(event.target instanceof Element) || !event.target.closest(".k-composer")) return;
    event.preventDefault();
    event.stopPropagation();
    this.chat.addNotes(paths);
  }

  private async clear(): Promise<void> {
    const { chat } = this;
    const id = chat.conversation.id.value;
    const about = chat.conversation.about.value;
    try {
      if (chat.conversation.isBusy.value) await chat.stop();
      if (id) await this.plugin.host.client.post("/sessions/{session_id}/clear", { path: { session_id: id } });
      chat.conversation.begin();
      if (id) await chat.show(id);
      chat.conversation.about.value = about;
      new Notice("Chat history cleared");
      await chat.sessions.load();
    } catch (error) {
      chat.fail(error);
    }
  }

  private go(id: string): void {
    this.isHistory.value = false;
    if (!id) this.begin();
    else void this.chat.show(id).then(() => this.chat.focus());
  }

  private begin(): void {
    const { chat } = this;
    this.isHistory.value = false;
    chat.conversation.begin();
    chat.conversation.about.value = this.note.value;
    chat.focus();
  }

  private readonly spends = computed(() => (this.plugin.shown.value.showTokens ? "" : undefined));

  protected draw(): JSX.Element {
    const { chat } = this;
    const isHistory = this.isHistory.value;
    return (
      <div class="knapper-chat" data-spends={this.spends.value}>
        <Head chat={chat} isHistory={isHistory} onClear={() => void this.clear()} onHistory={() => (this.isHistory.value = !isHistory)} onNew={() => this.begin()} onGo={(id) => this.go(id)} />
        {isHistory ? (
          <div class="knapper-history">
            <Conversations chat={chat} onGo={(id) => this.go(id)} />
          </div>
        ) : (
          <>
            <Context chat={chat} note={this.note.value} />
            <Transcript chat={chat}>
              <Welcome chat={chat} hasNote={Boolean(chat.conversation.about.value)} />
            </Transcript>
            <div class="k-compose">
              <ScopeSheet chat={chat} />
              <Composer chat={chat} />
              <ComposerFoot chat={chat} />
            </div>
          </>
        )}
      </div>
    );
  }
}

interface HeadProps {
  chat: Chat;
  isHistory: boolean;
  onClear: () => void;
  onHistory: () => void;
  onNew: () => void;
  onGo: (id: string) => void;
}

function Head({ chat, isHistory, onClear, onHistory, onNew, onGo }: HeadProps): JSX.Element {
  const { id, title } = chat.conversation;
  const shown = title.value || (id.value ? "Conversation" : "New conversation");
  return (
    <ViewHead>
      <IconButton icon="eraser" size="small" label="Clear chat history" isDisabled={!chat.conversation.turns.value.length || isHistory} onClick={onClear} />
      <h2 class="knapper-title k-cut" title={shown}>
        {isHistory ? "Conversations" : shown}
      </h2>
      <IconButton icon="clock" size="small" label="Conversations" isPressed={isHistory} onClick={onHistory} />
      {id.value && !isHistory && <IconButton icon="ellipsis" size="small" label="Conversation actions" onClick={(event) => openSessionMenu(event, chat, id.value, shown, onGo)} />}
      <IconButton icon="plus" size="small" label="New conversation" onClick={onNew} />
    </ViewHead>
  );
}

/** Which note the next message is about. */
function Context({ chat, note }: { chat: Chat; note: string }): JSX.Element {
  const { about } = chat.conversation;
  const other = note && note !== about.value ? note : "";
  return (
    <div class="knapper-context" role="status">
      <Icon name="file-text" />
      <span class="k-cut" title={about.value}>
        {about.value ? `Context: ${noteName(about.value)}` : "Context: no note"}
      </span>
      {other && (
        <Button size="small" kind="quiet" title={other} onClick={() => (about.value = other)}>
          Use the open note
        </Button>
      )}
    </div>
  );
}

function Welcome({ chat, hasNote }: { chat: Chat; hasNote: boolean }): JSX.Element {
  return (
    <div class="k-welcome">
      <Icon name="messages-square" size={20} />
      <h2>Ask your notes</h2>
      <p class="k-quiet">Ask a question, or request edits. Answers cite the lines they come from; edits wait in the note until you accept them.</p>
      <div class="k-welcome-acts">
        {SUGGESTIONS.slice(hasNote ? 0 : 1).map((text) => (
          <Button key={text} size="small" onClick={() => chat.write(text)}>
            {text.trim()}
            {text.endsWith(" ") && "…"}
          </Button>
        ))}
      </div>
    </div>
  );
}
