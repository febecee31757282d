/** The journal of a vault: its changes in the last days, what each did, and undoing them. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Client } from "../../client";
import { resource, type Resource } from "../resource";
import { dayOf, fitsFilter, lastDays, plotOf, turned, type Change, type JournalFilter, type Plot } from "./model";

const PAGE = 200;
const MOST_CHANGES = 2_000;
const BREATH_MS = 200;

export const RANGES = [7, 14, 30, 90] as const;
export type Range = (typeof RANGES)[number];

/** A file of a change with how its text changed. */
export interface FileDifference {
  path: string;
  /** Where it is now, if it was moved. */
  target: string;
  action: string;
  diff: string;
  /** The difference is only a beginning. */
  isCut: boolean;
}

/** What undoing would do. */
export interface UndoPreview {
  /** How the files would change by it. */
  files: FileDifference[];
  /** Files that stay, since they were changed meanwhile. */
  left: { path: string; problem: string }[];
  changes: number;
}

/** A change, or all changes of a run. */
export type UndoTarget = { change_id: string } | { run: string };

export class Journal {
  readonly days: Signal<Range> = signal(14);
  readonly filter: Signal<JournalFilter> = signal({ client: "", run: "", text: "" });
  /** A day of the plot that was chosen; empty for all. */
  readonly day = signal("");
  readonly loaded: Resource<Change[]>;
  /** How many changes the days have; more than are loaded where there are too many to show. */
  readonly total = signal(0);
  readonly plot: ReadonlySignal<Plot>;
  readonly shown: ReadonlySignal<Change[]>;
  /** Those changes whose differences are open. */
  readonly open: Signal<ReadonlySet<string>> = signal(new Set());
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: Client) {
    this.loaded = resource((abort) => this.fetch(abort));
    const fitting = computed(() => (this.loaded.data.value ?? []).filter((change) => fitsFilter(change, this.filter.value)));
    this.plot = computed(() => plotOf(fitting.value, lastDays(this.days.value)));
    this.shown = computed(() => {
      const day = this.day.value;
      return day ? fitting.value.filter((change) => dayOf(change.at) === day) : fitting.value;
    });
  }

  /** Load after what was told just now; many news are one load. */
  loadSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.loaded.load(), BREATH_MS);
  }

  /** All clients of the days that are shown. */
  get clients(): string[] {
    return [...new Set((this.loaded.data.value ?? []).map((change) => change.client))].sort();
  }

  setDays(days: Range): void {
    this.days.value = days;
    this.day.value = "";
    void this.loaded.load();
  }

  setFilter(part: Partial<JournalFilter>): void {
    this.filter.value = { ...this.filter.value, ...part };
  }

  toggle(id: string): void {
    const open = new Set(this.open.value);
    if (!open.delete(id)) open.add(id);
    this.open.value = open;
  }

  /** How the files changed by a change: the other way round from what undoing it would do now. */
  async differences(change: Change, signal?: AbortSignal): Promise<FileDifference[]> {
    const inverse = change.undone ? (this.loaded.data.value ?? []).find((one) => one.undoes?.includes(change.id)) : undefined;
    const { files } = await this.plan({ change_id: (inverse ?? change).id }, false, signal);
    return files.map((file) => ({ ...file, diff: inverse || !file.diff ? file.diff : turned(file.diff) }));
  }

  /** Find out what undoing would do; nothing is written. */
  async preview(target: UndoTarget, signal?: AbortSignal): Promise<UndoPreview> {
    return this.plan(target, true, signal);
  }

  /** Undo; `partial` leaves what was changed meanwhile. Gives how many files it concerned. */
  async undo(target: UndoTarget, partial: boolean): Promise<number> {
    const done = await this.client.post("/changes/undo", { body: { ...target, partial } });
    await this.loaded.load();
    return done.files.length;
  }

  private async plan(target: UndoTarget, partial: boolean, signal?: AbortSignal): Promise<UndoPreview> {
    const plan = await this.client.post("/changes/undo", { body: { ...target, dry_run: true, partial }, signal });
    const files = plan.files.map((file) => ({ path: file.path, target: file.target ?? "", action: file.action, diff: file.diff ?? "", isCut: file.diff_truncated ?? false }));
    return { files, left: plan.left ?? [], changes: plan.undone.length };
  }

  private async fetch(abort: AbortSignal): Promise<Change[]> {
    const since = lastDays(this.days.value)[0] ?? "";
    const found: Change[] = [];
    for (;;) {
      const page = await this.client.get("/changes", { query: { since, limit: PAGE, offset: found.length }, signal: abort });
      found.push(...page.results);
      this.total.value = page.total;
      if (!page.results.length || found.length >= page.total || found.length >= MOST_CHANGES) return found;
    }
  }
}

