/** The panel of all that waits in the vault, and of what was changed in it, each with its way back. */

import { ConfirmationModal, ItemView, Notice, TFile, type WorkspaceLeaf } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { button } from "./card";
import { describeFailure, describeState } from "./connection";
import { openNote } from "./editors";
import type KnapperPlugin from "./main";
import type { Proposal, ServerFile, WaitingRow } from "./waiting";

export const REVIEW_VIEW = "knapper-review";

export interface ChangeRow {
  id: string;
  at: string;
  client: string;
  run?: string;
  reason?: string;
  undone?: boolean | string;
  undoes?: unknown;
  files: { path: string; target?: string; action?: string }[];
}

type Tab = "waiting" | "changes";
const KINDS = { edit: "Edit", create: "New note", move: "Move", trash: "Delete" } as const;
const PAGE = 50;
const MAX_ROWS = 200;

export class ReviewView extends ItemView {
  override navigation = false;
  private tab: Tab = "waiting";
  private list!: HTMLElement;
  private tabs = new Map<Tab, HTMLElement>();
  private changes: ChangeRow[] = [];
  /** How many rows are shown; a button shows the rest. */
  private shown = MAX_ROWS;

  constructor(
    leaf: WorkspaceLeaf,
    private readonly plugin: KnapperPlugin,
  ) {
    super(leaf);
  }

  getViewType(): string {
    return REVIEW_VIEW;
  }

  getDisplayText(): string {
    return "Pending edits";
  }

  override getIcon(): string {
    return "file-check-2";
  }

  protected override onOpen(): Promise<void> {
    this.contentEl.empty();
    this.contentEl.addClass("knapper", "knapper-panel");
    const bar = this.contentEl.createDiv({ cls: "knapper-tabs", attr: { role: "tablist", "aria-label": "Pending edits and changes" } });
    for (const [tab, text] of [
      ["waiting", "Pending"],
      ["changes", "Changes"],
    ] as const) {
      const made = button(bar, text, "", () => this.show(tab));
      made.setAttr("role", "tab");
      this.tabs.set(tab, made);
    }
    this.list = this.contentEl.createDiv({ cls: "knapper-list", attr: { role: "tabpanel" } });
    this.register(this.plugin.waiting.on(() => this.tab === "waiting" && this.draw()));
    this.register(this.plugin.connection.on("state", () => this.draw()));
    this.register(this.plugin.connection.on("news", (event) => event.event === "change" && this.tab === "changes" && void this.read()));
    this.show(this.tab);
    return Promise.resolve();
  }

  /** Show one of the two lists. */
  show(tab: Tab): void {
    this.tab = tab;
    for (const [name, made] of this.tabs) made.setAttr("aria-selected", String(name === tab));
    if (tab === "changes") void this.read();
    else this.draw();
  }

  private async read(): Promise<void> {
    const { client } = this.plugin.connection;
    if (!client) return this.draw();
    try {
      this.changes = (await client.raw<{ results: ChangeRow[] }>("GET", "/changes", { query: { limit: PAGE } })).results;
    } catch (error) {
      new Notice(`Knapper: ${describeFailure(failureOf(error))}`);
    }
    this.draw();
  }

  private draw(): void {
    // The list is drawn anew as a whole; whoever was on a button of a row stays on it.
    const active = this.list.ownerDocument.activeElement;
    const at = active && this.list.contains(active) ? [...this.list.querySelectorAll("button, summary")].indexOf(active) : -1;
    this.list.empty();
    const { state } = this.plugin.connection;
    if (state.kind !== "ready") this.list.createDiv({ cls: "knapper-state", text: describeState(state), attr: { role: "status" } });
    if (this.tab === "waiting") this.drawWaiting();
    else this.drawChanges();
    if (at >= 0) this.list.querySelectorAll<HTMLElement>("button, summary")[at]?.focus();
  }

