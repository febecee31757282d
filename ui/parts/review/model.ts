/** Proposals and changes as they are shown: what can be decided, differences by rows, groups, days. No DOM. */

import type { Reply } from "../../client";
import { count, noteName } from "../format";

export type Proposal = Reply<"get", "/proposals/{proposal_id}">;
export type ProposedFile = Proposal["files"][number];
export type ProposedHunk = ProposedFile["hunks"][number];
export type ProposalRow = Reply<"get", "/proposals">["results"][number];
export type Restriction = Reply<"get", "/trust">["results"][number];
export type Change = Reply<"get", "/changes">["results"][number];

/** What is accepted or rejected by itself: a hunk, or a file that can't be taken apart. */
export interface Unit {
  /** The hunk's id, or `file-` and the file's number. */
  id: string;
  file: ProposedFile;
  hunk?: ProposedHunk;
  isOpen: boolean;
}

const WAITING: ReadonlySet<string> = new Set(["open", "stale"]);

export function isWaiting(row: { status: string }): boolean {
  return WAITING.has(row.status);
}

/** The files that stand or fall together with one, such as a move and the links that follow it. */
export function groupOf(proposal: Proposal, file: ProposedFile): ProposedFile[] {
  return proposal.files.filter((other) => other.group === file.group);
}

/** Whether the hunks of a file are decided one by one. */
export function hasParts(proposal: Proposal, file: ProposedFile): boolean {
  return file.kind === "edit" && file.hunks.length > 0 && groupOf(proposal, file).length === 1;
}

/** All that can be decided, in the order in which it is shown. */
export function unitsOf(proposal: Proposal): Unit[] {
  return proposal.files.flatMap((file): Unit[] =>
    hasParts(proposal, file)
      ? file.hunks.map((hunk) => ({ id: hunk.id, file, hunk, isOpen: hunk.state === "open" }))
      : [{ id: `file-${file.number}`, file, isOpen: isFileOpen(file) }],
  );
}

/** Whether something of a file is still to be decided. */
export function isFileOpen(file: ProposedFile): boolean {
  return file.state === "open" || file.hunks.some((hunk) => hunk.state === "open");
}

/** The unit where somebody goes on after one was decided: the next open one, else the first open one. */
export function nextOpen(units: readonly Unit[], after: string): Unit | undefined {
  const index = units.findIndex((unit) => unit.id === after);
  return units.slice(Math.max(index, 0)).find((unit) => unit.isOpen) ?? units.find((unit) => unit.isOpen);
}

/** The unit that many steps away; the first one where none was chosen. */
export function stepFrom(units: readonly Unit[], from: string, by: number): Unit | undefined {
  const index = units.findIndex((unit) => unit.id === from);
  return units[Math.min(units.length - 1, Math.max(0, index < 0 ? 0 : index + by))];
}

export const STATE_NAMES: Readonly<Record<string, string>> = {
  open: "Open",
  stale: "No longer applies",
  accepted: "Accepted",
  partly_accepted: "Partly accepted",
  rejected: "Rejected",
  expired: "Expired",
  superseded: "Superseded",
};

/** What became of a file: its server state says nothing of places that were rejected beside accepted ones. */
export function stateOfFile(file: Pick<ProposedFile, "state" | "hunks">): string {
  return file.state === "accepted" && file.hunks.some((hunk) => hunk.state === "rejected") ? "partly_accepted" : file.state;
}

export const KIND_NAMES: Readonly<Record<string, string>> = { edit: "Edit", create: "New note", move: "Move", trash: "Delete" };

/** What is proposed for a file, and what became of it: `Edit · +1 −1 · Accepted`. */
export function fileTextOf(file: ProposedFile): string {
  const state = stateOfFile(file);
  return [KIND_NAMES[file.kind] ?? file.kind, sizeOf(file), state === "open" ? "" : (STATE_NAMES[state] ?? state)].filter(Boolean).join(" · ");
}

