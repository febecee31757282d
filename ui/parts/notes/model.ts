/** One note as its reader shows it: its text with where its links lead, what is around it, and how it is changed. */

import { signal, type Signal } from "@preact/signals";
import type { Client, Reply } from "../../client";
import { resource, type Resource } from "../resource";

export type NoteText = Reply<"get", "/notes/{path}">;
export type NoteInfo = Reply<"post", "/tools/note_info">;
export type Backlinks = Reply<"get", "/backlinks/{path}">;
export type Outlink = Reply<"post", "/tools/find_outlinks">["links"][number];
export type RelatedNote = Reply<"post", "/tools/search_task_relevant">["results"][number];
export type Written = Reply<"post", "/tools/edit_at">;
export type EmbedContent = NonNullable<NoteText["embeds"]>[number];

export interface NotePage {
  text: NoteText;
  info: NoteInfo;
  links: readonly Outlink[];
}

const MAX_CHARACTERS = 1_000_000;
const MAX_LINKS = 1_000;
const MAX_BACKLINKS = 100;
const MAX_RELATED = 8;

export class NoteModel {
  readonly page: Resource<NotePage>;
  readonly backlinks: Resource<Backlinks>;
  readonly related: Resource<readonly RelatedNote[]>;
  /** Whether the text is shown as it is written, line by line. */
  readonly isSource: Signal<boolean> = signal(false);
  private targets: { of: readonly Outlink[]; paths: ReadonlyMap<string, string> } = { of: [], paths: new Map() };

  constructor(
    private readonly client: Client,
    readonly path: string,
    /** Another vault than the one that is open; empty for that one. The client asks it. */
    readonly vault = "",
    /** The images of that other vault; those of the open one are the shell's. */
    readonly image?: (path: string, signal: AbortSignal) => Promise<string | undefined>,
  ) {
    this.page = resource(async (signal) => {
      const [text, info, links] = await Promise.all([
        client.get("/notes/{path}", { path: { path }, query: { length: MAX_CHARACTERS, expand_embeds: true }, signal }),
        client.post("/tools/note_info", { body: { path }, signal }),
        client.post("/tools/find_outlinks", { body: { path, limit: MAX_LINKS }, signal }),
      ]);
      return { text, info, links: links.links };
    });
    this.backlinks = resource((signal) => client.get("/backlinks/{path}", { path: { path }, query: { limit: MAX_BACKLINKS }, signal }));
    this.related = resource(async (signal) => {
      const task = nameOf(path);
      return (await client.post("/tools/search_task_relevant", { body: { task, current_note: path, limit: MAX_RELATED }, signal })).results;
    });
  }

  /** Load the text, then what stands around it. */
  async load(): Promise<void> {
    if (await this.page.load()) void Promise.all([this.backlinks.load(), this.related.load()]);
  }

  /** The path that a link of this note leads to, as the server resolved it. */
  resolve(link: string): string | undefined {
    const links = this.page.data.value?.links ?? [];
    if (this.targets.of !== links) {
      const paths = new Map<string, string>();
      for (const { target, leads_to: path } of links) if (path) paths.set(keyOf(target), path);
      this.targets = { of: links, paths };
    }
    return this.targets.paths.get(keyOf(link));
  }

  /** The lines of the text, from the first. */
  get lines(): string[] {
    return (this.page.data.value?.text.content ?? "").split(/\r\n|\r|\n/);
  }

  /** Put whole lines in the place of others. */
  replaceLines(first: number, last: number, content: string, { isTrial = false } = {}): Promise<Written> {
    const position = `replace:${first}-${last}`;
    return this.client.post("/tools/edit_at", { body: { path: this.path, position, content, ...this.base, dry_run: isTrial } });
  }

  /** Set a task's box. */
  setTask(line: number, isDone: boolean): Promise<Written> | undefined {
    const text = this.lines[line - 1];
    const next = text === undefined ? undefined : withBox(text, isDone);
    return next === undefined ? undefined : this.replaceLines(line, line, next);
  }

  setProperty(field: string, value: unknown): Promise<Written> {
    return this.client.post("/tools/update_frontmatter", { body: { path: this.path, field, value, operation: "set", ...this.base } as never });
  }

  removeProperty(field: string): Promise<Written> {
    return this.client.post("/tools/update_frontmatter", { body: { path: this.path, field, operation: "remove", ...this.base } as never });
  }

  undo(change: string): Promise<unknown> {
    return this.client.post("/changes/{change_id}/undo", { path: { change_id: change }, body: {} as never });
  }

  private get base(): { expected_hash: string } {
    return { expected_hash: this.page.data.value?.text.hash ?? "" };
  }
}

function keyOf(target: string): string {
  return target.normalize("NFC").toLowerCase().replace(/\.md$/, "");
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/i, "");
}

/** A line of a task with its box set or not; undefined where it has none. */
export function withBox(line: string, isDone: boolean): string | undefined {
  const found = /^(\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+\[)(.)(\].*)$/su.exec(line);
  return found ? `${found[1]}${isDone ? "x" : " "}${found[3]}` : undefined;
}

/** The sentence of a line in which a link stands. */
export function sentenceOf(line: string, names: readonly string[], length = 220): string {
  const text = line.replace(/^\s*(?:>\s*)*(?:[-*+]\s+(?:\[.\]\s+)?|\d{1,9}[.)]\s+|#{1,6}\s+)?/, "");
  const lower = text.toLowerCase();
  const at = Math.max(0, ...names.map((name) => lower.indexOf(name.toLowerCase())));
  const before = Math.max(text.lastIndexOf(". ", at), text.lastIndexOf("! ", at), text.lastIndexOf("? ", at));
  const from = before < 0 ? 0 : before + 2;
  const ends = [". ", "! ", "? "].map((sign) => text.indexOf(sign, at)).filter((end) => end >= 0);
  const sentence = text.slice(from, ends.length ? Math.min(...ends) + 1 : undefined);
  if (sentence.length <= length) return sentence;
  const start = Math.max(0, Math.min(at - from - 60, sentence.length - length));
  return `${start ? "…" : ""}${sentence.slice(start, start + length).trim()}…`;
}

/** The section that a line belongs to, such as for editing it: its first and last line. */
export function sectionAt(info: NoteInfo, line: number): { heading: string; first: number; last: number } | undefined {
  const row = info.outline.find((one) => one.line === line);
  return row && { heading: row.heading, first: row.line, last: row.end_line };
}
