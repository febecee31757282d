/** One search box: words are answered at once, meaning a breath later; answers that are too late are dropped. */

import { batch, signal, type ReadonlySignal } from "@preact/signals";
import { failureOf, isAbort, type Client, type Failure, type Reply } from "../../client";
import { argumentsOf, isSameSearch, NO_SEARCH, type SearchMode, type SearchQuery } from "./query";

export type SearchAnswer = Reply<"post", "/tools/search_vault">;
export type Hit = SearchAnswer["results"][number];

export interface Found {
  /** What it answers. */
  of: SearchQuery;
  mode: SearchMode;
  answer: SearchAnswer;
  /** From the key to the answer. */
  ms: number;
}

type Ask = (search: SearchQuery, mode: SearchMode, signal: AbortSignal) => Promise<SearchAnswer>;

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

  constructor(
    private readonly ask: Ask,
    private readonly breathMs = BREATH_MS,
  ) {}

  /** Search; the same search again is not asked again, unless it is wanted so. */
  run(search: SearchQuery, { anew = false } = {}): void {
    if (!anew && isSameSearch(search, this.asked)) return;
    this.asking?.abort();
    this.asked = search;
    if (!search.text.trim()) {
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
    void this.askOne(search, "keyword", asking, began);
    window.setTimeout(() => !asking.signal.aborted && void this.askOne(search, "hybrid", asking, began), this.breathMs);
  }

  private async askOne(search: SearchQuery, mode: SearchMode, asking: AbortController, began: number): Promise<void> {
    try {
      const answer = await this.ask(search, mode, asking.signal);
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
export function askBy(client: Client): Ask {
  return (search, mode, signal) => client.post("/tools/search_vault", { body: argumentsOf(search, mode), signal });
}

export interface Reason {
  id: "name" | "words" | "meaning" | "copies";
  title: string;
  /** What it means, for whoever points at it. */
  tip: string;
}

const NEAR = 0.25;

/** Why a passage was found. */
export function reasonsOf(hit: Hit): Reason[] {
  const parts = (hit.explain ?? {}) as Record<string, number>;
  const reasons: Reason[] = [];
  if ((parts["name"] ?? 0) > 0) reasons.push({ id: "name", title: "Name", tip: "Your words appear in its title, an alias or a heading." });
  if ((parts["keyword"] ?? 0) > 0) reasons.push({ id: "words", title: "Words", tip: "Your words appear in this passage." });
  const cosine = hit.cosine ?? 0;
  if ((parts["dense"] ?? 0) > 0 && cosine >= NEAR) {
    reasons.push({ id: "meaning", title: "Meaning", tip: `Similar in meaning: ${cosine.toFixed(2)} of 1.` });
  }
  const copies = hit.also?.length ?? 0;
  if (copies) reasons.push({ id: "copies", title: `Also in ${copies}`, tip: `The same text is in ${hit.also?.map((copy) => copy.source).join(", ")}.` });
  return reasons;
}
