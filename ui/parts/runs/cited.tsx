/** Answers with what they cite: links open the passages that were checked, and what didn't hold is named. */

import type MarkdownIt from "markdown-it";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Icon } from "../basic";
import { noteName } from "../format";
import { useHost, type NoteTarget } from "../host";
import { Markdown, type MarkdownFeature } from "../markdown";
import type { Wikilink } from "../markdown/syntax";
import { ALL_NOTES, type Citation } from "./model";

/** A place in a note, as citations and sources name it. */
export interface Place {
  vault?: string;
  path: string;
  heading?: string;
  start_line: number;
  end_line: number;
}

interface AnswerProps {
  text: string;
  citations: readonly Citation[];
  removed: readonly { citation: string; reason: string }[];
  prefix: string;
}

/** An answer, the places it cites, and the citations that were dropped. */
export function Answer({ text, citations, removed, prefix }: AnswerProps): JSX.Element {
  const features = useMemo(() => [citing(citations)], [citations]);
  return (
    <div class="k-run-answer">
      {text && <Markdown text={text} features={features} prefix={prefix} />}
      <Places title="Cites" places={citations} />
      {removed.length > 0 && (
        <section>
          <h3>Left out, as it doesn't hold</h3>
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

/** Draw links of an answer as the checked citations that they name. */
function citing(citations: readonly Citation[]): MarkdownFeature {
  return {
    name: "cited",
    setup: withoutLines,
    draw: {
      wikilink: ({ token }) => {
        const link = token.meta as Wikilink;
        const cited = citationOf(link.target, link.fragment, citations);
        if (cited) return <PlaceLink place={cited} title={link.shown || undefined} />;
        return <PlaceLink place={{ path: link.target.endsWith(".md") ? link.target : `${link.target}.md`, heading: link.fragment, start_line: 0, end_line: 0 }} title={link.shown || undefined} />;
      },
    },
  };
}

/** Leave out the lines that stand behind a link, as in `[[Garden]] (lines 3-5)`: the link itself shows them. */
function withoutLines(md: MarkdownIt): void {
  md.core.ruler.after("inline", "cited_lines", (state) => {
    for (const { children } of state.tokens) {
      children?.forEach((child, index) => {
        const next = children[index + 1];
        if (child.type === "wikilink" && next?.type === "text") next.content = next.content.replace(/^\s*\(lines? \d{1,7}(?:\s?[-–]\s?\d{1,7})?\)/, "");
      });
    }
  });
}

/** The checked citation that a link means: that of its heading before any of its note. */
export function citationOf(target: string, fragment: string, citations: readonly Citation[]): Citation | undefined {
  const named = bare(target);
  const fitting = citations.filter(({ path, vault }) => {
    const prefix = vault ? `${vault.toLowerCase()}:` : "";
    if (!named.startsWith(prefix)) return false;
    const rest = named.slice(prefix.length).trim();
    return bare(path) === rest || bare(path).endsWith(`/${rest}`);
  });
  return fitting.find((one) => fragment && bare(headingOf(one)) === bare(fragment)) ?? fitting[0];
}

function bare(text: string): string {
  return text.trim().replace(/\.md$/i, "").toLowerCase();
}

function headingOf({ heading = "" }: { heading?: string }): string {
  return heading.replace(/^#+\s*/, "");
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
          <li key={index}>{one.path === ALL_NOTES ? <span class="k-quiet">{[one.vault, "no note; any that changes may tell more"].filter(Boolean).join(": ")}</span> : <PlaceLink place={one} />}</li>
        ))}
      </ul>
    </section>
  );
}

/** A place in a note, which opens in the pane. */
function PlaceLink({ place, title }: { place: Place; title?: string | undefined }): JSX.Element {
  const host = useHost();
  const heading = headingOf(place);
  const target: NoteTarget = {
    path: place.path,
    ...(place.start_line ? { lines: [place.start_line, Math.max(place.start_line, place.end_line)] as const } : {}),
    ...(!place.start_line && heading ? { fragment: heading } : {}),
  };
  const lines = place.start_line ? (place.end_line > place.start_line ? `${place.start_line}–${place.end_line}` : String(place.start_line)) : "";
  return (
    <a
      class="k-run-cite"
      href={host.href({ kind: "note", ...target }) ?? "#"}
      title={`${place.vault ? `${place.vault}: ` : ""}${place.path}${lines ? `, lines ${lines}` : ""}`}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        host.open({ kind: "note", ...target }, "pane");
      }}
    >
      <Icon name="file-text" />
      <span>
        {place.vault ? `${place.vault}: ` : ""}
        {title ?? [noteName(place.path), heading].filter(Boolean).join(" › ")}
      </span>
      {lines && <span class="k-quiet">{lines}</span>}
    </a>
  );
}
