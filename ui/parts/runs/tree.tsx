/** The tree of a run with its timeline: when each part was at what, what it cost, how well it found. */

import { useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Icon, type IconName } from "../basic";
import { cost, duration, tokens } from "../format";
import { doingName, isWeak, nodeState, ROOT, timelineOf, treeRows, workMs, type Bar, type RunNode, type Timeline, type TreeRow } from "./model";

interface TreeProps {
  nodes: readonly RunNode[];
  doing: ReadonlySignal<ReadonlyMap<string, string>>;
  now: number;
  /** The part that is shown; empty for none. */
  selected: string;
  /** Grows whenever the focus is to come back to the selected part. */
  focusing: Signal<number>;
  onOpen: (id: string) => void;
}

/** All parts of a run. Arrow keys go through it, Enter opens a part. */
export function RunTree({ nodes, doing, now, selected, focusing, onOpen }: TreeProps): JSX.Element {
  const folded = useSignal<ReadonlySet<string>>(new Set());
  const active = useSignal(selected || ROOT);
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => treeRows(nodes, folded.value), [nodes, folded.value]);
  const timeline = useMemo(() => timelineOf(nodes, now), [nodes, now]);
  const current = rows.some((row) => row.node.id === active.value) ? active.value : (rows[0]?.node.id ?? "");
  useEffect(() => {
    if (selected) active.value = selected;
  }, [selected]);
  useEffect(() => {
    if (focusing.value) focusRow(box.current, active.value);
  }, [focusing.value]);

  const go = (row: TreeRow | undefined): void => {
    if (!row) return;
    active.value = row.node.id;
    focusRow(box.current, row.node.id); // at once, as the next key may open it
  };
  const fold = (id: string, isFolded: boolean): void => {
    const next = new Set(folded.value);
    if (isFolded) next.add(id);
    else next.delete(id);
    folded.value = next;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = rows.findIndex((row) => row.node.id === current);
    const row = rows[index];
    if (!row) return;
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(rows[Math.min(rows.length - 1, index + 1)]),
      ArrowUp: () => go(rows[Math.max(0, index - 1)]),
      ArrowRight: () => (row.isExpanded === false ? fold(row.node.id, false) : row.isExpanded && go(rows[index + 1])),
      ArrowLeft: () => (row.isExpanded ? fold(row.node.id, true) : go(rows.find((other) => other.node.id === row.node.parent))),
      Home: () => go(rows[0]),
      End: () => go(rows.at(-1)),
      Enter: () => onOpen(row.node.id),
      " ": () => onOpen(row.node.id),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  return (
    <div class="k-run-tree" ref={box}>
      <div class="k-tree-head" aria-hidden="true">
        <span>Part</span>
        <span>Score</span>
        <span>Tokens</span>
        <span>Time</span>
        <span class="k-tree-axis">
          <span>0</span>
          <span>{duration(timeline.ms)}</span>
        </span>
      </div>
      <div role="tree" aria-label="Parts" onKeyDown={onKeyDown}>
        {rows.map((row) => (
          <TreeItem
            key={row.node.id}
            row={row}
            doing={doing.value.get(row.node.id) ?? ""}
            now={now}
            timeline={timeline}
            isSelected={row.node.id === selected}
            isStop={row.node.id === current}
            onFold={(isFolded) => fold(row.node.id, isFolded)}
            onOpen={() => {
              active.value = row.node.id;
              onOpen(row.node.id);
            }}
          />
        ))}
      </div>
      {timeline.breaks.length > 0 && <p class="k-quiet k-small k-tree-breaks">Idle time left out: {timeline.breaks.map((one) => one.text).join(", ")}.</p>}
    </div>
  );
}

function focusRow(box: HTMLElement | null, id: string): void {
  const item = box?.querySelector<HTMLElement>(`[data-node="${CSS.escape(id)}"]`);
  item?.focus({ preventScroll: true });
  item?.scrollIntoView?.({ block: "nearest" });
}

interface ItemProps {
  row: TreeRow;
  doing: string;
  now: number;
  timeline: Timeline;
  isSelected: boolean;
  isStop: boolean;
  onFold: (isFolded: boolean) => void;
  onOpen: () => void;
}

