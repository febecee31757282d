/** What narrows a search: chips for each folder, tag, property and date, and pickers that add one. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Button, Chip, type IconName } from "../basic";
import { FormDialog } from "../floating";
import { count, languageOfDates } from "../format";
import { useHost } from "../host";
import type { NotesStore } from "../notes/store";
import { hasFilters, type SearchQuery } from "./query";
import { pick, type Choice } from "../picker";

interface FiltersProps {
  search: SearchQuery;
  store: NotesStore;
  onChange: (search: SearchQuery) => void;
}

interface FilterChip {
  id: string;
  icon: IconName;
  title: string;
  without: () => SearchQuery;
}

/** The chips of a search's filters. */
export function chipsOf(search: SearchQuery): FilterChip[] {
  const without = (list: readonly string[], value: string) => list.filter((one) => one !== value);
  const date = dateOf(search);
  return [
    ...search.folders.map((folder) => ({
      id: `folder ${folder}`,
      icon: "folder" as const,
      title: folder,
      without: () => ({ ...search, folders: without(search.folders, folder) }),
    })),
    ...search.tags.map((tag) => ({ id: `tag ${tag}`, icon: "tag" as const, title: tag, without: () => ({ ...search, tags: without(search.tags, tag) }) })),
    ...search.properties.map((test) => ({
      id: `property ${test}`,
      icon: "list-filter" as const,
      title: test,
      without: () => ({ ...search, properties: without(search.properties, test) }),
    })),
    ...(date ? [{ id: "date", icon: "calendar" as const, title: date, without: () => ({ ...search, from: "", to: "" }) }] : []),
  ];
}

function dateOf({ from, to, dates }: SearchQuery): string {
  if (!from && !to) return "";
  const what = dates === "created" ? "Created" : "Changed";
  if (from && to) return from === to ? `${what} on ${dayOf(from)}` : `${what} ${dayOf(from)} to ${dayOf(to)}`;
  return from ? `${what} since ${dayOf(from)}` : `${what} until ${dayOf(to)}`;
}

function dayOf(day: string): string {
  const at = new Date(`${day}T12:00:00`);
  return Number.isNaN(at.getTime()) ? day : at.toLocaleDateString(languageOfDates(), { day: "numeric", month: "short", year: "numeric" });
}

/** A day so many days before today, such as `2026-01-31`. */
export function daysAgo(days: number, today: Date = new Date()): string {
  const at = new Date(today.getFullYear(), today.getMonth(), today.getDate() - days, 12);
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
}

export function Filters({ search, store, onChange }: FiltersProps): JSX.Element {
  const host = useHost();
  const add = (name: "folders" | "tags" | "properties", value: string | undefined) => {
    if (value && !search[name].includes(value)) onChange({ ...search, [name]: [...search[name], value] });
  };
  const addFolder = async () => {
    void store.load();
    const choices = () => store.folders.value.map(({ path, notes }): Choice => ({ value: path, title: path, detail: count(notes, "note"), icon: "folder" }));
    add("folders", await pick(host.floaters, { title: "In a folder", placeholder: "Folder", choices }));
  };
  const addTag = async () => {
    if (!store.tags.data.value) void store.tags.load();
    const choices = () => (store.tags.data.value ?? []).map(({ tag, notes }): Choice => ({ value: tag, title: tag, detail: count(notes, "note"), icon: "tag" }));
    add("tags", await pick(host.floaters, { title: "With a tag", placeholder: "Tag", choices }));
  };
  const addProperty = async () => {
    if (!store.properties.data.value) void store.properties.load();
    const choices = () =>
      (store.properties.data.value ?? []).flatMap(({ name, notes, values }): Choice[] => [
        { value: name, title: name, detail: `is set, ${count(notes, "note")}`, icon: "list-filter" },
        ...values.map((value) => ({ value: `${name}=${value}`, title: `${name} = ${value}` })),
      ]);
    const own = (text: string): Choice | undefined =>
      /^!?[^=~!|]+(?:!?[=~][^|]*)?$/.test(text) ? { value: text, title: text, detail: "as typed", icon: "plus" } : undefined;
    const title = "With a property";
    add("properties", await pick(host.floaters, { title, placeholder: "status=open, title~part, due, !due", choices, own }));
  };
  const addDate = () => void host.floaters.dialog((close) => <DateDialog search={search} onChange={onChange} onClose={close} />);
  return (
    <div class="k-filters" role="group" aria-label="Filters">
      {chipsOf(search).map(({ id, icon, title, without }) => (
        <Chip key={id} icon={icon} tone="accent" title={title} onRemove={() => onChange(without())} removeLabel={`Remove the filter ${title}`}>
          {title}
        </Chip>
      ))}
      <Chip icon="folder" onClick={() => void addFolder()}>
        Folder
      </Chip>
      <Chip icon="tag" onClick={() => void addTag()}>
        Tag
      </Chip>
      <Chip icon="list-filter" onClick={() => void addProperty()}>
        Property
      </Chip>
      <Chip icon="calendar" onClick={addDate}>
        Date
      </Chip>
      {hasFilters(search) && (
        <Button kind="quiet" size="small" onClick={() => onChange({ ...search, folders: [], tags: [], properties: [], from: "", to: "" })}>
          Clear
        </Button>
      )}
    </div>
  );
}

const SPANS: readonly [title: string, days: number][] = [
  ["Today", 0],
  ["Last 7 days", 6],
  ["Last 30 days", 29],
  ["Last 12 months", 364],
];

function DateDialog({ search, onChange, onClose }: { search: SearchQuery; onChange: (search: SearchQuery) => void; onClose: () => void }): JSX.Element {
  const from = useSignal(search.from);
  const to = useSignal(search.to);
  const dates = useSignal(search.dates);
  const take = (first: string, last: string) => {
    const isBackwards = first && last && last < first;
    onChange({ ...search, from: isBackwards ? last : first, to: isBackwards ? first : last, dates: dates.value });
    onClose();
  };
  return (
    <FormDialog title="By date" act="Filter" onClose={onClose} onDone={() => take(from.value, to.value)}>
      <div class="k-days">
        <div class="k-days-kinds" role="radiogroup" aria-label="Which date">
          {(["modified", "created"] as const).map((kind) => (
            <label key={kind}>
              <input type="radio" name="k-days-kind" checked={dates.value === kind} onChange={() => (dates.value = kind)} />
              {kind === "modified" ? "Changed" : "Created"}
            </label>
          ))}
        </div>
        <div class="k-days-span">
          <label>
            From
            <input class="k-input" type="date" value={from.value} onInput={(event) => (from.value = event.currentTarget.value)} />
          </label>
          <label>
            To
            <input class="k-input" type="date" value={to.value} onInput={(event) => (to.value = event.currentTarget.value)} />
          </label>
        </div>
        <div class="k-days-quick">
          {SPANS.map(([title, days]) => (
            <Button key={title} size="small" onClick={() => take(daysAgo(days), "")}>
              {title}
            </Button>
          ))}
        </div>
      </div>
    </FormDialog>
  );
}
