/** Search: a box that answers while somebody writes, filters, and an address for every search. */

import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ago, Button, count, Empty, FailureNotice, folderOf, IconButton, Keys, MoreRows, noteName, resource, Row, SearchBox, SkeletonRows } from "../../../parts";
import { fit } from "../../../parts/palette";
import {
  askBy, Filters, FoundLine, hasFilters, HitList, isSameSearch, optionId, readSearch, SearchSession, targetOf, whereOf, writeSearch, type Found, type SearchQuery,
} from "../../../parts/search";
import { FirstStepsCard } from "../../../parts/settings/first";
import { firstStepsOf, href, vaultOf, type App } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";

const KEEP_MS = 400;
const RECENT_NOTES = 8;
const MAX_NAMES = 6;
const KEYS: readonly (readonly [keys: string, title: string])[] = [
  ["arrowdown", "Next result"],
  ["arrowup", "Previous result"],
  ["enter", "Open"],
  ["shift+enter", "Open to the side"],
  ["escape", "Clear the search"],
];

function create(app: App) {
  const vault = vaultOf(app);
  const session = new SearchSession(askBy(app.client));
  const steps = firstStepsOf(app);
  const status = steps.index.status;
  const recent = resource((abort) =>
    app.client.post("/tools/find_notes", { body: { sort: "-modified", limit: RECENT_NOTES, fields: ["modified"] }, signal: abort }),
  );
  app.shortcuts.register(KEYS.map(([keys, title]) => ({ keys, title, group: "Search", isShownOnly: true, isHere: () => app.router.route.value.view === "search", run: () => undefined })));
  const search = signal<SearchQuery>(readSearch({}));
  const active = signal(0);
  let listed: SearchQuery | null = null;
  effect(() => {
    const found = session.found.value;
    if (found && found.of !== listed) active.value = 0; // a further page of a list leaves the place where one is
    listed = found?.mode === "list" ? found.of : null;
  });
  return { ...vault, session, steps, status, recent, search, active };
}

type State = ReturnType<typeof create>;

function addressOf(search: SearchQuery): string {
  return href("search", writeSearch(search));
}

function Main({ app, state, route }: ViewProps<State>): JSX.Element {
  const { session } = state;
  const input = useRef<HTMLInputElement>(null);
  const search = state.search.value;
  useEffect(() => {
    if (!app.isNarrow.value) input.current?.focus();
    void state.steps.load();
    void state.recent.load();
  }, []);
  useEffect(() => {
    const asked = readSearch(route.query);
    if (!isSameSearch(asked, state.search.value)) state.search.value = asked;
    session.run(asked);
  }, [route.href]);
  const isReached = app.session.isReached.value;
  useEffect(() => {
    if (isReached && session.failure.value?.isOffline) session.run(state.search.value, { anew: true });
  }, [isReached]);

  const set = (next: SearchQuery) => {
    state.search.value = next;
    state.active.value = 0;
    session.run(next); // at once; the address follows a breath later
    app.go(addressOf(next), { replace: true });
  };
  useEffect(() => {
    const text = search.text.trim();
    if (text.length < 3) return undefined;
    const timer = setTimeout(() => session.found.value?.answer.results.length && state.searched.add(text), KEEP_MS * 5);
    return () => clearTimeout(timer);
  }, [search.text]);

  const hits = session.found.value?.answer.results ?? [];
  const shown = hits.length ? hits : (session.found.value?.answer.nearest ?? []);
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    const hit = shown[state.active.value];
    if (step && shown.length) state.active.value = Math.max(0, Math.min(shown.length - 1, state.active.value + step));
    else if (event.key === "Enter" && hit) {
      state.searched.add(search.text);
      app.open(targetOf(hit), whereOf(event) ?? "tab");
    } else if (event.key === "Escape" && search.text && !app.pane.value) set({ ...search, text: "" });
    else return;
    event.preventDefault();
  };

  return (
    <>
      <MainHead app={app} title="Search" />
      <div class="k-main-scroll">
        <div class="k-content k-searching">
          <SearchBox
            label="Search your notes"
            size="large"
            inputRef={input}
            value={search.text}
            onInput={(text) => set({ ...state.search.value, text })}
            onKeyDown={onKeyDown}
            list={shown.length ? "k-hits" : undefined}
            active={shown.length ? optionId(state.active.value) : undefined}
          >
            {search.text ? (
              <IconButton
                icon="x"
                size="small"
                label="Clear search"
                onClick={() => {
                  set({ ...search, text: "" });
                  input.current?.focus();
                }}
              />
            ) : (
              !app.isNarrow.value && <Keys keys="mod+k" />
            )}
          </SearchBox>
          <Filters search={search} store={state.store} onChange={set} />
          <Results app={app} state={state} onSearch={set} />
        </div>
      </div>
    </>
  );
}

interface ResultsProps {
  app: App;
  state: State;
  onSearch: (search: SearchQuery) => void;
}

