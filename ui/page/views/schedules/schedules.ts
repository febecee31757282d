/** The schedules of a vault: loaded, kept current by the vault's news, and what is done with them. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Body, Reply, ServerEvent } from "../../../client";
import { count, dateTime, resource, sentence, type IconName, type Resource } from "../../../parts";
import type { App } from "../../app";

export type Schedule = Reply<"get", "/schedules">["results"][number];
export type ScheduledRun = NonNullable<Schedule["last"]>;
export type Options = Reply<"get", "/schedules/options">;
export type NewSchedule = Body<"post", "/schedules">;
export type Change = Body<"patch", "/schedules/{name}">;

interface Loaded {
  rows: readonly Schedule[];
  /** What the server's clock shows, less what this one does, in ms: schedules have the clock of the server's wall. */
  ahead: number;
}

/** How a run ended, or stands. */
export const STATES: Readonly<Record<ScheduledRun["state"], { name: string; icon: IconName; tone: string }>> = {
  running: { name: "Running", icon: "loader-circle", tone: "running" },
  complete: { name: "Complete", icon: "circle-check", tone: "complete" },
  limit: { name: "Ended by a limit", icon: "gauge", tone: "cut" },
  asked: { name: "Ended with a question", icon: "circle-question-mark", tone: "cut" },
  failed: { name: "Failed", icon: "circle-x", tone: "failed" },
  interrupted: { name: "Interrupted", icon: "unplug", tone: "interrupted" },
  cancelled: { name: "Cancelled", icon: "circle-stop", tone: "cancelled" },
  held: { name: "Not run: too many proposals wait", icon: "pause", tone: "cut" },
  nothing: { name: "Nothing to do", icon: "circle-check", tone: "nothing" },
};

export class Schedules {
  readonly loaded: Resource<Loaded>;
  readonly options: Resource<Options>;
  /** Whether something that was asked for is on its way. */
  readonly isBusy: Signal<boolean> = signal(false);
  readonly rows: ReadonlySignal<readonly Schedule[]>;

  constructor(private readonly app: App) {
    const { client } = app;
    this.loaded = resource(async (abort) => {
      const { results, now } = await client.get("/schedules", { signal: abort });
      return { rows: results, ahead: new Date(now).getTime() - Date.now() };
    });
    this.options = resource((abort) => client.get("/schedules/options", { signal: abort }));
    this.rows = computed(() => this.loaded.data.value?.rows ?? []);
  }

  find(name: string): Schedule | undefined {
    return this.rows.value.find((row) => row.name === name);
  }

  /** The next one in the list, or the one before. */
  beside(name: string, by: 1 | -1): string | undefined {
    const at = this.rows.value.findIndex((row) => row.name === name);
    return this.rows.value[at < 0 ? 0 : at + by]?.name;
  }

  /** This moment by the server's clock. */
  now(): number {
    return Date.now() + (this.loaded.data.value?.ahead ?? 0);
  }

  /** Whether the server's clock shows another time of the day than this one. */
  get isElsewhere(): boolean {
    return Math.abs(this.loaded.data.value?.ahead ?? 0) > 90_000;
  }

  /** Proposals of its runs that wait for a person, by their ids. */
  waiting(schedule: Schedule): { id: string; path: string }[] {
    const runs = new Set(schedule.runs);
    return this.app.waiting.value
      .filter((row) => row.kind === "proposal" && runs.has(String(row["run"] ?? "")))
      .map((row) => ({ id: row.id, path: String(row["path"] ?? "") }));
  }

  /** Take up what the vault's news tell. */
  hear(event: ServerEvent): void {
    if (event.event === "start" && this.loaded.data.value) void this.loaded.load(); // what was missed isn't told
    if (event.event !== "schedule" || !this.loaded.data.value) return;
    const name = String(event.data["name"]);
    const row = event.data["schedule"] as Schedule | null;
    const before = this.find(name);
    this.put(name, row);
    const ended = row?.last && row.last.state !== "running" && before?.last?.state === "running";
    if (row?.last && ended) this.app.tell(`${name}: ${outcome(row.last)}`);
  }

  async add(body: NewSchedule): Promise<string> {
    const { schedule } = await this.app.client.post("/schedules", { body });
    this.put(schedule.name, schedule);
    return schedule.name;
  }

  async change(name: string, body: Change): Promise<void> {
    const { schedule } = await this.app.client.patch("/schedules/{name}", { path: { name }, body });
    this.put(name, schedule);
  }

  async togglePause(schedule: Schedule): Promise<void> {
    await this.act(() => this.change(schedule.name, { paused: !schedule.paused }));
  }

  async run({ name }: Schedule): Promise<void> {
    await this.act(async () => {
      const { schedule } = await this.app.client.post("/schedules/{name}/run", { path: { name } });
      this.put(name, schedule);
    });
  }

  async stop({ name }: Schedule): Promise<void> {
    await this.act(async () => {
      const { schedule } = await this.app.client.post("/schedules/{name}/cancel", { path: { name } });
      this.put(name, schedule);
    });
  }

  /** Ask, and delete; gives whether it is gone. */
  async remove({ name }: Schedule): Promise<boolean> {
    const text = "Its proposals, reports and conversations stay.";
    if (!(await this.app.floaters.confirm({ title: `Delete the schedule ${name}?`, text, act: "Delete", isDanger: true }))) return false;
    return this.act(async () => {
      await this.app.client.delete("/schedules/{name}", { path: { name } });
      this.put(name, null);
    });
  }

  /** Do one thing at a time, and tell what went wrong; gives whether it was done. */
  private async act(work: () => Promise<void>): Promise<boolean> {
    if (this.isBusy.value) return false;
    this.isBusy.value = true;
    try {
      await work();
      return true;
    } catch (error) {
      this.app.fail(error);
      void this.loaded.load();
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }

  private put(name: string, row: Schedule | null): void {
    const loaded = this.loaded.data.value;
    if (!loaded) return;
    const others = loaded.rows.filter((known) => known.name !== name);
    const rows = row ? [...others, row].sort((one, other) => (one.name < other.name ? -1 : 1)) : others;
    this.loaded.set({ ...loaded, rows });
  }
}

/** When it is due, in words. */
export function whenOf({ cadence, at, weekday, folder }: Pick<Schedule, "cadence" | "at" | "weekday" | "folder">): string {
  if (cadence === "daily") return `Every day at ${at}`;
  if (cadence === "weekly") return `Every ${dayName(weekday)} at ${at}`;
  return folder ? `When notes in ${folder} change` : "When any note changes";
}

export function dayName(weekday: string): string {
  return sentence(weekday);
}

/** When it runs next, in words. */
export function nextOf(schedule: Schedule): string {
  if (schedule.paused) return "Paused";
  return schedule.next ? dateTime(schedule.next) : "After a change";
}

export function isRunning(schedule: Schedule): boolean {
  return schedule.last?.state === "running";
}

/** What became of a run, short. */
export function outcome(run: ScheduledRun): string {
  const name = run.state === "running" && run.cancelled ? "Stopping" : STATES[run.state].name;
  const parts = [run.proposals > 0 && `${count(run.proposals, "proposal")}`, run.changes > 0 && `${count(run.changes, "change")} applied`];
  return [name, ...parts.filter(Boolean)].join(", ");
}
