/** Search while one types, what is related to the open note and why, and links and notes that lead nowhere. */

import { type Signal, signal, untracked } from "@preact/signals";
import { Platform } from "obsidian";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Reply } from "../../ui/client/client";
import { Button, SearchBox } from "../../ui/parts/basic";
import { count, folderOf, noteName } from "../../ui/parts/format";
import { NotesStore } from "../../ui/parts/notes/store";
import { type Resource, resource } from "../../ui/parts/resource";
import { Empty, FailureNotice, GroupTitle, MoreRows, Row, SkeletonRows } from "../../ui/parts/rows";
import { askBy, Filters, type Found, FoundLine, hasFilters, HitList, NO_SEARCH, optionId, type SearchQuery, SearchSession, targetOf, whereOf } from "../../ui/parts/search";
import { Tabs } from "../../ui/parts/tabs";
import { DrawnView } from "./drawn";
import type { AppHost } from "./host";

export const SEARCH_VIEW = "knapper-search";

type Tab = "search" | "related" | "links";
const TABS: readonly { id: Tab; title: string }[] = [
  { id: "search", title: "Search" },
  { id: "related", title: "Related" },
  { id: "links", title: "Loose ends" },
];
const REASONS: Readonly<Record<string, string>> = { task: "similar title", current_note: "similar content", linked: "linked" };
const MAX_ROWS = 200;
const MAX_RELATED = 20;

type RelatedRow = Reply<"post", "/tools/search_task_relevant">["results"][number];

interface LinkRow {
  path: string;
  line: number;
  target: string;
  why: string;
}

interface LooseEnds {
  broken: LinkRow[];
  brokenTotal: number;
  orphans: string[];
  orphansTotal: number;
}

/** What the view holds; nothing is asked for but what its tab shows. */
class State {
  readonly tab: Signal<Tab> = signal("search");
  readonly query: Signal<SearchQuery> = signal(NO_SEARCH);
  readonly active = signal(0);
  /** The note that is open; empty for none. */
  readonly note = signal("");
  readonly session: SearchSession;
  readonly store: NotesStore;
  readonly related: Resource<RelatedRow[], [string]>;
  readonly ends: Resource<LooseEnds>;
  readonly focused = signal(0);

  constructor({ client }: AppHost) {
    this.session = new SearchSession(askBy(client));
    this.store = new NotesStore(client);
    this.related = resource(async (abort, path: string) => {
      const body = { task: noteName(path), current_note: path, limit: MAX_RELATED };
      return (await client.post("/tools/search_task_relevant", { body, signal: abort })).results;
    });
    this.ends = resource(async (abort) => {
      const [broken, orphans] = await Promise.all([
        client.post("/tools/broken_links", { body: { limit: MAX_ROWS }, signal: abort }),
        client.post("/tools/orphans", { body: { limit: MAX_ROWS }, signal: abort }),
      ]);
      return { broken: broken.results.map(readLink), brokenTotal: broken.total, orphans: [...orphans.results], orphansTotal: orphans.total };
    });
  }

  set(query: SearchQuery): void {
    this.query.value = query;
    this.active.value = 0;
    this.session.run(query);
  }

  /** Load what the tab shows. */
  refill(): void {
    const [tab, note] = untracked(() => [this.tab.value, this.note.value] as const);
    if (tab === "related" && note) void this.related.load(note);
    else if (tab === "links") void this.ends.load();
    else if (tab === "search" && (this.query.value.text || hasFilters(this.query.value))) this.session.run(this.query.value, { anew: true });
  }

  stop(): void {
    this.session.run(NO_SEARCH);
    this.related.stop();
    this.ends.stop();
  }
}

function readLink({ path, line, target, kind }: { path: string; line: number; target: string; kind: string }): LinkRow {
  return { path, line, target, why: kind };
}

export class SearchView extends DrawnView {
  private found!: State;

