/** What Obsidian drags: its lists name the files themselves, beside the text that other programs see. */

import { type App, TFile } from "obsidian";

interface Dragged {
  file?: unknown;
  files?: unknown;
}

/** The notes that are being dragged; none where something else is. */
export function noteFiles(app: App): string[] {
  const { draggable } = (app as unknown as { dragManager?: { draggable?: Dragged | null } }).dragManager ?? {};
  const found: unknown[] = Array.isArray(draggable?.files) ? draggable.files : [draggable?.file];
  return found.filter((file) => file instanceof TFile).map((file) => file.path);
}
