/** The history of a vault: what was asked, found, proposed, decided, changed and undone, by pieces of work. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Client, Reply } from "../../../client";
import { resource, type IconName, type Resource } from "../../../parts";

export type Step = Reply<"get", "/history">["results"][number];
export type StepKind = Step["kind"];

/** Steps that belong together, the first first; of which work it is, and what it is called. */
export interface Work {
  id: string;
  title: string;
  steps: readonly Step[];
}

export interface HistoryFilter {
  kind: StepKind | "";
  /** A piece of work; empty for all. */
  work: string;
  note: string;
}

const PAGE = 40;
const MOST_AT_ONCE = 500;
const BREATH_MS = 200;

export const KINDS: Readonly<Record<StepKind, { name: string; icon: IconName }>> = {
  asked: { name: "Asked", icon: "message-circle-question-mark" },
  found: { name: "Found", icon: "search" },
  scheduled: { name: "Scheduled", icon: "clock" },
  proposed: { name: "Proposed", icon: "git-pull-request" },
  accepted: { name: "Accepted", icon: "check" },
  rejected: { name: "Rejected", icon: "x" },
  changed: { name: "Changed", icon: "file-pen" },
  undone: { name: "Undone", icon: "undo-2" },
  refused: { name: "Refused", icon: "ban" },
};

export class History {
  readonly filter: Signal<HistoryFilter> = signal({ kind: "", work: "", note: "" });
  readonly loaded: Resource<Step[]>;
  /** Whether there are earlier steps than those that are loaded. */
  readonly hasMore = signal(false);
  /** What couldn't be read, so that steps may be missing. */
  readonly notices: Signal<readonly string[]> = signal([]);
  readonly works: ReadonlySignal<Work[]>;
  /** Those steps whose differences are open, by `keyOf`. */
  readonly open: Signal<ReadonlySet<string>> = signal(new Set());
  private size = PAGE;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: Client) {
    this.loaded = resource((abort) => this.fetch(abort));
    this.works = computed(() => worksOf(this.loaded.data.value ?? []));
  }

  /** Load after what was told or typed just now; many of these are one load. */
  loadSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.loaded.load(), BREATH_MS);
  }

  loadMore(): void {
    this.size += PAGE;
    void this.loaded.load();
  }

  setFilter(part: Partial<HistoryFilter>): void {
    this.filter.value = { ...this.filter.value, ...part };
    this.size = PAGE;
    this.loadSoon();
  }

  toggle(key: string): void {
    const open = new Set(this.open.value);
    if (!open.delete(key)) open.add(key);
    this.open.value = open;
  }

  private async fetch(abort: AbortSignal): Promise<Step[]> {
    const { kind, work, note } = this.filter.value;
    const found: Step[] = [];
    let before: string | undefined;
    for (;;) {
      const limit = Math.min(this.size - found.length, MOST_AT_ONCE);
      const query = { limit, before, run: work || undefined, note: note.trim() || undefined, kind: kind || undefined };
      const page = await this.client.get("/history", { query, signal: abort });
      found.push(...page.results);
      this.hasMore.value = page.more;
      this.notices.value = page.notes;
      if (!page.more || found.length >= this.size) return found;
      before = page.next;
    }
  }
}

/** What tells a step from all others. */
export function keyOf(step: Step): string {
  return `${step.kind} ${step.id}`;
}

/** Put steps of the same work together, the latest work first, and each told from its beginning. */
export function worksOf(steps: readonly Step[]): Work[] {
  const groups = new Map<string, Step[]>();
  for (const step of steps) groups.set(step.work, [...(groups.get(step.work) ?? []), step]);
  return [...groups].map(([id, own]) => {
    const told = tellFromStart(own);
    return { id, title: titleOf(told), steps: told };
  });
}

/** The oldest first; what a turn proposed or changed comes after its question, which is stored at the turn's end. */
function tellFromStart(steps: readonly Step[]): Step[] {
  const turnEnds = new Map<string, string>();
  for (const step of steps) if (step.kind === "found") for (const id of [...(step.proposals ?? []), ...(step.changes ?? [])]) turnEnds.set(id, step.at);
  const askedAt = new Set(steps.filter((step) => step.kind === "asked").map((step) => step.at));
  const ends = steps.filter((step) => step.kind === "found" && askedAt.has(step.at)).map((step) => step.at).sort();
  const order = (step: Step): [string, number, string, string, number] => {
    const ofTurn = step.kind === "refused" ? ends.find((end) => end >= step.at) : undefined;
    const made = ["proposed", "rejected", "changed"].includes(step.kind) ? turnEnds.get(step.proposal_id ?? step.id) : undefined;
    const end = ofTurn ?? made ?? step.at;
    const isLater = end > step.at;
    return [isLater ? end : step.at, Number(isLater), step.at, step.id, Number(step.kind === "found" || step.kind === "rejected")];
  };
  return [...steps].map((step) => ({ step, key: order(step) })).sort((one, other) => compare(one.key, other.key)).map(({ step }) => step);
}

function compare(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  for (const [index, part] of one.entries()) {
    const next = other[index] ?? part;
    if (part !== next) return part < next ? -1 : 1;
  }
  return 0;
}

function titleOf(steps: readonly Step[]): string {
  const asked = steps.find((step) => step.kind === "asked" && step.text);
  return asked?.text ?? steps.find((step) => step.schedule)?.schedule ?? "";
}
