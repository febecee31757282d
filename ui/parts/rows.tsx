/** Lists: rows, groups, skeletons, empty views, and lists of which only the visible part is drawn. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Failure } from "../client/transport";
import { Icon, type IconName, type Tone } from "./basic";
import { sentence } from "./format";

interface RowProps {
  title: ComponentChildren;
  icon?: IconName;
  /** What stands before the title in the place of an icon. */
  lead?: ComponentChildren;
  /** One line that says more; beside the title, or below it where there are two lines. */
  detail?: ComponentChildren;
  /** Short, at the end: a time, a count. */
  meta?: ComponentChildren;
  /** Buttons that appear on hover and focus; they have room of their own, and cover nothing. */
  actions?: ComponentChildren;
  lines?: 1 | 2;
  href?: string | undefined;
  onClick?: (event: MouseEvent) => void;
  isSelected?: boolean;
  /** In steps of 16 px, for trees. */
  depth?: number;
  /** The whole title, where it may be cut. */
  tip?: string;
  tabIndex?: number;
  isExpanded?: boolean | undefined;
  /** An id for whoever moves the focus here. */
  mainId?: string;
}

/** A row of 32 px (44 on a phone): a link or a button, which the whole row is. */
export function Row(props: RowProps): JSX.Element {
  const { title, icon, lead, detail, meta, actions, lines = 1, href, onClick, isSelected = false, depth = 0, tip } = props;
  const shown = {
    class: "k-row-main",
    id: props.mainId,
    title: tip,
    onClick,
    tabIndex: props.tabIndex,
    style: depth ? { paddingLeft: `${8 + depth * 16}px` } : undefined,
    "aria-current": isSelected ? ("true" as const) : undefined,
    "aria-expanded": props.isExpanded,
  };
  const inside = (
    <>
      {lead ?? (icon && <Icon name={icon} />)}
      <span class="k-row-text">
        <span class="k-row-title k-cut">{title}</span>
        {detail !== undefined && <span class="k-row-detail k-cut">{detail}</span>}
      </span>
      {meta !== undefined && <span class="k-row-meta">{meta}</span>}
    </>
  );
  return (
    <div class="k-row" data-selected={isSelected ? "" : undefined} data-lines={lines}>
      {href === undefined ? (
        <button type="button" {...shown}>
          {inside}
        </button>
      ) : (
        <a href={href} {...shown}>
          {inside}
        </a>
      )}
      {actions && <div class="k-row-actions">{actions}</div>}
    </div>
  );
}

export function GroupTitle({ children }: { children: ComponentChildren }): JSX.Element {
  return <h3 class="k-group">{children}</h3>;
}

/** Rows that are still to come, in the place where they will be. */
export function SkeletonRows({ count = 6 }: { count?: number }): JSX.Element {
  return (
    <div role="status" aria-label="Loading">
      {Array.from({ length: count }, (_, index) => (
        <div class="k-skeleton-row" key={index}>
          <div class="k-skeleton" />
          <div class="k-skeleton" style={{ width: `${40 + ((index * 37) % 45)}%` }} />
        </div>
      ))}
    </div>
  );
}

/** Text that is still to come. */
export function SkeletonText({ lines = 4 }: { lines?: number }): JSX.Element {
  return (
    <div class="k-skeleton-text" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <div class="k-skeleton" key={index} style={{ width: `${index === lines - 1 ? 55 : 88 + ((index * 29) % 12)}%` }} />
      ))}
    </div>
  );
}

interface EmptyProps {
  icon: IconName;
  title: string;
  /** What belongs here. */
  children?: ComponentChildren;
  /** The first step. */
  acts?: ComponentChildren;
}

/** What stands where nothing is yet: what belongs here, and the first step. */
export function Empty({ icon, title, children, acts }: EmptyProps): JSX.Element {
  return (
    <div class="k-empty">
      <div class="k-empty-icon">
        <Icon name={icon} size={20} />
      </div>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {acts && <div class="k-empty-acts">{acts}</div>}
    </div>
  );
}

interface NoticeProps {
  tone?: Extract<Tone, "info" | "warning" | "removed">;
  children: ComponentChildren;
}

/** A word about the view it stands in. */
export function Notice({ tone = "info", children }: NoticeProps): JSX.Element {
  return (
    <div class="k-notice" data-tone={tone} role={tone === "removed" ? "alert" : undefined}>
      <Icon name={tone === "info" ? "info" : tone === "warning" ? "triangle-alert" : "circle-alert"} />
      <div>{children}</div>
    </div>
  );
}

