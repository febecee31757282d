/** All proposals of a vault that wait, those that are decided, and who only proposes; with what is done to many at once. */

import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { failureOf, type Failure } from "../../client";
import type { Host } from "../host";
import { allPages, resource, type Resource } from "../resource";
import { byOrigin, isWaiting, type ProposalGroup, type ProposalRow, type Restriction } from "./model";

/** Shown first; the rest comes after them. */
const FIRST_ROWS = 200;
const MOST_ROWS = 5_000;
const BREATH_MS = 150;
/** The server looks at the note of each proposal that it lists, so many aren't asked for at each word of news. */
const LONG_BREATH_MS = 3_000;

/** What became of a batch. */
export interface BatchResult {
  done: number;
  /** What couldn't be decided, with the reason. */
  left: { row: ProposalRow; failure: Failure }[];
}

export class ReviewList {
  readonly waiting: Resource<ProposalRow[], [most: number]>;
  readonly decided: Resource<ProposalRow[]>;
  readonly restricted: Resource<Restriction[]>;
  readonly groups: ReadonlySignal<ProposalGroup[]>;
  /** In the order of the list, as n and p go through them. */
  readonly order: ReadonlySignal<readonly string[]>;
  /** How many of a batch are still to come; 0 where none is under way. */
  readonly batchLeft = signal(0);
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: Host) {
    const { client } = host;
    this.waiting = resource(async (abort, most: number) => {
      const ask = (status: string, size?: number) =>
        allPages(async (page) => (await client.get("/proposals", { query: { status, ...page }, signal: abort })).results, size, most);
      const [open, stale] = await Promise.all([ask("open", most === FIRST_ROWS ? most : undefined), ask("stale", FIRST_ROWS)]);
      const rows = new Map([...open, ...stale].map((row) => [row.id, row]));
      return [...rows.values()].filter(isWaiting).sort((one, other) => other.created.localeCompare(one.created) || other.id.localeCompare(one.id));
    });
    this.decided = resource(async (abort) => {
      const { results } = await client.get("/proposals", { query: { limit: FIRST_ROWS }, signal: abort });
      return results.filter((row) => !isWaiting(row));
    });
    this.restricted = resource(async (abort) => (await client.get("/trust", { query: { limit: FIRST_ROWS }, signal: abort })).results);
    this.groups = computed(() => byOrigin(this.waiting.data.value ?? []));
    this.order = computed(() => this.groups.value.flatMap((group) => group.rows.map((row) => row.id)));
  }

  async load(): Promise<void> {
    await Promise.all([this.loadWaiting(), this.decided.load(), this.restricted.load()]);
  }

  private async loadWaiting(): Promise<void> {
    if (!this.waiting.data.value) {
      const first = await this.waiting.load(FIRST_ROWS);
      if (!first || first.length < FIRST_ROWS) return;
    }
    await this.waiting.load(MOST_ROWS);
  }

  /** Load after what was told just now; many news are one load. */
  loadSoon(): void {
    clearTimeout(this.timer);
    // Peeked at: an effect that calls this would otherwise run again at each load, and never end.
    const isLong = (this.waiting.data.peek()?.length ?? 0) >= FIRST_ROWS;
    this.timer = setTimeout(() => void this.load(), isLong ? LONG_BREATH_MS : BREATH_MS);
  }

  /** What waits beside a proposal, round and round; undefined where nothing else does. */
  beside(id: string, by: 1 | -1): string | undefined {
    const order = this.order.value;
    const index = order.indexOf(id);
    const next = index < 0 ? order.at(by > 0 ? 0 : -1) : order.at((index + by) % order.length);
    return next === id ? undefined : next;
  }

  /** Accept or reject whole proposals, one after the other; what can't be is left and told. */
  async decideAll(rows: readonly ProposalRow[], act: "accept" | "reject", reason = ""): Promise<BatchResult> {
    const result: BatchResult = { done: 0, left: [] };
    this.batchLeft.value = rows.length;
    for (const row of rows) {
      try {
        await this.decide(row.id, act, reason);
        result.done += 1;
      } catch (error) {
        result.left.push({ row, failure: failureOf(error) });
      }
      this.batchLeft.value -= 1;
    }
    this.batchLeft.value = 0;
    await this.load();
    return result;
  }

  private async decide(id: string, act: "accept" | "reject", reason: string): Promise<void> {
    const { client } = this.host;
    const path = { proposal_id: id };
    if (act === "reject") {
      await client.post("/proposals/{proposal_id}/reject", { path, body: { reason } });
      return;
    }
    const { digest } = await client.get("/proposals/{proposal_id}", { path });
    const done = await client.post("/proposals/{proposal_id}/accept", { path, body: { digest } });
    if (done.status === "refused") throw failureOf(new Error(done.reason ?? "it was refused"));
  }

  /** Trust a client or one of its runs again; everybody, where none is named. */
  async trust(client = "", run = ""): Promise<void> {
    await this.host.client.post("/trust", { body: client ? { client, run } : { all: true } });
    await this.restricted.load();
  }
}