function sizeOf(file: ProposedFile): string {
  if (file.kind === "move" || file.kind === "trash") return "";
  const lines = (text: string) => (text ? text.replace(/\n$/, "").split("\n").length : 0);
  const added = file.hunks.reduce((sum, hunk) => sum + lines(hunk.new), 0);
  const removed = file.hunks.reduce((sum, hunk) => sum + lines(hunk.old), 0);
  return [added && `+${added}`, removed && `−${removed}`].filter(Boolean).join(" ");
}

/** What a proposal is about, in a few words: a note's name, and how many more. */
export function titleOf(row: { path: string; files: number }): string {
  return row.files > 1 ? `${noteName(row.path)} and ${row.files - 1} more` : noteName(row.path);
}

/** How many places of a proposal are in which state: `2 open, 1 accepted`. */
function itemsOf(row: ProposalRow): string {
  return Object.entries(row.items)
    .map(([state, number]) => `${number} ${state === "stale" ? (number === 1 ? "no longer applies" : "no longer apply") : state}`)
    .join(", ");
}

/** The state of a proposal, and of its places where that says more: `Accepted`, `Accepted · 3 places`, `Partly accepted · 2 open, 1 accepted`. */
export function stateTextOf(row: ProposalRow): string {
  if (row.status === "open") return itemsOf(row);
  const name = STATE_NAMES[row.status] ?? row.status;
  const [state, number = 0] = Object.entries(row.items)[0] ?? [];
  const isPlain = Object.keys(row.items).length < 2 && (state ?? row.status) === row.status;
  return [name, isPlain ? (number > 1 ? `${number} places` : "") : itemsOf(row)].filter(Boolean).join(" · ");
}

export interface ProposalGroup {
  key: string;
  client: string;
  /** Empty for what was proposed outside of a run or a conversation. */
  run: string;
  rows: ProposalRow[];
}

/** Proposals by who made them and in which run or conversation, each group where its newest stands. */
export function byOrigin(rows: readonly ProposalRow[]): ProposalGroup[] {
  const groups = new Map<string, ProposalGroup>();
  for (const row of rows) {
    const run = row.run ?? "";
    const key = JSON.stringify([row.client, run]);
    const known = groups.get(key);
    if (known) known.rows.push(row);
    else groups.set(key, { key, client: row.client, run, rows: [row] });
  }
  return [...groups.values()];
}

/** Why a client only proposes: the restriction of that run, or of the client itself. */
export function restrictionOf(restrictions: readonly Restriction[], client: string, run: string): Restriction | undefined {
  const own = restrictions.filter((one) => one.client === client);
  return own.find((one) => one.run === run) ?? own.find((one) => one.run === "");
}

// Differences

export type Side = "same" | "removed" | "added";

export interface Piece {
  side: Side;
  text: string;
}

/** A line of one side, cut where words begin or end to differ. */
export interface Line {
  number: number;
  pieces: Piece[];
  isChanged: boolean;
}

/** Two lines beside each other; null where the other side has none. */
export interface SidePair {
  old: Line | null;
  new: Line | null;
}

/** The words of a hunk as pieces. What differs but for single spaces between is one phrase for another, which is read more easily. */
export function piecesOf(words: readonly (readonly string[])[]): Piece[] {
  const pieces = words.map(([side, text]): Piece => ({ side: side === "removed" || side === "added" ? side : "same", text: text ?? "" }));
  const found: Piece[] = [];
  for (let index = 0; index < pieces.length; ) {
    let stop = index;
    while (pieces[stop] && (pieces[stop]?.side !== "same" || (stop > index && isGap(pieces, stop)))) stop++;
    found.push(...(stop > index ? phrase(pieces.slice(index, stop)) : pieces.slice(index, index + 1)));
    index = Math.max(stop, index + 1);
  }
  return found;
}

/** Whether a piece is nothing but space between two that differ. */
function isGap(pieces: readonly Piece[], index: number): boolean {
  const next = pieces[index + 1];
  return /^[ \t]+$/.test(pieces[index]?.text ?? "") && next !== undefined && next.side !== "same";
}

