/** The tree of notes: only the rows in view are drawn, one Tab stop, arrow keys as in any tree. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../basic";
import { useHost, type Where } from "../host";
import { isNarrow, visibleRange } from "../rows";
import { rowNamed, stepOf, type TreeRow } from "./tree";

interface TreeProps {
  rows: readonly TreeRow[];
  selected: string | undefined;
  onFold: (path: string, isOpen: boolean) => void;
  label: string;
}

const TYPED_MS = 700;

export function NoteTree({ rows, selected, onFold, label }: TreeProps): JSX.Element {
  const host = useHost();
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const active = useSignal(0);
  const typed = useRef({ text: "", at: 0 });
  const rowHeight = isNarrow() ? 44 : 32;

  const measure = useCallback(() => {
    const node = box.current;
    if (node) setView((old) => (old.top === node.scrollTop && old.height === node.clientHeight ? old : { top: node.scrollTop, height: node.clientHeight }));
  }, []);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, [measure]);

  const reveal = (index: number) => {
    const node = box.current;
    if (!node) return;
    const top = index * rowHeight;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + rowHeight > node.scrollTop + node.clientHeight) node.scrollTop = top + rowHeight - node.clientHeight;
    measure();
  };
  const place = useMemo(() => rows.findIndex((row) => !row.isFolder && row.path === selected), [rows, selected]);
  const shown = useRef("");
  useLayoutEffect(() => {
    if (place < 0 || shown.current === selected) return; // folding and unfolding never scrolls away
    shown.current = selected ?? "";
    active.value = place;
    reveal(place);
  }, [place, selected]);

  const move = (index: number) => {
    active.value = index;
    reveal(index);
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus({ preventScroll: true }));
  };
  const choose = (path: string, where: Where) => host.open({ kind: "note", path }, where);
  const current = Math.min(active.value, Math.max(0, rows.length - 1));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey) return;
    const isChosen = event.key === "Enter" && rows[current] && !rows[current]?.isFolder;
    if ((event.ctrlKey || event.metaKey || event.shiftKey) && !isChosen) return;
    const step = stepOf(rows, current, event.key, Math.max(1, Math.floor(view.height / rowHeight) - 1));
    if (step?.kind === "focus") move(step.index);
    else if (step?.kind === "open" || step?.kind === "close") onFold(step.path, step.kind === "open");
    else if (step?.kind === "choose") choose(step.path, event.ctrlKey || event.metaKey ? "tab" : event.shiftKey ? "pane" : "view");
    else if (event.key.length === 1 && /\S/.test(event.key)) {
      const now = Date.now();
      typed.current = { text: (now - typed.current.at < TYPED_MS ? typed.current.text : "") + event.key, at: now };
      const found = rowNamed(rows, current, typed.current.text);
      if (found < 0) return;
      move(found);
      event.stopPropagation(); // a letter in a tree goes to what begins with it, and is no shortcut
    } else return;
    event.preventDefault();
  };

  const [start, stop] = visibleRange(view.top, view.height, rowHeight, rows.length, 12);
  const isCurrentDrawn = current >= start && current < stop;
  return (
    <div ref={box} class="k-virtual k-tree" onScroll={measure} onKeyDown={onKeyDown}>
      <div class="k-virtual-room" role="tree" aria-label={label} style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(start, stop).map((row, offset) => {
          const index = start + offset;
          const isStop = index === current || (!isCurrentDrawn && offset === 0);
          const isSelected = !row.isFolder && row.path === selected;
          const shared = {
            class: "k-tree-row",
            "data-index": index,
            "data-selected": isSelected ? "" : undefined,
            tabIndex: isStop ? 0 : -1,
            role: "treeitem" as const,
            "aria-level": row.depth + 1,
            "aria-posinset": row.place,
            "aria-setsize": row.siblings,
            "aria-selected": isSelected,
            title: row.name,
            style: { top: `${index * rowHeight}px`, height: `${rowHeight}px`, paddingLeft: `${8 + row.depth * 16}px` },
            onFocus: () => (active.value = index),
          };
          if (row.isFolder) {
            return (
              <div key={`${row.path}/`} {...shared} aria-expanded={row.isOpen} onClick={() => onFold(row.path, !row.isOpen)}>
                <Icon name={row.isOpen ? "chevron-down" : "chevron-right"} />
                <span class="k-cut">{row.name}</span>
                <span class="k-tree-count">{row.notes.toLocaleString()}</span>
              </div>
            );
          }
          return (
            <a
              key={row.path}
              {...shared}
              href={host.href({ kind: "note", path: row.path }) ?? "#"}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.button) return;
                event.preventDefault();
                choose(row.path, event.shiftKey ? "pane" : "view");
              }}
            >
              <Icon name="file-text" />
              <span class="k-cut">{row.name}</span>
            </a>
          );
        })}
      </div>
    </div>
  );
}
