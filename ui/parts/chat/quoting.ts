/** What somebody has selected in an answer or a note, to go with the next message. */

import { noteLink, type Attachment } from "./message";

const MAX_CHARS = 20_000;

/** Read the selection where it lies in a text that may be quoted; null where it doesn't. */
export function selectedText(selection: Selection | null): Attachment | null {
  const text = selection?.toString().trim() ?? "";
  if (!selection || selection.isCollapsed || !text || text.length > MAX_CHARS) return null;
  const [from, to] = [elementOf(selection.anchorNode), elementOf(selection.focusNode)];
  const place = from?.closest<HTMLElement>("[data-quotable]");
  if (!place || !to || !place.contains(to)) return null;
  const note = place.dataset["note"];
  const lines = note ? linesBetween(from, to) : "";
  return { kind: "selection", name: note ? `${noteLink(note)}${lines}` : "from an answer", text };
}

function elementOf(node: Node | null): Element | null {
  return node instanceof Element ? node : (node?.parentElement ?? null);
}

function linesBetween(one: Element | null, other: Element | null): string {
  const blocks = [one, other].map((node) => node?.closest<HTMLElement>("[data-line]"));
  const first = Math.min(...blocks.map((block) => Number(block?.dataset["line"] ?? Number.NaN)));
  const last = Math.max(...blocks.map((block) => Number(block?.dataset["lineEnd"] ?? Number.NaN)));
  return Number.isFinite(first) && Number.isFinite(last) ? ` (lines ${first}-${last})` : "";
}
