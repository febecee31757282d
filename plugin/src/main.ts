/** What the app loads: it only puts the parts together, and takes everything away again when the plugin is unloaded. */

import { type Signal, signal } from "@preact/signals";
import { Notice, Plugin, type WorkspaceLeaf } from "obsidian";
import type { Keep } from "../../ui/parts/chat/spending";
import { registerBases } from "./bases";
import { registerBlocks } from "./blocks";
import { CHAT_VIEW, type ChatOrder, ChatView } from "./chat";
import { addCommands } from "./commands";
import { Connection, describeState } from "./connection";
import { Decisions } from "./decisions";
import { HOVER_SOURCE } from "./drawn";
import { Editors, openNotes, textsField } from "./editors";
import { AppHost } from "./host";
import { Marks } from "./marks";
import { registerOutside } from "./outside";
import { PairDialog } from "./pairing";
import { REVIEW_VIEW, ReviewView } from "./panel";
import { registerReading } from "./reading";
import { RUNS_VIEW, RunsView } from "./runs";
import { SEARCH_VIEW, SearchView } from "./search";
import { KnapperSettingTab, type PluginSettings, readSettings } from "./settings";
import { Waiting } from "./waiting";

export default class KnapperPlugin extends Plugin {
  declare settings: PluginSettings;
  connection!: Connection;
  waiting!: Waiting;
  editors!: Editors;
  decisions!: Decisions;
  /** What the parts that the page has too are drawn in. */
  host!: AppHost;
  /** The settings, for what is drawn and changes with them. */
  shown!: Signal<PluginSettings>;
  /** The note that an agent opened last: the conversation in which it did stays in view. */
  navigated = "";
  /** Keeps words on this device, and not in the synced settings. */
  readonly keep: Keep = {
    load: (name) => {
      const kept: unknown = this.app.loadLocalStorage(`knapper-${name}`);
      return typeof kept === "string" ? kept : "";
    },
    save: (name, text) => this.app.saveLocalStorage(`knapper-${name}`, text || null),
  };
  private marks!: Marks;
  private status: HTMLElement | null = null;

  override async onload(): Promise<void> {
    this.settings = readSettings(await this.loadData());
    this.shown = signal(this.settings);
    this.connection = new Connection(this.app);
    this.host = new AppHost(this);
    this.waiting = new Waiting(this.connection);
    this.editors = this.addChild(new Editors(this.app));
    this.decisions = new Decisions(this.editors, this.connection, this.waiting);
    const marks = new Marks(this);
    this.marks = marks;
    this.addChild(marks);
    this.registerEditorExtension([textsField, marks.extension]);
    registerReading(this, marks);
    registerBlocks(this);
    registerBases(this);
    this.registerView(REVIEW_VIEW, (leaf) => new ReviewView(leaf, this));
    this.registerView(CHAT_VIEW, (leaf) => new ChatView(leaf, this));
    this.registerView(RUNS_VIEW, (leaf) => new RunsView(leaf, this));
    this.registerView(SEARCH_VIEW, (leaf) => new SearchView(leaf, this));
    this.registerHoverLinkSource(HOVER_SOURCE, { display: "Knapper", defaultMod: true });
    this.addRibbonIcon("messages-square", "Open vault chat", () => void this.toggleChat());
    this.addRibbonIcon("file-check-2", "Show pending edits", () => void this.openReview());
    addCommands(this, marks);
    this.addSettingTab(new KnapperSettingTab(this));
    registerOutside(this);
    this.register(this.connection.on("news", (event) => this.waiting.take(event)));
    this.register(this.connection.on("state", (state) => this.onState(state.kind)));
    this.register(this.waiting.on(() => this.showStatus()));
    this.register(() => this.connection.stop());
    this.registerEvent(this.app.workspace.on("active-leaf-change", () => this.showStatus()));
    this.status = this.addStatusBarItem();
    this.status.addClass("mod-clickable");
    this.registerDomEvent(this.status, "click", () => void this.openReview());
    this.app.workspace.onLayoutReady(() => this.connection.start());
    this.showStatus();
  }

  /** Another device has changed the settings, which are synced. */
  override async onExternalSettingsChange(): Promise<void> {
    this.settings = readSettings(await this.loadData());
    this.applySettings();
  }

  async saveSettings(): Promise<void> {
    await this.saveData(this.settings);
    this.applySettings();
  }

