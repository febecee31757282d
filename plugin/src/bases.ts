/** What waits for the notes of a base, as one of its views: Bases chooses, sorts and groups the notes. */

import { BasesView, type QueryController, type TFile } from "obsidian";
import { button } from "./card";
import { openNote } from "./editors";
import type KnapperPlugin from "./main";
import type { Hunk } from "./waiting";

export const BASES_VIEW = "knapper-pending";

/** Offer the view in Bases' list of layouts; where Bases is switched off, Obsidian takes no notice. */
export function registerBases(plugin: KnapperPlugin): void {
  plugin.registerBasesView(BASES_VIEW, { name: "Pending edits", icon: "file-check-2", factory: (controller, into) => new PendingBase(controller, into, plugin) });
}

class PendingBase extends BasesView {
  readonly type = BASES_VIEW;
  private readonly root: HTMLElement;

  constructor(
    controller: QueryController,
    into: HTMLElement,
    private readonly plugin: KnapperPlugin,
  ) {
    super(controller);
    this.root = into.createDiv({ cls: "knapper knapper-panel knapper-base" });
  }

  override onload(): void {
    this.register(this.plugin.waiting.on(() => this.onDataUpdated()));
    this.register(() => this.root.remove());
  }

  onDataUpdated(): void {
    const { root } = this;
    // The list is drawn anew as a whole; whoever was on a button of it stays there.
    const active = root.ownerDocument.activeElement;
    const at = active && root.contains(active) ? [...root.querySelectorAll("button")].indexOf(active as HTMLButtonElement) : -1;
    root.empty();
    const byPath = new Map<string, Hunk[]>();
    for (const hunk of this.plugin.waiting.allHunks()) byPath.set(hunk.path, [...(byPath.get(hunk.path) ?? []), hunk]);
    // What waits may be told before Bases has asked its query.
    for (const group of (this.data as typeof this.data | undefined)?.groupedData ?? []) {
      const files = group.entries.map((entry) => entry.file).filter((file) => byPath.has(file.path));
      if (files.length && group.hasKey()) root.createDiv({ cls: "knapper-base-group", text: String(group.key), attr: { role: "heading", "aria-level": "3" } });
      for (const file of files) this.drawNote(file, byPath.get(file.path) ?? []);
    }
    if (!root.childElementCount) root.createDiv({ cls: "knapper-empty", text: "No changes are waiting in the notes of this base." });
    if (at >= 0) root.querySelectorAll("button")[at]?.focus();
  }

  private drawNote(file: TFile, hunks: readonly Hunk[]): void {
    const { decisions } = this.plugin;
    const root = this.root.createDiv({ cls: "knapper-row", attr: { role: "group", "aria-label": `Pending edits of ${file.path}` } });
    const line = root.createDiv({ cls: "knapper-file" });
    button(line, file.path, "knapper-link", () => void openNote(this.app, file, hunks[0]?.line));
    const clients = [...new Set(hunks.map((hunk) => hunk.client))].join(", ");
    line.createSpan({ cls: "knapper-label", text: `${hunks.length} ${hunks.length === 1 ? "place" : "places"}, by ${clients}` });
    for (const reason of new Set(hunks.map((hunk) => hunk.reason))) if (reason) root.createDiv({ cls: "knapper-row-text", text: reason });
    const bar = root.createDiv({ cls: "knapper-card-buttons" });
    button(bar, "Accept all", "mod-cta", () => void decisions.accept(file.path, hunks));
    button(bar, "Reject all", "", () => void decisions.reject(hunks));
  }
}