function phrase(pieces: readonly Piece[]): readonly Piece[] {
  const sides = new Set(pieces.map((piece) => piece.side));
  if (!sides.has("removed") || !sides.has("added")) return pieces;
  const text = (other: Side) =>
    pieces
      .filter((piece) => piece.side !== other)
      .map((piece) => piece.text)
      .join("");
  return [
    { side: "removed", text: text("added") },
    { side: "added", text: text("removed") },
  ];
}

/**
 * Lay the words of a hunk out in two columns. Lines that end alike stand beside each other.
 *
 * @param first The number of the first line, on the old and on the new side.
 */
export function sideBySide(words: readonly (readonly string[])[], first: readonly [number, number]): SidePair[] {
  const rows: SidePair[] = [];
  const [old, fresh] = [new Column(first[0]), new Column(first[1])];
  const flush = (endsAlike: boolean): void => {
    const [left, right] = [old.take(), fresh.take()];
    const [lastOld, lastNew] = endsAlike ? [left.pop(), right.pop()] : [];
    for (let index = 0; index < Math.max(left.length, right.length); index++) rows.push({ old: left[index] ?? null, new: right[index] ?? null });
    if (lastOld && lastNew) rows.push({ old: lastOld, new: lastNew });
  };
  for (const { side, text } of piecesOf(words)) {
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) {
        if (side !== "added") old.end(side);
        if (side !== "removed") fresh.end(side);
        if (side === "same") flush(true);
      }
      if (side !== "added") old.add({ side, text: part });
      if (side !== "removed") fresh.add({ side, text: part });
    }
  }
  old.end("same", false);
  fresh.end("same", false);
  flush(false);
  return rows;
}

/** The lines of one side, while they are cut. */
class Column {
  private pieces: Piece[] = [];
  private lines: Line[] = [];

  constructor(private number: number) {}

  add(piece: Piece): void {
    if (piece.text) this.pieces.push(piece);
  }

  /** End a line; an empty one counts where its end is written, and not at the text's end. */
  end(side: Side, isWritten = true): void {
    if (!this.pieces.length && !isWritten) return;
    const isChanged = side !== "same" || this.pieces.some((piece) => piece.side !== "same");
    this.lines.push({ number: this.number++, pieces: this.pieces, isChanged });
    this.pieces = [];
  }

  take(): Line[] {
    return this.lines.splice(0);
  }
}

/** On which line of the new text each hunk of a file begins. */
export function newLines(hunks: readonly ProposedHunk[]): Map<string, number> {
  const found = new Map<string, number>();
  let shift = 0;
  for (const hunk of hunks) {
    found.set(hunk.id, hunk.line + shift);
    shift += lineCount(hunk.new) - lineCount(hunk.old);
  }
  return found;
}

function lineCount(text: string): number {
  return text ? text.split("\n").length - (text.endsWith("\n") ? 1 : 0) : 0;
}

/** Show line ends where they are all that differs. */
export function withEnds(text: string): string {
  return /^[\r\n]+$/.test(text) ? text.replaceAll(/\r?\n/g, "⏎\n") : text;
}

/** Characters that show nothing, or reorder what stands beside them; those that scripts and emoji need aren't among them. */
const HIDDEN = /(?![\t\n\r])\p{Cc}|[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u{e0000}-\u{e01ef}]/gu;

