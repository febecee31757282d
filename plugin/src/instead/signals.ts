/**
 * Signals: values whose readers follow them, be they computed values, effects or components. The parts use those of
 * `@preact/signals`, which the page has; main.js has these, which do the same of it and can be read.
 */

import { Component, options } from "preact";
import { useMemo, useRef } from "preact/hooks";

/** Who is told when something that it read may have changed. */
interface Reader {
  /** What it read last, each at the version that it had then. */
  sources: Map<Source, number>;
  /** Whether it wants to be told; a computed value that nobody follows looks for itself when it is read. */
  readonly isFollowing: boolean;
  onNews(): void;
}

/** What is run when something that it read did change. */
interface Runner extends Reader {
  run(): void;
}

const MAX_ROUNDS = 100;
let reader: Reader | undefined;
/** Grows with each value that is set: while it stays, no computed value can have changed. */
let clock = 0;
let openBatches = 0;
const due = new Set<Runner>();

abstract class Source<T = unknown> {
  /** Grows with each change. */
  version = 0;
  protected readonly readers = new Set<Reader>();

  constructor(protected held: T) {}

  get value(): T {
    this.refresh();
    if (reader && !reader.sources.has(this)) {
      reader.sources.set(this, this.version);
      if (reader.isFollowing) this.addReader(reader);
    }
    return this.held;
  }

  peek(): T {
    return untracked(() => this.value);
  }

  addReader(one: Reader): void {
    this.readers.add(one);
  }

  removeReader(one: Reader): void {
    this.readers.delete(one);
  }

  /** Be of the newest version. */
  abstract refresh(): void;
}

class ValueSignal<T> extends Source<T> {
  override get value(): T {
    return super.value;
  }

  override set value(next: T) {
    if (next === this.held) return;
    this.held = next;
    this.version++;
    clock++;
    batch(() => {
      for (const one of this.readers) one.onNews();
    });
  }

  refresh(): void {
    // It always is.
  }
}

class ComputedSignal<T> extends Source<T> implements Reader {
  sources = new Map<Source, number>();
  private failure: { error: unknown } | undefined;
  private seen = -1;
  private isRunning = false;

  constructor(private readonly work: () => T) {
    super(undefined as T);
  }

  get isFollowing(): boolean {
    return this.readers.size > 0;
  }

  override get value(): T {
    const value = super.value;
    if (this.failure) throw this.failure.error;
    return value;
  }

  override addReader(one: Reader): void {
    if (!this.isFollowing) for (const source of this.sources.keys()) source.addReader(this);
    super.addReader(one);
  }

  override removeReader(one: Reader): void {
    super.removeReader(one);
    if (!this.isFollowing) for (const source of this.sources.keys()) source.removeReader(this);
  }

  refresh(): void {
    if (this.isRunning) throw new Error("a computed value reads itself");
    if (this.seen === clock) return;
    this.seen = clock;
    if (this.version && !isOutdated(this)) return;
    const end = track(this);
    this.isRunning = true;
    try {
      const next = this.work();
      if (!this.version || this.failure || next !== this.held) this.version++;
      this.held = next;
      this.failure = undefined;
    } catch (error) {
      this.failure = { error };
      this.version++;
    } finally {
      this.isRunning = false;
      end();
    }
  }

  onNews(): void {
    for (const one of this.readers) one.onNews();
  }
}

/** Have what is read from now on noted for a reader; gives what ends it, and lets go of what it read before alone. */
function track(one: Reader): () => void {
  const [outer, before] = [reader, one.sources];
  one.sources = new Map();
  reader = one;
  return () => {
    reader = outer;
    for (const source of before.keys()) if (!one.sources.has(source)) source.removeReader(one);
  };
}

/** Whether something that was read has changed; in its order, as what comes first may decide whether the next is read at all. */
function isOutdated({ sources }: Reader): boolean {
  for (const [source, version] of sources) {
    source.refresh();
    if (source.version !== version) return true;
  }
  return false;
}

function letGo(one: Reader): void {
  for (const source of one.sources.keys()) source.removeReader(one);
  one.sources.clear();
}

