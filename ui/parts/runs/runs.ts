/** The runs of a vault, and one of them: loaded, followed while it goes, and what is done with it. */

import { signal, type Signal } from "@preact/signals";
import { failureOf, follow, isAbort, textOf, type Failure } from "../../client";
import type { Host } from "../host";
import { allPages, resource, type Resource } from "../resource";
import { afterEvent, isGoing, runState, type Run, type RunOptions, type RunPart, type RunRow } from "./model";

const PAGE = 50;
/** What the server tells at once. */
const MOST_AT_ONCE = 500;
const SOON_MS = 5_000;
const LATER_MS = 10_000;

/** The list of runs; looked at again while somebody sees it. */
export class RunList {
  readonly loaded: Resource<{ rows: RunRow[]; total: number }>;
  readonly options: Resource<RunOptions>;
  readonly limit: Signal<number> = signal(PAGE);
  /** Told of each list, so that an open run is taken up that goes again. */
  onRows: (rows: readonly RunRow[]) => void = () => undefined;
  private timer: number | undefined;
  private watchers = 0;

  constructor(private readonly host: Host) {
    const { client } = host;
    this.loaded = resource(async (abort) => {
      let total = 0;
      const ask = async (page: { limit: number; offset: number }) => {
        const found = await client.get("/runs", { query: page, signal: abort });
        total = found.total;
        return found.results;
      };
      return { rows: await allPages(ask, Math.min(this.limit.value, MOST_AT_ONCE), this.limit.value), total };
    });
    this.options = resource((abort) => client.get("/runs/options", { signal: abort }));
  }

  async load(): Promise<void> {
    window.clearTimeout(this.timer);
    const found = await this.loaded.load();
    if (found) this.onRows(found.rows);
    this.plan();
  }

  /** Look again every while until that is ended. */
  watch(): () => void {
    this.watchers += 1;
    void this.load();
    return () => {
      this.watchers -= 1;
      if (!this.watchers) window.clearTimeout(this.timer);
    };
  }

  more(): void {
    this.limit.value = Math.min(2 * this.limit.value, this.limit.value + MOST_AT_ONCE);
    void this.load();
  }

  private plan(): void {
    window.clearTimeout(this.timer);
    if (!this.watchers) return;
    const soon = this.loaded.data.value?.rows.some(isGoing) ?? false;
    this.timer = window.setTimeout(() => (document.hidden ? this.plan() : void this.load()), soon ? SOON_MS : LATER_MS);
  }

  get isMissing(): boolean {
    return this.loaded.failure.value?.status === 404;
  }

  async begin(body: { task: string } & Record<string, unknown>): Promise<string> {
    const made = await this.host.client.post("/runs", { body });
    void this.load();
    return made.id;
  }
}