  private drawWaiting(): void {
    const { waiting } = this.plugin;
    if (waiting.problem) this.list.createDiv({ cls: "knapper-problem", text: waiting.problem });
    if (!waiting.count && this.plugin.connection.isReady) {
      this.list.createDiv({ cls: "knapper-empty", text: "No changes are waiting for you. What agents propose appears here, and in the notes concerned." });
    }
    this.drawBlocks();
    for (const row of waiting.rows.slice(0, this.shown)) {
      const proposal = waiting.proposals.get(row.id);
      if (row.kind !== "proposal") this.drawQuestion(row);
      else if (proposal) this.drawProposal(proposal);
    }
    const { unread } = waiting;
    if (unread && this.plugin.connection.isReady) this.list.createDiv({ cls: "knapper-label", text: `${unread.toLocaleString()} more are being read…`, attr: { role: "status" } });
    const more = waiting.rows.length - this.shown;
    if (more > 0) {
      button(this.list, `Show ${more.toLocaleString()} more`, "", () => {
        this.shown += more;
        this.draw();
      });
    }
  }

  /** Blocks in notes that no proposal knows. */
  private drawBlocks(): void {
    const { decisions, waiting } = this.plugin;
    const blocks = waiting.ownBlocks();
    for (const path of new Set(blocks.map((hunk) => hunk.path))) {
      const own = blocks.filter((hunk) => hunk.path === path);
      const root = this.list.createDiv({ cls: "knapper-row", attr: { role: "group", "aria-label": `Blocks in ${path}` } });
      root.createDiv({ cls: "knapper-row-title", text: `${own.length} ${own.length === 1 ? "block" : "blocks"} of no proposal` });
      this.drawPath(root.createDiv({ cls: "knapper-file" }), path, own[0]?.line);
      for (const { stale } of own) if (stale) root.createDiv({ cls: "knapper-stale-cause", text: `Can't be accepted: ${stale.message}` });
      const bar = root.createDiv({ cls: "knapper-card-buttons" });
      button(bar, "Accept all", "mod-cta", () => void decisions.accept(path, own));
      button(bar, "Reject all", "", () => void decisions.reject(own));
    }
  }

  /** A note's path, which opens it where it is in the vault. */
  private drawPath(line: HTMLElement, path: string, at?: number): void {
    const file = this.app.vault.getAbstractFileByPath(path);
    if (file instanceof TFile) button(line, path, "knapper-link", () => void openNote(this.app, file, at));
    else line.createSpan({ text: path });
  }

  private drawQuestion(row: WaitingRow): void {
    const root = this.list.createDiv({ cls: "knapper-row" });
    root.createDiv({ cls: "knapper-row-title", text: row.kind === "run" ? "A run asks" : "A task asks" });
    root.createDiv({ cls: "knapper-row-text", text: row.question ?? row.id });
    const bar = root.createDiv({ cls: "knapper-card-buttons" });
    const session = typeof row["session_id"] === "string" ? row["session_id"] : "";
    button(bar, "Answer", "mod-cta", () => void (row.kind === "run" ? this.plugin.openRun(typeof row["run_id"] === "string" ? row["run_id"] : row.id) : this.plugin.openChat(session ? { session } : {})));
  }

  private drawProposal(proposal: Proposal): void {
    const root = this.list.createDiv({ cls: "knapper-row", attr: { role: "group", "aria-label": `Proposal by ${proposal.client}` } });
    const head = root.createDiv({ cls: "knapper-row-title" });
    head.createSpan({ text: proposal.client, cls: "knapper-client" });
    head.createSpan({ text: formatTime(proposal.created), cls: "knapper-label" });
    if (proposal.tainted) head.createSpan({ text: "read text of others", cls: "knapper-tainted" });
    if (proposal.reason) root.createDiv({ cls: "knapper-row-text", text: proposal.reason });
    for (const file of proposal.files) if (file.state === "open") this.drawFile(root, file);
    const bar = root.createDiv({ cls: "knapper-card-buttons" });
    if (proposal.status === "open") button(bar, "Accept all", "mod-cta", () => void this.plugin.decisions.decideProposal("accept", proposal.id));
    button(bar, "Reject all", "", () => void this.plugin.decisions.decideProposal("reject", proposal.id));
  }

