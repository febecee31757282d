/** What waits for the person in this vault: proposals with their parts, as the server tells them. */

import type { ServerEvent } from "../../ui/client/events";
import { failureOf } from "../../ui/client/transport";
import type { Connection } from "./connection";

export type Side = "same" | "removed" | "added";

export interface StaleCause {
  code: string;
  message: string;
  line?: number;
  current_text?: string;
}

/** One range of lines that a proposal changes, as the server shows it. */
export interface ServerHunk {
  id: string;
  state: "open" | "accepted" | "rejected";
  /** From 1, in the file as it is on disk. */
  line: number;
  old: string;
  new: string;
  words: [Side, string][];
  edited?: boolean;
  /** Id of the block that shows it in the note. */
  block?: string;
  stale?: StaleCause;
}

export interface ServerFile {
  number: number;
  /** Files of one group are decided together, such as a moved note and the links to it. */
  group: number;
  path: string;
  kind: "edit" | "create" | "move" | "trash";
  state: "open" | "accepted" | "rejected";
  hunks: ServerHunk[];
  diff: string;
  target?: string;
  stale?: StaleCause;
}

export interface Proposal {
  id: string;
  status: string;
  digest: string;
  client: string;
  created: string;
  reason?: string;
  why?: string;
  run?: string;
  tainted?: boolean;
  files: ServerFile[];
}

/** A row of the feed: a proposal's summary, or a task's or run's question. */
export interface WaitingRow {
  kind: "proposal" | "task" | "run";
  id: string;
  client?: string;
  path?: string;
  files?: number;
  reason?: string;
  question?: string;
  [key: string]: unknown;
}

/** One hunk with what has to be known of its proposal to draw and decide it. */
export interface Hunk extends ServerHunk {
  /** Empty for a block that no proposal knows. */
  proposal: string;
  path: string;
  client: string;
  reason: string;
  run: string;
  tainted: boolean;
}

/** A block of a pending edit in a note, as the server lists it. */
interface NoteBlock {
  id: string;
  line: number;
  before: string;
  after: string;
  problem?: string;
}

/** Proposals or notes that are read at once, while many are. */
const AT_ONCE = 8;
/** The tag of blocks, as the server's index has it. */
const TAG = "ai_edit";
const PAGE = 200;

/** The proposals that wait, kept in step by the news; listeners hear of each change. */
export class Waiting {
  /** What else waits, too: questions of tasks and runs. */
  rows: WaitingRow[] = [];
  readonly proposals = new Map<string, Proposal>();
  /** Why proposals could not be read. */
  problem = "";
  private readonly listeners = new Set<() => void>();
  private readonly loads = new Map<string, Promise<void>>();
  /** The blocks of notes, by the notes' paths: of those that are open, and of others that have some. */
  private readonly blocks = new Map<string, readonly NoteBlock[]>();
  private open: ReadonlySet<string> = new Set();

  constructor(private readonly connection: Connection) {}

  /** Tell of each change; the function that is returned ends it. */
  on(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Take an event of the feed in. */
  take(event: ServerEvent): void {
    const data = event.data as Record<string, unknown>;
    if (event.event === "start") {
      this.rows = (data["waiting"] as WaitingRow[] | undefined) ?? [];
      const known = new Set(this.rows.map((row) => row.id));
      for (const id of this.proposals.keys()) if (!known.has(id)) this.proposals.delete(id);
      void this.loadAll(this.rows.filter((row) => row.kind === "proposal").map((row) => row.id));
      void this.findBlocks();
      this.tell();
    } else if (event.event === "waiting") {
      const row = data as unknown as WaitingRow;
      this.rows = [row, ...this.rows.filter((other) => other.id !== row.id || other.kind !== row.kind)];
      if (row.kind === "proposal") void this.load(row.id);
      else this.tell();
    } else if (event.event === "settled") {
      this.rows = this.rows.filter((row) => row.id !== data["id"] || row.kind !== data["kind"]);
      if (data["kind"] === "proposal") this.proposals.delete(String(data["id"]));
      this.tell();
    } else if (event.event === "change") {
      this.reloadChanged(data["files"]);
    }
  }

  /** Forget everything, such as when the pairing ends. */
  clear(): void {
    this.rows = [];
    this.proposals.clear();
    this.blocks.clear();
    this.tell();
  }

  /** Read a proposal as it is now; one read at a time for each. */
  load(id: string): Promise<void> {
    const running = this.loads.get(id);
    if (running) return running;
    const work = this.read(id).finally(() => (this.loads.delete(id), this.tell()));
    this.loads.set(id, work);
    return work;
  }

  /** Read proposals a few at a time, and tell of them together. */
  private async loadAll(ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const wanted = ids.slice(at, at + AT_ONCE).filter((id) => this.rows.some((row) => row.id === id));
      await Promise.all(wanted.map((id) => this.read(id)));
      this.tell();
    }
  }

  /** How many that wait haven't been read yet. */
  get unread(): number {
    return this.rows.filter((row) => row.kind === "proposal" && !this.proposals.has(row.id)).length;
  }

  /** Say which notes are open: what is saved in those is looked at each time. */
  setOpen(paths: ReadonlySet<string>): void {
    const fresh = [...paths].filter((path) => !this.open.has(path));
    this.open = paths;
    for (const path of fresh) void this.loadBlocks(path);
  }

