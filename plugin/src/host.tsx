/** What the parts that the page has too need of Obsidian: opening notes, menus, notices, and one client for all connections. */

import { type App, MarkdownView, Menu, Notice, TFile, type WorkspaceLeaf } from "obsidian";
import { Client } from "../../ui/client/client";
import { Failure, type Exchange, type Transport } from "../../ui/client/transport";
import { Floaters, type MenuItem, type Toast } from "../../ui/parts/floating";
import { sentence } from "../../ui/parts/format";
import type { Host, NoteTarget, Target, Where } from "../../ui/parts/host";
import { Shortcuts } from "../../ui/parts/keys";
import type { Decision } from "../../ui/parts/review/changes";
import type { Proposal as ShownProposal } from "../../ui/parts/review/model";
import { type Connection, describeState } from "./connection";
import { openNotes } from "./editors";
import type KnapperPlugin from "./main";
import type { Proposal } from "./waiting";

const NOTICE_MS = 6_000;
const PROBLEM_MS = 12_000;

/** Dialogs are drawn in the view; menus and short messages are Obsidian's own. */
class AppFloaters extends Floaters {
  override toast({ text, hint, tone, act }: Toast): void {
    const words = createFragment((into) => {
      into.createDiv({ text });
      if (hint) into.createEl("small", { text: sentence(hint) });
      if (act) into.createEl("button", { text: act.title, cls: "knapper-notice-act" }).addEventListener("click", act.run);
    });
    new Notice(words, tone === "removed" || act ? PROBLEM_MS : NOTICE_MS);
  }

  override openMenu(event: Event, label: string, items: readonly (MenuItem | "line")[]): void {
    event.preventDefault();
    const from = event.currentTarget instanceof HTMLElement ? event.currentTarget : null;
    const menu = new Menu();
    menu.addItem((row) => row.setTitle(label).setIsLabel(true));
    for (const item of items) {
      if (item === "line") menu.addSeparator();
      else addItem(menu, item);
    }
    menu.onHide(() => from?.focus({ preventScroll: true }));
    // By its type, as a popout window's events are of a class of that window.
    if (event.type === "contextmenu") menu.showAtMouseEvent(event as MouseEvent);
    else {
      const box = from?.getBoundingClientRect() ?? { left: 0, bottom: 0, width: 0 };
      menu.showAtPosition({ x: box.left, y: box.bottom + 4, width: box.width, overlap: true }, from?.ownerDocument);
    }
  }
}

function addItem(menu: Menu, item: MenuItem): void {
  menu.addItem((row) => {
    row.setTitle(item.title).onClick(item.run);
    if (item.icon) row.setIcon(item.icon);
    if (item.isChecked !== undefined) row.setChecked(item.isChecked);
    if (item.isDisabled) row.setDisabled(true);
    if (item.tone === "danger") row.setWarning(true);
  });
}

/** Asks whoever is connected at the moment, so that what holds a client needn't be made anew after each lost connection. */
function following(connection: Connection): Transport {
  const now = () => {
    const { client, state } = connection;
    if (client) return client;
    const [message = "", ...rest] = describeState(state).split(". ");
    const isUnpaired = state.kind === "unpaired" || state.kind === "revoked";
    throw new Failure(message.replace(/\.$/, ""), isUnpaired ? "unpaired" : "offline", rest.join(". ").replace(/\.$/, ""));
  };
  const own = (exchange: Exchange): Exchange => {
    const { headers } = now().options;
    return { ...exchange, headers: { ...headers(), ...exchange.headers } };
  };
  return {
    send: (exchange) => Promise.resolve().then(() => now().options.transport.send(own(exchange))),
    get stream() {
      const transport = connection.client?.options.transport;
      return transport?.stream && ((exchange: Exchange) => transport.stream!(own(exchange)));
    },
  };
}

/** The shell of all views of the plugin. */
export class AppHost implements Host {
  readonly client: Client;
  readonly app: App;
  readonly floaters = new AppFloaters();
  readonly shortcuts = new Shortcuts();

  constructor(private readonly plugin: KnapperPlugin) {
    this.app = plugin.app;
    this.client = new Client({ transport: following(plugin.connection), headers: () => ({}) });
  }