/** One run, as somebody looks at it. */
export class RunWatch {
  readonly run = signal<Run | undefined>(undefined);
  readonly failure = signal<Failure | null>(null);
  /** What nodes are at, by their ids. */
  readonly doing: Signal<ReadonlyMap<string, string>> = signal(new Map());
  readonly isLost = signal(false);
  /** For the timeline of a run that goes: the time, every second. */
  readonly now = signal(Date.now());
  private id = "";
  private readonly told = new Set<string>();
  private following: AbortController | null = null;
  private clock: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly host: Host,
    private readonly onChanged: () => void = () => undefined,
  ) {}

  get shownId(): string {
    return this.id;
  }

  /** Show a run, and follow it as long as it goes. */
  async open(id: string): Promise<void> {
    if (this.id !== id) this.clear();
    this.id = id;
    this.failure.value = null;
    await this.look();
    if (this.id === id && this.run.value && isGoing(this.run.value)) this.follow(id);
  }

  leave(): void {
    this.id = "";
    this.clear();
  }

  /** Take up a run that goes again, such as by another window's word. */
  notice(rows: readonly RunRow[]): void {
    const row = rows.find((one) => one.id === this.id);
    const run = this.run.value;
    if (row && run && !this.following && (isGoing(row) || row.state !== run.state || row.updated !== run.updated)) void this.open(row.id);
  }

  private clear(): void {
    this.stop();
    this.run.value = undefined;
    this.failure.value = null;
    this.doing.value = new Map();
  }

  private stop(): void {
    this.following?.abort();
    this.following = null;
    this.isLost.value = false;
    window.clearInterval(this.clock);
    this.now.value = Date.now();
  }

  /** Show the run as it is now. */
  private async look(): Promise<void> {
    const id = this.id;
    try {
      const run = await this.host.client.get("/runs/{run_id}", { path: { run_id: id } });
      if (this.id !== id) return;
      this.run.value = run;
      this.tellQuestions();
    } catch (error) {
      if (this.id === id && !(failureOf(error).isOffline && this.run.value)) this.failure.value = failureOf(error);
    }
  }

  private follow(id: string): void {
    this.following?.abort();
    const own = (this.following = new AbortController());
    window.clearInterval(this.clock);
    this.clock = window.setInterval(() => (this.now.value = Date.now()), 1_000);
    void this.hear(id, own);
  }

  private async hear(id: string, own: AbortController): Promise<void> {
    const isOwn = () => this.following === own && this.id === id;
    try {
      const onConnection = (isLost: boolean) => {
        if (!isOwn()) return;
        const isBack = this.isLost.value && !isLost;
        this.isLost.value = isLost;
        if (isBack) void this.look();
      };
      for await (const event of follow(this.host.client, `/runs/${encodeURIComponent(id)}/events`, { signal: own.signal, onConnection })) {
        if (!isOwn()) return;
        this.take(event);
      }
    } catch (error) {
      if (isOwn() && !isAbort(error)) this.failure.value = failureOf(error);
    }
    if (isOwn()) await this.settle();
  }

  private take(event: Parameters<typeof afterEvent>[1]): void {
    if (event.event === "node") {
      const { id } = event.data["node"] as { id: string };
      this.doing.value = new Map(this.doing.value).set(id, textOf(event.data["doing"]));
    }
    if (event.event === "error") {
      this.host.floaters.toast({ text: textOf(event.data["error"]) || "Something went wrong", hint: textOf(event.data["hint"]), tone: "removed" });
    }
    if (this.run.value) this.run.value = afterEvent(this.run.value, event);
    this.tellQuestions();
  }

  /** Tell of each question once, for those too who look elsewhere. */
  private tellQuestions(): void {
    for (const { id, question } of this.run.value?.checkpoints ?? []) {
      if (this.told.has(id) || !isGoing(this.run.value ?? { state: "" })) continue;
      this.told.add(id);
      this.host.floaters.toast({ text: `The run asks: ${question}` });
    }
  }

  /** Show how the run has ended. */
  private async settle(): Promise<void> {
    this.stop();
    await this.look();
    const run = this.run.value;
    if (run && run.state !== "running") {
      this.run.value = { ...run, is_live: false };
      this.doing.value = new Map();
      this.host.floaters.toast({ text: `Run ended: ${runState(run.state).name.toLowerCase()}` });
    }
    this.onChanged();
  }

  // What is done with it. Each throws what the server refuses.

  part(node: string, signal?: AbortSignal): Promise<RunPart> {
    return this.host.client.get("/runs/{run_id}/nodes/{node_id}", { path: { run_id: this.id, node_id: node }, signal });
  }

  async cancel(): Promise<void> {
    await this.host.client.post("/runs/{run_id}/cancel", { path: { run_id: this.id } });
    this.host.floaters.toast({ text: "Cancelling the run; finished parts are kept" });
  }

  async resume(body: Record<string, unknown> = {}): Promise<void> {
    const id = this.id;
    await this.host.client.post("/runs/{run_id}/resume", { path: { run_id: id }, body });
    this.onChanged();
    await this.open(id);
  }

  async answer(question: string, answer: string): Promise<void> {
    await this.host.client.post("/runs/{run_id}/checkpoints/{checkpoint_id}", { path: { run_id: this.id, checkpoint_id: question }, body: { answer } });
    const run = this.run.value;
    if (run) this.run.value = { ...run, checkpoints: run.checkpoints.filter((one) => one.id !== question) };
  }

  /** Which nodes read notes that were changed since, with the notes. */
  async stale(): Promise<[node: string, paths: string[]][]> {
    const { stale } = await this.host.client.get("/runs/{run_id}/stale", { path: { run_id: this.id } });
    return Object.entries(stale).map(([node, paths]) => [node, [...new Set(paths)]]);
  }

  /** Propose the answer as a note, or as several in a folder; gives the proposal's id, if there is one. */
  async write(to: string): Promise<{ proposal: string; message: string }> {
    const done = await this.host.client.raw<{ proposal_id?: string; message?: string }>("POST", `/runs/${encodeURIComponent(this.id)}/export`, { body: { to } });
    return { proposal: done.proposal_id ?? "", message: done.message ?? "Saved" };
  }

  async delete(): Promise<void> {
    await this.host.client.delete("/runs/{run_id}", { path: { run_id: this.id } });
    this.leave();
    this.onChanged();
  }
}
