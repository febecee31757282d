/** A note as it is written, line by line; and how much of a long one is shown. */

import type { JSX } from "preact";

/** A longer text is shown around the lines that are meant. */
const LONG_LINES = 1_500;
const AROUND = 150;

interface Part {
  /** Lines that aren't shown are empty, so that the others keep their numbers. */
  text: string;
  first: number;
  isCut: boolean;
}

/** What is shown of a text: all, or in a long one the lines around those that are meant. */
export function partOf(content: string, lines?: readonly [number, number]): Part {
  const rows = content.split("\n");
  if (!lines || rows.length <= LONG_LINES) return { text: content, first: 1, isCut: false };
  const start = Math.max(0, Math.min(lines[0] - 1 - AROUND, rows.length - 2 * AROUND));
  const stop = Math.max(start + 2 * AROUND, lines[1] + AROUND);
  return { text: "\n".repeat(start) + rows.slice(start, stop).join("\n"), first: start + 1, isCut: true };
}

/** A text as it is written, with the numbers of its lines. */
export function Source({ text, first }: Part): JSX.Element {
  return (
    <ol class="k-source" start={first} tabIndex={0} aria-label="Source of the note">
      {text
        .split("\n")
        .slice(first - 1)
        .map((row, index) => (
          <li key={index} data-line={first + index} data-line-end={first + index}>
            {row.replace(/\r$/, "") || "\u200b"}
          </li>
        ))}
    </ol>
  );
}
