/** The same cards in reading view: below the part of the note that they are about. */

import type { MarkdownPostProcessorContext } from "obsidian";
import { type CardActions, cardId, drawCard } from "./card";
import type KnapperPlugin from "./main";
import type { Marks } from "./marks";
import type { Hunk } from "./waiting";

/** Add the cards to what Obsidian renders. */
export function registerReading(plugin: KnapperPlugin, marks: Marks): void {
  plugin.registerMarkdownPostProcessor((element, context) => {
    if (element.closest(".cm-editor")) return;
    const hunks = marks.cardsOf(context.sourcePath);
    if (!hunks.length) return;
    const own = hunksOfSection(hunks, element, context);
    for (const hunk of own) {
      const fit = hunk.stale ? "lost" : "fits";
      element.append(drawCard(hunk, { fit, current: hunk.stale?.current_text ?? "" }, actions(plugin)));
    }
  }, 1_000);
}

function hunksOfSection(hunks: readonly Hunk[], element: HTMLElement, context: MarkdownPostProcessorContext): Hunk[] {
  const section = context.getSectionInfo(element);
  if (!section) return [];
  const lines = section.text.split("\n");
  const first = section.lineStart === 0 || isBlank(lines, 0, section.lineStart) ? 1 : section.lineStart + 1;
  let last = section.lineEnd + 1;
  while (last < lines.length && !lines[last]?.trim()) last++;
  return hunks.filter((hunk) => {
    const line = hunk.stale?.line ?? hunk.line;
    return line >= first && (line <= last || (last >= lines.length && line > last));
  });
}

function isBlank(lines: readonly string[], from: number, to: number): boolean {
  return lines.slice(from, to).every((line) => !line.trim());
}

function actions(plugin: KnapperPlugin): CardActions {
  return {
    decide: async (verb, hunk, extent) => {
      await plugin.decisions.decide(verb, hunk, extent);
      plugin.rerenderReading(hunk.path);
    },
    edit: async (hunk, text) => {
      const isDone = await plugin.decisions.edit(hunk, text);
      if (isDone) plugin.rerenderReading(hunk.path);
      return isDone;
    },
    leave: (hunk, to) => {
      const { activeElement } = activeDocument; // of the window that has the focus, which may be a popout
      const cards = [...activeDocument.querySelectorAll<HTMLElement>(".markdown-reading-view .knapper-card")];
      const at = cards.findIndex((card) => card.dataset["hunk"] === cardId(hunk));
      if (to === "text" || at < 0) (activeElement as HTMLElement | null)?.blur();
      else cards[(at + (to === "next" ? 1 : cards.length - 1)) % cards.length]?.focus();
    },
  };
}