function TreeItem({ row, doing, now, timeline, isSelected, isStop, onFold, onOpen }: ItemProps): JSX.Element {
  const { node, depth, isExpanded } = row;
  const isRoot = node.id === ROOT;
  const state = node.state === "running" && doing ? doingName(doing) : nodeState(node.state).name;
  const ms = workMs(node, now);
  const name = isRoot ? "The whole task" : `${node.id} ${node.title}`;
  const facts = [
    state,
    node.score === null ? "" : `score ${node.score.toFixed(2)}`,
    node.tier ? `tier ${node.tier}` : "",
    node.citation_count ? `${node.citation_count} cited` : "",
    node.tokens ? `${node.tokens} tokens` : "",
    node.cost_usd === null ? "" : cost(node.cost_usd),
    node.cached ? "from the cache" : "",
    node.reason,
  ].filter(Boolean);
  return (
    <div
      class="k-run-row"
      role="treeitem"
      aria-level={depth + 1}
      aria-expanded={isExpanded}
      aria-selected={isSelected}
      aria-setsize={row.siblings}
      aria-posinset={row.place}
      tabIndex={isStop ? 0 : -1}
      data-node={node.id}
      data-state={node.state}
      onClick={onOpen}
    >
      <span class="k-only-read">{`${name}: ${facts.join(", ")}`}</span>
      <span class="k-tree-name" aria-hidden="true" style={{ paddingLeft: `${depth * 16}px` }}>
        <span
          class="k-tree-twist"
          onClick={(event) => {
            if (isExpanded === undefined) return;
            event.stopPropagation();
            onFold(isExpanded);
          }}
        >
          {isExpanded !== undefined && <Icon name={isExpanded ? "chevron-down" : "chevron-right"} />}
        </span>
        <StateIcon node={node} />
        <span class="k-tree-text">
          <span class="k-cut" title={node.title}>
            {!isRoot && <span class="k-tree-id">{node.id}</span>}
            {isRoot ? "The whole task" : node.title}
          </span>
          <span class="k-tree-detail k-cut" title={node.reason || undefined}>
            {[node.state === "done" ? "" : state, node.citation_count ? `${node.citation_count} cited` : "", node.cached ? "from the cache" : "", node.reason].filter(Boolean).join(" · ")}
          </span>
        </span>
      </span>
      <span class="k-tree-number" aria-hidden="true" data-weak={isWeak(node) ? "" : undefined} title={isWeak(node) ? "Little was found" : undefined}>
        {node.tier && (
          <span class="k-tree-tier" title={node.tier === "direct" ? "Found by search" : `Tier ${node.tier} stepped in`}>
            {node.tier === "direct" ? "S" : node.tier}
          </span>
        )}
        {node.score === null ? "" : node.score.toFixed(2)}
      </span>
      <span class="k-tree-number k-tree-cost" aria-hidden="true" title={node.tokens ? `${node.tokens} tokens` : undefined}>
        {node.tokens > 0 && <span>{tokens(node.tokens)}</span>}
        {node.cost_usd !== null && <span>{cost(node.cost_usd)}</span>}
      </span>
      <span class="k-tree-number" aria-hidden="true">{ms >= 1 ? duration(ms) : ""}</span>
      <Track bars={timeline.bars.get(node.id) ?? []} breaks={timeline.breaks} />
    </div>
  );
}

function Track({ bars, breaks }: { bars: readonly Bar[]; breaks: Timeline["breaks"] }): JSX.Element {
  return (
    <span class="k-track" aria-hidden="true">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        {breaks.map((one, index) => (
          <line key={`b${index}`} class="k-track-break" x1={one.left} x2={one.left} y1="0" y2="10" />
        ))}
        {bars.map((bar, index) => (
          <rect key={index} class="k-track-bar" data-doing={bar.doing} data-work={bar.isWork ? "" : undefined} x={bar.left} y={bar.isWork ? 2 : 4} width={Math.max(bar.width, bar.isWork ? 0.6 : 0)} height={bar.isWork ? 6 : 2}>
            <title>{bar.text}</title>
          </rect>
        ))}
      </svg>
    </span>
  );
}

const STATE_ICONS: Readonly<Record<string, IconName>> = {
  pending: "circle",
  running: "loader-circle",
  done: "circle-check",
  partial: "circle-dot",
  failed: "circle-x",
  blocked: "ban",
  cut: "circle-stop",
};

function StateIcon({ node }: { node: RunNode }): JSX.Element {
  return (
    <span class="k-state" data-state={node.state}>
      <Icon name={STATE_ICONS[node.state] ?? "circle"} />
    </span>
  );
}

/** What the colours of the timeline stand for. */
export function TimelineKey({ nodes }: { nodes: readonly RunNode[] }): JSX.Element | null {
  const shown = ["deciding", "planning", "retrieving", "asking", "answering", "joining"].filter((doing) => nodes.some((node) => node.spans.some((span) => span.doing === doing)));
  if (!shown.length) return null;
  return (
    <ul class="k-track-key">
      {shown.map((doing) => (
        <li key={doing}>
          <span data-doing={doing} aria-hidden="true" />
          {doingName(doing)}
        </li>
      ))}
    </ul>
  );
}
