/** A note to be read: properties, text, outline, and what links to it, is linked or is about the same. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button, Icon, IconButton } from "../basic";
import { count, folderOf, noteName, sentence } from "../format";
import { HostContext, useHost, type Host, type NoteTarget } from "../host";
import { Markdown } from "../markdown";
import { Empty, FailureNotice, Notice, SkeletonRows, SkeletonText, Told } from "../rows";
import { Tabs } from "../tabs";
import { carryOut, editSection } from "./editing";
import { FEATURES, NoteScopeContext, type NoteScope } from "./features";
import { sectionAt, sentenceOf, type Backlinks, type NoteModel, type NotePage, type RelatedNote } from "./model";
import { Properties } from "./properties";
import { partOf, Source } from "./source";

interface ReaderProps {
  model: NoteModel;
  /** The place that is meant: its lines are marked, and it is brought into view. */
  place?: Omit<NoteTarget, "path">;
  canEdit: boolean;
  onTag: (tag: string) => void;
  /** Whether there is room beside the text. */
  isWide: boolean;
}

export function NoteReader(props: ReaderProps): JSX.Element {
  const host = useHost();
  const { model } = props;
  const own = useMemo(() => (model.vault ? inVault(host, model) : host), [host, model]);
  return (
    <HostContext.Provider value={own}>
      <Reader {...props} canEdit={props.canEdit && !model.vault} />
    </HostContext.Provider>
  );
}

interface BesideProps {
  model: NoteModel;
  place: NoteTarget;
  canEdit: boolean;
  onTag: (tag: string) => void;
}

const WAYS = [
  { id: "read", title: "Reading" },
  { id: "source", title: "Source" },
] as const;

/** A note in the pane. */
export function NoteBeside({ model, place, canEdit, onTag }: BesideProps): JSX.Element {
  const host = useHost();
  const { lines } = place;
  const where = lines && (lines[0] === lines[1] ? `line ${lines[0]}` : `lines ${lines[0]}–${lines[1]}`);
  const { ask } = host;
  return (
    <div class="k-note-beside">
      <p class="k-small k-quiet">{[model.vault, model.path, where].filter(Boolean).join(" · ")}</p>
      <div class="k-note-beside-acts">
        <Tabs label="View" tabs={WAYS} current={model.isSource.value ? "source" : "read"} onChange={(id) => (model.isSource.value = id === "source")} />
        {ask && !model.vault && (
          <Button size="small" icon="message-square" onClick={() => ask.call(host, { path: model.path, ...(lines ? { lines } : {}), ...quoted() })}>
            Ask about this note
          </Button>
        )}
      </div>
      <NoteReader model={model} place={place} canEdit={canEdit} onTag={onTag} isWide={false} />
    </div>
  );
}

const MAX_QUOTE = 2_000;

/** What is selected, to be asked about. */
export function quoted(): { quote?: string } {
  const quote = String(getSelection() ?? "").trim().slice(0, MAX_QUOTE);
  return quote ? { quote } : {};
}

/** The shell for a note of another vault, whose links lead to notes of that vault. */
function inVault(host: Host, model: NoteModel): Host {
  const { vault } = model;
  const of = (target: Parameters<Host["open"]>[0]) => (target.kind === "note" ? { vault, ...target } : target);
  const own: Partial<Host> = {
    open: (target, where) => host.open(of(target), where),
    href: (target) => host.href(of(target)),
    resolveLink: (link) => model.resolve(link),
    image: (path, signal) => model.image?.(path, signal) ?? Promise.resolve(undefined),
  };
  return Object.assign(Object.create(host) as Host, own);
}