export type Signal<T> = ValueSignal<T>;
export type ReadonlySignal<T> = Pick<Source<T>, "peek"> & { readonly value: T };

export function signal<T>(value: T): Signal<T> {
  return new ValueSignal(value);
}

export function computed<T>(work: () => T): ReadonlySignal<T> {
  return new ComputedSignal(work);
}

/** Read without following. */
export function untracked<T>(work: () => T): T {
  const outer = reader;
  reader = undefined;
  try {
    return work();
  } finally {
    reader = outer;
  }
}

/** Set several values, and have their readers run once. */
export function batch<T>(work: () => T): T {
  openBatches++;
  try {
    return work();
  } finally {
    if (openBatches > 1) openBatches--;
    else endBatch();
  }
}

function endBatch(): void {
  const failures: unknown[] = [];
  for (let rounds = 0; due.size; rounds++) {
    if (rounds === MAX_ROUNDS) {
      due.clear();
      failures.push(new Error("an effect sets what it reads"));
    }
    const runners = [...due];
    due.clear();
    for (const one of runners) {
      try {
        if (isOutdated(one)) one.run();
      } catch (error) {
        failures.push(error);
      }
    }
  }
  openBatches--;
  if (failures.length) throw failures[0];
}

/** Run now, and each time that something which was read changed; what is returned runs before the next time and at the end. */
export function effect(work: () => unknown): () => void {
  let isOver = false;
  let cleanUp: unknown;
  const tidy = () => {
    if (typeof cleanUp === "function") untracked(cleanUp as () => void);
    cleanUp = undefined;
  };
  const one: Runner = {
    sources: new Map(),
    isFollowing: true,
    onNews: () => void due.add(one),
    run: () =>
      batch(() => {
        tidy();
        const end = track(one);
        try {
          cleanUp = work();
        } finally {
          end();
          if (isOver) letGo(one);
        }
      }),
  };
  one.run();
  return () => {
    isOver = true;
    letGo(one);
    tidy();
  };
}

export function useSignal<T>(value: T): Signal<T> {
  return useMemo(() => signal(value), []);
}

export function useComputed<T>(work: () => T): ReadonlySignal<T> {
  const latest = useRef(work);
  latest.current = work;
  return useMemo(() => computed(() => latest.current()), []);
}

/** A component that was drawn, with what it read then. */
type Drawn = Component & { drawing?: Runner; isNews?: boolean };
type Step = (...given: readonly unknown[]) => void;

/** What Preact calls while it draws: before it looks at a node, draws it, had an error, is done with it, and takes it away. */
const hooks = options as unknown as Partial<Record<"__b" | "__r" | "__e" | "diffed" | "unmount", Step>>;
let endDrawing: (() => void) | undefined;

function atStep(step: keyof typeof hooks, work: (node: { __c?: Drawn }) => void): void {
  const usual = hooks[step];
  hooks[step] = (...given) => {
    endDrawing?.();
    endDrawing = undefined;
    if (step !== "__r") work(given[0] as { __c?: Drawn });
    usual?.(...given);
    if (step === "__r") work(given[0] as { __c?: Drawn });
  };
}

atStep("__b", () => undefined);
atStep("__e", () => undefined);
atStep("diffed", () => undefined);
atStep("__r", ({ __c: component }) => {
  if (!component) return;
  component.isNews = false;
  const drawing: Runner = (component.drawing ??= {
    sources: new Map(),
    isFollowing: true,
    onNews: () => void due.add(drawing),
    run: () => {
      component.isNews = true;
      component.setState({});
    },
  });
  endDrawing = track(drawing);
});
atStep("unmount", ({ __c: component }) => component?.drawing && letGo(component.drawing));

/** What reads signals is drawn anew for them and for other properties alone. */
Component.prototype.shouldComponentUpdate = function (this: Drawn, next: object) {
  if (this.isNews || !this.drawing?.sources.size) return true;
  const [one, other] = [this.props, next] as Record<string, unknown>[];
  return Object.keys({ ...one, ...other }).some((name) => one![name] !== other![name]);
};
