/** Keyboard shortcuts: one registry, which knows them all for the sheet of keys. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { isMac, Keys } from "./basic";

export interface Shortcut {
  /** Such as `mod+k`, `?`, `j`, or one after the other: `g s`. */
  keys: string;
  /** What it does, in a few words. */
  title: string;
  /** The heading that it stands below in the sheet, such as `Review`. */
  group: string;
  run: (event: KeyboardEvent) => void;
  /** Whether it holds now; always where it is left out. */
  when?: () => boolean;
  /** Whether it holds while somebody writes; those with `mod` do. */
  inFields?: boolean;
  /** Whether its view is the open one, which alone the sheet shows; left out by those that hold in all views. */
  isHere?: () => boolean;
  /** Stands in the sheet for keys that a component handles itself. */
  isShownOnly?: boolean;
}

const SEQUENCE_MS = 1_000;

export class Shortcuts {
  readonly all: Signal<readonly Shortcut[]> = signal([]);
  private before = "";
  private beforeAt = 0;

  /** Register shortcuts; gives what takes them away again. A later one wins over an earlier one of the same keys. */
  register(shortcuts: readonly Shortcut[]): () => void {
    this.all.value = [...this.all.value, ...shortcuts];
    return () => {
      this.all.value = this.all.value.filter((shortcut) => !shortcuts.includes(shortcut));
    };
  }

  /** Take a key; gives whether a shortcut was run. */
  take(event: KeyboardEvent, now: number = Date.now()): boolean {
    if (event.defaultPrevented || event.isComposing || ["Control", "Shift", "Alt", "Meta"].includes(event.key)) return false;
    const pressed = nameOf(event);
    const sequence = this.before && now - this.beforeAt < SEQUENCE_MS ? `${this.before} ${pressed}` : "";
    const writes = isField(event.target);
    const fits = (shortcut: Shortcut, keys: string) =>
      keys !== "" &&
      shortcut.keys === keys &&
      !shortcut.isShownOnly &&
      (!writes || (shortcut.inFields ?? shortcut.keys.startsWith("mod+"))) &&
      (shortcut.when?.() ?? true);
    const found = this.all.value.findLast((shortcut) => fits(shortcut, sequence)) ?? this.all.value.findLast((shortcut) => fits(shortcut, pressed));
    [this.before, this.beforeAt] = found || writes ? ["", 0] : [pressed, now];
    if (!found) return false;
    event.preventDefault();
    found.run(event);
    return true;
  }

  /** Listen to a window or an element; gives what ends it. */
  listen(target: EventTarget): () => void {
    const take = (event: Event) => void this.take(event as KeyboardEvent);
    target.addEventListener("keydown", take);
    return () => target.removeEventListener("keydown", take);
  }
}

function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key.toLowerCase();
  const isMod = isMac ? event.metaKey : event.ctrlKey;
  const shift = event.shiftKey && (event.key.length > 1 || /\p{L}/u.test(event.key)); // a sign such as ? has it already
  return [isMod && "mod", event.altKey && "alt", (shift || (isMod && event.shiftKey)) && "shift", key].filter(Boolean).join("+");
}

/** Where keys write. */
const FIELDS = 'textarea, select, input:not([type="checkbox"], [type="radio"], [type="button"], [type="submit"], [type="range"])';

function isField(target: EventTarget | null): boolean {
  const node = target as Partial<HTMLElement> | null;
  return (node?.isContentEditable ?? false) || (node?.matches?.(FIELDS) ?? false);
}

/** All keys of the view that is open, by their groups. */
export function KeySheet({ shortcuts }: { shortcuts: Shortcuts }): JSX.Element {
  const shown = shortcuts.all.value.filter((shortcut) => shortcut.isHere?.() ?? true);
  const groups = [...new Set(shown.map((shortcut) => shortcut.group))];
  return (
    <div class="k-keys">
      {groups.map((group) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl>
            {shown
              .filter((shortcut) => shortcut.group === group)
              .map((shortcut) => (
                <div key={shortcut.keys + shortcut.title}>
                  <dt>{shortcut.title}</dt>
                  <dd>
                    <Keys keys={shortcut.keys} />
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </div>
  );
}
