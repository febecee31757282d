/** Let tests wait for what comes in the end as long as a test may take: a second, as is usual, is short where two
 * processors check types, build and test at once. */
import { vi } from "vitest";

const { waitFor } = vi;
vi.waitFor = (callback) => waitFor(callback, { timeout: 60_000, interval: 20 });
