/** Where hunks lie in an open note, and how those places follow the text while somebody types. No part of Obsidian is needed. */

import { ChangeSet, Text, type ChangeDesc } from "@codemirror/state";
import type { Hunk, Side } from "./waiting";

/** `fits`: its old lines stand there. `changed`: they were edited while it waited. `lost`: they aren't found. */
export type Fit = "fits" | "changed" | "lost";

export interface Place {
  readonly hunk: Hunk;
  /** Half-open, in the editor's document; whole lines with their ends. */
  readonly from: number;
  readonly to: number;
  readonly fit: Fit;
}

/** A text as the editor holds it: without a byte order mark, lines ending in `\n`. */
export function plain(text: string): string {
  return text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
}

/**
 * Find the places of hunks in an editor's text.
 *
 * @param disk The file as the server sees it: the hunks' lines count there. The editor may be ahead of it.
 */
export function findPlaces(hunks: readonly Hunk[], doc: Text, disk: string): Place[] {
  const saved = Text.of(plain(disk).split("\n"));
  const ahead = difference(saved, doc);
  return hunks.map((hunk) => findPlace(hunk, doc, saved, ahead)).sort((one, other) => one.from - other.from);
}

function findPlace(hunk: Hunk, doc: Text, saved: Text, ahead: ChangeSet): Place {
  const old = plain(hunk.old);
  const line = Math.min(Math.max(hunk.stale?.line ?? hunk.line, 1), saved.lines + 1);
  const start = line > saved.lines ? saved.length : saved.line(line).from;
  const stop = Math.min(start + old.length, saved.length);
  if (hunk.stale) {
    const at = ahead.mapPos(start, -1);
    return { hunk, from: at, to: at, fit: "lost" };
  }
  const moved = move({ hunk, from: start, to: stop, fit: "fits" }, ahead, doc);
  if (moved.fit === "fits" || !old) return moved;
  const only = findOnly(doc, old);
  return only === undefined ? moved : { hunk, from: only, to: only + old.length, fit: "fits" };
}

/** The change from one text to another: what stands between the same beginning and the same end. */
export function difference(before: Text, after: Text): ChangeSet {
  if (before.eq(after)) return ChangeSet.empty(before.length);
  const [one, other] = [before.toString(), after.toString()];
  const limit = Math.min(one.length, other.length);
  let head = 0;
  while (head < limit && one.charCodeAt(head) === other.charCodeAt(head)) head++;
  let tail = 0;
  while (tail < limit - head && one.charCodeAt(one.length - 1 - tail) === other.charCodeAt(other.length - 1 - tail)) tail++;
  return ChangeSet.of({ from: head, to: one.length - tail, insert: other.slice(head, other.length - tail) }, one.length);
}

/** Move a place with a change; looks at the text only where the change touched it. */
export function move(place: Place, changes: ChangeDesc, doc: Text): Place {
  if (changes.empty) return checked(place, doc);
  const old = plain(place.hunk.old);
  // At its start a place takes in what is typed, as that alters its first line; at its end only where no line ends there.
  const from = changes.mapPos(place.from, old ? -1 : 1);
  const to = old ? Math.max(from, changes.mapPos(place.to, old.endsWith("\n") ? -1 : 1)) : from;
  const isTouched = place.fit !== "fits" || changes.touchesRange(place.from, place.to) !== false;
  if (!isTouched) return from === place.from && to === place.to ? place : { ...place, from, to };
  return checked({ ...place, from, to }, doc);
}

function checked(place: Place, doc: Text): Place {
  if (place.fit === "lost") return place;
  const { hunk, from, to } = place;
  const old = plain(hunk.old);
  if (!old) {
    // Lines are put between two lines: where typing moved it away from a line's start, it goes to the next one.
    const line = doc.lineAt(from);
    if (line.from === from) return place.fit === "fits" ? place : { ...place, fit: "fits" };
    const next = line.to < doc.length ? line.to + 1 : line.to;
    return { ...place, from: next, to: next, fit: doc.lineAt(next).from === next ? "fits" : "changed" };
  }
  const text = doc.sliceString(from, to);
  const at = text.indexOf(old);
  if (at < 0 || text.indexOf(old, at + 1) >= 0) return place.fit === "changed" ? place : { ...place, fit: "changed" };
  const start = from + at;
  const isWhole = doc.lineAt(start).from === start && (old.endsWith("\n") || doc.lineAt(start + old.length).to === start + old.length);
  return isWhole ? { ...place, from: start, to: start + old.length, fit: "fits" } : { ...place, fit: "changed" };
}

/** Where lines stand that a text has exactly once. */
function findOnly(doc: Text, lines: string): number | undefined {
  const text = `\n${doc.toString()}`;
  const at = text.indexOf(`\n${lines}`);
  if (at < 0 || text.indexOf(`\n${lines}`, at + 1) >= 0) return undefined;
  const end = at + lines.length;
  return lines.endsWith("\n") || end === doc.length ? at : undefined;
}

export interface Piece {
  from: number;
  to: number;
}

/** The pieces of a hunk's old text that go, counted from its start, in the editor's text. */
export function removedPieces(words: readonly [Side, string][]): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const [side, text] of words) {
    if (side === "added") continue;
    const size = plain(text).length;
    if (side === "removed") found.push({ from: at, to: at + size });
    at += size;
  }
  return found.filter((piece) => piece.to > piece.from);
}

/** The new text in pieces; those that come are marked. */
export function newPieces(words: readonly [Side, string][]): { text: string; isAdded: boolean }[] {
  return words.filter(([side]) => side !== "removed").map(([side, text]) => ({ text: plain(text), isAdded: side === "added" }));
}

/** The text that an accepted hunk puts into the editor. */
export function newText(hunk: Hunk): string {
  return plain(hunk.new);
}
