/** The commands; no keys are set for them, as that is the user's to choose. */

import { type App, type Editor, type MarkdownView, Modal, Notice, Setting, SuggestModal, TFile } from "obsidian";
import { failureOf, isAbort } from "../../ui/client/transport";
import { sentence } from "../../ui/parts/format";
import { CHAT_VIEW, ChatView } from "./chat";
import { describeFailure } from "./connection";
import { NOTHING_HERE } from "./decisions";
import { editorViewOf, openNote } from "./editors";
import { insertText } from "./host";
import { reindex } from "./indexing";
import type KnapperPlugin from "./main";
import type { Marks } from "./marks";
import { PairDialog } from "./pairing";
import { type ChangeRow, formatTime, undo } from "./panel";
import { plain } from "./places";
import { nextStop, stopHere } from "./review";
import type { Hunk } from "./waiting";

/** Below each block, as the server writes it. */
const BLOCK_TAG = "#ai_edit";

/** Add all commands. */
export function addCommands(plugin: KnapperPlugin, marks: Marks): void {
  const { decisions, waiting } = plugin;
  // The icons are what a phone's toolbar shows.
  const command = (id: string, icon: string, name: string, callback: () => unknown) => plugin.addCommand({ id, name, icon, callback: () => void callback() });
  const inNote = (id: string, icon: string, name: string, work: (view: MarkdownView) => unknown) =>
    plugin.addCommand({ id, name, icon, editorCallback: (_: Editor, context) => void work(context as MarkdownView) });

  command("open-vault-chat", "messages-square", "Open vault chat", () => plugin.openChat());
  inNote("ask-selection", "message-square-quote", "Ask about the selection", ({ editor, file }) => {
    const quote = editor.getSelection();
    return plugin.openChat({ note: file?.path ?? "", ...(quote.trim() ? { quote } : {}) });
  });
  command("show-pending", "file-check-2", "Show pending edits", () => plugin.openReview("waiting"));
  command("show-changes", "history", "Show what was changed", () => plugin.openReview("changes"));
  command("search-pending", "file-search", "Search pending edits", () => new PendingSearch(plugin).open());
  command("search-drawn", "tag", "Search drawn edits", () => {
    window.open(`obsidian://search?query=${encodeURIComponent(BLOCK_TAG)}`);
  });
  command("accept-all", "list-checks", "Accept all pending edits", () => decisions.decideAll("accept"));
  command("reject-all", "list-x", "Reject all pending edits", () => decisions.decideAll("reject"));
  command("undo-last", "undo-2", "Undo the last change", () => undo(plugin, {}));
  command("undo-run", "undo", "Undo a change or a whole run…", () => undoOne(plugin));
  command("search-notes", "text-search", "Search notes by meaning", () => new NoteSearch(plugin).open());
  command("open-runs", "workflow", "Show runs", () => plugin.openRun());
  command("new-run", "circle-plus", "Start a run", () => plugin.openRun("", "", true));
  command("open-search", "search", "Open vault search", () => plugin.openSearch());
  command("show-related", "waypoints", "Show related notes", () => plugin.openSearch("", "related"));
  command("show-loose-ends", "unlink", "Show broken links and orphans", () => plugin.openSearch("", "links"));
  inNote("insert-link", "link", "Insert a link to a note found by meaning", () => new LinkSearch(plugin).open());
  inNote("insert-answer", "text-cursor-input", "Insert the last answer at the cursor", (view) => {
    const answer = openChat(plugin)?.lastAnswer ?? "";
    if (answer) insertText(view, answer);
    else new Notice("There is no answer in the chat");
  });
  command("reindex", "refresh-cw", "Reindex the vault", () => reindex(plugin));
  command("show-prompts", "bug", "Show the prompts of the last answer", () => showPrompts(plugin));
  command("connect", "plug", "Connect with a server", () => new PairDialog(plugin, { address: plugin.connection.pairing?.address ?? "", code: "" }).open());

  for (const [direction, word] of [[1, "next"], [-1, "previous"]] as const) {
    inNote(`${word}-pending`, direction > 0 ? "arrow-down" : "arrow-up", `Go to the ${word} pending edit`, (view) => {
      const editor = editorViewOf(view);
      const stop = editor && nextStop(marks.stops(editor, view.file?.path ?? ""), editor.state.selection.main.head, direction);
      if (stop) marks.go(editor, stop);
      else new Notice(NOTHING_HERE);
    });
  }
  for (const verb of ["accept", "reject"] as const) {
    const name = verb === "accept" ? "Accept" : "Reject";
    inNote(`${verb}-next`, verb === "accept" ? "check" : "x", `${name} next pending edit in current note`, (view) => {
      const editor = editorViewOf(view);
      const stop = editor && stopHere(marks.stops(editor, view.file?.path ?? ""), editor.state.selection.main.head, verb);
      if (stop) void decisions.decide(verb, stop.hunk, "hunk");
      else new Notice(NOTHING_HERE);
    });
    inNote(`${verb}-note`, verb === "accept" ? "check-check" : "circle-x", `${name} all pending edits in current note`, (view) => {
      const path = view.file?.path ?? "";
      const hunks = waiting.hunksOf(path);
      void (verb === "accept" ? decisions.accept(path, hunks) : decisions.reject(hunks));
    });
  }
  inNote("draw-pending", "square-pen", "Put pending edits into the note as blocks", (view) => {
    const ids = new Set(waiting.hunksOf(view.file?.path ?? "").filter((hunk) => !hunk.block).map((hunk) => hunk.proposal));
    if (ids.size) void decisions.draw([...ids]);
    else new Notice(NOTHING_HERE);
  });
}

