/** What the parts need of the shell that they stand in: the page in a browser, or Obsidian. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Client, ServerEvent } from "../client";
import type { Floaters } from "./floating";
import type { Shortcuts } from "./keys";
import type { Decision } from "./review/changes";
import type { Proposal } from "./review/model";

/** A place in a note. */
export interface NoteTarget {
  path: string;
  /** A heading's text, or a block's id with its `^`. */
  fragment?: string;
  /** Lines that are marked, from 1, both included. */
  lines?: readonly [first: number, last: number];
  /** Of the note when it was cited, so that a reader can say that it was changed since. */
  hash?: string;
  /** Of another vault than the one that is open; empty or missing for that one. */
  vault?: string;
}

/** What else can be opened. */
export type Target =
  | ({ kind: "note" } & NoteTarget)
  | { kind: "proposal"; id: string }
  | { kind: "run"; id: string; part?: string }
  | { kind: "session"; id: string }
  /** The notes that a run used, or that agents chose for one turn of a conversation, as a graph. */
  | { kind: "graph"; run: string }
  | { kind: "graph"; session: string; turn: number }
  | { kind: "search"; query: string };

/** Where something is opened: in the view that it belongs to, in the pane beside, or in a new tab. */
export type Where = "view" | "pane" | "tab";

export interface Host {
  readonly client: Client;
  readonly floaters: Floaters;
  readonly shortcuts: Shortcuts;
  open(target: Target, where?: Where): void;
  /** The address of something, for links; undefined where there are no addresses, such as in Obsidian. */
  href(target: Target): string | undefined;
  /** Resolve a link as it stands in a note to a note's path; undefined where no such note is known. */
  resolveLink?(link: string, from: string): string | undefined;
  /** The image of a path of the vault, such as a `blob:` address; undefined where it can't be had. */
  image?(path: string, signal: AbortSignal): Promise<string | undefined>;
  copy(text: string): Promise<void>;
  /** Ask about a note, or about a part of it, in a conversation. */
  ask?(about: NoteTarget & { quote?: string }): void;
  /** The address that opens a note in Obsidian; missing where this is Obsidian. */
  obsidian?(path: string, vault?: string): string;
  /** Draw a Mermaid diagram: gives an SVG, or throws what is wrong with its text. */
  diagram?(text: string, isDark: boolean): Promise<string>;
  /** Open a note because an agent wants it opened, such as in a tab of its own; where it is missing, `open` is used. */
  navigate?(path: string): void;
  /** Connect with a server, or with another one; missing where the shell is the server's own page. */
  connect?(): void;
  /** Show the settings of a section, such as `models`; missing where the shell has none. */
  openSettings?(section: string): void;
  /** Decide about a proposal just as it is given; missing where nothing but the server writes notes, which is asked then. */
  decide?(proposal: Proposal, decision: Decision): Promise<void>;
  /** Take a change back; missing where the server alone is asked. */
  undo?(change: string): Promise<void>;
  /** Hear what happens in the vault; gives what ends it. Missing where the shell doesn't follow it. */
  onNews?(listener: (event: ServerEvent) => void): () => void;
}

export const HostContext = createContext<Host | null>(null);

/** The shell that a part stands in. */
export function useHost(): Host {
  const host = useContext(HostContext);
  if (!host) throw new Error("there is no HostContext around this part");
  return host;
}
