import { effect, signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Host } from "../host";
import { ReviewList } from "./waiting";

describe("what waits for review", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is loaded once where an effect asks for it, and again only when the effect's own signal changes", async () => {
    const get = vi.fn(async () => ({ results: [] }));
    const list = new ReviewList({ client: { get } } as unknown as Host);
    const isReached = signal(true);
    const stop = effect(() => {
      if (isReached.value) list.loadSoon();
    });
    await vi.advanceTimersByTimeAsync(10_000);
    const once = get.mock.calls.length;
    isReached.value = false;
    isReached.value = true;
    await vi.advanceTimersByTimeAsync(10_000);
    stop();

    expect(once).toBe(4); // those that are open, those whose note changed, all, and who only proposes
    expect(get).toHaveBeenCalledTimes(2 * once);
  });
});
