/** What two writers of one text did to it, by lines. No part of Obsidian is needed. */

import { type ChangeSpec, ChangeSet, Text } from "@codemirror/state";

/** The changes from one text to another: whole lines, between those that both have just once. */
export function lineChanges(before: Text, after: Text): ChangeSet {
  const [old, fresh] = [before.toJSON(), after.toJSON()];
  const [oldStarts, freshStarts] = [startsOf(old), startsOf(fresh)];
  const text = `${after.toString()}\n`;
  const changes: ChangeSpec[] = [];
  let [line, other] = [0, 0];
  for (const [at, otherAt] of [...sameLines(old, fresh), [old.length, fresh.length] as const]) {
    // Lines that stand there more than once stay too, where nothing but them is at an end of what differs.
    while (line < at && other < otherAt && old[line] === fresh[other]) [line, other] = [line + 1, other + 1];
    let [end, otherEnd] = [at, otherAt];
    while (line < end && other < otherEnd && old[end - 1] === fresh[otherEnd - 1]) [end, otherEnd] = [end - 1, otherEnd - 1];
    if (line < end || other < otherEnd) changes.push(toChange(oldStarts[line]!, oldStarts[end]!, text.slice(freshStarts[other], freshStarts[otherEnd]), before.length));
    [line, other] = [at + 1, otherAt + 1];
  }
  return ChangeSet.of(changes, before.length);
}

/** Lines end with a line feed here, also the last one, which has none in the text. */
function toChange(from: number, to: number, insert: string, length: number): ChangeSpec {
  if (to <= length) return { from, to, insert };
  if (from > length) return { from: length, insert: `\n${insert.slice(0, -1)}` };
  return insert ? { from, to: length, insert: insert.slice(0, -1) } : { from: Math.max(from - 1, 0), to: length };
}

/** Where each line begins, and where one after the last would. */
function startsOf(lines: readonly string[]): number[] {
  const starts = [0];
  for (const line of lines) starts.push(starts.at(-1)! + line.length + 1);
  return starts;
}

/** Pairs of a line that each has just once, in order. */
function sameLines(old: readonly string[], fresh: readonly string[]): (readonly [number, number])[] {
  const [oldOnce, freshOnce] = [onlyOnce(old), onlyOnce(fresh)];
  return rising([...oldOnce].filter(([line]) => freshOnce.has(line)).map(([line, at]) => [at, freshOnce.get(line)!] as const));
}

function onlyOnce(lines: readonly string[]): Map<string, number> {
  const once = new Map<string, number>();
  const seen = new Set<string>();
  for (const [at, line] of lines.entries()) {
    if (seen.has(line)) once.delete(line);
    else once.set(line, at);
    seen.add(line);
  }
  return once;
}

/** The longest row of pairs whose second numbers rise, as their first ones do. */
function rising(pairs: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const last: number[] = []; // of each length, the pair that ends it lowest
  const before: (number | undefined)[] = [];
  for (const [at, [, other]] of pairs.entries()) {
    let [low, high] = [0, last.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[last[middle]!]![1] < other) low = middle + 1;
      else high = middle;
    }
    before[at] = low ? last[low - 1] : undefined;
    last[low] = at;
  }
  const found: (readonly [number, number])[] = [];
  for (let at = last.at(-1); at !== undefined; at = before[at]) found.push(pairs[at]!);
  return found.reverse();
}

/**
 * What a text lacks of the changes from one to another, both of which it may come from: an app that saves an older text takes
 * them back without knowing.
 *
 * @returns Changes of *now* that bring them in, and whether there is a place of which nothing can be said.
 */
export function lostChanges(before: Text, after: Text, now: Text): { changes: ChangeSet; isUnclear: boolean } {
  const [typed, since] = [lineChanges(before, now), lineChanges(after, now)];
  const lost: ChangeSpec[] = [];
  let isUnclear = false;
  lineChanges(before, after).iterChanges((from, to, fromAfter, toAfter, inserted) => {
    const insert = inserted.toString();
    const state = !typed.touchesRange(from, to) ? "lost" : !since.touchesRange(fromAfter, toAfter) ? "there" : guess(before, now, before.sliceString(from, to), insert);
    if (state === "lost") lost.push({ from, to, insert });
    else if (state === "unclear") isUnclear = true;
  });
  return { changes: ChangeSet.of(lost, before.length).map(typed), isUnclear };
}

/** Where somebody typed beside or in the place: by which of the two texts stands there. */
function guess(before: Text, now: Text, gone: string, come: string): "lost" | "there" | "unclear" {
  const [old, text] = [before.toString(), now.toString()];
  if (come.trim() && count(text, come) > count(old, come)) return "there";
  if (!gone) return "lost";
  if (count(text, gone) >= count(old, gone)) return "lost";
  return come.trim() ? "unclear" : "there";
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

/** What the server says of a file that it has just written. */
export interface WrittenFile {
  readonly path: string;
  readonly diff?: string;
  /** The diff is only a beginning, or left out. */
  readonly diff_truncated?: boolean;
  /** Of the file as it is now. */
  readonly hash?: string;
}

/**
 * Carry out what the server says it wrote into a text, one file after another.
 *
 * @returns Nothing where it doesn't say so, not in full, or of another text.
 */
export function writtenText(before: Text, files: readonly WrittenFile[]): Text | undefined {
  if (!files.some(({ diff }) => diff) || files.some(({ diff_truncated: isCut }) => isCut)) return undefined;
  return files.reduce<Text | undefined>((text, { diff }) => (text && diff ? patched(text, diff) : text), before);
}

/**
 * Carry out a unified diff.
 *
 * @returns Nothing where it isn't of this text.
 */
export function patched(text: Text, diff: string): Text | undefined {
  const old = text.toString().match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const rows = diff.replaceAll("\r\n", "\n").split("\n");
  const fresh: string[] = [];
  let at = 0;
  for (let row = 0; row < rows.length; row++) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(rows[row]!);
    if (!head) continue; // the file's name
    let [gone, come] = [Number(head[2] ?? 1), Number(head[3] ?? 1)];
    for (const start = Number(head[1]) - (gone ? 1 : 0); at < start; at++) fresh.push(old[at] ?? "");
    while (gone > 0 || come > 0) {
      const kind = rows[++row]?.[0];
      if (kind === undefined) return undefined;
      let line = rows[row]!.slice(1).replace(/^\uFEFF/, "");
      if (rows[row + 1]?.startsWith("\\")) row++;
      else line += "\n";
      if (kind !== "+") {
        gone--;
        if (old[at++] !== line) return undefined;
      }
      if (kind !== "-") {
        come--;
        fresh.push(line);
      }
    }
  }
  return Text.of([...fresh, ...old.slice(at)].join("").split("\n"));
}