function Reader({ model, place = {}, canEdit, onTag, isWide }: ReaderProps): JSX.Element {
  const host = useHost();
  const body = useRef<HTMLDivElement>(null);
  const page = model.page.data.value;
  const failure = model.page.failure.value;
  const prefix = useMemo(() => `n${nextReader++}-`, [model]);
  const isWhole = useSignal(false);
  const { lines, fragment } = place;
  const isSource = model.isSource.value;
  useEffect(() => void model.load(), [model]);
  const hash = page?.text.hash;
  useEffect(() => {
    if (!page || !body.current) return undefined;
    return showPlace(body.current, prefix, lines, fragment, isSource && fragment ? lineNamed(page, fragment) : undefined);
  }, [hash, lines?.[0], lines?.[1], fragment, model, isSource, isWhole.value]);

  if (failure && (!page || failure.status === 404)) {
    const isMissing = failure.status === 404;
    return (
      <Empty icon={isMissing ? "file-search" : "circle-alert"} title={isMissing ? "Note not found" : "The note can't be read"} acts={<Button onClick={() => void model.load()}>Try again</Button>}>
        <Told text={failure.message} />. <Told text={failure.hint} />
      </Empty>
    );
  }
  if (!page) return <SkeletonText lines={12} />;
  const scope: NoteScope = {
    embeds: page.text.embeds ?? [],
    depth: 0,
    onTag,
    onEditSection: canEdit
      ? (line) => {
          const section = sectionAt(page.info, line);
          if (section) editSection({ host, model, ...section });
        }
      : undefined,
  };
  const part = partOf(page.text.content, isWhole.value ? undefined : lines);
  const onTask = (line: number, isDone: boolean) => void carryOut(host, model, () => model.setTask(line, isDone), "The task");
  return (
    <div class="k-note" data-wide={isWide ? "" : undefined}>
      <article ref={body} class="k-note-body" aria-label={noteName(model.path)} data-quotable="" data-note={model.path}>
        <Problems page={page} cited={place.hash} />
        <Properties model={model} properties={page.info.properties} canEdit={canEdit} onTag={onTag} />
        {!isWide && page.info.outline.length > 2 && (
          <details class="k-note-fold">
            <summary>Outline</summary>
            <Outline page={page} prefix={prefix} body={body} />
          </details>
        )}
        {part.isCut && (
          <Notice>
            This note is long, so only part of it is shown.{" "}
            <button type="button" class="k-link" onClick={() => (isWhole.value = true)}>
              Show all
            </button>
          </Notice>
        )}
        {page.text.total_chars === 0 || !page.text.content.trim() ? (
          <p class="k-quiet">This note is empty.</p>
        ) : isSource ? (
          <Source {...part} />
        ) : (
          <NoteScopeContext.Provider value={scope}>
            <Markdown text={part.text} path={model.path} features={FEATURES} prefix={prefix} {...(canEdit ? { onTask } : {})} />
          </NoteScopeContext.Provider>
        )}
        <Around model={model} page={page} />
      </article>
      {isWide && page.info.outline.length > 1 && (
        <nav class="k-note-side" aria-label="Outline">
          <h2>Outline</h2>
          <Outline page={page} prefix={prefix} body={body} />
        </nav>
      )}
    </div>
  );
}

let nextReader = 0;

function Problems({ page, cited = "" }: { page: NotePage; cited?: string | undefined }): JSX.Element | null {
  const isChanged = cited !== "" && cited !== page.text.hash;
  const problems = page.text.problems ?? [];
  const pending = page.text.pending ?? [];
  if (!isChanged && !problems.length && !pending.length && !page.text.truncated && !page.text.foreign) return null;
  return (
    <div class="k-note-problems">
      {isChanged && <Notice tone="warning">The note has changed since this answer, so the lines may have moved.</Notice>}
      {page.text.foreign && <Notice>Untrusted content: agents that read this note can only propose changes afterwards.</Notice>}
      {pending.length > 0 && <Notice tone="warning">{count(pending.length, "proposed edit")} in this note {pending.length === 1 ? "waits" : "wait"} for review.</Notice>}
      {problems.map((problem) => (
        <Notice tone="warning" key={problem.code + problem.line}>
          Line {problem.line}: {problem.message}
        </Notice>
      ))}
      {page.text.truncated && <Notice>The note is too long to show in full. Open it in Obsidian to read the rest.</Notice>}
    </div>
  );
}

