/** How much was changed by whom: a column a day, in plain SVG. */

import type { JSX } from "preact";
import { count, date } from "../format";
import type { Plot } from "./model";

const WIDTH = 720;
const HEIGHT = 96;
const FOOT = 20;

interface PlotProps {
  plot: Plot;
  /** The chosen day; empty for none. */
  day: string;
  onDay: (day: string) => void;
}

/** Changes a day, stacked by client; a click on a day shows that day alone. */
export function ChangePlot({ plot, day, onDay }: PlotProps): JSX.Element {
  const step = WIDTH / plot.days.length;
  const bar = Math.min(28, step * 0.64);
  const every = Math.ceil(plot.days.length / 7);
  const total = plot.days.reduce((sum, row) => sum + row.total, 0);
  return (
    <figure class="k-plot" aria-label={`${count(total, "change")} in ${plot.days.length} days`}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + FOOT}`} role="group" aria-label="Changes a day" preserveAspectRatio="none">
        <line class="k-plot-axis" x1="0" x2={WIDTH} y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
        {plot.days.map((row, index) => {
          let top = HEIGHT;
          return (
            <g
              key={row.day}
              class="k-plot-day"
              role="button"
              tabindex={row.total ? 0 : -1}
              aria-pressed={day === row.day}
              aria-disabled={row.total ? undefined : "true"}
              aria-label={`${date(`${row.day}T12:00`)}: ${count(row.total, "change")}${row.counts.map((number, at) => (number ? `, ${plot.clients[at]} ${number}` : "")).join("")}`}
              onClick={() => row.total && onDay(day === row.day ? "" : row.day)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                onDay(day === row.day ? "" : row.day);
              }}
            >
              <title>{`${date(`${row.day}T12:00`)}: ${count(row.total, "change")}`}</title>
              <rect class="k-plot-hit" x={index * step} y="0" width={step} height={HEIGHT} />
              {row.counts.map((number, at) => {
                if (!number) return null;
                const height = Math.max(2, (number / plot.most) * (HEIGHT - 8));
                top -= height;
                return <rect key={at} class="k-plot-bar" data-series={at} x={index * step + (step - bar) / 2} y={top} width={bar} height={Math.max(1, height - 1)} rx="1.5" />;
              })}
            </g>
          );
        })}
      </svg>
      <div class="k-plot-days" aria-hidden="true">
        {plot.days.map((row, index) => {
          const back = plot.days.length - 1 - index;
          return (
            <span key={row.day} data-second={(back / every) % 2 === 1 ? "" : undefined}>
              {back % every === 0 ? date(`${row.day}T12:00`) : ""}
            </span>
          );
        })}
      </div>
      {plot.clients.length > 0 && (
        <ul class="k-plot-legend">
          {plot.clients.map((client, index) => (
            <li key={client}>
              <span class="k-plot-key" data-series={index} aria-hidden="true" />
              {client}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