  /** Whether a note's blocks are read anew whenever it is saved, whatever is written in it. */
  follows(path: string): boolean {
    return this.open.has(path) || this.blocks.has(path);
  }

  /** Forget the blocks of a note that isn't there any more. */
  forget(path: string): void {
    if (this.blocks.delete(path)) this.tell();
  }

  /** Find the notes that have blocks, by the tag of those; open ones are read in any case. */
  private async findBlocks(): Promise<void> {
    const found = new Set<string>();
    const { client } = this.connection;
    try {
      for (let offset = 0, size = PAGE; client && size === PAGE; offset += PAGE) {
        const { results } = await client.raw<{ results: { path: string }[] }>("POST", "/tools/find_notes", { body: { tags: [TAG], fields: [], limit: PAGE, offset } });
        size = results.length;
        for (const { path } of results) found.add(path);
      }
    } catch (error) {
      this.problem = failureOf(error).message;
    }
    const paths = [...new Set([...found, ...this.open, ...this.blocks.keys()])];
    for (let at = 0; at < paths.length; at += AT_ONCE) await Promise.all(paths.slice(at, at + AT_ONCE).map((path) => this.loadBlocks(path)));
  }

  /** Read which blocks a note has, also those that no proposal knows. */
  async loadBlocks(path: string): Promise<void> {
    const { client } = this.connection;
    if (!client) return;
    const before = JSON.stringify(this.blocks.get(path) ?? []);
    try {
      const { results } = await client.raw<{ results: NoteBlock[] }>("GET", "/blocks", { query: { path } });
      if (results.length || this.open.has(path)) this.blocks.set(path, results);
      else this.blocks.delete(path);
      this.problem = "";
    } catch (error) {
      const failure = failureOf(error);
      this.blocks.delete(path);
      if (failure.status !== 404 && failure.status !== 403) this.problem = failure.message; // else it isn't a note of the server's
    }
    if (JSON.stringify(this.blocks.get(path) ?? []) !== before) this.tell();
  }

  /** The open hunks of a note, in the order of their lines, with the blocks in it that no proposal knows. */
  hunksOf(path: string): Hunk[] {
    const found: Hunk[] = [];
    for (const proposal of this.proposals.values()) {
      for (const file of proposal.files) {
        if (file.path !== path || file.kind !== "edit") continue;
        for (const hunk of file.hunks) if (hunk.state === "open") found.push(toHunk(hunk, file, proposal));
      }
    }
    const known = new Set(found.map((hunk) => hunk.block));
    for (const block of this.blocks.get(path) ?? []) if (block.id && !known.has(block.id)) found.push(ofBlock(block, path));
    return found.sort((one, other) => one.line - other.line);
  }

  /** All open hunks that are known of in the vault. */
  allHunks(): Hunk[] {
    const open = [...this.proposals.values()].flatMap((proposal) => proposal.files.map((file) => file.path));
    return [...new Set([...open, ...this.blocks.keys()])].sort().flatMap((path) => this.hunksOf(path));
  }

  /** The blocks that no proposal knows. */
  ownBlocks(): Hunk[] {
    return [...this.blocks.keys()].flatMap((path) => this.hunksOf(path)).filter((hunk) => !hunk.proposal);
  }

  /** How many proposals, questions, and blocks of no proposal wait. */
  get count(): number {
    return this.rows.length + this.ownBlocks().length;
  }

  private async read(id: string): Promise<void> {
    const client = this.connection.client;
    if (!client) return;
    try {
      const proposal = await client.raw<Proposal>("GET", `/proposals/${encodeURIComponent(id)}`);
      if (proposal.status === "open" || proposal.status === "stale") this.proposals.set(id, proposal);
      else this.proposals.delete(id);
      this.problem = "";
    } catch (error) {
      const failure = failureOf(error);
      if (failure.status === 404) this.proposals.delete(id);
      else this.problem = failure.message;
    }
  }

  /** A change moved the places of other proposals for the same note: read those again. */
  private reloadChanged(files: unknown): void {
    if (!Array.isArray(files)) return;
    const paths = new Set(files.map((file) => String((file as { path?: unknown }).path)));
    for (const proposal of this.proposals.values()) {
      if (proposal.files.some((file) => paths.has(file.path))) void this.load(proposal.id);
    }
    for (const path of paths) if (this.follows(path)) void this.loadBlocks(path);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

/** A hunk with what has to be known of its proposal. */
export function toHunk(hunk: ServerHunk, file: ServerFile, proposal: Proposal): Hunk {
  return {
    ...hunk,
    proposal: proposal.id,
    path: file.path,
    client: proposal.client,
    reason: proposal.reason ?? "",
    run: proposal.run ?? "",
    tainted: proposal.tainted === true,
  };
}

/** A block that no proposal knows, such as one that was written by hand. */
function ofBlock({ id, line, before, after, problem }: NoteBlock, path: string): Hunk {
  const words: [Side, string][] = [["removed", before], ["added", after]];
  const known = { id, block: id, state: "open", line, old: before, new: after, words: words.filter(([, text]) => text) } as const;
  return { ...known, words: [...known.words], proposal: "", path, client: "unknown", reason: "", run: "", tainted: false, ...(problem ? { stale: { code: "block", message: problem, line } } : {}) };
}
