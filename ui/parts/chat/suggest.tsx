/** What is offered while somebody writes: notes after `[[`, presets and commands after a slash; and a box that finds notes. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Client } from "../../client";
import { Icon, type IconName } from "../basic";
import { count, folderOf, noteName } from "../format";
import { fitting } from "../palette";
import type { Chat } from "./chat";
import { noteLink, type Trigger } from "./message";

export interface Suggestion {
  title: string;
  detail: string;
  icon: IconName;
  /** What comes into the box in the place of what was written. */
  text: string;
  run?: () => void;
}

const MAX_FOUND = 8;
/** With nothing typed yet, the notes of the last days are offered. */
const RECENT_MS = 30 * 86_400_000;

export async function suggest(chat: Chat, trigger: Trigger, abort: AbortSignal): Promise<Suggestion[]> {
  if (trigger.kind === "command") return commands(chat, trigger.query);
  const found = await findNotes(chat.host.client, trigger.query, abort);
  return found.map((path) => ({ title: noteName(path), detail: folderOf(path), icon: "file-text", text: `${noteLink(path)} ` }));
}

function commands(chat: Chat, query: string): Suggestion[] {
  const presets = chat.presets.data.value?.results ?? [];
  const agents = chat.agents.data.value?.results ?? [];
  const rows = [
    ...presets.map((preset) => ({ id: `preset ${preset.name}`, title: preset.name, detail: "preset", icon: "sliders-horizontal" as const, run: () => void chat.takePreset(preset) })),
    ...agents.map(({ name, title, summary }) => ({ id: `agent ${name}`, title: name, detail: summary || title, icon: "waypoints" as const, run: () => void chat.send(`/${name}`) })),
    { id: "new", title: "New conversation", icon: "plus" as const, run: () => chat.conversation.begin() },
    { id: "notes", title: "Notes and rules", icon: "sliders-horizontal" as const, run: () => (chat.isSheetOpen.value = true) },
    { id: "plain", title: "Defaults", detail: "reset notes, rules and agents", icon: "rotate-ccw" as const, run: () => chat.choice.reset() },
  ];
  return fitting(rows, query)
    .slice(0, MAX_FOUND)
    .map(({ title, detail = "", icon = "command", run }) => ({ title, detail, icon, text: "", run }));
}

/** Notes that fit a part of their name, or words of theirs. */
export async function findNotes(client: Client, typed: string, abort?: AbortSignal): Promise<string[]> {
  const words = typed.split(/[\s/]+/).filter(Boolean);
  if (!words.length) {
    const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
    const body = { start_date: day(Date.now() - RECENT_MS), end_date: day(Date.now() + 86_400_000), limit: MAX_FOUND };
    const { results } = await client.post("/tools/search_by_date_range", { body, signal: abort });
    return results;
  }
  const query = words.map((word, at) => (at === words.length - 1 ? `${word}*` : word)).join(" ");
  const { results } = await client.post("/tools/search_keyword", { body: { query, limit: MAX_FOUND }, signal: abort });
  return (results as readonly { path: string }[]).map((row) => row.path);
}

/** Folders that fit: the last part of what was typed is looked for in the folder before it. */
export async function findFolders(client: Client, typed: string, abort?: AbortSignal): Promise<{ path: string; notes: number }[]> {
  const at = typed.lastIndexOf("/");
  const [above, part] = [typed.slice(0, Math.max(at, 0)), typed.slice(at + 1).toLowerCase()];
  const { folders } = await client.post("/tools/explore_vault", { body: { folder: above, limit: 1 }, signal: abort });
  const rows = folders as readonly { path: string; notes: number }[];
  return rows.filter((row) => (row.path.split("/").at(-1) ?? "").toLowerCase().includes(part)).slice(0, MAX_FOUND);
}

interface ListProps {
  id: string;
  rows: readonly Suggestion[];
  active: number;
  onPick: (index: number) => void;
  onActive: (index: number) => void;
}

export function SuggestList({ id, rows, active, onPick, onActive }: ListProps): JSX.Element {
  useEffect(() => document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);
  return (
    <ul class="k-suggest" id={id} role="listbox" aria-label="Suggestions">
      {rows.map((row, index) => (
        <li
          key={index}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          onMouseMove={() => onActive(index)}
          onPointerDown={(event) => {
            event.preventDefault(); // the focus stays in the box
            onPick(index);
          }}
        >
          <Icon name={row.icon} />
          <span class="k-cut">{row.title}</span>
          <span class="k-suggest-detail k-cut">{row.detail}</span>
        </li>
      ))}
    </ul>
  );
}

/** Closes a list soon after its box has lost the focus, unless the box has it again: a menu gives it back. */
export function afterBlur(box: HTMLElement, close: () => void): void {
  window.setTimeout(() => {
    if (box.ownerDocument.activeElement !== box) close();
  }, 150);
}

interface FinderProps {
  label: string;
  client: Client;
  kind: "note" | "folder";
  onPick: (path: string) => void;
}

const BREATH_MS = 120;

/** A box that finds a note or a folder by a part of its name. */
export function Finder({ label, client, kind, onPick }: FinderProps): JSX.Element {
  const id = useId();
  const text = useSignal("");
  const rows = useSignal<readonly Suggestion[]>([]);
  const isEmpty = useSignal(false);
  const active = useSignal(0);
  const asking = useRef<AbortController | null>(null);

  useEffect(() => {
    const typed = text.value.trim();
    asking.current?.abort();
    const own = (asking.current = new AbortController());
    if (!typed) {
      rows.value = [];
      isEmpty.value = false;
      return undefined;
    }
    const timer = window.setTimeout(() => {
      const asked = kind === "note" ? findNotes(client, typed, own.signal).then((paths) => paths.map(noteRow)) : findFolders(client, typed, own.signal).then((found) => found.map(folderRow));
      asked.then(
        (found) => {
          if (own.signal.aborted) return;
          rows.value = found;
          isEmpty.value = !found.length;
          active.value = 0;
        },
        () => undefined,
      );
    }, BREATH_MS);
    return () => window.clearTimeout(timer);
  }, [text.value]);

  const pick = (index: number): void => {
    const row = rows.value[index];
    if (!row) return;
    text.value = "";
    rows.value = [];
    onPick(row.text);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.value.length) active.value = (active.value + step + rows.value.length) % rows.value.length;
    else if (event.key === "Enter") pick(active.value);
    else if (event.key === "Escape" && text.value) {
      event.stopPropagation();
      text.value = "";
    } else return;
    event.preventDefault();
  };
  const isOpen = rows.value.length > 0;
  return (
    <div class="k-finder">
      <input
        class="k-input"
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen ? `${id}-${active.value}` : undefined}
        placeholder={label}
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={(event) => afterBlur(event.currentTarget, () => (rows.value = []))}
      />
      {isOpen && <SuggestList id={id} rows={rows.value} active={active.value} onPick={pick} onActive={(index) => (active.value = index)} />}
      {isEmpty.value && <p class="k-small k-quiet">No matches.</p>}
    </div>
  );
}

function noteRow(path: string): Suggestion {
  return { title: noteName(path), detail: folderOf(path), icon: "file-text", text: path };
}

function folderRow(row: { path: string; notes: number }): Suggestion {
  return { title: row.path, detail: count(row.notes, "note"), icon: "folder-open", text: row.path };
}
