/** The commands; no keys are set for them, as that is the user's to choose. */

import { type App, type Editor, type MarkdownView, Notice, SuggestModal, TFile } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { CHAT_VIEW, ChatView } from "./chat";
import { sentence } from "./connection";
import { editorViewOf, openNote } from "./decisions";
import { insertText } from "./host";
import type KnapperPlugin from "./main";
import type { Marks } from "./marks";
import { PairDialog } from "./pairing";
import { type ChangeRow, formatTime, undo } from "./panel";
import { plain } from "./places";
import { placeHere, placesOf } from "./review";
import type { Hunk } from "./waiting";

/** Add all commands. */
export function addCommands(plugin: KnapperPlugin, marks: Marks): void {
  const { decisions, waiting } = plugin;
  const command = (id: string, name: string, callback: () => unknown) => plugin.addCommand({ id, name, callback: () => void callback() });
  const inNote = (id: string, name: string, work: (view: MarkdownView) => unknown) =>
    plugin.addCommand({ id, name, editorCallback: (_: Editor, context) => void work(context as MarkdownView) });

  command("open-chat", "Open vault chat", () => plugin.openChat());
  inNote("ask-selection", "Ask about the selection", ({ editor, file }) => {
    const quote = editor.getSelection();
    return plugin.openChat({ note: file?.path ?? "", ...(quote.trim() ? { quote } : {}) });
  });
  command("show-pending", "Show pending edits", () => plugin.openReview("waiting"));
  command("show-changes", "Show what was changed", () => plugin.openReview("changes"));
  command("search-pending", "Search pending edits", () => new PendingSearch(plugin).open());
  command("search-drawn", "Search drawn edits", () => {
    window.open(`obsidian://search?query=${encodeURIComponent(plugin.settings.tag)}`);
  });
  command("accept-all", "Accept all pending edits", () => decideAll(plugin, "accept"));
  command("reject-all", "Reject all pending edits", () => decideAll(plugin, "reject"));
  command("undo-last", "Undo the last change", () => undo(plugin, {}));
  command("undo-run", "Undo a change or a whole run…", () => undoOne(plugin));
  command("search-notes", "Search notes by meaning", () => new NoteSearch(plugin).open());
  command("open-runs", "Show runs", () => plugin.openRun());
  command("new-run", "Begin a run", () => plugin.openRun("", "", true));
  command("open-search", "Open vault search", () => plugin.openSearch());
  command("show-related", "Show related notes", () => plugin.openSearch("", "related"));
  command("show-loose-ends", "Show broken links and orphans", () => plugin.openSearch("", "links"));
  inNote("insert-link", "Insert a link to a note found by meaning", () => new LinkSearch(plugin).open());
  inNote("insert-answer", "Insert the last answer at the cursor", (view) => {
    const chat = plugin.app.workspace.getLeavesOfType(CHAT_VIEW).map((leaf) => leaf.view).find((one) => one instanceof ChatView);
    const answer = chat?.lastAnswer ?? "";
    if (answer) insertText(view, answer);
    else new Notice("There is no answer in the chat");
  });
  command("connect", "Connect with a server", () => new PairDialog(plugin, { address: plugin.connection.pairing?.address ?? "", code: "" }).open());

  for (const [direction, word] of [[1, "next"], [-1, "previous"]] as const) {
    inNote(`${word}-pending`, `Go to the ${word} pending edit`, (view) => {
      const editor = editorViewOf(view);
      if (!editor || !marks.go(editor, direction)) new Notice("No pending edits in current note");
    });
  }
  for (const verb of ["accept", "reject"] as const) {
    const name = verb === "accept" ? "Accept" : "Reject";
    inNote(`${verb}-next`, `${name} next pending edit in current note`, (view) => {
      const editor = editorViewOf(view);
      const place = editor && (placeHere(editor.state) ?? (verb === "reject" ? placesOf(editor.state)[0] : undefined));
      if (!place) new Notice("No pending edits in current note");
      else void decisions.decide(verb, place.hunk, "hunk");
    });
    inNote(`${verb}-note`, `${name} all pending edits in current note`, (view) => {
      const path = view.file?.path ?? "";
      const hunks = waiting.hunksOf(path);
      void (verb === "accept" ? decisions.accept(path, hunks) : decisions.reject(hunks));
    });
  }
  inNote("draw-pending", "Put pending edits into the note as blocks", (view) => {
    const ids = new Set(waiting.hunksOf(view.file?.path ?? "").map((hunk) => hunk.proposal));
    if (ids.size) void decisions.draw([...ids]);
    else new Notice("No pending edits in current note");
  });
}

async function decideAll(plugin: KnapperPlugin, verb: "accept" | "reject"): Promise<void> {
  const ids = plugin.waiting.rows.filter((row) => row.kind === "proposal").map((row) => row.id);
  if (!ids.length) new Notice("No pending edits found");
  for (const id of ids) if (!(await plugin.decisions.decideProposal(verb, id))) return;
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
    new Notice(`Knapper: ${sentence(failureOf(error))}`);
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
    this.emptyStateText = "Nothing found";
  }

  async getSuggestions(query: string): Promise<Hit[]> {
    this.abort?.abort();
    const { client } = this.plugin.connection;
    if (!query.trim() || !client) return [];
    const abort = new AbortController();
    this.abort = abort;
    await new Promise((resolve) => window.setTimeout(resolve, TYPING_MS));
    if (abort.signal.aborted) return [];
    try {
      return (await client.raw<{ results: Hit[] }>("GET", "/search", { query: { query }, signal: abort.signal })).results;
    } catch {
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
