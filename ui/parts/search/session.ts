/**
 * One search box: words are answered at once, meaning a breath later; answers that are too late are dropped. Filters
 * without words give the notes that pass them.
 */

import { batch, signal, type ReadonlySignal } from "@preact/signals";
import { failureOf, isAbort, type Client, type Failure, type Reply } from "../../client";
import { ago, dateTime } from "../format";
import { listBy, type NextPage } from "./listing";
import { argumentsOf, hasFilters, isSameSearch, NO_SEARCH, type SearchMode, type SearchQuery } from "./query";

export type SearchAnswer = Omit<Reply<"post", "/tools/search_vault">, "results" | "nearest"> & { results: Hit[]; nearest?: Hit[] };
/** A passage; a whole note, where it has no lines. */
export type Hit = Reply<"post", "/tools/search_vault">["results"][number] & {
  /** When a whole note was saved; ISO. */
  modified?: string;
};

export interface Found {
  /** What it answers. */
  of: SearchQuery;
  /** `list`: notes that pass the filters, as there are no words. */
  mode: SearchMode | "list";
  answer: SearchAnswer;
  /** How many notes pass the filters; of a list only. */
  total?: number;
  /** From the key to the answer. */
  ms: number;
}

interface Asks {
  passages: (search: SearchQuery, mode: SearchMode, signal: AbortSignal) => Promise<SearchAnswer>;
  notes: (search: SearchQuery) => NextPage;
}

const BREATH_MS = 140;

export class SearchSession {
  private readonly foundSignal = signal<Found | null>(null);
  private readonly failureSignal = signal<Failure | null>(null);
  private readonly busySignal = signal(false);
  readonly found: ReadonlySignal<Found | null> = this.foundSignal;
  readonly failure: ReadonlySignal<Failure | null> = this.failureSignal;
  readonly isBusy: ReadonlySignal<boolean> = this.busySignal;
  private asking: AbortController | null = null;
  private asked: SearchQuery = NO_SEARCH;
  private nextPage: NextPage | null = null;

  constructor(
    private readonly asks: Asks,
    private readonly breathMs = BREATH_MS,
  ) {}

  /** Search; the same search again is not asked again, unless it is wanted so. */
  run(search: SearchQuery, { anew = false } = {}): void {
    if (!anew && isSameSearch(search, this.asked)) return;
    this.asking?.abort();
    this.asked = search;
    this.nextPage = null;
    if (!search.text.trim() && !hasFilters(search)) {
      this.asking = null;
      batch(() => {
        this.foundSignal.value = null;
        this.failureSignal.value = null;
        this.busySignal.value = false;
      });
      return;
    }
    const asking = (this.asking = new AbortController());
    const began = performance.now();
    this.busySignal.value = true;
    if (!search.text.trim()) {
      this.nextPage = this.asks.notes(search);
      void this.list(search, asking, began);
      return;
    }
    void this.askOne(search, "keyword", asking, began);
    window.setTimeout(() => !asking.signal.aborted && void this.askOne(search, "hybrid", asking, began), this.breathMs);
  }

  /** Read the next page of a list. */
  more(): void {
    if (this.asking && this.nextPage && !this.busySignal.value) {
      this.busySignal.value = true;
      void this.list(this.asked, this.asking, performance.now());
    }
  }

  private async list(search: SearchQuery, asking: AbortController, began: number): Promise<void> {
    try {
      const listing = await this.nextPage?.(asking.signal);
      if (asking !== this.asking || !listing) return;
      batch(() => {
        this.foundSignal.value = { of: search, mode: "list", ...listing, ms: performance.now() - began };
        this.failureSignal.value = null;
        this.busySignal.value = false;
      });
    } catch (error) {
      if (asking !== this.asking || isAbort(error)) return;
      batch(() => {
        this.failureSignal.value = failureOf(error);
        this.busySignal.value = false;
      });
    }
  }

  private async askOne(search: SearchQuery, mode: SearchMode, asking: AbortController, began: number): Promise<void> {
    try {
      const answer = await this.asks.passages(search, mode, asking.signal);
      if (asking !== this.asking) return;
      const shown = this.foundSignal.value;
      const isLate = mode === "keyword" && shown?.mode === "hybrid" && shown.of === search;
      // A word that is half written may have no match yet: what was found before stays until meaning has answered.
      const isHalf = mode === "keyword" && !answer.results.length;
      batch(() => {
        if (!isLate && !isHalf) this.foundSignal.value = { of: search, mode, answer, ms: performance.now() - began };
        this.failureSignal.value = null;
        if (mode === "hybrid") this.busySignal.value = false;
      });
    } catch (error) {
      if (asking !== this.asking || isAbort(error)) return;
      if (mode === "keyword") return; // the same trouble comes with the other one
      batch(() => {
        this.failureSignal.value = failureOf(error);
        this.busySignal.value = false;
      });
    }
  }
}

/** How a session asks the server. */
export function askBy(client: Client): Asks {
  return {
    passages: (search, mode, signal) => client.post("/tools/search_vault", { body: argumentsOf(search, mode), signal }),
    notes: (search) => listBy(client, search),
  };
}

export interface Reason {
  id: "name" | "words" | "meaning" | "copies" | "changed";
  title: string;
  /** What it means, for whoever points at it. */
  tip: string;
}

const NEAR = 0.25;

/** Why a passage was found; of a whole note, when it was changed. */
export function reasonsOf(hit: Hit): Reason[] {
  const parts = (hit.explain ?? {}) as Record<string, number>;
  const reasons: Reason[] = [];
  if ((parts["name"] ?? 0) > 0) reasons.push({ id: "name", title: "Name", tip: "Your words appear in its title, an alias or a heading." });
  // The last of the hits by words has a share of nothing, though its words are marked.
  if ((parts["keyword"] ?? 0) > 0 || hit.matches?.length) reasons.push({ id: "words", title: "Words", tip: "Your words appear in this passage." });
  const cosine = hit.cosine ?? 0;
  if ((parts["dense"] ?? 0) > 0 && cosine >= NEAR) {
    reasons.push({ id: "meaning", title: "Meaning", tip: `Similar in meaning: ${cosine.toFixed(2)} of 1.` });
  }
  const copies = hit.also?.length ?? 0;
  if (copies) reasons.push({ id: "copies", title: `Also in ${copies}`, tip: `The same text is in ${hit.also?.map((copy) => copy.source).join(", ")}.` });
  if (hit.modified) reasons.push({ id: "changed", title: `Changed ${ago(hit.modified)}`, tip: `Saved ${dateTime(hit.modified)}` });
  return reasons;
}
