/** What is loaded from the server, with what a view needs to show of it: data, failure, whether it is on its way. */

import { batch, signal, type ReadonlySignal } from "@preact/signals";
import { failureOf, isAbort, type Failure } from "../client";

export interface Resource<T, A extends unknown[] = []> {
  /** The last good answer; kept while a newer one is on its way. */
  readonly data: ReadonlySignal<T | undefined>;
  readonly failure: ReadonlySignal<Failure | undefined>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Load; only the answer to what was asked last is used. */
  load(...args: A): Promise<T | undefined>;
  /** Put an answer in that is known already, such as what a change gave back. */
  set(data: T | undefined): void;
  /** Give up whatever is on its way. */
  stop(): void;
}

export function resource<T, A extends unknown[] = []>(ask: (signal: AbortSignal, ...args: A) => Promise<T>): Resource<T, A> {
  const data = signal<T | undefined>(undefined);
  const failure = signal<Failure | undefined>(undefined);
  const isLoading = signal(false);
  let asking: AbortController | null = null;
  return {
    data,
    failure,
    isLoading,
    async load(...args) {
      asking?.abort();
      const own = (asking = new AbortController());
      isLoading.value = true;
      try {
        const found = await ask(own.signal, ...args);
        if (own !== asking) return undefined;
        batch(() => {
          data.value = found;
          failure.value = undefined;
          isLoading.value = false;
        });
        return found;
      } catch (error) {
        if (own !== asking || isAbort(error)) return undefined;
        batch(() => {
          failure.value = failureOf(error);
          isLoading.value = false;
        });
        return undefined;
      }
    },
    set(next) {
      asking?.abort();
      asking = null;
      batch(() => {
        data.value = next;
        failure.value = undefined;
        isLoading.value = false;
      });
    },
    stop() {
      asking?.abort();
      asking = null;
      isLoading.value = false;
    },
  };
}

const PAGE = 500;
const MOST = 5_000;

/** Load all rows of a list that the server tells in pages, up to *most*; one page more than is full. */
export async function allPages<T>(ask: (page: { limit: number; offset: number }) => Promise<readonly T[]>, size = PAGE, most = MOST): Promise<T[]> {
  const rows: T[] = [];
  while (rows.length < most) {
    const page = await ask({ limit: size, offset: rows.length });
    rows.push(...page);
    if (page.length < size) break;
  }
  return rows;
}
