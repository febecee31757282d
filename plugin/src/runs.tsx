/** Runs in the sidebar: all of them, one with its parts, and the form that begins one. */

import { type Signal, signal, untracked } from "@preact/signals";
import type { JSX } from "preact";
import { Button, IconButton } from "../../ui/parts/basic";
import { BeginRun } from "../../ui/parts/runs/begin";
import { Runs } from "../../ui/parts/runs/list";
import { ROOT } from "../../ui/parts/runs/model";
import { RunPartView } from "../../ui/parts/runs/part";
import { RunList, RunWatch } from "../../ui/parts/runs/runs";
import { replay, RunActs, RunView } from "../../ui/parts/runs/view";
import { DrawnView, ViewHead } from "./drawn";

export const RUNS_VIEW = "knapper-runs";

/** What is shown: the list, the form, a run, or a part of it. */
type Shown = { kind: "list" } | { kind: "new" } | { kind: "run"; id: string; part: string };

export class RunsView extends DrawnView {
  private list!: RunList;
  private watch!: RunWatch;
  private readonly shown: Signal<Shown> = signal({ kind: "list" });
  /** Grows whenever the focus is to come back to the tree. */
  private readonly focusing = signal(0);

  getViewType(): string {
    return RUNS_VIEW;
  }

  getDisplayText(): string {
    return "Runs";
  }

  override getIcon(): string {
    return "workflow";
  }

  protected override onOpen(): Promise<void> {
    const { host } = this;
    const { connection } = this.plugin;
    this.list = new RunList(host);
    this.watch = new RunWatch(host, () => void this.list.load());
    this.list.onRows = (rows) => this.watch.notice(rows);
    this.register(() => this.watch.leave());
    // The news tell when something has changed; nothing is asked for in between.
    this.register(connection.on("news", (event) => event.data["kind"] === "run" && void this.list.load()));
    return super.onOpen();
  }

  protected refill(): void {
    void this.list.load();
    const shown = untracked(() => this.shown.value);
    if (shown.kind === "run") void this.watch.open(shown.id);
  }

  /** Show a run, or a part of one. */
  openRun(id: string, part = ""): void {
    this.shown.value = { kind: "run", id, part };
    if (this.watch.shownId !== id || !untracked(() => this.watch.run.value)) void this.watch.open(id);
  }

  /** Show the form that begins a run. */
  begin(): void {
    this.shown.value = { kind: "new" };
  }

  private back(): void {
    const shown = this.shown.value;
    if (shown.kind === "run" && shown.part) {
      this.shown.value = { ...shown, part: "" };
      this.focusing.value += 1;
      return;
    }
    this.shown.value = { kind: "list" };
    this.watch.leave();
    void this.list.load();
  }

  protected draw(): JSX.Element {
    const shown = this.shown.value;
    const { list, watch, focusing } = this;
    const run = watch.run.value;
    const part = shown.kind === "run" ? run?.nodes.find((node) => node.id === shown.part) : undefined;
    const name = shown.kind === "list" ? "Runs" : shown.kind === "new" ? "New run" : (run?.task.split("\n")[0] ?? "Run");
    const title = !part ? name : part.id === ROOT ? "The whole task" : `${part.id} ${part.title}`;
    return (
      <div class="knapper-runs">
        <ViewHead>
          {shown.kind !== "list" && <IconButton icon="arrow-left" size="small" label="Back" onClick={() => this.back()} />}
          <h2 class="knapper-title k-cut" title={title}>
            {title}
          </h2>
          {shown.kind === "list" && <IconButton icon="plus" size="small" label="New run" onClick={() => this.begin()} />}
          {shown.kind === "run" && !part && <RunActs watch={watch} list={list} onDeleted={() => this.back()} />}
        </ViewHead>
        <div class="knapper-body">
          {shown.kind === "list" && (
            <Runs
              list={list}
              selected=""
              begin={
                <Button kind="primary" icon="plus" onClick={() => this.begin()}>
                  New run
                </Button>
              }
            />
          )}
          {shown.kind === "new" && <BeginRun list={list} others={[]} onBegun={(id) => this.openRun(id)} />}
          {shown.kind === "run" && !part && <RunView watch={watch} list={list} part="" focusing={focusing} onOpenPart={(id) => this.openRun(shown.id, id)} />}
          {shown.kind === "run" && part && (
            <RunPartView key={part.id} watch={watch} id={part.id} onOpen={(id) => this.openRun(shown.id, id)} onReplay={(id) => void replay(this.host, watch, id)} />
          )}
        </div>
      </div>
    );
  }
}