  private drawFile(root: HTMLElement, file: ServerFile): void {
    const open = file.hunks.filter((hunk) => hunk.state === "open");
    const stale = file.stale?.message ?? open.find((hunk) => hunk.stale)?.stale?.message;
    const line = root.createDiv({ cls: "knapper-file" });
    this.drawPath(line, file.path, open[0]?.line);
    const what = file.kind === "edit" ? `${open.length} ${open.length === 1 ? "place" : "places"}` : KINDS[file.kind];
    line.createSpan({ cls: "knapper-label", text: file.target ? `${what} to ${file.target}` : what });
    if (stale) root.createDiv({ cls: "knapper-stale-cause", text: `No longer applies: ${stale}` });
    if (file.kind === "edit" && this.app.vault.getAbstractFileByPath(file.path) instanceof TFile) return;
    const more = root.createEl("details");
    more.createEl("summary", { text: "Show" });
    more.createEl("pre", { cls: "knapper-diff", text: file.kind === "create" ? (open[0]?.new ?? "") : file.diff });
  }

  private drawChanges(): void {
    if (!this.changes.length && this.plugin.connection.isReady) this.list.createDiv({ cls: "knapper-empty", text: "Nothing was changed through Knapper yet." });
    const runs = new Set<string>();
    if (this.changes.length === PAGE) this.list.createDiv({ cls: "knapper-label", text: `The last ${PAGE} changes; Knapper's page has all.` });
    for (const change of this.changes) {
      const root = this.list.createDiv({ cls: "knapper-row", attr: { role: "group", "aria-label": `Change by ${change.client}` } });
      const head = root.createDiv({ cls: "knapper-row-title" });
      head.createSpan({ text: change.client, cls: "knapper-client" });
      head.createSpan({ text: formatTime(change.at), cls: "knapper-label" });
      if (change.reason) root.createDiv({ cls: "knapper-row-text", text: change.reason });
      for (const file of change.files.slice(0, 5)) root.createDiv({ cls: "knapper-file", text: file.path });
      if (change.files.length > 5) root.createDiv({ cls: "knapper-label", text: `and ${change.files.length - 5} more…` });
      if (change.undone) {
        root.createDiv({ cls: "knapper-label", text: "Undone" });
        continue;
      }
      const bar = root.createDiv({ cls: "knapper-card-buttons" });
      button(bar, "Undo", "", () => void undo(this.plugin, { change_id: change.id }).then(() => this.read()));
      const { run } = change;
      if (!run || runs.has(run)) continue;
      runs.add(run);
      button(bar, "Undo the whole run", "", () => void undo(this.plugin, { run }).then(() => this.read()));
    }
  }
}

/** Take back a change, or all of a run; where notes were changed since, ask whether the rest is to be undone. */
export async function undo(plugin: KnapperPlugin, which: { change_id?: string; run?: string }, partial = false): Promise<void> {
  try {
    const { undone } = await plugin.decisions.undo({ ...which, partial });
    new Notice(undone.length === 1 ? "Change undone" : `${undone.length} changes undone`);
  } catch (error) {
    const failure = failureOf(error);
    const canSkip = !partial && (failure.details["conflicts"] !== undefined || failure.details["pruned"] !== undefined);
    if (!canSkip) {
      new Notice(`Knapper: ${describeFailure(failure)}`, 8_000);
      return;
    }
    const dialog = new ConfirmationModal(plugin.app);
    dialog.setTitle("Some notes were changed since");
    dialog.setContent(`${failure.message}. Those can be left as they are, and the rest undone.`);
    dialog.addButton((made) => made.setButtonText("Undo the rest").onClick(() => void undo(plugin, which, true)));
    dialog.addCancelButton("Cancel");
    dialog.open();
  }
}

/** A moment in the words of the reader's language; the text itself where it isn't one. */
export function formatTime(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  return new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }).format(time);
}