/** The text with such characters by their numbers, as `⟨U+202E⟩`: nobody shall accept what isn't seen. */
export function revealed(text: string): string {
  return text.replace(HIDDEN, (one) => `\u27e8U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

export type LineKind = "same" | "removed" | "added" | "place";

/** A line of a unified difference. */
export interface DiffLine {
  kind: LineKind;
  text: string;
}

/** The lines of a difference as `diff -u` writes it, without its head. */
export function diffLines(diff: string): DiffLine[] {
  const kinds: Record<string, LineKind> = { "+": "added", "-": "removed" };
  return diffBody(diff)
    .filter((row) => !row.startsWith("\\"))
    .map((row) => (row.startsWith("@@") ? { kind: "place", text: placeName(row) } : { kind: kinds[row[0] ?? ""] ?? "same", text: row.slice(1) }));
}

function placeName(row: string): string {
  const line = /\+(\d+)/.exec(row)?.[1];
  return line ? `Line ${line}` : row;
}

/** Turn a difference round: what was added is removed. What goes stands before what comes. */
export function turned(diff: string): string {
  const rows: string[] = [];
  const removed: string[] = [];
  const added: string[] = [];
  const flush = (): void => void rows.push(...removed.splice(0), ...added.splice(0));
  for (const row of diffBody(diff)) {
    if (row.startsWith("+")) removed.push(`-${row.slice(1)}`);
    else if (row.startsWith("-")) added.push(`+${row.slice(1)}`);
    else if (row.startsWith("\\")) (added.length ? added : removed).push(row);
    else {
      flush();
      rows.push(row.replace(/^@@ -(\S+) \+(\S+) @@/, "@@ -$2 +$1 @@"));
    }
  }
  flush();
  return rows.join("\n");
}

function diffBody(diff: string): string[] {
  const rows = diff.replace(/\n$/, "").split("\n");
  return rows[0]?.startsWith("--- ") ? rows.slice(2) : rows;
}

// The journal

/** What a change did, in a few words. */
export function changeTitle(change: Change): string {
  const [first, ...others] = change.files;
  if (!first) return count(change.hidden_files ?? 0, "hidden file");
  const where = first.target ? `${noteName(first.path)} → ${noteName(first.target)}` : noteName(first.path);
  return `${where}${others.length ? ` and ${others.length} more` : ""}`;
}

const ACTIONS: Readonly<Record<string, string>> = {
  edited: "Edited",
  created: "Created",
  moved: "Moved",
  trashed: "Moved to the trash",
  linked: "Links updated",
  removed: "Removed",
  restored: "Restored",
};

export function actionName(action: string): string {
  return ACTIONS[action] ?? action;
}

/** A day in this machine's zone, such as `2026-03-14`. */
export function dayOf(time: string | Date): string {
  const at = new Date(time);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The last days, the oldest first. */
export function lastDays(days: number, now: Date = new Date()): string[] {
  return Array.from({ length: days }, (_, index) => dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - days + 1 + index)));
}

export interface DayCounts {
  day: string;
  total: number;
  /** By the clients' place in the list of names. */
  counts: number[];
}

export interface Plot {
  /** Clients, those with most changes first; beyond the last named one all are `others`. */
  clients: string[];
  days: DayCounts[];
  /** Of the highest day; at least 1. */
  most: number;
}

export const OTHERS = "others";

/** Count changes by day and client. */
export function plotOf(changes: readonly Change[], days: readonly string[], mostClients = 5): Plot {
  const totals = new Map<string, number>();
  const known = new Set(days);
  const shown = changes.filter((change) => known.has(dayOf(change.at)));
  for (const change of shown) totals.set(change.client, (totals.get(change.client) ?? 0) + 1);
  const sorted = [...totals].sort(([one, first], [other, second]) => second - first || one.localeCompare(other)).map(([client]) => client);
  const named = sorted.length > mostClients ? [...sorted.slice(0, mostClients - 1), OTHERS] : sorted;
  const rows = new Map(days.map((day): [string, DayCounts] => [day, { day, total: 0, counts: named.map(() => 0) }]));
  for (const change of shown) {
    const row = rows.get(dayOf(change.at));
    if (!row) continue;
    const at = named.indexOf(change.client);
    const index = at < 0 ? named.length - 1 : at;
    row.counts[index] = (row.counts[index] ?? 0) + 1;
    row.total += 1;
  }
  const list = [...rows.values()];
  return { clients: named, days: list, most: Math.max(1, ...list.map((row) => row.total)) };
}

export interface JournalFilter {
  /** Empty for all. */
  client: string;
  run: string;
  /** Words of a path. */
  text: string;
}

export function fitsFilter(change: Change, filter: JournalFilter): boolean {
  if (filter.client && change.client !== filter.client) return false;
  if (filter.run && change.run !== filter.run) return false;
  const wanted = filter.text.trim().toLowerCase();
  return !wanted || change.files.some((file) => `${file.path} ${file.target ?? ""}`.toLowerCase().includes(wanted)) || (change.reason ?? "").toLowerCase().includes(wanted);
}
