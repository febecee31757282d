/** Pending edits that stand in a note as fenced blocks: `ai-edit`, and `ai-new-note` for whole notes. */

import { MarkdownRenderChild, Notice, TFile } from "obsidian";
import { render } from "preact";
import { HostContext } from "../../ui/parts/host";
import { Markdown } from "../../ui/parts/markdown/markdown";
import { button } from "./card";
import type KnapperPlugin from "./main";

export interface EditBlock {
  id: string;
  type: "replace" | "add" | "delete";
  before: string;
  after: string;
}

const BADGES = { add: "[+] Add", delete: "[-] Delete", replace: "[~] Replace" } as const;

/** Read what stands between the fences; undefined where it isn't such a block. */
export function parseBlock(source: string): EditBlock | undefined {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    return undefined;
  }
  if (value === null || typeof value !== "object") return undefined;
  const { id, type, before = "", after = "" } = value as Record<string, unknown>;
  if (typeof id !== "string" || !id || typeof before !== "string" || typeof after !== "string") return undefined;
  if (type !== "replace" && type !== "add" && type !== "delete") return undefined;
  return { id, type, before, after };
}

const BLOCK = /^(`{3,})ai-edit[ \t]*\n([^]*?)\n\1`*[ \t]*$(?:\n#ai_edit[ \t]*$)?\n?/gm;

/** Where the blocks of a text stand, by their ids: whole lines, with the tag's. */
export function findBlocks(text: string): Map<string, { from: number; to: number }> {
  const found = new Map<string, { from: number; to: number }>();
  for (const { 0: whole, 2: source = "", index } of text.matchAll(BLOCK)) {
    const block = parseBlock(source);
    if (block) found.set(block.id, { from: index, to: index + whole.length });
  }
  return found;
}

const BANNER = /^`{3,}ai-new-note[ \t]*\r?\n(?:.*\r?\n)*?`{3,}[ \t]*(?:\r?\n|$)(?:#ai_edit[ \t]*(?:\r?\n|$))?(?:[ \t]*\r?\n)?/m;

/** A note without its first banner; undefined where it has none. */
export function withoutBanner(text: string): string | undefined {
  const match = BANNER.exec(text);
  return match ? text.slice(0, match.index) + text.slice(match.index + match[0].length) : undefined;
}

/** Show the blocks as widgets, in reading view and live preview. */
export function registerBlocks(plugin: KnapperPlugin): void {
  plugin.registerMarkdownCodeBlockProcessor("ai-edit", (source, element, context) => {
    const block = parseBlock(source);
    if (!block) {
      element.createDiv({ cls: "ai-edit-widget ai-edit-error", text: "Invalid edit block" });
      return;
    }
    const child = new MarkdownRenderChild(element);
    context.addChild(child);
    drawBlock(plugin, block, element, context.sourcePath, child);
  });
  plugin.registerMarkdownCodeBlockProcessor("ai-new-note", (source, element, context) => {
    const root = element.createDiv({ cls: "knapper ai-edit-widget" });
    root.createSpan({ cls: "ai-edit-type-badge ai-edit-badge-add", text: "[+] New note" });
    if (source.trim()) root.createDiv({ cls: "ai-edit-after", text: source.trim() });
    const bar = root.createDiv({ cls: "ai-edit-actions" });
    button(bar, "Accept", "mod-cta ai-edit-accept", () => void keepNote(plugin, context.sourcePath));
    button(bar, "Reject", "ai-edit-reject", () => void trashNote(plugin, context.sourcePath));
  });
}

/** Both texts are drawn as answers are: before anybody has accepted it, nothing that an agent wrote is loaded or run. */
function drawBlock(plugin: KnapperPlugin, block: EditBlock, element: HTMLElement, path: string, child: MarkdownRenderChild): void {
  const root = element.createDiv({ cls: "knapper ai-edit-widget" });
  root.setAttr("role", "group");
  root.setAttr("aria-label", `Pending edit ${block.id}`);
  root.createSpan({ cls: `ai-edit-type-badge ai-edit-badge-${block.type}`, text: BADGES[block.type] });
  const sides = [
    ["ai-edit-before", block.before, block.type !== "add"],
    ["ai-edit-after", block.after, block.type !== "delete"],
  ] as const;
  for (const [cls, text, isShown] of sides) {
    if (!isShown) continue;
    const into = root.createDiv({ cls });
    render(
      <HostContext.Provider value={plugin.host}>
        <Markdown text={text} path={path} />
      </HostContext.Provider>,
      into,
    );
    child.register(() => render(null, into));
  }
  const bar = root.createDiv({ cls: "ai-edit-actions" });
  button(bar, "Accept", "mod-cta ai-edit-accept", () => void plugin.decisions.decideBlock("accept", path, block.id));
  button(bar, "Reject", "ai-edit-reject", () => void plugin.decisions.decideBlock("reject", path, block.id));
}

async function keepNote(plugin: KnapperPlugin, path: string): Promise<void> {
  const file = plugin.app.vault.getAbstractFileByPath(path);
  if (!(file instanceof TFile)) return;
  await plugin.editors.around([path], () => plugin.app.vault.process(file, (text) => withoutBanner(text) ?? text));
  new Notice("Note kept");
}

async function trashNote(plugin: KnapperPlugin, path: string): Promise<void> {
  const file = plugin.app.vault.getAbstractFileByPath(path);
  if (!(file instanceof TFile)) return;
  await plugin.app.fileManager.trashFile(file);
  new Notice("Note moved to the trash");
}
