/** What the app loads: it only puts the parts together, and takes everything away again when the plugin is unloaded. */

import { Notice, Plugin } from "obsidian";
import { registerBlocks } from "./blocks";
import { addCommands } from "./commands";
import { Connection, describeState } from "./connection";
import { Decisions, openNotes } from "./decisions";
import { Marks } from "./marks";
import { PairDialog } from "./pairing";
import { REVIEW_VIEW, ReviewView } from "./panel";
import { registerReading } from "./reading";
import { DEFAULTS, KnapperSettingTab, type PluginSettings } from "./settings";
import { Waiting } from "./waiting";

export default class KnapperPlugin extends Plugin {
  declare settings: PluginSettings;
  connection!: Connection;
  waiting!: Waiting;
  decisions!: Decisions;
  private status: HTMLElement | null = null;

  override async onload(): Promise<void> {
    this.settings = { ...DEFAULTS, ...((await this.loadData()) as Partial<PluginSettings> | null) };
    this.connection = new Connection(this.app);
    this.waiting = new Waiting(this.connection);
    this.decisions = new Decisions(this.app, this.connection, this.waiting);
    const marks = new Marks(this);
    this.addChild(marks);
    this.registerEditorExtension(marks.extension);
    registerReading(this);
    registerBlocks(this);
    this.registerView(REVIEW_VIEW, (leaf) => new ReviewView(leaf, this));
    this.addRibbonIcon("file-check-2", "Show pending edits", () => void this.openReview());
    addCommands(this, marks);
    this.addSettingTab(new KnapperSettingTab(this));
    this.registerObsidianProtocolHandler("knapper", (said) => {
      new PairDialog(this, { address: said["address"] ?? "", code: said["code"] ?? "" }).open();
    });
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

  async saveSettings(): Promise<void> {
    await this.saveData(this.settings);
    this.waiting.clear();
    this.connection.start();
  }

  /** Open the panel of all that waits, or the one of what was changed. */
  async openReview(tab?: "waiting" | "changes"): Promise<void> {
    const leaf = await this.app.workspace.ensureSideLeaf(REVIEW_VIEW, "right", { active: true, reveal: true });
    if (tab && leaf.view instanceof ReviewView) leaf.view.show(tab);
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