  private applySettings(): void {
    this.shown.value = this.settings;
    this.marks.redraw();
    this.rerenderReading();
  }

  /** Take up in open views what was changed in the server's settings. */
  onServerSettings(): void {
    for (const { view } of this.app.workspace.getLeavesOfType(CHAT_VIEW)) if (view instanceof ChatView) view.reloadDefaults();
  }

  /** Open the chat in the right sidebar, or show it where it is open; there is one. */
  async openChat(order: ChatOrder = {}): Promise<void> {
    const { view } = await this.side(CHAT_VIEW);
    if (view instanceof ChatView) await view.take(order);
  }

  /** Open the chat, or close it where it is open. */
  private async toggleChat(): Promise<void> {
    const open = this.app.workspace.getLeavesOfType(CHAT_VIEW);
    if (!open.length) return this.openChat();
    for (const leaf of open) leaf.detach();
  }

  private async side(type: string): Promise<WorkspaceLeaf> {
    const leaf = await this.app.workspace.ensureSideLeaf(type, "right", { active: true, reveal: true });
    await leaf.loadIfDeferred(); // one that was open at the start is empty until it is shown
    return leaf;
  }

  /** Ask for a server's address and code. */
  connect(): void {
    new PairDialog(this, { address: this.connection.pairing?.address ?? "", code: "" }).open();
  }

  /** Show the plugin's tab in Obsidian's settings. */
  openSettings(): void {
    const { setting } = this.app as unknown as { setting?: { open(): void; openTabById(id: string): void } };
    setting?.open();
    setting?.openTabById(this.manifest.id);
  }

  /** Show a proposal: in its note where it is about one, else in the panel of all that waits. */
  async showProposal(id: string): Promise<void> {
    await this.waiting.load(id);
    const [file, ...others] = this.waiting.proposals.get(id)?.files.filter((one) => one.state === "open") ?? [];
    const hunk = file?.hunks.find((one) => one.state === "open");
    if (file?.kind === "edit" && hunk && !others.length) this.host.open({ kind: "note", path: file.path, lines: [hunk.line, hunk.line] });
    else await this.openReview("waiting");
  }

  /** Open the runs, at one of them where it is named, or at the form for a new one. */
  async openRun(id = "", part = "", isNew = false): Promise<void> {
    const { view } = await this.side(RUNS_VIEW);
    if (!(view instanceof RunsView)) return;
    if (id) view.openRun(id, part);
    else if (isNew) view.begin();
  }

  async openSearch(query = "", tab: "search" | "related" | "links" = "search"): Promise<void> {
    const { view } = await this.side(SEARCH_VIEW);
    if (view instanceof SearchView) view.take(tab, query);
  }

  /** Open the panel of all that waits, or the one of what was changed. */
  async openReview(tab?: "waiting" | "changes"): Promise<void> {
    const { view } = await this.side(REVIEW_VIEW);
    if (tab && view instanceof ReviewView) view.show(tab);
  }

  private lastKind = "";

  private onState(kind: string): void {
    if (kind === "unpaired" || kind === "revoked" || kind === "other_vault") this.waiting.clear();
    if (kind !== this.lastKind && (kind === "revoked" || kind === "other_vault")) new Notice(describeState(this.connection.state), 10_000);
    this.lastKind = kind;
    this.showStatus();
  }

  private showStatus(): void {
    if (!this.status) return;
    const { state } = this.connection;
    const active = this.app.workspace.getActiveFile()?.path;
    const here = active ? this.waiting.hunksOf(active).length : 0;
    const all = this.waiting.count;
    const words = {
      unpaired: "Knapper: not connected",
      connecting: "Knapper: connecting",
      ready: all ? `${here} here, ${all} pending` : "Nothing pending",
      offline: "Knapper: not reachable",
      revoked: "Knapper: pair again",
      other_vault: "Knapper: other vault",
      failed: "Knapper: refused",
    }[state.kind];
    this.status.setText(words);
    this.status.setAttr("aria-label", `${describeState(state)} Click to show pending edits.`);
    this.status.toggleClass("knapper-status-waits", state.kind === "ready" && all > 0);
  }

  /** Draw reading views of a note anew. */
  rerenderReading(path?: string): void {
    for (const view of openNotes(this.app)) {
      if (view.getMode() === "preview" && (path === undefined || view.file?.path === path)) view.previewMode.rerender(true);
    }
  }
}
