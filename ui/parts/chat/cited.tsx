/** Citations in an answer: links to notes become chips that open the note at the lines. */

import type MarkdownIt from "markdown-it";
import type Token from "markdown-it/lib/token.mjs";
import { createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { Icon } from "../basic";
import { noteName } from "../format";
import { useHost, type NoteTarget } from "../host";
import type { MarkdownFeature, Wikilink } from "../markdown";
import type { Citation } from "./turn";

/** The checked citations of the answer around. */
export const CitationsContext = createContext<readonly Citation[]>([]);

export interface CitedLink extends Wikilink {
  first?: number;
  last?: number;
}

const LINES = /^\s*\(lines? (\d{1,7})(?:\s?[-–]\s?(\d{1,7}))?\)/;

/** Take the lines that stand behind a link, as in `[[Garden]] (lines 3-5)`, into the link. */
function citedLines(md: MarkdownIt): void {
  md.core.ruler.after("inline", "cited_lines", (state) => {
    for (const token of state.tokens) {
      const children = token.children ?? [];
      children.forEach((child, index) => {
        const next: Token | undefined = children[index + 1];
        if (child.type !== "wikilink" || next?.type !== "text") return;
        const found = LINES.exec(next.content);
        if (!found) return;
        const first = Number(found[1]);
        child.meta = { ...(child.meta as Wikilink), first, last: Math.max(first, Number(found[2] ?? found[1])) } satisfies CitedLink;
        next.content = next.content.slice(found[0].length);
      });
    }
  });
}

export const CITATIONS: readonly MarkdownFeature[] = [
  { name: "citations", setup: citedLines, draw: { wikilink: ({ token }) => <CitationChip link={token.meta as CitedLink} /> } },
];

function CitationChip({ link }: { link: CitedLink }): JSX.Element {
  const host = useHost();
  const cited = findCitation(link, useContext(CitationsContext));
  const target = targetOf(link, cited);
  const heading = (cited?.heading ?? link.fragment).replace(/^#+\s*/, "");
  const lines = linesText(target.lines);
  const name = link.shown || [noteName(target.path), heading].filter(Boolean).join(" › ");
  return (
    <a
      class="k-cite"
      href={host.href({ kind: "note", ...target }) ?? "#"}
      title={`${target.path}${lines ? `, lines ${lines}` : ""}`}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        host.open({ kind: "note", ...target }, "pane");
      }}
    >
      <Icon name="file-text" />
      <span class="k-cite-name">{name}</span>
      {lines && (
        <span class="k-cite-lines">
          <span class="k-only-read">lines </span>
          {lines}
        </span>
      )}
    </a>
  );
}

/** The checked citation that a link names: the one of its lines, else of its heading, else of its note. */
export function findCitation(link: CitedLink, citations: readonly Citation[]): Citation | undefined {
  const fits = citations.filter((one) => isNamed(one, bare(link.target)));
  const heading = bare(link.fragment.split("#").at(-1) ?? "");
  return (
    fits.find((one) => one.start_line === link.first && one.end_line === link.last) ??
    fits.find((one) => heading && bare(one.heading.replace(/^#+\s*/, "")) === heading) ??
    fits[0]
  );
}

function targetOf(link: CitedLink, cited: Citation | undefined): NoteTarget {
  const lines = cited ? ([cited.start_line, cited.end_line] as const) : link.first ? ([link.first, link.last ?? link.first] as const) : undefined;
  return {
    path: cited?.path ?? (/\.\w{1,8}$/.test(link.target) ? link.target : `${link.target}.md`),
    ...(lines ? { lines } : {}),
    ...(!lines && link.fragment ? { fragment: link.fragment } : {}),
    ...(cited?.hash ? { hash: cited.hash } : {}),
  };
}

function linesText(lines: NoteTarget["lines"]): string {
  if (!lines) return "";
  return lines[0] === lines[1] ? String(lines[0]) : `${lines[0]}–${lines[1]}`;
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