function Outline({ page, prefix, body }: { page: NotePage; prefix: string; body: { current: HTMLElement | null } }): JSX.Element {
  const levels = page.info.outline.map((row) => levelOf(row.heading));
  const least = Math.min(...levels);
  return (
    <ul class="k-plain k-outline">
      {page.info.outline.map((row, index) => (
        <li key={row.line} style={{ paddingLeft: `${((levels[index] ?? 1) - least) * 12}px` }}>
          <button type="button" class="k-cut" onClick={() => body.current && void showPlace(body.current, prefix, undefined, undefined, row.line)}>
            {row.heading.replace(/^#+\s*/, "").replace(/\[\[(?:[^\]|]*\|)?([^\]]*)\]\]/g, "$1").replace(/[*_`~=]{1,3}/g, "") || "Untitled"}
          </button>
        </li>
      ))}
    </ul>
  );
}

function levelOf(heading: string): number {
  return /^#{1,6}/.exec(heading)?.[0].length ?? 1;
}

/** Bring a place of a text into view and mark its lines; gives what takes the marks away. */
export function showPlace(body: HTMLElement, prefix: string, lines?: readonly [number, number], fragment?: string, line?: number): (() => void) | undefined {
  const blocks = [...body.querySelectorAll<HTMLElement>(".k-prose [data-line], .k-source > [data-line]")].filter((block) => !block.closest(".k-embedded"));
  if (lines) {
    const cited = blocksIn(blocks, lines);
    for (const block of cited) block.dataset["cited"] = "";
    cited[0]?.scrollIntoView({ block: cited[0].offsetHeight > innerHeight / 2 ? "start" : "center" });
    return () => cited.forEach((block) => delete block.dataset["cited"]);
  }
  const place = line !== undefined ? blocks.find((block) => block.dataset["line"] === String(line)) : fragment ? placeNamed(body, prefix, fragment) : undefined;
  if (place) {
    place.scrollIntoView({ block: "start" });
    place.dataset["shown"] = "";
    setTimeout(() => delete place.dataset["shown"], 1_600);
  } else if (!fragment && line === undefined) body.closest(".k-main-scroll, .k-pane-body")?.scrollTo?.({ top: 0 });
  return undefined;
}

/** The line of a heading. */
function lineNamed(page: NotePage, fragment: string): number | undefined {
  const name = (fragment.split("#").at(-1) ?? "").trim().toLowerCase();
  return page.info.outline.find((row) => row.heading.replace(/^#+\s*/, "").trim().toLowerCase() === name)?.line;
}

/** The innermost blocks that hold any of some lines. */
export function blocksIn<B extends { dataset: DOMStringMap; contains: (other: never) => boolean }>(blocks: readonly B[], [first, last]: readonly [number, number]): B[] {
  const held = blocks.filter((block) => Number(block.dataset["line"]) <= last && Number(block.dataset["lineEnd"] ?? block.dataset["line"]) >= first);
  return held.filter((block) => !held.some((other) => other !== block && block.contains(other as never)));
}

function placeNamed(body: HTMLElement, prefix: string, fragment: string): HTMLElement | undefined {
  const last = fragment.split("#").at(-1) ?? "";
  const id = last.startsWith("^") ? last : last.trim().replace(/\s+/g, "-").toLowerCase();
  const found = [...body.querySelectorAll<HTMLElement>("[id]")].find((node) => node.id.toLowerCase() === (prefix + id).toLowerCase());
  return found ?? undefined;
}

/** What stands around a note: what links to it, where it links, and what is about the same. */
function Around({ model, page }: { model: NoteModel; page: NotePage }): JSX.Element {
  const backlinks = model.backlinks.data.value;
  const related = model.related.data.value;
  const out = new Map(page.links.flatMap((link) => (link.leads_to ? [[link.leads_to, link] as const] : [])));
  out.delete(model.path);
  const broken = [...new Set(page.links.flatMap((link) => (link.leads_to ? [] : [link.target])))];
  return (
    <footer class="k-around">
      <section aria-label="Backlinks">
        <h2>
          Backlinks {backlinks && <span class="k-around-count">{backlinks.total}</span>}
        </h2>
        {!backlinks && !model.backlinks.failure.value && <SkeletonRows count={2} />}
        {model.backlinks.failure.value && <FailureNotice failure={model.backlinks.failure.value} />}
        {backlinks?.results.map((row) => <Backlink key={row.path} row={row} of={model} />)}
        {backlinks?.total === 0 && <p class="k-quiet">No backlinks yet.</p>}
        {backlinks && backlinks.total > backlinks.results.length && <p class="k-small k-quiet">The first {backlinks.results.length} of {backlinks.total} notes.</p>}
      </section>
      {(out.size > 0 || broken.length > 0) && (
        <section aria-label="Links">
          <h2>
            Links to <span class="k-around-count">{out.size}</span>
          </h2>
          <div class="k-link-chips">
            {[...out.keys()].map((path) => (
              <LinkChip key={path} path={path} />
            ))}
            {broken.map((target) => (
              <span class="k-chip" key={target} title="This note doesn't exist yet">
                <Icon name="link-2-off" />
                <span class="k-cut">{target}</span>
              </span>
            ))}
          </div>
        </section>
      )}
      {related === undefined && !model.related.failure.value && <SkeletonRows count={3} />}
      {related && related.length > 0 && (
        <section aria-label="Related notes">
          <h2>Related</h2>
          <ul class="k-plain k-related">
            {related.map((note) => (
              <Related key={note.path} note={note} />
            ))}
          </ul>
        </section>
      )}
    </footer>
  );
}

function LinkChip({ path }: { path: string }): JSX.Element {
  const host = useHost();
  return (
    <a class="k-chip" href={host.href({ kind: "note", path }) ?? "#"} title={path}>
      <Icon name={/\.(md|markdown)$/i.test(path) ? "file-text" : "paperclip"} />
      <span class="k-cut">{noteName(path)}</span>
    </a>
  );
}

function Backlink({ row, of }: { row: Backlinks["results"][number]; of: NoteModel }): JSX.Element {
  const host = useHost();
  const names = [`[[${noteName(of.path)}`, `${noteName(of.path)}]]`, noteName(of.path)];
  return (
    <div class="k-backlink">
      <div class="k-backlink-head">
        <a href={host.href({ kind: "note", path: row.path }) ?? "#"} title={row.path}>
          <Icon name="file-text" />
          <span class="k-cut">{noteName(row.path)}</span>
        </a>
        <span class="k-row-detail k-cut">{folderOf(row.path)}</span>
        <IconButton icon="panel-right" size="small" label={`Open ${noteName(row.path)} to the side`} onClick={() => host.open({ kind: "note", path: row.path }, "pane")} />
      </div>
      {row.links.map((link) => {
        const target = { kind: "note" as const, path: row.path, lines: [link.line, link.line] as const };
        return (
          <a
            class="k-backlink-line"
            key={link.line}
            href={host.href(target) ?? "#"}
          >
            <Sentence text={sentenceOf(link.text, names)} names={names} />
          </a>
        );
      })}
    </div>
  );
}

/** A sentence in which the links are read as text, and the one that matters is marked. */
function Sentence({ text, names }: { text: string; names: readonly string[] }): JSX.Element {
  const name = (names.at(-1) ?? "").toLowerCase();
  const parts = text.split(/(!?\[\[[^[\]]*\]\]|\[[^\]]*\]\([^)]*\))/);
  return (
    <>
      {parts.map((part, index) => {
        const wikilink = /^!?\[\[([^[\]]*)\]\]$/.exec(part)?.[1];
        const [shown, target] = wikilink !== undefined ? [wikilink.split("|").at(-1) ?? "", wikilink] : [/^\[([^\]]*)\]\(/.exec(part)?.[1] ?? part, part];
        const isLink = shown !== part || wikilink !== undefined;
        return isLink && decodedLower(target).includes(name) ? <mark class="k-mark" key={index}>{shown}</mark> : shown.replace(/[*_`~=]{2,}/g, "");
      })}
    </>
  );
}

function decodedLower(text: string): string {
  try {
    return decodeURIComponent(text).toLowerCase();
  } catch {
    return text.toLowerCase();
  }
}

const REASONS: Readonly<Record<string, string>> = { task: "similar title", current_note: "similar content", linked: "linked" };

function Related({ note }: { note: RelatedNote }): JSX.Element {
  const host = useHost();
  const why = (note.why ?? []).map((reason) => REASONS[reason] ?? "").filter(Boolean).join(", ");
  return (
    <li>
      <a href={host.href({ kind: "note", path: note.path }) ?? "#"} title={note.path}>
        <Icon name="file-text" />
        <span class="k-cut">{noteName(note.path)}</span>
        <span class="k-row-detail k-cut">{sentence(why)}</span>
      </a>
    </li>
  );
}
