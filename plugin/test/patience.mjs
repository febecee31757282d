/** As ui/scripts/patience.mjs, whose Vitest is another one: tests wait for what comes in the end as long as they may
 * take. */
import { vi } from "vitest";

const { waitFor } = vi;
vi.waitFor = (callback) => waitFor(callback, { timeout: 60_000, interval: 20 });
