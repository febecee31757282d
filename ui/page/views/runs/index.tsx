/** Runs: all of them at the left, one with its tree and timeline in the middle, a part in the pane. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, IconButton, Row } from "../../../parts";
import { BeginRun, chooseRun, CompareRuns, replay, ROOT, RunActs, RunList, RunPartView, Runs, RunView, RunWatch } from "../../../parts/runs";
import { href, type App } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";

interface State {
  list: RunList;
  watch: RunWatch;
  /** Grows whenever the focus is to come back to the tree. */
  focusing: Signal<number>;
}

function create(app: App): State {
  const list = new RunList(app);
  const watch = new RunWatch(app, () => void list.load());
  list.onRows = (rows) => watch.notice(rows);
  app.onNews((event) => {
    if (event.data["kind"] === "run") void list.load();
  });
  return { list, watch, focusing: signal(0) };
}

function List({ app, state, route }: ViewProps<State>): JSX.Element {
  const isReached = app.session.isReached.value;
  useEffect(() => state.list.watch(), [isReached]);
  return (
    <>
      {app.isNarrow.value && <Row icon="clock" title="Schedules" detail="Agents that run by themselves" href={href("schedules")} />}
      <Runs
        list={state.list}
        selected={route.params["id"] ?? ""}
        begin={
          <Button kind="primary" icon="plus" href={href("runs", { new: "1" })}>
            New run
          </Button>
        }
      />
    </>
  );
}

function Main(props: ViewProps<State>): JSX.Element {
  const { app, state, route } = props;
  const id = route.params["id"];
  if (!id) return <NewRun app={app} list={state.list} />;
  const other = route.query["with"];
  return other ? <Compare app={app} one={id} other={other} /> : <OneRun {...props} id={id} />;
}

function NewRun({ app, list }: { app: App; list: RunList }): JSX.Element {
  const { vault, vaults } = app.session;
  return (
    <>
      <MainHead app={app} title="New run" back={href("runs")} />
      <div class="k-main-scroll">
        <div class="k-content">
          <BeginRun list={list} others={vaults.value.filter((name) => name !== vault.value)} onBegun={(id) => app.go(href(`runs/${id}`))} />
        </div>
      </div>
    </>
  );
}

function OneRun({ app, state, route, id }: ViewProps<State> & { id: string }): JSX.Element {
  const { list, watch, focusing } = state;
  const part = route.query["part"] ?? "";
  const isReached = app.session.isReached.value;
  const isThere = watch.run.value !== undefined;
  useEffect(() => {
    if (watch.shownId !== id || !watch.run.peek()) void watch.open(id);
  }, [id, isReached]);
  useEffect(() => {
    if (part && isThere) showPart(app, state, id, part);
  }, [id, part, isThere]);
  useEffect(() => {
    // When the pane is closed, the tree has the focus again.
    if (app.pane.value === null && document.activeElement === document.body && part) focusing.value += 1;
  }, [app.pane.value]);
  const openPart = (node: string) => {
    app.go(href(`runs/${id}`, { part: node }), { replace: true });
    showPart(app, state, id, node);
  };
  return (
    <>
      <MainHead app={app} title={watch.run.value?.task.split("\n")[0] || "Run"} back={href("runs")}>
        <RunActs
          watch={watch}
          list={list}
          onCompare={() => void chooseRun(app, list, id).then((other) => other && app.go(href(`runs/${id}`, { with: other })))}
          onDeleted={() => app.go(href("runs"), { replace: true })}
        />
      </MainHead>
      <div class="k-main-scroll">
        <div class="k-content k-content-wide">
          <RunView watch={watch} list={list} part={app.pane.value?.key === partKey(id, part) ? part : ""} focusing={focusing} onOpenPart={openPart} />
        </div>
      </div>
    </>
  );
}

function partKey(run: string, part: string): string {
  return `part:${run}:${part}`;
}

function showPart(app: App, state: State, id: string, part: string): void {
  const node = state.watch.run.peek()?.nodes.find((one) => one.id === part);
  if (!node) return;
  const open = (other: string) => {
    app.go(href(`runs/${id}`, { part: other }), { replace: true });
    showPart(app, state, id, other);
  };
  app.showPane({
    key: partKey(id, part),
    title: part === ROOT ? "The whole task" : `${part} ${node.title}`,
    icon: "list-tree",
    body: () => <RunPartView key={part} watch={state.watch} id={part} onOpen={open} onReplay={(node) => void replay(app, state.watch, node)} />,
  });
}

function Compare({ app, one, other }: { app: App; one: string; other: string }): JSX.Element {
  return (
    <>
      <MainHead app={app} title="Run comparison" back={href(`runs/${one}`)}>
        <Button size="small" href={href(`runs/${one}`)}>
          Back to the run
        </Button>
      </MainHead>
      <div class="k-main-scroll">
        <div class="k-content k-content-wide">
          <CompareRuns one={one} other={other} />
        </div>
      </div>
    </>
  );
}

export default defineView<State>({
  create,
  List,
  ListActions: () => <IconButton icon="plus" size="small" label="New run" href={href("runs", { new: "1" })} />,
  Main,
  isItem: (route) => route.params["id"] !== undefined || route.query["new"] !== undefined,
  titleOf: ({ state, route }) => (route.params["id"] ? (state.watch.run.value?.task.slice(0, 60) ?? "") : ""),
  palette: (app, state) => [
    {
      id: "runs",
      title: "Runs",
      limit: 5,
      find: async (query) => {
        if (!state.list.loaded.data.value && !state.list.isMissing) await state.list.loaded.load();
        const wanted = query.trim().toLowerCase();
        const fresh = "new run".includes(wanted) ? [{ id: "new-run", title: "New run", icon: "plus" as const, run: () => app.go(href("runs", { new: "1" })) }] : [];
        const found = (state.list.loaded.data.value?.rows ?? []).filter((run) => wanted && run.task.toLowerCase().includes(wanted));
        return [...fresh, ...found.map((run) => ({ id: run.id, title: run.task, icon: "workflow" as const, run: () => app.go(href(`runs/${run.id}`)) }))];
      },
    },
  ],
});
