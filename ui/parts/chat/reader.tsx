/** A note beside the chat, with the cited lines marked; where a shell has a reader of its own, that one opens instead. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../basic";
import { useHost, type NoteTarget } from "../host";
import { Markdown } from "../markdown";
import { resource } from "../resource";
import { Notice, SkeletonText } from "../rows";
import { Tabs } from "../tabs";

/** Characters of a note that are read; lines further on are told from the rest by the heading's own part. */
const MAX_CHARS = 1_000_000;
/** Lines that are shown before and after the ones that are meant, in a note that is long. */
const AROUND = 150;
const LONG_LINES = 1_500;

interface ReaderProps {
  target: NoteTarget;
  /** Begins to talk about the note. */
  onAsk?: (path: string) => void;
}

export function NoteReader({ target, onAsk }: ReaderProps): JSX.Element {
  const host = useHost();
  const view = useSignal<"read" | "source">("read");
  const place = useRef<HTMLDivElement>(null);
  const { path, fragment } = target;
  const note = useMemo(
    () => resource((abort) => host.client.get("/notes/{path}", { path: { path }, query: { length: MAX_CHARS }, signal: abort })),
    [path],
  );
  useEffect(() => {
    void note.load();
    return () => note.stop();
  }, [note]);
  const found = note.data.value;
  const lines = target.lines ?? (found && fragment ? linesOf(found.content, fragment) : undefined);
  const part = found && partOf(found.content, lines?.[0] ?? 1);
  useEffect(() => {
    if (part && place.current) mark(place.current, lines);
  }, [found, view.value, lines?.[0], lines?.[1]]);

  if (note.failure.value) {
    return (
      <Notice tone="removed">
        {note.failure.value.message}
        {note.failure.value.hint && <div class="k-quiet">{note.failure.value.hint}</div>}
      </Notice>
    );
  }
  if (!found || !part) return <SkeletonText lines={8} />;
  const isChanged = Boolean(target.hash) && target.hash !== found.hash;
  return (
    <div class="k-reader">
      <p class="k-small k-quiet">{[found.path, lines && (lines[0] === lines[1] ? `line ${lines[0]}` : `lines ${lines[0]}–${lines[1]}`)].filter(Boolean).join(" · ")}</p>
      <div class="k-reader-acts">
        <Tabs
          label="How the note is shown"
          tabs={[
            { id: "read", title: "As it reads" },
            { id: "source", title: "As written" },
          ]}
          current={view.value}
          onChange={(id) => (view.value = id)}
        />
        {onAsk && (
          <Button size="small" icon="message-square" onClick={() => onAsk(found.path)}>
            Ask about this note
          </Button>
        )}
      </div>
      {isChanged && <Notice tone="warning">The note was changed after this answer; the lines may lie elsewhere now.</Notice>}
      {found.foreign && <Notice tone="warning">Others wrote this note.</Notice>}
      {part.isCut && <Notice>This note is long; a part of it is shown.</Notice>}
      <div ref={place} data-quotable="" data-note={found.path}>
        {view.value === "read" ? (
          <div data-offset={part.first - 1}>
            <Markdown text={part.text} path={found.path} prefix="reader-" />
          </div>
        ) : (
          <ol class="k-source" start={part.first} tabIndex={0}>
            {part.text.split("\n").map((row, index) => (
              <li key={index} data-line={part.first + index} data-line-end={part.first + index}>
                {row || "\u200b"}
              </li>
            ))}
          </ol>
        )}
      </div>
    </div>
  );
}

/** The lines that are drawn: all, or those around the one that is meant. */
export function partOf(content: string, line: number): { text: string; first: number; isCut: boolean } {
  const rows = content.split("\n");
  if (rows.length <= LONG_LINES) return { text: content, first: 1, isCut: false };
  const start = Math.max(0, Math.min(line - 1 - AROUND, rows.length - 2 * AROUND));
  return { text: rows.slice(start, start + 2 * AROUND).join("\n"), first: start + 1, isCut: true };
}

/** The lines of a heading's section, or of a block with an id; undefined where there is none. */
export function linesOf(content: string, fragment: string): readonly [number, number] | undefined {
  const rows = content.split("\n");
  const name = fragment.split("#").at(-1)?.trim() ?? "";
  if (name.startsWith("^")) {
    const index = rows.findIndex((row) => row.trimEnd().endsWith(` ${name}`) || row.trim() === name);
    return index < 0 ? undefined : [index + 1, index + 1];
  }
  const level = (row: string) => /^(#{1,6})\s/.exec(row)?.[1]?.length ?? 0;
  const first = rows.findIndex((row) => level(row) > 0 && row.replace(/^#+\s*/, "").trim().toLowerCase() === name.toLowerCase());
  if (first < 0) return undefined;
  const own = level(rows[first] ?? "");
  const next = rows.findIndex((row, index) => index > first && level(row) > 0 && level(row) <= own);
  let last = next < 0 ? rows.length : next;
  while (last > first + 1 && !(rows[last - 1] ?? "").trim()) last -= 1;
  return [first + 1, last];
}

/** Mark the smallest blocks that the lines touch, and bring them into view. */
function mark(node: HTMLElement, lines: readonly [number, number] | undefined): void {
  for (const marked of node.querySelectorAll(".k-cited-lines")) marked.classList.remove("k-cited-lines");
  if (!lines) return;
  const offset = Number(node.querySelector<HTMLElement>("[data-offset]")?.dataset["offset"] ?? 0);
  const touches = (block: HTMLElement) => Number(block.dataset["line"]) + offset <= lines[1] && Number(block.dataset["lineEnd"]) + offset >= lines[0];
  const found = [...node.querySelectorAll<HTMLElement>("[data-line]")].filter(touches);
  const meant = found.filter((block) => !found.some((other) => other !== block && block.contains(other)));
  for (const block of meant) block.classList.add("k-cited-lines");
  meant[0]?.scrollIntoView({ block: "center" });
}