/** A message of the server as a sentence; what stands in backticks, such as a command, is code. */
export function Told({ text }: { text: string }): JSX.Element {
  return <>{sentence(text).split(/`([^`]+)`/).map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

/** What went wrong in the view it stands in, and what helps. */
export function FailureNotice({ failure: { message, hint } }: { failure: Pick<Failure, "message" | "hint"> }): JSX.Element {
  return (
    <Notice tone="removed">
      <Told text={message} />
      {hint && (
        <div class="k-quiet">
          <Told text={hint} />
        </div>
      )}
    </Notice>
  );
}

const PART_ROWS = 50;

/** A list in parts of 50, of which those out of view aren't laid out: thousands of parts cost as much as thousands of rows. */
export function partsOf<T>(items: readonly T[], size = PART_ROWS): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}

interface RowsProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  row: (item: T) => JSX.Element;
  label?: string | undefined;
  /** Puts the key of each into its attribute `data-NAME`. */
  name?: string;
  /** About, in px, until they were laid out once. */
  rowHeight?: number;
}

/** Rows one below the other, as many as there are; a long list is several of 50. */
export function Rows<T>({ items, keyOf, row, label, name, rowHeight = 52 }: RowsProps<T>): JSX.Element {
  const parts = partsOf(items);
  return (
    <>
      {parts.map((part, at) => (
        <ul key={at} class={parts.length > 1 ? "k-rows k-rows-part" : "k-rows"} aria-label={label} style={parts.length > 1 ? { containIntrinsicHeight: `auto ${part.length * rowHeight}px` } : undefined}>
          {part.map((item) => (
            <li key={keyOf(item)} {...(name ? { [`data-${name}`]: keyOf(item) } : {})}>
              {row(item)}
            </li>
          ))}
        </ul>
      ))}
    </>
  );
}

/** What scrolls an element; null for the window. */
function scrollerOf(node: Element): Element | null {
  for (let parent = node.parentElement; parent; parent = parent.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY)) return parent;
  }
  return null;
}

/** A list's next rows: they come when its end comes into view, or at a press. */
export function MoreRows({ title, onMore }: { title: string; onMore: () => void }): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!button.current || !("IntersectionObserver" in window)) return undefined;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onMore(), { root: scrollerOf(button.current), rootMargin: "400px" });
    observer.observe(button.current);
    return () => observer.disconnect();
  }, []);
  return (
    <button ref={button} type="button" class="k-button k-more" data-kind="quiet" onClick={onMore}>
      {title}
    </button>
  );
}

/** Which rows of a list are drawn: those in view, and some beyond both ends. */
export function visibleRange(scrollTop: number, height: number, rowHeight: number, count: number, beyond = 8): [start: number, stop: number] {
  const start = Math.max(0, Math.floor(scrollTop / rowHeight) - beyond);
  const stop = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + beyond);
  return [Math.min(start, Math.max(0, count - 1)), Math.max(stop, 0)];
}

interface VirtualListProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  /** Draws a row; `tabIndex` and `mainId` go to its `Row`, so that the arrow keys find it. */
  row: (item: T, at: { index: number; tabIndex: number; mainId: string }) => JSX.Element;
  label: string;
  /** In px; 32, and 44 on a phone, where it is left out. */
  rowHeight?: number;
  /** Scrolled to when it changes. */
  selectedKey?: string | undefined;
  class?: string;
  /** Told of keys that the list itself doesn't take, for the row that has the focus. */
  onKey?: (event: KeyboardEvent, item: T) => void;
}

/** A list of any length, of which only the visible rows are drawn; one Tab stop, arrow keys within. */
export function VirtualList<T>(props: VirtualListProps<T>): JSX.Element {
  const { items, keyOf, row, label, selectedKey } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const rowHeight = props.rowHeight ?? (isNarrow() ? 44 : 32);
  const active = useSignal(0);
  const prefix = useRef(`k-list-${nextList++}`).current;

  const measure = useCallback(() => {
    const node = box.current;
    if (node) setView((old) => (old.top === node.scrollTop && old.height === node.clientHeight ? old : { top: node.scrollTop, height: node.clientHeight }));
  }, []);

  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, [measure]);

  const reveal = useCallback(
    (index: number) => {
      const node = box.current;
      if (!node) return;
      const top = index * rowHeight;
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top + rowHeight > node.scrollTop + node.clientHeight) node.scrollTop = top + rowHeight - node.clientHeight;
      measure();
    },
    [rowHeight, measure],
  );

  useLayoutEffect(() => {
    if (selectedKey === undefined) return;
    const index = items.findIndex((item) => keyOf(item) === selectedKey);
    if (index < 0) return;
    active.value = index;
    reveal(index);
    // Only when the selection itself changes, not whenever the items do.
  }, [selectedKey]);

  const [start, stop] = visibleRange(view.top, view.height, rowHeight, items.length);
  const current = Math.min(active.value, Math.max(0, items.length - 1));

  const move = (index: number): void => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    active.value = next;
    reveal(next);
    window.requestAnimationFrame(() => document.getElementById(`${prefix}-${next}`)?.focus({ preventScroll: true }));
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: items.length - 1,
    };
    const next = steps[event.key];
    const item = items[current];
    if (next !== undefined) {
      event.preventDefault();
      move(next);
    } else if (item !== undefined) props.onKey?.(event, item);
  };

  const onFocus = (event: FocusEvent): void => {
    const found = (event.target as HTMLElement).id;
    if (found.startsWith(`${prefix}-`)) active.value = Number(found.slice(prefix.length + 1));
  };

  const drawn = items.slice(start, stop);
  const showsCurrent = current >= start && current < stop;
  return (
    <div ref={box} class={`k-virtual ${props.class ?? ""}`} onScroll={measure} onKeyDown={onKeyDown} onFocusIn={onFocus}>
      <div class="k-virtual-room" role="list" aria-label={label} style={{ height: `${items.length * rowHeight}px` }}>
        {drawn.map((item, offset) => {
          const index = start + offset;
          const isStop = index === current || (!showsCurrent && offset === 0);
          return (
            <div
              key={keyOf(item)}
              class="k-virtual-row"
              role="listitem"
              aria-setsize={items.length}
              aria-posinset={index + 1}
              style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
            >
              {row(item, { index, tabIndex: isStop ? 0 : -1, mainId: `${prefix}-${index}` })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

let nextList = 0;

/** Whether the window is as narrow as a phone. */
export function isNarrow(): boolean {
  return window.matchMedia("(max-width: 719px)").matches;
}
