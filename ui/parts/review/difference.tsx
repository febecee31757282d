/** Differences as a person reads them: by words in line or side by side, and by lines as `diff -u` has them. */

import type { JSX } from "preact";
import { diffLines, piecesOf, revealed, sideBySide, withEnds, type Line, type Piece } from "./model";

export type Way = "inline" | "side";

const MOST_LINES = 2_000;

interface DifferenceProps {
  words: readonly (readonly string[])[];
  way: Way;
  /** The first line's number, on the old and on the new side. */
  first: readonly [number, number];
}

/** A hunk's difference by words. */
export function Difference({ words, way, first }: DifferenceProps): JSX.Element {
  if (way === "side") return <SideBySide words={words} first={first} />;
  const pieces = piecesOf(words);
  const whole = pieces.length === 1 && pieces[0]?.side !== "same" ? pieces[0]?.side : undefined;
  return <div class="k-diff" data-whole={whole}>{pieces.length ? pieces.map((piece, index) => <Marked key={index} piece={piece} />) : <span class="k-quiet">Nothing</span>}</div>;
}

function Marked({ piece }: { piece: Piece }): JSX.Element {
  if (piece.side === "same") return <>{revealed(piece.text)}</>;
  const Tag = piece.side === "removed" ? "del" : "ins";
  return (
    <Tag>
      <span class="k-only-read">{piece.side}: </span>
      {withEnds(revealed(piece.text))}
    </Tag>
  );
}

function SideBySide({ words, first }: Omit<DifferenceProps, "way">): JSX.Element {
  const rows = sideBySide(words, first);
  return (
    <div class="k-diff-sides" role="table" aria-label="The text before and after">
      {rows.map((row, index) => (
        <div class="k-diff-pair" role="row" key={index} data-same={row.old && row.new && !row.old.isChanged && !row.new.isChanged ? "" : undefined}>
          <SideLine line={row.old} side="removed" />
          <SideLine line={row.new} side="added" />
        </div>
      ))}
    </div>
  );
}

function SideLine({ line, side }: { line: Line | null; side: "removed" | "added" }): JSX.Element {
  return (
    <div class="k-diff-line" role="cell" data-side={line?.isChanged ? side : line ? undefined : "none"}>
      <span class="k-diff-number" aria-hidden="true">
        {line?.number}
      </span>
      <span class="k-diff-text">{line?.pieces.map((piece, index) => <Marked key={index} piece={piece} />)}</span>
    </div>
  );
}

/** A unified difference, line by line. */
export function LineDifference({ diff, isCut = false, label = "What changed" }: { diff: string; isCut?: boolean; label?: string }): JSX.Element {
  const lines = diffLines(diff);
  return (
    <div class="k-diff-lines" tabIndex={0} role="group" aria-label={label}>
      {lines.slice(0, MOST_LINES).map(({ kind, text }, index) => {
        if (kind === "place") return index ? <div key={index} class="k-diff-place" aria-hidden="true" /> : null;
        const Tag = kind === "added" ? "ins" : kind === "removed" ? "del" : "span";
        return (
          <Tag key={index} class="k-diff-row">
            <span class="k-diff-sign" aria-hidden="true">
              {kind === "added" ? "+" : kind === "removed" ? "-" : ""}
            </span>
            {kind !== "same" && <span class="k-only-read">{kind}: </span>}
            <span class="k-diff-text">{revealed(text) || "\u200b"}</span>
          </Tag>
        );
      })}
      {lines.length > MOST_LINES && <p class="k-quiet k-small">{lines.length - MOST_LINES} more lines</p>}
      {isCut && <p class="k-quiet k-small">The rest is too long to be shown</p>}
    </div>
  );
}
