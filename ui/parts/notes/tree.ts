/** A vault's notes as a tree of folders, of which the open ones are shown as rows. */

import { noteName } from "../format";
import { compareNames } from "./store";

export interface TreeRow {
  /** Path of the note or folder. */
  path: string;
  name: string;
  isFolder: boolean;
  /** Steps from the root, from 0. */
  depth: number;
  /** Of a folder: whether it is open, and how many notes are in it and below. */
  isOpen: boolean;
  notes: number;
  /** Place among its siblings, from 1, and how many there are. */
  place: number;
  siblings: number;
}

interface Folder {
  path: string;
  name: string;
  folders: Map<string, Folder>;
  notes: string[];
  count: number;
}

/** Sort notes into folders; made once for a list of notes. */
export function treeOf(paths: readonly string[]): Folder {
  const root: Folder = { path: "", name: "", folders: new Map(), notes: [], count: 0 };
  for (const path of paths) {
    let folder = root;
    folder.count += 1;
    let from = 0;
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", from)) {
      const name = path.slice(from, at);
      let next = folder.folders.get(name);
      if (!next) folder.folders.set(name, (next = { path: path.slice(0, at), name, folders: new Map(), notes: [], count: 0 }));
      folder = next;
      folder.count += 1;
      from = at + 1;
    }
    folder.notes.push(path);
  }
  return root;
}

/** The rows that are shown: of each open folder its folders, then its notes, both by name. */
export function rowsOf(root: Folder, open: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (folder: Folder, depth: number): void => {
    const folders = [...folder.folders.values()].sort((one, other) => compareNames(one.name, other.name));
    const notes = folder.notes.map((path) => ({ path, name: noteName(path) })).sort((one, other) => compareNames(one.name, other.name));
    const siblings = folders.length + notes.length;
    folders.forEach((child, index) => {
      const isOpen = open.has(child.path);
      rows.push({ path: child.path, name: child.name, isFolder: true, depth, isOpen, notes: child.count, place: index + 1, siblings });
      if (isOpen) add(child, depth + 1);
    });
    notes.forEach(({ path, name }, index) => {
      rows.push({ path, name, isFolder: false, depth, isOpen: false, notes: 0, place: folders.length + index + 1, siblings });
    });
  };
  add(root, 0);
  return rows;
}

/** The folders that lead to a note or folder. */
export function foldersTo(path: string): string[] {
  const folders: string[] = [];
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) folders.push(path.slice(0, at));
  return folders;
}

export type TreeStep = { kind: "focus"; index: number } | { kind: "open" | "close"; path: string } | { kind: "choose"; path: string };

/** What a key does in a tree, for the row at an index; undefined for what isn't the tree's. */
export function stepOf(rows: readonly TreeRow[], index: number, key: string, page = 10): TreeStep | undefined {
  const row = rows[index];
  if (!row) return undefined;
  const focus = (to: number): TreeStep => ({ kind: "focus", index: Math.max(0, Math.min(rows.length - 1, to)) });
  switch (key) {
    case "ArrowDown":
      return focus(index + 1);
    case "ArrowUp":
      return focus(index - 1);
    case "PageDown":
      return focus(index + page);
    case "PageUp":
      return focus(index - page);
    case "Home":
      return focus(0);
    case "End":
      return focus(rows.length - 1);
    case "ArrowRight":
      if (!row.isFolder) return undefined;
      return row.isOpen ? focus(index + 1) : { kind: "open", path: row.path };
    case "ArrowLeft": {
      if (row.isOpen) return { kind: "close", path: row.path };
      const parent = row.path.slice(0, Math.max(0, row.path.lastIndexOf("/")));
      return parent ? focus(rows.findIndex((other) => other.isFolder && other.path === parent)) : undefined;
    }
    case "Enter":
    case " ":
      if (row.isFolder) return { kind: row.isOpen ? "close" : "open", path: row.path };
      return { kind: "choose", path: row.path };
    default:
      return undefined;
  }
}

/** The row that begins with what was typed, from the one after an index on; -1 where none does. */
export function rowNamed(rows: readonly TreeRow[], index: number, typed: string): number {
  const wanted = typed.toLowerCase();
  const from = typed.length > 1 ? index : index + 1;
  for (let step = 0; step < rows.length; step += 1) {
    const at = (from + step) % rows.length;
    if (rows[at]?.name.toLowerCase().startsWith(wanted)) return at;
  }
  return -1;
}
