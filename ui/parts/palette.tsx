/** The command palette: a box, and whatever the providers find for what is written in it. */

import { batch, signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, Keys, type IconName } from "./basic";
import { Modal } from "./floating";

export interface PaletteItem {
  id: string;
  title: string;
  icon?: IconName;
  /** One line that says more. */
  detail?: string;
  keys?: string;
  run: () => void;
}

export interface PaletteProvider {
  id: string;
  /** The heading of what it finds. */
  title: string;
  /** How many of its items are shown at most; 6 where it is left out. */
  limit?: number;
  /** Where it stands among the others, the smallest first; 0 where it is left out. Those of one rank stand as they were registered. */
  rank?: number;
  /** Finds what fits, best first; with an empty query, what is worth offering. Asked at each key: one that asks the server waits a breath first. */
  find: (query: string, signal: AbortSignal) => readonly PaletteItem[] | Promise<readonly PaletteItem[]>;
}

interface Group {
  provider: PaletteProvider;
  items: readonly PaletteItem[];
}

/** Which providers there are, and whether the palette is open. */
export class Palette {
  readonly isOpen: Signal<boolean> = signal(false);
  readonly query: Signal<string> = signal("");
  readonly groups: Signal<readonly Group[]> = signal([]);
  readonly active: Signal<number> = signal(0);
  private providers: PaletteProvider[] = [];
  private asking: AbortController | null = null;

  /** Called when the palette opens, such as to load the views whose providers aren't there yet. */
  onOpen: () => void = () => undefined;

  /** Register providers; what they find is shown by their rank. Gives what takes them away again. */
  register(...providers: PaletteProvider[]): () => void {
    this.providers = [...this.providers, ...providers].sort((one, other) => (one.rank ?? 0) - (other.rank ?? 0));
    if (this.isOpen.value) this.ask(this.query.value);
    return () => {
      this.providers = this.providers.filter((provider) => !providers.includes(provider));
    };
  }

  open(query = ""): void {
    this.isOpen.value = true;
    this.onOpen();
    this.ask(query);
  }

  close(): void {
    this.asking?.abort();
    this.isOpen.value = false;
    this.groups.value = [];
  }

  /** Ask all providers; each one's items appear as soon as they are there, those of the last question until then. */
  ask(query: string): void {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    batch(() => {
      this.query.value = query;
      this.active.value = 0;
    });
    const order = [...this.providers];
    for (const provider of order) void this.askOne(provider, query, asking.signal, order);
  }

  get items(): readonly PaletteItem[] {
    return this.groups.value.flatMap((group) => group.items);
  }

  run(index: number): void {
    const item = this.items[index];
    if (!item) return;
    this.close();
    item.run();
  }

  private async askOne(provider: PaletteProvider, query: string, signal: AbortSignal, order: readonly PaletteProvider[]): Promise<void> {
    let items: readonly PaletteItem[] = [];
    try {
      const found = provider.find(query, signal);
      const given = found instanceof Promise ? await found : found; // what is known at once is shown at once
      items = given.slice(0, provider.limit ?? 6);
    } catch {
      // A provider that fails finds nothing; the others go on.
    }
    if (signal.aborted) return;
    const others = this.groups.value.filter((group) => group.provider !== provider && order.includes(group.provider));
    const groups = items.length ? [...others, { provider, items }] : others;
    const chosen = this.items[this.active.value]?.id;
    this.groups.value = groups.sort((one, other) => order.indexOf(one.provider) - order.indexOf(other.provider));
    // What came later may stand above what Enter would take: that stays.
    const at = this.active.value && this.items.findIndex((item) => item.id === chosen);
    this.active.value = at > 0 ? at : Math.min(this.active.value, Math.max(0, this.items.length - 1));
  }
}

/** How well a text fits a query: its letters in order, better where they begin words; 0 where it doesn't. */
export function fit(query: string, text: string): number {
  const wanted = query.toLowerCase().replace(/\s+/g, "");
  const given = text.toLowerCase();
  if (!wanted) return 1;
  const whole = given.indexOf(query.toLowerCase().trim());
  if (whole >= 0) return 1_000 - Math.min(whole, 500) - given.length / 1_000;
  let at = -1;
  let score = 100;
  for (const letter of wanted) {
    const next = given.indexOf(letter, at + 1);
    if (next < 0) return 0;
    if (next !== at + 1 && !/[\s/_.-]/.test(given[next - 1] ?? " ")) score -= 2;
    at = next;
  }
  return Math.max(1, score - given.length / 100);
}

/** Items whose title fits a query, best first. */
export function fitting(items: readonly PaletteItem[], query: string): PaletteItem[] {
  return items
    .map((item) => ({ item, score: Math.max(fit(query, item.title), fit(query, item.detail ?? "") / 2) }))
    .filter(({ score }) => score >= 1)
    .sort((one, other) => (query ? other.score - one.score : 0))
    .map(({ item }) => item);
}

/** Draw the palette while it is open. */
export function PaletteDialog({ palette }: { palette: Palette }): JSX.Element | null {
  return palette.isOpen.value ? <OpenPalette palette={palette} /> : null;
}

function OpenPalette({ palette }: { palette: Palette }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const items = palette.items;
  const active = palette.active.value;
  useEffect(() => input.current?.focus(), []);
  useEffect(() => document.getElementById(`k-palette-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: active + 1, ArrowUp: active - 1 };
    const step = steps[event.key];
    if (step !== undefined && items.length) palette.active.value = (step + items.length) % items.length;
    else if (event.key === "Enter") palette.run(active);
    else return;
    event.preventDefault();
  };

  let index = -1;
  return (
    <Modal class="k-palette" onClose={() => palette.close()}>
      <div class="k-palette-box">
        <Icon name="search" size={20} />
        <input
          ref={input}
          role="combobox"
          aria-label="Find notes, conversations and commands"
          aria-expanded="true"
          aria-controls="k-palette-list"
          aria-activedescendant={items.length ? `k-palette-${active}` : undefined}
          placeholder="Find notes, conversations and commands"
          autocomplete="off"
          spellcheck={false}
          value={palette.query.value}
          onInput={(event) => palette.ask(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div class="k-palette-list" id="k-palette-list" role="listbox" aria-label="Found">
        {palette.groups.value.map((group) => (
          <div key={group.provider.id} role="group" aria-label={group.provider.title}>
            <div class="k-group" aria-hidden="true">
              {group.provider.title}
            </div>
            {group.items.map((item) => {
              index += 1;
              const own = index;
              return (
                <div
                  key={item.id}
                  id={`k-palette-${own}`}
                  class="k-palette-item"
                  role="option"
                  aria-selected={own === active}
                  onMouseMove={() => (palette.active.value = own)}
                  onClick={() => palette.run(own)}
                >
                  <Icon name={item.icon ?? "chevron-right"} />
                  <span class="k-cut">{item.title}</span>
                  <span class="k-row-detail k-cut">{item.detail}</span>
                  {item.keys && (
                    <span class="k-row-keys">
                      <Keys keys={item.keys} />
                    </span>
                  )}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {!items.length && palette.query.value && <p class="k-empty k-quiet">No results for “{palette.query.value}”.</p>}
      <div class="k-palette-foot" aria-hidden="true">
        <span>
          <Keys keys="arrowup arrowdown" /> choose
        </span>
        <span>
          <Keys keys="enter" /> open
        </span>
        <span>
          <Keys keys="escape" /> close
        </span>
      </div>
    </Modal>
  );
}
