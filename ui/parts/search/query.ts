/** A search as its address says it: words, and filters by folder, tag, property and date. */

import type { Body } from "../../client";

export interface SearchQuery {
  text: string;
  folders: readonly string[];
  tags: readonly string[];
  /** Tests such as `status=open`, `due` or `!due`. */
  properties: readonly string[];
  /** Days such as `2026-01-31`; empty for none. */
  from: string;
  to: string;
  /** Which date `from` and `to` are about. */
  dates: "modified" | "created";
}

export const NO_SEARCH: SearchQuery = { text: "", folders: [], tags: [], properties: [], from: "", to: "", dates: "modified" };

/** Between several values in an address; no folder, tag or property has it in its name on all systems. */
const BETWEEN = "|";
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Read the query of an address. */
export function readSearch(query: Readonly<Record<string, string>>): SearchQuery {
  const list = (name: string) => (query[name] ?? "").split(BETWEEN).filter((value) => value.trim());
  const day = (name: string) => (DAY.test(query[name] ?? "") ? (query[name] ?? "") : "");
  return {
    text: query["q"] ?? "",
    folders: list("folder"),
    tags: list("tag"),
    properties: list("property"),
    from: day("from"),
    to: day("to"),
    dates: query["dates"] === "created" ? "created" : "modified",
  };
}

/** Write the query of an address; what is empty is left out. */
export function writeSearch(search: SearchQuery): Record<string, string | undefined> {
  return {
    q: search.text,
    folder: search.folders.join(BETWEEN),
    tag: search.tags.join(BETWEEN),
    property: search.properties.join(BETWEEN),
    from: search.from,
    to: search.to,
    dates: search.dates === "created" && (search.from || search.to) ? "created" : "",
  };
}

export function hasFilters(search: SearchQuery): boolean {
  return Boolean(search.folders.length || search.tags.length || search.properties.length || search.from || search.to);
}

export function isSameSearch(one: SearchQuery, other: SearchQuery): boolean {
  return JSON.stringify(writeSearch(one)) === JSON.stringify(writeSearch(other));
}

/**
 * A text that is still being written, so that its last word finds what begins with it: `water bar` is `water bar*`.
 * Whoever excludes a word, or writes a phrase, has it as it is.
 */
