/** What is known of a vault's notes as a whole: their paths, folders, tags, properties; and which were read last. */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { textOf, type Client, type Reply } from "../../client";
import { allPages, resource, type Resource } from "../resource";

export interface NoteRow {
  path: string;
  /** When it was saved; ISO. */
  modified: string;
}

export interface FolderRow {
  path: string;
  /** Notes in it and below it. */
  notes: number;
}

export interface PropertyRow {
  name: string;
  notes: number;
  /** Its most used values. */
  values: readonly string[];
}

export type TagRow = Reply<"post", "/tools/list_tags">["results"][number];

const PAGE = 1_000;
/** A list of more is of no use to a person, and search finds the others. */
export const MAX_NOTES = 50_000;
const PROPERTY_SAMPLE = 1_000;
const MAX_VALUES = 20;

export class NotesStore {
  /** All notes by path, up to `MAX_NOTES`; grows while it is loaded. */
  readonly notes: ReadonlySignal<readonly NoteRow[]>;
  /** How many there are. */
  readonly total: ReadonlySignal<number>;
  readonly list: Resource<true>;
  readonly tags: Resource<readonly TagRow[]>;
  readonly properties: Resource<readonly PropertyRow[]>;
  readonly folders: ReadonlySignal<readonly FolderRow[]>;
  /** Whether something was changed since the list was loaded. */
  private isStale = true;
  private loading: Promise<void> | undefined;

  constructor(private readonly client: Client) {
    const notes = signal<readonly NoteRow[]>([]);
    const total = signal(0);
    this.notes = notes;
    this.total = total;
    this.folders = computed(() => foldersOf(notes.value));
    this.list = resource(async (abort) => {
      const rows: NoteRow[] = [];
      let isFirst = notes.value.length === 0;
      for (;;) {
        const page = await this.client.post("/tools/find_notes", {
          body: { limit: PAGE, offset: rows.length, fields: ["modified"] },
          signal: abort,
        });
        for (const row of page.results) rows.push({ path: textOf(row["path"]), modified: textOf(row["modified"]) });
        total.value = page.total;
        if (isFirst) notes.value = [...rows]; // something to see while the others come
        isFirst = false;
        if (!page.results.length || rows.length >= page.total || rows.length >= MAX_NOTES) break;
      }
      notes.value = rows;
      return true as const;
    });
    this.tags = resource((abort) => allPages(async (page) => (await this.client.post("/tools/list_tags", { body: page, signal: abort })).results, PAGE, Infinity));
    this.properties = resource(async (abort) => {
      const page = await this.client.post("/tools/find_notes", {
        body: { limit: PROPERTY_SAMPLE, sort: "-modified", fields: ["properties"] },
        signal: abort,
      });
      return propertiesOf(page.results.map((row) => row["properties"]));
    });
  }

  /** Load the list, unless it is there and nothing has changed since; it is there afterwards, unless that failed. */
  async load(): Promise<void> {
    if (!this.isStale) return this.loading;
    this.isStale = false;
    this.loading = this.list.load().then((isThere) => {
      if (!isThere) this.isStale = true;
    });
    return this.loading;
  }

  /** Say that notes were changed; whoever shows the list loads it anew. */
  touch(): void {
    this.isStale = true;
    if (this.list.data.value) void this.load();
    if (this.tags.data.value) void this.tags.load();
  }
}

/** The folders of some notes, each with the number of notes in it and below it; by path. */
export function foldersOf(notes: readonly { path: string }[]): FolderRow[] {
  const counts = new Map<string, number>();
  for (const { path } of notes) {
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
      const folder = path.slice(0, at);
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  }
  return [...counts].map(([path, notes]) => ({ path, notes })).sort((one, other) => compareNames(one.path, other.path));
}

/** The properties of some notes with their most used values, the most used first. */
export function propertiesOf(rows: readonly unknown[]): PropertyRow[] {
  const found = new Map<string, { notes: number; values: Map<string, number> }>();
  for (const row of rows) {
    if (row === null || typeof row !== "object") continue;
    for (const [name, value] of Object.entries(row)) {
      const known = found.get(name) ?? { notes: 0, values: new Map<string, number>() };
      known.notes += 1;
      for (const one of Array.isArray(value) ? value : [value]) {
        if (["string", "number", "boolean"].includes(typeof one) && String(one).length <= 60) {
          known.values.set(String(one), (known.values.get(String(one)) ?? 0) + 1);
        }
      }
      found.set(name, known);
    }
  }
  const often = (values: ReadonlyMap<string, number>) =>
    [...values].sort((one, other) => other[1] - one[1] || compareNames(one[0], other[0])).slice(0, MAX_VALUES);
  return [...found]
    .map(([name, { notes, values }]) => ({ name, notes, values: often(values).map(([value]) => value) }))
    .sort((one, other) => other.notes - one.notes || compareNames(one.name, other.name));
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Compare names as a person sorts them: `Note 2` before `Note 10`. */
export function compareNames(one: string, other: string): number {
  return collator.compare(one, other);
}

/** The few things that were used last, the latest first; kept as lines of text by whoever the shell is. */
export class Recent {
  readonly items: ReadonlySignal<readonly string[]>;
  private readonly kept;

  constructor(
    load: () => string,
    private readonly save: (text: string) => void,
    private readonly limit = 12,
  ) {
    this.kept = signal<readonly string[]>(load().split("\n").filter(Boolean).slice(0, limit));
    this.items = this.kept;
  }

  add(item: string): void {
    const line = item.replace(/\s+/g, " ").trim();
    if (!line || this.kept.value[0] === line) return;
    this.set([line, ...this.kept.value.filter((known) => known !== line)]);
  }

  remove(item: string): void {
    this.set(this.kept.value.filter((known) => known !== item));
  }

  private set(items: readonly string[]): void {
    this.kept.value = items.slice(0, this.limit);
    this.save(this.kept.value.join("\n"));
  }
}