  getViewType(): string {
    return SEARCH_VIEW;
  }

  getDisplayText(): string {
    return "Vault search";
  }

  override getIcon(): string {
    return "search";
  }

  protected override onOpen(): Promise<void> {
    const { workspace } = this.app;
    this.found = new State(this.host);
    this.found.note.value = workspace.getActiveFile()?.path ?? "";
    this.register(() => this.found.stop());
    this.registerEvent(
      workspace.on("file-open", () => {
        const path = workspace.getActiveFile()?.path ?? "";
        if (path === this.found.note.value) return;
        this.found.note.value = path;
        if (this.found.tab.value === "related") this.found.refill();
      }),
    );
    // A saved note changes what is found; asked again by whoever looks at it.
    this.register(this.plugin.connection.on("news", (event) => event.event === "change" && this.found.store.touch()));
    return super.onOpen();
  }

  protected refill(): void {
    this.found.refill();
  }

  /** Show a tab, and search for something. */
  take(tab: Tab, text = ""): void {
    this.found.tab.value = tab;
    if (text) this.found.set({ ...this.found.query.value, text });
    this.found.refill();
    if (tab === "search") this.found.focused.value += 1;
  }

  protected draw(): JSX.Element {
    const state = this.found;
    const tab = state.tab.value;
    const show = (id: Tab) => {
      state.tab.value = id;
      state.refill();
    };
    return (
      <div class="knapper-search">
        <Tabs label="What is looked for" tabs={TABS} current={tab} onChange={(id) => show(id)}>
          <div class="knapper-body k-main-scroll">
            {tab === "search" && <Search state={state} host={this.host} />}
            {tab === "related" && <Related state={state} host={this.host} />}
            {tab === "links" && <Ends state={state} host={this.host} />}
          </div>
        </Tabs>
      </div>
    );
  }
}

interface PartProps {
  state: State;
  host: AppHost;
}