export function asTyped(text: string): string {
  if ((text.match(/"/g)?.length ?? 0) % 2) return text;
  const last = /(?:^|\s)([\p{L}\p{N}_]{2,})$/u.exec(text)?.[1];
  return last ? `${text}*` : text;
}

export type SearchMode = "keyword" | "hybrid";
export type SearchArguments = Body<"post", "/tools/search_vault">;

const MAX_PASSAGES = 40;

/** What the server is asked. */
export function argumentsOf(search: SearchQuery, mode: SearchMode): SearchArguments {
  const { folders, tags, properties, from, to, dates } = search;
  return {
    query: mode === "keyword" ? asTyped(search.text) : search.text,
    mode,
    n_results: MAX_PASSAGES,
    explain: true,
    ...(folders.length ? { folders: [...folders] } : {}),
    ...(tags.length ? { tags: [...tags] } : {}),
    ...(properties.length ? { properties: [...properties] } : {}),
    ...(from ? { [`${dates}_from`]: from } : {}),
    ...(to ? { [`${dates}_to`]: to } : {}),
  };
}

/** A part of a text that is shown, and whether it is what matched. */
export interface Piece {
  text: string;
  isMatch: boolean;
}

const SNIPPET = 260;
const BEFORE = 60;
/** Signs of Markdown that say nothing in a snippet; what a group has before one is kept. Older iPhones know no lookbehind. */
const SIGNS = /^[ \t]*\|?[ \t:-]*-[ \t:|-]*$|^[ \t]*\||\|[ \t]*$|^[ \t]*(?:```|~~~)[\w-]*[ \t]*$|(^|[\s("'])[*_](?=[^\s*_])|([^\s*_])[*_](?=$|[\s.,;:!?)"'])|!?\[\[(?:[^\]|\n]{0,200}\|)?|\]\]|(\])\([^)\s]{0,300}\)|[*_`~=]{2,}|`|^\s{0,3}(?:#{1,6}|>|[-*+]|\d{1,9}\.)\s{1,4}(?:\[.\]\s+)?|%%|\^[\w-]{1,40}$|\[\^[^\]\n]{1,40}\]:?|\[![\w-]{1,30}\][+-]?/gm;
const TABLE_ROW = /^[ \t]*\|[^\n]*/gm;
/** No passage is longer, but for one line without an end. */
const MAX_CHARACTERS = 20_000;

/**
 * Cut a snippet out of a passage, around the place where most matches stand together.
 *
 * @param spans Start and stop of each match, in characters (code points), as the server gives them.
 */
export function snippetOf(passage: string, spans: readonly (readonly number[])[] = [], length = SNIPPET): Piece[] {
  const content = passage.slice(0, MAX_CHARACTERS);
  const marked = marksOf(content, spans);
  const kept = keptOf(content);
  const shown = content.replace(TABLE_ROW, (row) => row.replaceAll("|", "·"));
  let text = "";
  const marks: boolean[] = [];
  for (let at = 0; at < content.length; at += 1) {
    if (!kept[at]) continue;
    const sign = shown[at] ?? "";
    const isSpace = /\s/.test(sign);
    if (isSpace && (text === "" || text.endsWith(" "))) continue;
    text += isSpace ? " " : sign;
    marks.push(Boolean(marked[at]) && !isSpace);
  }
  text = text.trimEnd();
  const from = startOf(text, marks, length);
  const to = endOf(text, from + length);
  const pieces: Piece[] = [];
  for (let at = from; at < to; at += 1) {
    const isMatch = marks[at] ?? false;
    const last = pieces.at(-1);
    if (last && last.isMatch === isMatch) last.text += text[at];
    else pieces.push({ text: text[at] ?? "", isMatch });
  }
  if (from > 0) pieces.unshift({ text: "…", isMatch: false });
  if (to < text.length) pieces.push({ text: "…", isMatch: false });
  return pieces;
}

function marksOf(content: string, spans: readonly (readonly number[])[]): Uint8Array {
  const marked = new Uint8Array(content.length);
  const offsets = /[\ud800-\udfff]/.test(content) ? offsetsOf(content) : null;
  for (const [start = 0, stop = 0] of spans) marked.fill(1, offsets ? offsets[start] : start, offsets ? offsets[stop] : stop);
  return marked;
}

/** Where each character begins: those outside the first plane take two places of a string. */
function offsetsOf(content: string): number[] {
  const offsets: number[] = [];
  let at = 0;
  for (const sign of content) {
    offsets.push(at);
    at += sign.length;
  }
  offsets.push(at);
  return offsets;
}

function keptOf(content: string): Uint8Array {
  const kept = new Uint8Array(content.length).fill(1);
  const heading = /^(?:\s{0,99}#{1,6}[ \t][^\n]*\n)+(?=\s*\S)/.exec(content); // it stands above the snippet already
  if (heading) kept.fill(0, 0, heading[0].length);
  for (const found of content.matchAll(SIGNS)) {
    const before = found.slice(1).find((group) => group)?.length ?? 0;
    kept.fill(0, found.index + before, found.index + found[0].length);
  }
  return kept;
}

function startOf(text: string, marks: readonly boolean[], length: number): number {
  if (text.length <= length) return 0;
  const firsts = marks.flatMap((isMatch, at) => (isMatch && !marks[at - 1] ? [at] : []));
  let [best, most] = [0, 0];
  let stop = 0;
  for (const [index, at] of firsts.entries()) {
    while (stop < firsts.length && (firsts[stop] ?? 0) < at + length - BEFORE) stop += 1;
    if (stop - index > most) [best, most] = [at, stop - index];
  }
  const wanted = Math.max(0, Math.min(best - BEFORE, text.length - length));
  if (wanted <= 0) return 0;
  const space = text.indexOf(" ", wanted);
  return space >= 0 && space < Math.max(best, wanted + 20) ? space + 1 : wanted;
}

function endOf(text: string, wanted: number): number {
  if (wanted >= text.length) return text.length;
  const space = text.lastIndexOf(" ", wanted);
  return space > wanted - 30 ? space : wanted;
}

/** Mark the words of a title that are among those that matched. */
export function piecesOf(text: string, words: ReadonlySet<string>): Piece[] {
  if (!words.size) return [{ text, isMatch: false }];
  return text
    .split(/([\p{L}\p{N}\p{M}_]+)/u)
    .filter((part) => part)
    .map((part) => ({ text: part, isMatch: words.has(part.toLowerCase()) }));
}

/** The words that matched in some passages, as they stand there, and those that were asked for. */
export function wordsOf(hits: readonly { content: string; matches?: readonly (readonly number[])[] }[], text: string): Set<string> {
  const words = new Set<string>();
  for (const { content, matches = [] } of hits) {
    const signs = /[\ud800-\udfff]/.test(content) ? [...content] : null;
    for (const [start, stop] of matches) words.add((signs ? signs.slice(start, stop).join("") : content.slice(start, stop)).toLowerCase());
  }
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? []) if (words.size === 0 || word.length > 3) words.add(word);
  return words;
}
