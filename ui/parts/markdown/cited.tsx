/** Citations in an answer: links to notes become chips that open the note at the lines. */

import { createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { Icon } from "../basic";
import { noteName } from "../format";
import { useHost, type NoteTarget } from "../host";
import type { Wikilink } from "./syntax";

/** A place in a note that an answer cites, or that a part of a run has read. */
export interface Citation {
  path: string;
  heading?: string;
  start_line: number;
  end_line: number;
  /** Of the note when it was cited. */
  hash?: string;
  /** Empty for the vault of the conversation or run. */
  vault?: string;
}

/** The checked citations of the answer around. */
export const CitationsContext = createContext<readonly Citation[]>([]);

export interface CitedLink extends Wikilink {
  first?: number;
  last?: number;
}

/** As models write them: `(lines 3-5)`, `, L3–L5`, `[line 3]`. */
const LINES = /^\s*[([,:]?\s*(?:lines?|L)\.?\s*(\d{1,7})(?:\s*(?:-|–|to)\s*L?(\d{1,7}))?\s*[)\]]?/i;
/** In the place of what is shown, as in `[[Garden|L3-5]]`. */
const SHOWN_LINES = /^(?:lines?|L)\.?\s*(\d{1,7})(?:\s*[-–]\s*L?(\d{1,7}))?$/i;

/** Take the lines into a link that stand in it or behind it, as in `[[Garden]] (lines 3-5)`; gives what is left behind it. */
export function takeLines(link: Wikilink, behind: string): { link: CitedLink; behind: string } {
  const shown = SHOWN_LINES.exec(link.shown);
  const next = shown ? null : LINES.exec(behind);
  const found = shown ?? next;
  if (!found) return { link, behind };
  const first = Number(found[1]);
  const last = Math.max(first, Number(found[2] ?? found[1]));
  return { link: { ...link, shown: shown ? "" : link.shown, first, last }, behind: behind.slice(next?.[0].length ?? 0) };
}

/** A link of an answer, as what it cites; `CitationsContext` has what was checked. */
export function CitedChip({ link }: { link: CitedLink }): JSX.Element {
  const cited = findCitation(link, useContext(CitationsContext));
  return <CitationChip citation={cited ?? unchecked(link)} title={link.shown} />;
}

/** What a link says of itself, where nothing was checked. */
function unchecked(link: CitedLink): Citation {
  const path = /\.\w{1,8}$/.test(link.target) ? link.target : `${link.target}.md`;
  return { path, heading: link.fragment, start_line: link.first ?? 0, end_line: link.last ?? 0 };
}

/** A place in a note; a click opens it in the pane, with its lines marked. */
export function CitationChip({ citation, title = "" }: { citation: Citation; title?: string }): JSX.Element {
  const host = useHost();
  const target = targetOf(citation);
  const lines = linesText(target.lines);
  const kind = lines.includes("–") ? "lines" : "line";
  const vault = citation.vault ? `${citation.vault}: ` : "";
  const name = title || [noteName(citation.path), headingOf(citation)].filter(Boolean).join(" › ");
  return (
    <a
      class="k-cite"
      data-note={citation.vault ? undefined : citation.path}
      href={host.href({ kind: "note", ...target }) ?? "#"}
      title={`${vault}${citation.path}${lines && `, ${kind} ${lines}`}`}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        host.open({ kind: "note", ...target }, "pane");
      }}
    >
      <Icon name="file-text" />
      <span class="k-cite-name">
        {vault}
        {name}
      </span>
      {lines && (
        <span class="k-cite-lines">
          <span class="k-only-read">{kind} </span>
          {lines}
        </span>
      )}
    </a>
  );
}

/** The checked citation that a link names: the one of its lines, else of its heading, else of its note. */
export function findCitation(link: Omit<CitedLink, "shown">, citations: readonly Citation[]): Citation | undefined {
  const fits = citations.filter((one) => isNamed(one, bare(link.target)));
  const heading = bare(link.fragment.split("#").at(-1) ?? "");
  return (
    fits.find((one) => one.start_line === link.first && one.end_line === link.last) ??
    fits.find((one) => heading && bare(headingOf(one)) === heading) ??
    fits[0]
  );
}

function targetOf(citation: Citation): NoteTarget {
  const { path, vault, hash, start_line: first, end_line: last } = citation;
  const heading = headingOf(citation);
  return {
    path,
    ...(first ? { lines: [first, Math.max(first, last)] as const } : {}),
    ...(!first && heading ? { fragment: heading } : {}),
    ...(hash ? { hash } : {}),
    ...(vault ? { vault } : {}),
  };
}

function linesText(lines: NoteTarget["lines"]): string {
  if (!lines) return "";
  return lines[0] === lines[1] ? String(lines[0]) : `${lines[0]}–${lines[1]}`;
}

function headingOf({ heading = "" }: Citation): string {
  return heading.replace(/^#+\s*/, "");
}

/** Whether a note is meant; one of another vault has that vault's name before its own. */
function isNamed({ path, vault = "" }: Citation, named: string): boolean {
  const prefix = vault ? `${vault.toLowerCase()}:` : "";
  if (!named.startsWith(prefix)) return false;
  const rest = named.slice(prefix.length).trim();
  return bare(path) === rest || bare(path).endsWith(`/${rest}`);
}

function bare(text: string): string {
  return text.trim().replace(/\.md$/i, "").toLowerCase();
}
