/** What a run or a part of it says, with the places it cites; and what didn't hold, by name. */

import type { JSX } from "preact";
import { CitationChip, CITATIONS, CitationsContext, Markdown, type Citation as Place } from "../markdown";
import { ALL_NOTES, type Citation } from "./model";

interface AnswerProps {
  text: string;
  citations: readonly Citation[];
  removed: readonly { citation: string; reason: string }[];
  prefix: string;
}

/** An answer, the places it cites, and the citations that were dropped. */
export function Answer({ text, citations, removed, prefix }: AnswerProps): JSX.Element {
  return (
    <div class="k-run-answer">
      {text && (
        <CitationsContext.Provider value={citations}>
          <Markdown text={text} features={CITATIONS} prefix={prefix} />
        </CitationsContext.Provider>
      )}
      <Places title="Cites" places={citations} />
      {removed.length > 0 && (
        <section>
          <h3>Removed, as it couldn't be verified</h3>
          <ul class="k-plain k-run-dropped">
            {removed.map((one, index) => (
              <li key={index}>
                <q>{one.citation}</q> {one.reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** Places in notes, each of which opens. */
export function Places({ title, places }: { title: string; places: readonly Place[] }): JSX.Element | null {
  const keys = places.map((one) => JSON.stringify([one.vault, one.path, one.heading, one.start_line, one.end_line]));
  const shown = places.filter((_, index) => keys.indexOf(keys[index] ?? "") === index);
  if (!shown.length) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="k-plain k-run-places">
        {shown.map((one, index) => (
          <li key={index}>{one.path === ALL_NOTES ? <span class="k-quiet">{[one.vault, "no notes yet; any change may matter"].filter(Boolean).join(": ")}</span> : <CitationChip citation={one} />}</li>
        ))}
      </ul>
    </section>
  );
}
