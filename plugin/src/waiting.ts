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
  /** Id of the block that shows it in the note already. */
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
  proposal: string;
  path: string;
  client: string;
  reason: string;
  run: string;
  tainted: boolean;
}

const MAX_LOADED = 200;

/** The proposals that wait, kept in step by the news; listeners hear of each change. */
export class Waiting {
  /** What else waits, too: questions of tasks and runs. */
  rows: WaitingRow[] = [];
  readonly proposals = new Map<string, Proposal>();
  /** Why proposals could not be read. */
  problem = "";
  private readonly listeners = new Set<() => void>();
  private readonly loads = new Map<string, Promise<void>>();

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
      for (const row of this.rows.slice(0, MAX_LOADED)) if (row.kind === "proposal") void this.load(row.id);
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
    this.tell();
  }

  /** Read a proposal as it is now; one read at a time for each. */
  load(id: string): Promise<void> {
    const running = this.loads.get(id);
    if (running) return running;
    const work = this.read(id).finally(() => this.loads.delete(id));
    this.loads.set(id, work);
    return work;
  }

  /** The open hunks of a note that no block in it shows, in the order of their lines. */
  hunksOf(path: string): Hunk[] {
    const found: Hunk[] = [];
    for (const proposal of this.proposals.values()) {
      for (const file of proposal.files) {
        if (file.path !== path || file.kind !== "edit") continue;
        for (const hunk of file.hunks) if (hunk.state === "open" && !hunk.block) found.push(inProposal(hunk, file, proposal));
      }
    }
    return found.sort((one, other) => one.line - other.line);
  }

  /** All open hunks of the vault. */
  allHunks(): Hunk[] {
    const open = [...this.proposals.values()].flatMap((proposal) => proposal.files.map((file) => file.path));
    return [...new Set(open)].sort().flatMap((path) => this.hunksOf(path));
  }

  /** How many proposals and questions wait. */
  get count(): number {
    return this.rows.length;
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
    this.tell();
  }

  /** A change moved the places of other proposals for the same note: read those again. */
  private reloadChanged(files: unknown): void {
    if (!Array.isArray(files)) return;
    const paths = new Set(files.map((file) => String((file as { path?: unknown }).path)));
    for (const proposal of this.proposals.values()) {
      if (proposal.files.some((file) => paths.has(file.path))) void this.load(proposal.id);
    }
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

function inProposal(hunk: ServerHunk, file: ServerFile, proposal: Proposal): Hunk {
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
