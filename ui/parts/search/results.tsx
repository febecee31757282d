/** What a search found: passages with what matched in them, why they are here, and where they lead. */

import { computed, useSignal, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Icon, type IconName } from "../basic";
import { count, duration, folderOf, languageOfDates, noteName } from "../format";
import { useHost, type Target, type Where } from "../host";
import { partsOf, Told } from "../rows";
import { piecesOf, snippetOf, wordsOf, type Piece } from "./query";
import { reasonsOf, type Found, type Hit, type Reason } from "./session";

/** A text in which what matched is marked. */
export function Marked({ pieces }: { pieces: readonly Piece[] }): JSX.Element {
  return <>{pieces.map(({ text, isMatch }, index) => (isMatch ? <mark class="k-mark" key={index}>{text}</mark> : text))}</>;
}

const REASON_ICONS: Readonly<Record<Reason["id"], IconName>> = { name: "heading", words: "text-cursor-input", meaning: "sparkles", copies: "copy", changed: "clock" };

/** Where a hit leads. */
export function targetOf(hit: Hit): Target & { kind: "note" } {
  return { kind: "note", path: hit.source, ...(hit.end_line ? { lines: [hit.start_line, hit.end_line] as const } : {}) };
}

/** A heading as it is shown; empty for a note's beginning, and where it only says the note's name again. */
export function headingOf(hit: Hit): string {
  if (hit.heading === "top-level") return "";
  if (hit.heading === "frontmatter") return "Properties";
  const heading = hit.heading.replace(/^#+\s*/, "");
  return heading === noteName(hit.source) ? "" : heading;
}

const HIT_HEIGHT = 96;

export const optionId = (index: number): string => `k-hit-${index}`;

interface ResultsProps {
  hits: readonly Hit[];
  text: string;
  label: string;
  /** The one that Enter opens. */
  active: number;
  onActive: (index: number) => void;
}

/** Passages as options of the box above them; each is a link too. A row is drawn anew only when it becomes active, or is no more. */
export function HitList({ hits, text, label, active, onActive }: ResultsProps): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const current = useSignal(active);
  const tell = useRef(onActive);
  tell.current = onActive;
  useLayoutEffect(() => {
    current.value = active;
  }, [active]);
  useEffect(() => {
    if (active > 0) document.getElementById(optionId(active))?.scrollIntoView({ block: "nearest" });
    else list.current?.closest(".k-main-scroll")?.scrollTo?.({ top: 0 });
  }, [active]);
  const rows = useMemo(() => {
    const words = wordsOf(hits, text);
    const toActive = (index: number) => index !== current.peek() && tell.current(index);
    const drawn = hits.map((hit, index) => <HitRow key={`${hit.source}:${hit.start_line}`} hit={hit} index={index} words={words} active={current} onActive={toActive} />);
    const parts = partsOf(drawn);
    if (parts.length < 2) return drawn;
    return parts.map((part, at) => (
      <div key={at} class="k-rows-part" role="presentation" style={{ containIntrinsicHeight: `auto ${part.length * HIT_HEIGHT}px` }}>
        {part}
      </div>
    ));
  }, [hits, text]);
  return (
    <div ref={list} class="k-hits" id="k-hits" role="listbox" aria-label={label}>
      {rows}
    </div>
  );
}

interface HitRowProps {
  hit: Hit;
  index: number;
  words: ReturnType<typeof wordsOf>;
  active: ReadonlySignal<number>;
  onActive: (index: number) => void;
}

function HitRow({ hit, index, words, active, onActive }: HitRowProps): JSX.Element {
  const host = useHost();
  const isActive = useMemo(() => computed(() => active.value === index), [active, index]).value; // anew where the row has moved
  const heading = headingOf(hit);
  const folder = folderOf(hit.source);
  const open = (event: MouseEvent) => {
    const where = whereOf(event);
    if (!where) return;
    event.preventDefault();
    host.open(targetOf(hit), where);
  };
  return (
    <div class="k-hit" role="presentation" data-active={isActive ? "" : undefined} onMouseMove={() => onActive(index)}>
      <a
        id={optionId(index)}
        class="k-hit-main"
        data-note={hit.source}
        role="option"
        tabIndex={-1}
        aria-selected={isActive}
        href={host.href(targetOf(hit)) ?? "#"}
        onClick={open}
      >
        <span class="k-hit-title">
          <Icon name={hit.source.toLowerCase().endsWith(".canvas") ? "workflow" : "file-text"} />
          <span class="k-cut">
            <Marked pieces={piecesOf(noteName(hit.source), words)} />
            {heading && (
              <>
                <span class="k-hit-between" aria-hidden="true">
                  ›
                </span>
                <Marked pieces={piecesOf(heading, words)} />
              </>
            )}
          </span>
          {folder && <span class="k-hit-folder k-cut">{folder}</span>}
        </span>
        <span class="k-hit-text">
          <Marked pieces={snippetOf(hit.content, hit.matches)} />
        </span>
        <Reasons hit={hit} />
      </a>
      {/* For the mouse; by keys it is Shift-Enter, and a list box may hold nothing but options. */}
      <button type="button" class="k-button" data-kind="quiet" data-size="small" data-shape="icon" aria-hidden="true" tabIndex={-1} title="Open to the side" onClick={() => host.open(targetOf(hit), "pane")}>
        <Icon name="panel-right" />
      </button>
    </div>
  );
}

