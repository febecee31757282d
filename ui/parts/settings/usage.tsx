/** What models have cost today, and what the limits leave. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Client, Reply } from "../../client";
import { cost, count, tokens } from "../format";
import { resource } from "../resource";
import { FailureNotice, SkeletonText } from "../rows";

type Usage = Reply<"get", "/usage">;

export function makeUsageState(client: Client) {
  return { usage: resource((abort): Promise<Usage> => client.get("/usage", { signal: abort })) };
}

export function UsageSummary({ state }: { state: ReturnType<typeof makeUsageState> }): JSX.Element {
  const { usage } = state;
  useEffect(() => void usage.load(), []);
  const found = usage.data.value;
  if (usage.failure.value && !found) return <FailureNotice failure={usage.failure.value} />;
  if (!found) return <SkeletonText lines={3} />;
  const { today, limits, left } = found;
  const isKnown = !today.total_tokens || today.cost_usd !== null;
  return (
    <section class="k-set-group" aria-label="Today">
      <h2>Today</h2>
      <dl class="k-figures">
        <Figure title="Tokens" value={tokens(today.total_tokens)} detail={`${count(today.requests, "request")}: ${tokens(today.input_tokens)} read, ${tokens(today.output_tokens)} written`} share={share(today.total_tokens, limits.day_tokens)} left={left.tokens === null ? "no limit" : `${tokens(left.tokens)} left of ${tokens(limits.day_tokens)}`} />
        <Figure title="Cost" value={isKnown ? cost(today.cost_usd ?? 0) : "–"} detail={isKnown ? "where prices are known" : "prices unknown"} share={share((today.cost_usd ?? 0) * 100, limits.day_cents)} left={left.usd === null ? "no limit" : `${cost(left.usd)} left of ${cost((limits.day_cents ?? 0) / 100)}`} />
      </dl>
    </section>
  );
}

/** The part of a limit that is used, from 0 to 1; none without a limit. */
export function share(used: number, limit: number | null): number | null {
  return limit ? Math.min(1, Math.max(0, used / limit)) : null;
}

interface FigureProps {
  title: string;
  value: string;
  detail: string;
  left: string;
  share: number | null;
}

function Figure({ title, value, detail, left, share: used }: FigureProps): JSX.Element {
  return (
    <div class="k-figure">
      <dt>{title}</dt>
      <dd class="k-figure-value">{value}</dd>
      <dd class="k-small k-quiet">{detail}</dd>
      <dd class="k-figure-left k-small">
        {used !== null && <meter min={0} max={1} high={0.8} value={used} aria-label={`${title} used of today's limit`} />}
        <span class="k-quiet">{left}</span>
      </dd>
    </div>
  );
}
