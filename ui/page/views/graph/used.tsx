/** The notes that a run used, or that agents chose for one turn of a conversation, as a graph. */

import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Client } from "../../../client";
import { Button, count, Empty, FailureNotice, noteName, resource, SkeletonText, Tabs } from "../../../parts";
import { readMessages } from "../../../parts/chat/turn";
import { foldersApart, GraphView, type GraphData } from "../../../parts/graph";
import { href, type App } from "../../app";
import type { Route } from "../../router";
import { MainHead } from "../../shell";
import { tiesOf, TIES, type Ties } from "./ties";

/** Whose notes an address asks for. */
export type UsedBy = { run: string } | { session: string; turn: number };

interface Used {
  by: UsedBy;
  /** The task, or the question. */
  title: string;
  /** What each note was to it, by path: those of this vault. */
  notes: ReadonlyMap<string, string>;
  /** How many of other vaults there are, which have no ties to these. */
  others: number;
}

const GROUPS = [
  { id: "use", title: "By use", icon: "quote" },
  { id: "folder", title: "By folder", icon: "folder" },
  { id: "tag", title: "By tag", icon: "tag" },
] as const;
type Grouping = (typeof GROUPS)[number]["id"];
const USES: Readonly<Record<string, string>> = { cited: "Cited", found: "Found", read: "Looked at" };
const MAX_NOTES = 1_000;

/** Read an address such as `/app/graph?run=ID` or `?session=ID&turn=2`; null where it asks for a note's surroundings. */
export function usedByOf(route: Route): UsedBy | null {
  const { run, session, turn = "" } = route.query;
  if (run) return { run };
  return session && /^[1-9]\d{0,8}$/.test(turn) ? { session, turn: Number(turn) } : null;
}

async function readUsed(client: Client, by: UsedBy, signal: AbortSignal): Promise<Used> {
  if ("run" in by) {
    const path = { run_id: by.run };
    const [run, used] = await Promise.all([client.get("/runs/{run_id}", { path, signal }), client.get("/runs/{run_id}/notes", { path, signal })]);
    const own = used.notes.filter((note) => !note.vault);
    return { by, title: run.task, notes: new Map(own.map((note) => [note.path, USES[note.use] ?? note.use])), others: used.notes.length - own.length };
  }
  const { messages } = await client.get("/sessions/{session_id}", { path: { session_id: by.session }, query: { limit: 1, offset: by.turn - 1 }, signal });
  const [turn] = readMessages(messages);
  const notes = new Map<string, string>();
  const add = (rows: readonly { path: string }[] | undefined, use: string) => rows?.forEach(({ path }) => notes.has(path) || notes.set(path, use));
  add(turn?.selection?.notes, "Chosen by the scout");
  add(turn?.context?.notes, "Also in context");
  add(turn?.context?.removed, "Left out by the limit");
  return { by, title: turn?.question ?? "", notes, others: 0 };
}

export function createUsed(app: App) {
  const used = resource((abort, by: UsedBy) => readUsed(app.client, by, abort));
  const graph = resource((abort, paths: readonly string[], by: Ties) => app.client.post("/graph", { body: { paths: [...paths], by }, signal: abort }));
  const grouping = signal<Grouping>("use");
  const data = computed((): GraphData | undefined => {
    const [found, notes] = [graph.data.value, used.data.value?.notes];
    if (!found || !notes) return undefined;
    const folders = foldersApart(found.nodes.map((node) => node.path));
    const useOf = (path: string) => notes.get(path) ?? "";
    const group = ({ path, tags }: (typeof found.nodes)[number]) => (grouping.value === "use" ? useOf(path) : grouping.value === "tag" ? (tags[0] ?? "") : (folders.get(path) ?? ""));
    const idOf = (place: number) => found.nodes[place]?.path ?? "";
    return {
      nodes: found.nodes.map((node) => ({ id: node.path, title: noteName(node.path), depth: 1, group: group(node), detail: useOf(node.path).toLowerCase() })),
      edges: found.edges.map((edge) => ({ source: idOf(edge.source), target: idOf(edge.target), isFaint: edge.kind === "meaning" })),
    };
  });
  return { used, graph, grouping, data };
}

interface UsedGraphProps {
  app: App;
  state: ReturnType<typeof createUsed>;
  by: UsedBy;
  route: Route;
}

export function UsedGraph({ app, state, by, route }: UsedGraphProps): JSX.Element {
  const ties = tiesOf(route);
  const isRun = "run" in by;
  const used = state.used.data.value;
  const isCurrent = JSON.stringify(used?.by) === JSON.stringify(by);
  const paths = isCurrent && used ? [...used.notes.keys()].slice(0, MAX_NOTES) : [];
  useEffect(() => void state.used.load(by), [JSON.stringify(by)]);
  useEffect(() => {
    if (paths.length) void state.graph.load(paths, ties);
  }, [used, isCurrent, ties]);
  const failure = state.used.failure.value ?? state.graph.failure.value;
  const [found, data] = [state.graph.data.value, state.data.value];
  const back = isRun ? href(`runs/${by.run}`) : href(`chat/${by.session}`);
  const go = (next: Ties) => app.go(href("graph", { ...route.query, by: next }), { replace: true });
  return (
    <>
      <MainHead app={app} title={isCurrent && used ? `Notes of “${used.title.split("\n")[0]}”` : "Notes"} back={back}>
        <Button size="small" href={back}>
          {isRun ? "Back to the run" : "Back to the conversation"}
        </Button>
      </MainHead>
      <div class="k-graph-tools">
        <Tabs tabs={TIES} current={ties} label="Connect by" onChange={go} />
        <Tabs tabs={GROUPS} current={state.grouping.value} label="Colours" onChange={(id) => (state.grouping.value = id)} />
        {found && isCurrent && used && !state.graph.isLoading.value && (
          <span class="k-quiet" role="status">
            {[
              `${count(found.nodes.length, "note")}, ${count(found.edges.length, "link")}`,
              used.notes.size > MAX_NOTES ? `the first ${MAX_NOTES.toLocaleString("en")} of ${used.notes.size.toLocaleString("en")} shown` : "",
              found.missing ? `${count(found.missing, "note")} gone since` : "",
              found.is_complete ? "" : "not all compared by meaning",
              used.others ? `${count(used.others, "note")} of other vaults not shown` : "",
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
        )}
      </div>
      {failure && !failure.isOffline ? (
        <div class="k-content">
          <FailureNotice failure={failure} />
        </div>
      ) : isCurrent && !paths.length ? (
        <Empty icon="waypoints" title="No notes used">
          {isRun ? "This run has used no note of this vault." : "No note was chosen for this answer."}
        </Empty>
      ) : !isCurrent || !data ? (
        <div class="k-content">
          <SkeletonText />
        </div>
      ) : (
        <GraphView
          data={data}
          label={isRun ? "Notes that the run used" : "Notes of the answer"}
          groupTitle={(group) => group || (state.grouping.value === "tag" ? "No tag" : "Vault root")}
          onOpen={(id, where) => app.open({ kind: "note", path: id }, where)}
          href={(id) => app.href({ kind: "note", path: id })}
        />
      )}
    </>
  );
}