function Search({ state, host }: PartProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const query = state.query.value;
  useEffect(() => {
    if (state.focused.value) input.current?.focus({ preventScroll: true });
  }, [state.focused.value]);
  const hits = shownOf(state.session.found.value);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const hit = hits[state.active.value];
    if (step && hits.length) state.active.value = Math.max(0, Math.min(hits.length - 1, state.active.value + step));
    else if (event.key === "Enter" && hit && event.altKey) host.insertLink(hit.source);
    else if (event.key === "Enter" && hit) host.open(targetOf(hit), whereOf(event) === "tab" ? "tab" : "view");
    else if (event.key === "Escape" && query.text) state.set({ ...query, text: "" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <SearchBox
        label="Search your notes"
        inputRef={input}
        value={query.text}
        onInput={(text) => state.set({ ...state.query.value, text })}
        onKeyDown={onKeyDown}
        list={hits.length ? "k-hits" : undefined}
        active={hits.length ? optionId(state.active.value) : undefined}
      />
      <Filters search={query} store={state.store} onChange={(next) => state.set(next)} />
      <Results state={state} />
    </>
  );
}

function shownOf(found: Found | null): Found["answer"]["results"] {
  return found?.answer.results.length ? found.answer.results : (found?.answer.nearest ?? []);
}

function Results({ state }: { state: State }): JSX.Element {
  const [found, failure, query] = [state.session.found.value, state.session.failure.value, state.query.value];
  if (failure) return <FailureNotice failure={failure} />;
  if (!query.text.trim() && !hasFilters(query)) {
    return (
      <Empty icon="search" title="Search by words and meaning">
        Results appear as you type.{Platform.isMobile ? "" : ` Enter opens a note, ${Platform.isMacOS ? "⌘" : "Ctrl"}-Enter in a new tab. Alt-Enter inserts a link into the open note.`}
      </Empty>
    );
  }
  if (!found) return <SkeletonRows />;
  const hits = shownOf(found);
  const isNear = !found.answer.results.length;
  return (
    <>
      <FoundLine found={found} isBusy={state.session.isBusy.value} />
      {isNear && hits.length > 0 && <GroupTitle>Closest in meaning</GroupTitle>}
      <HitList hits={hits} text={isNear ? "" : found.of.text} label="Found" active={state.active.value} onActive={(index) => (state.active.value = index)} />
      {!hits.length && (
        <Empty icon="search" title="Nothing found">
          {hasFilters(query) ? "Try fewer or other words, or remove a filter." : "Try fewer or other words."}
        </Empty>
      )}
      {found.answer.results.length < (found.total ?? 0) && <MoreRows key={found.answer.results.length} title="Show more notes" onMore={() => state.session.more()} />}
    </>
  );
}

function Related({ state, host }: PartProps): JSX.Element {
  const note = state.note.value;
  const { related } = state;
  const rows = related.data.value;
  if (!note) return <Empty icon="file-text" title="No note is open">Open one to see related notes here.</Empty>;
  if (related.failure.value) return <FailureNotice failure={related.failure.value} />;
  if (!rows) return <SkeletonRows />;
  if (!rows.length) return <Empty icon="file-text" title="Nothing is related">No other note says something similar to “{noteName(note)}”.</Empty>;
  return (
    <>
      <GroupTitle>{`Related to ${noteName(note)}`}</GroupTitle>
      <ul class="k-rows" aria-label="Related notes" aria-busy={related.isLoading.value}>
        {rows.map((row) => (
          <li key={row.path} data-note={row.path}>
            <Row
              lines={2}
              icon="file-text"
              title={row.title}
              tip={row.path}
              detail={(row.why ?? []).map((why) => REASONS[why] ?? why).join(", ") || folderOf(row.path)}
              onClick={() => host.open({ kind: "note", path: row.path })}
              actions={<InsertButton host={host} path={row.path} />}
            />
          </li>
        ))}
      </ul>
    </>
  );
}

function InsertButton({ host, path }: { host: AppHost; path: string }): JSX.Element {
  return <Button kind="quiet" size="small" icon="link" label={`Link to ${noteName(path)} at the cursor`} title="Insert a link at the cursor" onClick={() => host.insertLink(path)} />;
}

function Ends({ state, host }: PartProps): JSX.Element {
  const found = state.ends.data.value;
  if (state.ends.failure.value) return <FailureNotice failure={state.ends.failure.value} />;
  if (!found) return <SkeletonRows />;
  const open = (path: string, line?: number): void => host.open({ kind: "note", path, ...(line ? { lines: [line, line] as const } : {}) });
  return (
    <>
      <section aria-label="Broken links">
        <GroupTitle>{`Broken links (${found.brokenTotal.toLocaleString()})`}</GroupTitle>
        {!found.broken.length && <p class="k-small k-quiet knapper-none">No broken links.</p>}
        <ul class="k-rows">
          {found.broken.map((row, index) => (
            <li key={index} data-note={row.path}>
              <Row lines={2} icon="link" title={row.target} tip={row.target} detail={`${noteName(row.path)}, line ${row.line}`} onClick={() => open(row.path, row.line)} />
            </li>
          ))}
        </ul>
      </section>
      <section aria-label="Orphans">
        <GroupTitle>{`Notes without links (${found.orphansTotal.toLocaleString()})`}</GroupTitle>
        {!found.orphans.length && <p class="k-small k-quiet knapper-none">Every note is linked.</p>}
        <ul class="k-rows">
          {found.orphans.map((path) => (
            <li key={path} data-note={path}>
              <Row icon="file-text" title={noteName(path)} tip={path} detail={folderOf(path)} onClick={() => open(path)} />
            </li>
          ))}
        </ul>
      </section>
      {found.brokenTotal > found.broken.length && <p class="k-small k-quiet knapper-none">{count(found.brokenTotal - found.broken.length, "broken link")} more</p>}
    </>
  );
}