  /** The same shell for one view: its dialogs are drawn there, and in no other one that is open. */
  forView(): AppHost {
    return Object.assign(Object.create(this) as AppHost, { floaters: new AppFloaters() });
  }

  open(target: Target, where: Where = "view"): void {
    const { plugin } = this;
    if (target.kind === "note") void openTarget(plugin.app, target, where);
    else if (target.kind === "proposal") void plugin.showProposal(target.id);
    else if (target.kind === "run") void plugin.openRun(target.id, target.part);
    else if (target.kind === "session") void plugin.openChat({ session: target.id });
    else if (target.kind === "search") void plugin.openSearch(target.query);
  }

  /** Obsidian has no addresses for its views. */
  href(): undefined {
    return undefined;
  }

  resolveLink(link: string, from: string): string | undefined {
    return this.plugin.app.metadataCache.getFirstLinkpathDest(link.replace(/#.*$/, ""), from)?.path;
  }

  async copy(text: string): Promise<void> {
    await activeWindow.navigator.clipboard.writeText(text); // only the window with the focus may
  }

  /** An agent opens a note: in a tab of its own, at once. */
  navigate(path: string): void {
    this.plugin.navigated = path;
    void openTarget(this.plugin.app, { path }, "tab");
  }

  /** Put a link to a note into the open one, at the cursor. */
  insertLink(path: string): void {
    const { app } = this.plugin;
    const file = app.vault.getAbstractFileByPath(path);
    const view = lastNote(app);
    if (!view?.file || !(file instanceof TFile)) {
      new Notice(view ? `${path} isn't in this vault` : "Open a note first");
      return;
    }
    insertText(view, app.fileManager.generateMarkdownLink(file, view.file.path));
  }

  connect(): void {
    this.plugin.connect();
  }

  openSettings(): void {
    this.plugin.openSettings();
  }

  decide(proposal: ShownProposal, { act, ...parts }: Decision): Promise<void> {
    return this.plugin.decisions.decideParts(act, proposal as unknown as Proposal, parts);
  }

  async undo(change: string): Promise<void> {
    await this.plugin.decisions.undo({ change_id: change });
  }

  onNews(listener: Parameters<NonNullable<Host["onNews"]>>[0]): () => void {
    return this.plugin.connection.on("news", listener);
  }
}

/** The note that was used last, also while a sidebar has the focus. */
export function lastNote(app: App): MarkdownView | null {
  const active = app.workspace.getActiveViewOfType(MarkdownView);
  if (active) return active;
  const path = app.workspace.getActiveFile()?.path;
  return openNotes(app).find((view) => view.file?.path === path) ?? null;
}

/** Put a text in at the cursor, and the focus behind it. */
export function insertText(view: MarkdownView, text: string): void {
  view.editor.replaceSelection(text);
  view.editor.focus();
}

/** Open a note of the vault: in the tab that was used last, or in a new one; at its lines, which are shown selected. */
export async function openTarget(app: App, target: NoteTarget, where: Where = "view"): Promise<void> {
  const found = app.vault.getAbstractFileByPath(target.path);
  const file = found instanceof TFile ? found : app.metadataCache.getFirstLinkpathDest(target.path, "");
  if (!file) {
    new Notice(`${target.path} isn't in this vault`);
    return;
  }
  const { lines, fragment } = target;
  if (!lines && fragment) return app.workspace.openLinkText(`${file.path}#${fragment}`, "", where === "tab");
  const leaf = app.workspace.getLeaf(where === "tab" ? "tab" : false);
  await leaf.openFile(file, lines ? { eState: { line: lines[0] - 1 } } : {});
  if (lines) markLines(leaf, lines);
}

/** Select the lines in the editor, so that one sees where they end. */
function markLines(leaf: WorkspaceLeaf, [first, last]: readonly [number, number]): void {
  leaf.setEphemeralState({ line: first - 1 });
  const { editor } = leaf.view as { editor?: { lineCount(): number; getLine(line: number): string; setSelection(from: object, to: object): void } };
  if (!editor) return;
  const end = Math.min(last, editor.lineCount()) - 1;
  if (end < first - 1) return;
  editor.setSelection({ line: first - 1, ch: 0 }, { line: end, ch: editor.getLine(end).length });
}
