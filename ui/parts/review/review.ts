/** One proposal under review: what is shown, where somebody is in it, and what they decide. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { failureOf, type Failure } from "../../client";
import type { Host } from "../host";
import { resource, type Resource } from "../resource";
import { count, noteName } from "../format";
import type { Way } from "./difference";
import { nextOpen, stepFrom, unitsOf, type Proposal, type Unit } from "./model";

export interface Parts {
  files?: string[];
  hunks?: string[];
}

export interface ReviewOptions {
  host: Host;
  way: Signal<Way>;
  /** Told after something was decided, so that lists are loaded again. */
  onDecided?: () => void;
  /** Go to another proposal that waits; undefined where there is none. */
  toNext?: (by: 1 | -1) => (() => void) | undefined;
}

/** The state of one proposal under review, for whatever draws it. */
export class ProposalReview {
  readonly loaded: Resource<Proposal, [id: string]>;
  readonly units: ReadonlySignal<readonly Unit[]>;
  readonly openCount: ReadonlySignal<number>;
  /** The unit where somebody is; empty before there is one. */
  readonly current = signal("");
  /** The hunk whose text is edited; empty for none. */
  readonly editing = signal("");
  readonly isBusy = signal(false);
  /** Why the last decision wasn't taken. */
  readonly problem = signal<Failure | null>(null);
  /** Grows whenever the focus is to go to the current unit. */
  readonly focusing = signal(0);
  readonly way: Signal<Way>;
  private id = "";
  /** Whether the focus hasn't been put into what was opened yet. */
  private isArriving = false;

  constructor(readonly options: ReviewOptions) {
    const { client } = options.host;
    this.way = options.way;
    this.loaded = resource((abort, id: string) => client.get("/proposals/{proposal_id}", { path: { proposal_id: id }, signal: abort }));
    this.units = computed(() => (this.loaded.data.value ? unitsOf(this.loaded.data.value) : []));
    this.openCount = computed(() => this.units.value.filter((unit) => unit.isOpen).length);
  }

  /** Show a proposal; its first open place is where somebody begins. */
  async open(id: string): Promise<void> {
    if (this.id !== id) {
      this.loaded.set(undefined);
      this.isBusy.value = false; // a decision on another proposal goes on without this one
    }
    this.id = id;
    this.problem.value = null;
    this.editing.value = "";
    this.current.value = "";
    this.isArriving = true;
    await this.load();
  }

  /** Load again what is shown, where it was changed elsewhere; nobody is moved by it. */
  async refresh(): Promise<void> {
    if (!this.id || this.isBusy.value || this.editing.value) return;
    await this.load();
  }

  /** Load what is shown; whichever of several loads is the last also takes somebody who has just come to the first open place. */
  private async load(): Promise<void> {
    if (!(await this.loaded.load(this.id))) return;
    if (this.problem.value?.isOffline) this.problem.value = null; // it has just been reached
    if (!this.units.value.some((unit) => unit.id === this.current.value)) this.current.value = nextOpen(this.units.value, "")?.id ?? "";
    if (!this.isArriving) return;
    this.isArriving = false;
    this.focus();
  }

  leave(): void {
    this.id = "";
    this.loaded.set(undefined);
    this.current.value = "";
  }

  get currentUnit(): Unit | undefined {
    return this.units.value.find((unit) => unit.id === this.current.value);
  }

  /** Go to a unit, and put the focus there. */
  goTo(unit: Unit | undefined): void {
    if (!unit) return;
    this.current.value = unit.id;
    this.focus();
  }

  step(by: number): void {
    this.goTo(stepFrom(this.units.value, this.current.value, by));
  }

  focus(): void {
    this.focusing.value += 1;
  }

  acceptUnit(unit: Unit | undefined = this.currentUnit): Promise<void> {
    return unit?.isOpen ? this.accept(partsOf(unit), unit.id) : Promise.resolve();
  }

  rejectUnit(unit: Unit | undefined = this.currentUnit): Promise<void> {
    return unit?.isOpen ? this.reject(partsOf(unit), unit.id) : Promise.resolve();
  }

  /** Accept parts as they are shown; all that is open where none is named. */
  async accept(parts: Parts = {}, from = this.current.value): Promise<void> {
    const shown = this.loaded.data.value;
    if (!shown) return;
    const { host } = this.options;
    await this.decide(from, async () => {
      const done = await host.client.post("/proposals/{proposal_id}/accept", {
        path: { proposal_id: shown.id },
        body: { digest: shown.digest, ...parts },
      });
      if (done.status === "refused") {
        host.floaters.toast({ text: done.reason ?? "Knapper's rules don't allow this change", tone: "removed" });
        return;
      }
      const change = done.change_id;
      const told = parts.hunks || parts.files ? "Accepted" : `Accepted all of ${noteName(shown.files[0]?.path ?? "")}`;
      host.floaters.toast({ text: told, ...(change ? { act: { title: "Undo", run: () => void this.undo(change) } } : {}) });
    });
  }

  async reject(parts: Parts & { reason?: string } = {}, from = this.current.value): Promise<void> {
    const shown = this.loaded.data.value;
    if (!shown) return;
    const { host } = this.options;
    await this.decide(from, async () => {
      await host.client.post("/proposals/{proposal_id}/reject", { path: { proposal_id: shown.id }, body: parts });
      host.floaters.toast({ text: "Rejected" });
    });
  }

  /** Replace the new text of a hunk; it stays open. */
  async edit(hunk: string, text: string): Promise<void> {
    const shown = this.loaded.data.value;
    if (!shown) return;
    const { host } = this.options;
    await this.decide(hunk, async () => {
      await host.client.put("/proposals/{proposal_id}/hunks/{hunk}", {
        path: { proposal_id: shown.id, hunk },
        body: { digest: shown.digest, new_text: text },
      });
      this.editing.value = "";
      host.floaters.toast({ text: "Text saved; nothing accepted yet" });
    });
  }

  /** Say why something failed: above the proposal that it is about, or apart where that isn't shown any more. */
  private fail(error: unknown, id: string): void {
    const failure = failureOf(error);
    if (this.id === id) this.problem.value = failure;
    else this.options.host.floaters.toast({ text: failure.message, tone: "removed", ...(failure.hint ? { hint: failure.hint } : {}) });
  }

  private async undo(change: string): Promise<void> {
    const { host } = this.options;
    try {
      const done = await host.client.post("/changes/{change_id}/undo", { path: { change_id: change }, body: {} });
      host.floaters.toast({ text: `Undone in ${count(done.files.length, "file")}` });
    } catch (error) {
      this.problem.value = failureOf(error);
    }
    this.options.onDecided?.();
    await this.refresh();
  }

  /** Do something, and show what there is then: what failed is said, and what is shown is fresh all the same. */
  private async decide(from: string, work: () => Promise<void>): Promise<void> {
    if (this.isBusy.value) return;
    const { id } = this;
    this.isBusy.value = true;
    this.problem.value = null;
    try {
      await work();
    } catch (error) {
      this.fail(error, id);
    }
    if (this.id !== id) return this.options.onDecided?.();
    await this.loaded.load(id);
    if (this.id !== id) return this.options.onDecided?.();
    this.isBusy.value = false;
    if (!this.editing.value) this.goTo(nextOpen(this.units.value, from) ?? this.units.value.find((unit) => unit.id === from));
    this.options.onDecided?.();
  }
}

function partsOf(unit: Unit): Parts {
  return unit.hunk ? { hunks: [unit.hunk.id] } : { files: [unit.file.path] };
}
