/** Graph: the notes around one, by links and by meaning; or those that a run or an agent used. */

import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, count, Empty, FailureNotice, folderOf, IconButton, noteName, pick, resource, SkeletonText, Tabs } from "../../../parts";
import { foldersApart, GraphView, type GraphData } from "../../../parts/graph";
import { href, vaultOf, type App } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";
import { tiesOf, TIES, type Ties } from "./ties";
import { createUsed, usedByOf, UsedGraph } from "./used";

const LIMIT = 1_000;
const DEPTHS = [
  { id: "1", title: "1 step" },
  { id: "2", title: "2 steps" },
  { id: "3", title: "3 steps" },
] as const;
const GROUPS = [
  { id: "folder", title: "By folder", icon: "folder" },
  { id: "tag", title: "By tag", icon: "tag" },
] as const;

type Grouping = (typeof GROUPS)[number]["id"];

function create(app: App) {
  const graph = resource((abort, path: string, depth: number, by: Ties) =>
    app.client.get("/graph/{path}", { path: { path }, query: { depth, by, limit: LIMIT }, signal: abort }),
  );
  const grouping = signal<Grouping>("folder");
  const data = computed((): GraphData | undefined => {
    const found = graph.data.value;
    if (!found) return undefined;
    const folders = foldersApart(found.nodes.map((node) => node.path));
    const group = (node: (typeof found.nodes)[number]) => (grouping.value === "tag" ? (node.tags[0] ?? "") : (folders.get(node.path) ?? ""));
    const idOf = (place: number) => found.nodes[place]?.path ?? "";
    return {
      nodes: found.nodes.map((node) => ({ id: node.path, title: noteName(node.path), depth: node.depth, group: group(node) })),
      edges: found.edges.map((edge) => ({ source: idOf(edge.source), target: idOf(edge.target), isFaint: edge.kind === "meaning" })),
    };
  });
  return { ...vaultOf(app), graph, grouping, data, used: createUsed(app) };
}

type State = ReturnType<typeof create>;

function Main(props: ViewProps<State>): JSX.Element {
  const by = usedByOf(props.route);
  return by ? <UsedGraph app={props.app} state={props.state.used} by={by} route={props.route} /> : <Surroundings {...props} />;
}

function Surroundings({ app, state, route }: ViewProps<State>): JSX.Element {
  const path = route.params["path"] ?? "";
  const depth = ["1", "2", "3"].includes(route.query["depth"] ?? "") ? (route.query["depth"] as "1" | "2" | "3") : "2";
  const by = tiesOf(route);
  useEffect(() => {
    if (path) void state.graph.load(path, Number(depth), by);
  }, [path, depth, by]);
  if (!path) return <Beginning app={app} state={state} />;
  const go = (next: { depth?: string; by?: string }) => app.go(href(`graph/${path}`, { depth, by, ...next }), { replace: true });
  const [found, failure, data] = [state.graph.data.value, state.graph.failure.value, state.data.value];
  return (
    <>
      <MainHead app={app} title={`Around ${noteName(path)}`}>
        {app.isNarrow.value ? (
          <>
            <IconButton icon="file-text" label="Open the note" href={app.href({ kind: "note", path })} />
            <IconButton icon="search" label="Choose another note" onClick={() => void choose(app, state)} />
          </>
        ) : (
          <>
            <Button size="small" href={app.href({ kind: "note", path })}>
              Open the note
            </Button>
            <Button size="small" onClick={() => void choose(app, state)}>
              Choose another note
            </Button>
          </>
        )}
      </MainHead>
      <div class="k-graph-tools">
        <Tabs tabs={DEPTHS} current={depth} label="Depth" onChange={(id) => go({ depth: id })} />
        <Tabs tabs={TIES} current={by} label="Connect by" onChange={(id) => go({ by: id })} />
        <Tabs tabs={GROUPS} current={state.grouping.value} label="Colours" onChange={(id) => (state.grouping.value = id)} />
        {found && !state.graph.isLoading.value && (
          <span class="k-quiet" role="status">
            {count(found.nodes.length, "note")}, {count(found.edges.length, "link")}
            {found.is_complete ? "" : `, the nearest ${found.nodes.length.toLocaleString("en")} shown`}
          </span>
        )}
      </div>
      {failure && !failure.isOffline ? (
        <div class="k-content">
          <FailureNotice failure={failure} />
        </div>
      ) : !data || found?.path.toLowerCase() !== path.toLowerCase() ? (
        <div class="k-content">
          <SkeletonText />
        </div>
      ) : data.nodes.length === 1 ? (
        <Empty icon="waypoints" title="No connected notes" acts={by === "links" && <Button onClick={() => go({ by: "both" })}>Include links by meaning</Button>}>
          This note has no links and no backlinks.
        </Empty>
      ) : (
        <GraphView
          data={data}
          label={`Notes around ${noteName(path)}`}
          groupTitle={(group) => group || (state.grouping.value === "tag" ? "No tag" : "Vault root")}
          onOpen={(id, where) => app.open({ kind: "note", path: id }, where)}
          href={(id) => app.href({ kind: "note", path: id })}
        />
      )}
    </>
  );
}

async function choose(app: App, state: State): Promise<void> {
  void state.store.load();
  const choices = () => {
    const read = state.read.items.value;
    const paths = [...read, ...state.store.notes.value.map((note) => note.path).filter((path) => !read.includes(path))];
    return paths.map((path) => ({ value: path, title: noteName(path), detail: folderOf(path), icon: "file-text" as const }));
  };
  const path = await pick(app.floaters, { title: "Graph of a note", placeholder: "Name of a note", choices });
  if (path) app.go(href(`graph/${path}`));
}

function Beginning({ app, state }: { app: App; state: State }): JSX.Element {
  const last = state.read.items.value[0];
  return (
    <>
      <MainHead app={app} title="Graph" />
      <Empty
        icon="waypoints"
        title="Choose a note"
        acts={
          <>
            <Button kind="primary" onClick={() => void choose(app, state)}>
              Choose a note
            </Button>
            {last && (
              <Button href={href(`graph/${last}`)} title={last}>
                <span class="k-cut">Around {noteName(last)}</span>
              </Button>
            )}
          </>
        }
      >
        See the notes connected to it, up to three steps away, by links and by meaning.
      </Empty>
    </>
  );
}

export default defineView({ create, Main, titleOf: ({ route }) => noteName(route.params["path"] ?? "") });