function Results({ app, state, onSearch }: ResultsProps): JSX.Element {
  const { session } = state;
  const [found, failure, search] = [session.found.value, session.failure.value, state.search.value];
  const isAnswered = found !== null && isSameSearch(found.of, search);
  if (failure && !(failure.isOffline && isAnswered)) return <FailureNotice failure={failure} />;
  if (!search.text.trim() && !hasFilters(search)) return <Beginning app={app} state={state} onSearch={onSearch} />;
  if (!found) return <SkeletonRows />;
  return (
    <>
      <FoundLine found={found} isBusy={session.isBusy.value} />
      {found.answer.results.length ? (
        <>
          <HitList hits={found.answer.results} text={found.of.text} label="Found" active={state.active.value} onActive={(index) => (state.active.value = index)} />
          {found.answer.results.length < (found.total ?? 0) && <MoreRows key={found.answer.results.length} title="Show more notes" onMore={() => session.more()} />}
        </>
      ) : (
        <Nothing app={app} state={state} found={found} onSearch={onSearch} />
      )}
    </>
  );
}

function Nothing({ app, state, found, onSearch }: ResultsProps & { found: Found }): JSX.Element {
  const { text } = found.of;
  useEffect(() => void state.store.load(), []);
  const names = state.store.notes.value
    .map((note) => ({ path: note.path, score: fit(text, noteName(note.path)) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MAX_NAMES);
  const near = found.answer.nearest ?? [];
  const isEmpty = state.status.data.value?.notes === 0;
  return (
    <div class="k-nearest">
      <Empty
        icon="search"
        title="Nothing found"
        acts={
          hasFilters(found.of) && (
            <Button onClick={() => onSearch({ ...found.of, folders: [], tags: [], properties: [], from: "", to: "" })}>Remove filters</Button>
          )
        }
      >
        {isEmpty ? "This vault has no notes yet." : found.mode === "list" ? "No note passes the filters." : `No note has that${hasFilters(found.of) ? " and passes the filters" : ""}. Try fewer or other words.`}
      </Empty>
      {names.length > 0 && (
        <section>
          <h2>Similar names</h2>
          <NoteRows app={app} paths={names.map(({ path }) => path)} label="Similar names" />
        </section>
      )}
      {near.length > 0 && (
        <section>
          <h2>Closest in meaning, possibly unrelated</h2>
          <HitList hits={near} text="" label="Closest in meaning" active={state.active.value} onActive={(index) => (state.active.value = index)} />
        </section>
      )}
    </div>
  );
}

function NoteRows({ app, paths, label, times }: { app: App; paths: readonly string[]; label: string; times?: ReadonlyMap<string, string> }): JSX.Element {
  return (
    <ul class="k-rows" aria-label={label}>
      {paths.map((path) => (
        <li key={path}>
          <Row
            icon="file-text"
            title={noteName(path)}
            tip={path}
            detail={folderOf(path)}
            meta={times?.get(path)}
            href={app.href({ kind: "note", path })}
            actions={<IconButton icon="panel-right" size="small" label="Open to the side" onClick={() => app.open({ kind: "note", path }, "pane")} />}
          />
        </li>
      ))}
    </ul>
  );
}

function Beginning({ app, state, onSearch }: ResultsProps): JSX.Element {
  const status = state.status.data.value;
  const rows = state.recent.data.value?.results ?? [];
  const searched = state.searched.items.value;
  if (status && !status.notes && !status.index_incomplete) {
    return (
      <Empty
        icon="search"
        title="This vault has no notes yet"
        acts={
          <>
            <Button href={`obsidian://open?vault=${encodeURIComponent(app.session.vault.value)}`}>Open Obsidian</Button>
            <Button href={href("settings/index")}>Index status</Button>
          </>
        }
      >
        Notes you write in Obsidian can be found here moments later.
      </Empty>
    );
  }
  const times = new Map(rows.map((row) => [String(row["path"]), ago(String(row["modified"] ?? ""))]));
  return (
    <div class="k-begin">
      {state.steps.isNeeded && <FirstStepsCard steps={state.steps} settings={href("settings/models")} chat={href("chat/new")} />}
      {searched.length > 0 && (
        <section>
          <h2>Recent searches</h2>
          <ul class="k-rows" aria-label="Recent searches">
            {searched.map((text) => (
              <li key={text}>
                <Row
                  icon="clock"
                  title={text}
                  onClick={() => onSearch({ ...state.search.value, text })}
                  actions={<IconButton icon="x" size="small" label={`Remove ${text} from recent searches`} onClick={() => state.searched.remove(text)} />}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h2>Recently changed</h2>
        {state.recent.data.value ? <NoteRows app={app} paths={[...times.keys()]} label="Recently changed" times={times} /> : <SkeletonRows />}
      </section>
      {status && (
        <p id="standing" class="k-standing" data-state={status.index_incomplete || status.stale || status.pending ? "working" : "good"}>
          {standing(status, app.session.vaults.value.length > 1 ? ` in ${app.session.vault.value}` : "")}
        </p>
      )}
    </div>
  );
}

interface Status {
  notes: number;
  pending: number;
  problems: number;
  built: string;
  index_incomplete: boolean;
  stale: number;
  unchecked: boolean;
}

/** How the index stands, in a few words; *vault* names it where there are several. */
function standing(status: Status, vault: string): string {
  const notes = `${count(status.notes, "note")}${vault}`;
  if (status.index_incomplete && !status.notes) return "Indexing…";
  if (status.index_incomplete) return `${notes}, indexing…`;
  if (status.stale) return `${notes}, ${count(status.stale, "changed file")} not indexed yet`;
  if (status.pending) return `${notes}, ${count(status.pending, "passage")} without embeddings yet`;
  if (status.problems) return `${notes}, ${count(status.problems, "file")} with problems`;
  return status.unchecked ? notes : `${notes}, up to date`;
}

export default defineView({ create, Main, titleOf: ({ route }) => route.query["q"] ?? "" });