function Reasons({ hit }: { hit: Hit }): JSX.Element | null {
  const reasons = reasonsOf(hit);
  if (!reasons.length && !hit.foreign) return null;
  return (
    <span class="k-hit-reasons">
      {hit.end_line > 0 && reasons.length > 0 && <span class="k-only-read">Found by</span>}
      {reasons.map(({ id, title, tip }) => (
        <span class="k-hit-reason" key={id} title={tip}>
          <Icon name={REASON_ICONS[id]} />
          {title}
        </span>
      ))}
      {hit.foreign && (
        <span class="k-hit-reason" title="Someone else wrote this.">
          <Icon name="users" />
          Untrusted
        </span>
      )}
    </span>
  );
}

/** Where a click or a key opens something: with Ctrl or ⌘ in a new tab, with Shift in the pane; undefined leaves it to the browser. */
export function whereOf(event: MouseEvent | KeyboardEvent): Where | undefined {
  if (event instanceof MouseEvent && (event.button || event.ctrlKey || event.metaKey)) return undefined;
  if (event.ctrlKey || event.metaKey) return "tab";
  return event.shiftKey ? "pane" : "view";
}

/** How much was found, how quickly, and what the answer may miss. */
export function FoundLine({ found, isBusy }: { found: Found; isBusy: boolean }): JSX.Element {
  const { answer, ms, mode } = found;
  const missing = missingOf(found);
  return (
    <div class="k-found" role="status" aria-live="polite">
      <span>
        {foundOf(found)}
        <span class="k-found-time">
          {" · "}
          {duration(ms)}
          {mode === "keyword" && isBusy ? ", by words so far" : ""}
        </span>
      </span>
      {missing && (
        <span class="k-found-missing" title={answer.as_of ? `Indexed up to ${timeOf(answer.as_of)}` : undefined}>
          <Icon name="clock" />
          {missing}
        </span>
      )}
      {remarksOf(found).map((remark) => (
        <span key={remark} class="k-found-remark">
          <Told text={remark} />
        </span>
      ))}
    </div>
  );
}

function foundOf({ answer, mode, total = 0 }: Found): string {
  if (!answer.results.length) return "Nothing found";
  if (mode === "list") return `${count(total, "note")}, recently changed first`;
  return `${count(answer.results.length, "passage")} in ${count(new Set(answer.results.map((hit) => hit.source)).size, "note")}`;
}

/** What else is to be said of an answer, such as that it goes by words alone; how fresh it is, `missingOf` tells. */
export function remarksOf({ answer }: Pick<Found, "answer">): string[] {
  return (answer.notes ?? []).filter((note) => !ABOUT_FRESHNESS.test(note) && !ABOUT_RANKING.test(note));
}

const ABOUT_FRESHNESS = /\bknap (index|watch)\b|\bbeing (filled|indexed)\b|\buntil they are embedded\b/;
/** Which limits of the ranking were reached: told because the page asks for the parts of scores, and of no use here. */
const ABOUT_RANKING = /^of the (names|passages)\b/;

/** What an answer may miss, in a few words; empty where it misses nothing. */
export function missingOf({ answer }: Pick<Found, "answer">): string {
  const until = answer.as_of ? `, as of ${timeOf(answer.as_of)}` : "";
  if (answer.index_incomplete) return "Indexing isn't finished";
  if (answer.index_stale) return `The latest changes aren't indexed yet${until}`;
  if (answer.pending) return `${count(answer.pending, "passage")} found by words only so far`;
  return "";
}

function timeOf(at: string): string {
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return at;
  const isToday = when.toDateString() === new Date().toDateString();
  return when.toLocaleString(languageOfDates(), isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}
