/** All notes that go with the next message, by where they come from. */

import { Modal, TFile } from "obsidian";
import { count, noteName, tokens } from "../../ui/parts/format";
import type { Gathered } from "../../ui/parts/chat/chat";
import type { ScopedNote } from "../../ui/parts/chat/turn";
import { button } from "./card";
import type KnapperPlugin from "./main";

const GROUPS = { current: "Current", linked: "Linked", folder: "Same folder", semantic: "Semantic matches", manual: "Manually added" } as const;
type Source = keyof typeof GROUPS;
const MAX_ALIASES = 2;
const MAX_DESCRIPTION = 60;

/** The first of a note's sources, in the order of the groups. */
function groupOf({ sources }: ScopedNote): Source {
  return (Object.keys(GROUPS) as Source[]).find((source) => sources.includes(source)) ?? "semantic";
}

/** Its aliases and its description, as its properties say them. */
export function describeNote(properties: Readonly<Record<string, unknown>> | undefined): string {
  const given: unknown[] = [properties?.["aliases"] ?? properties?.["alias"] ?? []].flat();
  const aliases = given.filter((one): one is string => typeof one === "string" && one !== "").slice(0, MAX_ALIASES);
  const about = properties?.["description"];
  const text = typeof about === "string" ? about.trim() : "";
  return [aliases.join(", "), text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION)}…` : text].filter(Boolean).join(" · ");
}

export class ContextDialog extends Modal {
  constructor(
    private readonly plugin: KnapperPlugin,
    private readonly gathered: Gathered,
  ) {
    super(plugin.app);
    this.setTitle("Context notes");
  }

  override onOpen(): void {
    this.contentEl.addClass("knapper", "knapper-context-notes");
    const { notes, removed, tokens: size } = this.gathered;
    for (const source of Object.keys(GROUPS) as Source[]) this.drawGroup(GROUPS[source], notes.filter((note) => groupOf(note) === source));
    this.drawGroup("Left out by a limit", removed);
    this.contentEl.createDiv({ cls: "knapper-label", text: `${count(notes.length, "note")} · ~${tokens(size)} tokens` });
  }

  override onClose(): void {
    this.contentEl.empty();
  }

  private drawGroup(title: string, notes: readonly ScopedNote[]): void {
    if (!notes.length) return;
    this.contentEl.createEl("h3", { text: title === GROUPS.current ? title : `${title} (${notes.length.toLocaleString()})` });
    const list = this.contentEl.createEl("ul", { attr: { "aria-label": title } });
    for (const note of notes) this.drawNote(list.createEl("li"), note);
  }

  private drawNote(row: HTMLElement, { path, score }: ScopedNote): void {
    const { app, host } = this.plugin;
    const open = button(row, noteName(path), "knapper-link", () => {
      this.close();
      host.open({ kind: "note", path });
    });
    open.setAttr("title", path);
    if (score !== null) row.createSpan({ cls: "knapper-label", text: `${Math.round(100 * score)} %` });
    const file = app.vault.getAbstractFileByPath(path);
    const about = file instanceof TFile ? describeNote(app.metadataCache.getFileCache(file)?.frontmatter) : "";
    if (about) row.createDiv({ cls: "knapper-label", text: about });
  }
}
