/** A graph with its legend, and as a list for whoever can't see a picture, or has none. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { IconButton } from "../basic";
import { count } from "../format";
import type { Where } from "../host";
import { Notice } from "../rows";
import { Tabs } from "../tabs";
import { colorsOf, neighboursOf, type GraphData, type GraphNode, type Placed } from "./model";
import type { Picture } from "./picture";

interface GraphProps {
  data: GraphData;
  /** What it is of, for whoever hears it. */
  label: string;
  /** Says what a group is, for the legend. */
  groupTitle: (group: string) => string;
  onOpen: (id: string, where: Where) => void;
  href: (id: string) => string | undefined;
}

const MAX_LEGEND = 10;
const kept = new Map<string, Placed>();
const MAX_KEPT = 5_000;

/** Draw a graph of plain nodes and edges: a note's surroundings, or what a run touched. */
export function GraphView({ data, label, groupTitle, onOpen, href }: GraphProps): JSX.Element {
  const shown = useSignal<"picture" | "list">("picture");
  const problem = useSignal("");
  const hovered = useSignal<string | null>(null);
  const picture = useRef<Picture | null>(null);
  const colors = useMemo(() => colorsOf(data.nodes), [data]);
  const isList = shown.value === "list" || problem.value !== "";
  return (
    <div class="k-graph">
      <div class="k-graph-head">
        <Tabs
          tabs={[
            { id: "picture", title: "Graph", icon: "waypoints" },
            { id: "list", title: "List", icon: "list" },
          ]}
          current={isList ? "list" : "picture"}
          label="Show as"
          onChange={(id) => (shown.value = id)}
        />
        {!isList && (
          <span class="k-graph-zoom">
            <IconButton icon="minus" size="small" label="Zoom out" onClick={() => picture.current?.zoom(0.7)} />
            <IconButton icon="plus" size="small" label="Zoom in" onClick={() => picture.current?.zoom(1.4)} />
            <IconButton icon="locate" size="small" label="Show all" onClick={() => picture.current?.reset()} />
          </span>
        )}
      </div>
      {problem.value && <Notice tone="warning">The graph can't be drawn here ({problem.value}), so it is shown as a list.</Notice>}
      {isList ? (
        <GraphList data={data} label={label} href={href} onOpen={onOpen} />
      ) : (
        <Canvas data={data} colors={colors} label={label} onOpen={onOpen} picture={picture} onHover={(id) => (hovered.value = id)} onProblem={(text) => (problem.value = text)} />
      )}
      <div class="k-graph-foot">
        <ul class="k-plain k-legend" aria-label="Colours">
          {[...colors].slice(0, MAX_LEGEND).map(([group, color]) => (
            <li key={group}>
              <Dot color={color} />
              {groupTitle(group)}
            </li>
          ))}
          {colors.size > MAX_LEGEND && (
            <li>
              <Dot color={[...colors.values()].at(-1) ?? ""} />
              {count(colors.size - MAX_LEGEND, "other")}
            </li>
          )}
        </ul>
        <span class="k-quiet" aria-live="polite">
          {hovered.value ?? ""}
        </span>
      </div>
    </div>
  );
}

function Dot({ color }: { color: string }): JSX.Element {
  return (
    <svg width={8} height={8} aria-hidden="true">
      <circle cx={4} cy={4} r={4} fill={color} />
    </svg>
  );
}

interface CanvasProps {
  data: GraphData;
  colors: ReadonlyMap<string, string>;
  label: string;
  picture: { current: Picture | null };
  onOpen: GraphProps["onOpen"];
  onHover: (id: string | null) => void;
  onProblem: (text: string) => void;
}

function Canvas({ data, colors, label, picture, onOpen, onHover, onProblem }: CanvasProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isOver = false;
    const draw = async () => {
      const { Picture: Drawing } = await import("./picture");
      if (isOver || !box.current) return;
      const style = getComputedStyle(box.current);
      const token = (name: string) => resolved(box.current as HTMLElement, style.getPropertyValue(name));
      picture.current = new Drawing(box.current, {
        data,
        known: kept,
        colorOf: (node) => colors.get(node.group) ?? "#8f949e",
        colors: { ink: token("--k-ink"), edge: token("--k-control-border"), faint: token("--k-border-strong"), back: token("--k-surface-2") },
        onOpen: (id, event) => onOpen(id, event.ctrlKey || event.metaKey ? "tab" : event.shiftKey ? "pane" : "view"),
        onHover,
      });
    };
    draw().catch((error: unknown) => !isOver && onProblem(error instanceof Error ? (error.message.split("\n")[0] ?? "") : "WebGL is missing"));
    return () => {
      isOver = true;
      for (const [id, place] of picture.current?.places() ?? []) kept.set(id, place);
      while (kept.size > MAX_KEPT) kept.delete([...kept.keys()][0] ?? "");
      picture.current?.close();
      picture.current = null;
    };
  }, [data, colors]);
  return <div ref={box} class="k-graph-canvas" role="img" aria-label={`${label}: ${count(data.nodes.length, "node")}, ${count(data.edges.length, "link")}. The list shows the same.`} />;
}

/** A colour as a canvas takes it: `light-dark()` and the like are worked out by the browser. */
function resolved(parent: HTMLElement, color: string): string {
  const probe = document.createElement("span");
  probe.style.color = color;
  parent.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function placeOf(node: GraphNode): string {
  if (node.detail !== undefined) return node.detail;
  return node.depth === 0 ? "in the center" : count(node.depth, "step");
}

function GraphList({ data, label, href, onOpen }: Pick<GraphProps, "data" | "label" | "href" | "onOpen">): JSX.Element {
  const ties = useMemo(() => neighboursOf(data), [data]);
  const titles = useMemo(() => new Map(data.nodes.map((node) => [node.id, node.title])), [data]);
  return (
    <ul class="k-plain k-graph-list" aria-label={label}>
      {data.nodes.map((node) => {
        const near = [...(ties.get(node.id) ?? [])].map((id) => titles.get(id) ?? id);
        return (
          <li key={node.id}>
            <a
              href={href(node.id) ?? "#"}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.button) return;
                event.preventDefault();
                onOpen(node.id, event.shiftKey ? "pane" : "view");
              }}
            >
              {node.title}
            </a>
            <span class="k-quiet k-small k-cut">
              {placeOf(node)}
              {near.length > 0 && `; connected to ${near.slice(0, 12).join(", ")}${near.length > 12 ? ` and ${near.length - 12} more` : ""}`}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