/** The chat where it is open, and loaded: a view in the background isn't, until it is shown. */
function openChat(plugin: KnapperPlugin): ChatView | undefined {
  return plugin.app.workspace.getLeavesOfType(CHAT_VIEW).map((leaf) => leaf.view).find((view) => view instanceof ChatView);
}

function showPrompts(plugin: KnapperPlugin): void {
  const prompts = openChat(plugin)?.prompts ?? "";
  if (prompts) new PromptsDialog(plugin.app, prompts).open();
  else new Notice(plugin.settings.debug ? "No answer was given in the open chat since debug mode was switched on" : "Switch on debug mode in the settings first, and ask again");
}

/** What was sent to the models and what came back, as text to read and to copy. */
class PromptsDialog extends Modal {
  constructor(
    app: App,
    private readonly text: string,
  ) {
    super(app);
  }

  override onOpen(): void {
    this.setTitle("Prompts and replies");
    const { contentEl, text } = this;
    contentEl.createEl("pre", { text, cls: "knapper-prompts", attr: { tabindex: "0" } });
    const copy = async () => {
      await activeWindow.navigator.clipboard.writeText(text);
      new Notice("Copied");
    };
    new Setting(contentEl).addButton((made) => made.setButtonText("Copy").onClick(() => void copy()));
  }
}

async function undoOne(plugin: KnapperPlugin): Promise<void> {
  const { client } = plugin.connection;
  if (!client) {
    new Notice("Knapper: the server isn't connected");
    return;
  }
  try {
    const { results } = await client.raw<{ results: ChangeRow[] }>("GET", "/changes", { query: { limit: 50 } });
    new UndoChoice(plugin, results.filter((row) => !row.undone)).open();
  } catch (error) {
    new Notice(`Knapper: ${describeFailure(failureOf(error))}`);
  }
}

class UndoChoice extends SuggestModal<{ row: ChangeRow; isRun: boolean }> {
  private readonly choices: { row: ChangeRow; isRun: boolean }[];

  constructor(
    private readonly plugin: KnapperPlugin,
    rows: ChangeRow[],
  ) {
    super(plugin.app);
    const runs = new Set<string>();
    this.choices = rows.flatMap((row) => {
      const isFirst = row.run !== undefined && row.run !== "" && !runs.has(row.run);
      if (isFirst) runs.add(row.run!);
      return [...(isFirst ? [{ row, isRun: true }] : []), { row, isRun: false }];
    });
    this.setPlaceholder("Which change is to be undone?");
  }

  getSuggestions(query: string) {
    const wanted = query.toLowerCase();
    return this.choices.filter(({ row }) => describeChange(row).toLowerCase().includes(wanted));
  }

  renderSuggestion({ row, isRun }: { row: ChangeRow; isRun: boolean }, into: HTMLElement): void {
    into.createDiv({ text: isRun ? `All of the run ${row.run}` : describeChange(row) });
    into.createEl("small", { text: `${row.client}, ${formatTime(row.at)}` });
  }

  onChooseSuggestion({ row, isRun }: { row: ChangeRow; isRun: boolean }): void {
    void undo(this.plugin, isRun ? { run: row.run! } : { change_id: row.id });
  }
}

function describeChange(row: ChangeRow): string {
  const [first] = row.files;
  const more = row.files.length > 1 ? ` and ${row.files.length - 1} more` : "";
  return `${row.reason ?? "Change"}: ${first?.path ?? ""}${more}`;
}

class PendingSearch extends SuggestModal<Hunk> {
  constructor(private readonly plugin: KnapperPlugin) {
    super(plugin.app);
    this.setPlaceholder("Find a pending edit by its note, its text, or who made it");
    this.emptyStateText = "No pending edits found";
  }

  getSuggestions(query: string): Hunk[] {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return this.plugin.waiting.allHunks().filter((hunk) => {
      const text = `${hunk.path} ${hunk.client} ${hunk.reason} ${hunk.old} ${hunk.new}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  renderSuggestion(hunk: Hunk, into: HTMLElement): void {
    into.createDiv({ text: `${hunk.path}:${hunk.line}` });
    into.createEl("small", { text: `${hunk.client}: ${plain(hunk.new || hunk.old).trim().split("\n")[0] ?? ""}` });
  }

  onChooseSuggestion(hunk: Hunk): void {
    openPath(this.app, hunk.path, hunk.line);
  }
}

interface Hit {
  source: string;
  heading?: string;
  content?: string;
  start_line?: number;
}

const TYPING_MS = 150;

class NoteSearch extends SuggestModal<Hit> {
  private abort: AbortController | null = null;

  constructor(protected readonly plugin: KnapperPlugin) {
    super(plugin.app);
    this.setPlaceholder("What are you looking for?");
  }

  async getSuggestions(query: string): Promise<Hit[]> {
    this.abort?.abort();
    if (!query.trim()) return [];
    const abort = new AbortController();
    this.abort = abort;
    await new Promise((resolve) => window.setTimeout(resolve, TYPING_MS));
    if (abort.signal.aborted) return [];
    try {
      this.emptyStateText = "Nothing found";
      return (await this.plugin.host.client.raw<{ results: Hit[] }>("GET", "/search", { query: { query }, signal: abort.signal })).results;
    } catch (error) {
      if (!isAbort(error)) this.emptyStateText = sentence(describeFailure(failureOf(error)));
      return [];
    }
  }

  renderSuggestion(hit: Hit, into: HTMLElement): void {
    into.createDiv({ text: hit.heading ? `${hit.source}, ${hit.heading}` : hit.source });
    into.createEl("small", { text: (hit.content ?? "").trim().slice(0, 160) });
  }

  onChooseSuggestion(hit: Hit): void {
    openPath(this.app, hit.source, hit.start_line);
  }
}

/** The same, whose choice becomes a link at the cursor. */
class LinkSearch extends NoteSearch {
  override onChooseSuggestion(hit: Hit): void {
    this.plugin.host.insertLink(hit.source);
  }
}

function openPath(app: App, path: string, line?: number): void {
  const file = app.vault.getAbstractFileByPath(path);
  if (file instanceof TFile) void openNote(app, file, line);
  else new Notice(`${path} isn't in this vault`);
}
