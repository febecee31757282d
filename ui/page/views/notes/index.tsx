/** Notes: folders, tags and what was read last at the left; a note with all that is around it in the middle. */

import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Client } from "../../../client";
import { ago, allPages, Button, count, Empty, FailureNotice, folderOf, Icon, IconButton, noteName, Row, SearchBox, SkeletonRows, Tabs, VirtualList, type PaletteItem, type Target } from "../../../parts";
import { Diagrams } from "../../../parts/mermaid/diagrams";
import { Attachments, foldersTo, mediaKindOf, NoteBeside, NoteModel, NoteReader, NoteTree, quoted, rowsOf, treeOf } from "../../../parts/notes";
import { fit } from "../../../parts/palette";
import { href, vaultOf, type App } from "../../app";
import type { Route } from "../../router";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";
import * as keep from "../../keep";

type ListTab = "files" | "recent" | "tags";

const TABS = [
  { id: "files", title: "Files", icon: "folder" },
  { id: "recent", title: "Recent", icon: "clock" },
  { id: "tags", title: "Tags", icon: "tag" },
] as const;
const MAX_MODELS = 16;
const WIDE_PX = 1_080;

function create(app: App) {
  const vault = vaultOf(app);
  const models = new Map<string, NoteModel>();
  const others = new Map<string, { client: Client; attachments: Attachments }>();
  const elsewhere = (name: string, path: string): NoteModel => {
    const client = new Client({ ...app.client.options, vault: () => name });
    const other = others.get(name) ?? { client, attachments: new Attachments(client) };
    others.set(name, other);
    return new NoteModel(other.client, path, name, (image, abort) => other.attachments.address(image, abort));
  };
  const modelOf = ({ path, vault = "" }: { path: string; vault?: string | undefined }): NoteModel => {
    const isOther = vault !== "" && vault !== app.session.vault.value;
    const key = isOther ? `${vault}:${path}` : path;
    const model = models.get(key) ?? (isOther ? elsewhere(vault, path) : new NoteModel(app.client, path));
    models.delete(key);
    models.set(key, model); // the one that was used last is the last to be given up
    const [oldest] = models.keys();
    if (models.size > MAX_MODELS && oldest !== undefined) models.delete(oldest);
    return model;
  };
  const attachments = new Attachments(app.client);
  const diagrams = new Diagrams("/page/diagrams.html");
  app.image = (path, abort) => attachments.address(path, abort);
  app.diagram = (text, isDark) => diagrams.draw(text, isDark);
  // Links of notes that aren't open, such as of an embedded one, by name: the server finds a note by its name, too.
  const named = computed(() => new Map(vault.store.notes.value.map((note) => [noteName(note.path).toLowerCase(), note.path])));
  app.resolveLink = (link, from) => {
    const model = models.get(from);
    if (model?.page.data.value) return model.resolve(link);
    const name = noteName(link).toLowerCase();
    return named.value.size ? named.value.get(name) : link;
  };
  app.onOpen((target, where) => {
    if (target.kind !== "note" || where !== "pane") return false;
    openPane(app, modelOf(target), target);
    return true;
  });
  app.onNews((event) => {
    if (event.event !== "change") return;
    for (const file of (event.data["files"] ?? []) as { path?: string; target?: string }[]) {
      for (const path of [file.path, file.target]) {
        if (!path) continue;
        if (mediaKindOf(path)) attachments.forget(path);
        const model = models.get(path);
        if (model?.page.data.value) void model.load();
      }
    }
  });
  const open = signal<ReadonlySet<string>>(new Set(keep.load("folders").split("\n").filter(Boolean)));
  const filter = signal("");
  const tree = computed(() => treeOf(vault.store.notes.value.map((note) => note.path)));
  const rows = computed(() => {
    const wanted = filter.value.trim();
    if (!wanted) return rowsOf(tree.value, open.value);
    const paths = vault.store.notes.value.map((note) => note.path).filter((path) => path.toLowerCase().includes(wanted.toLowerCase()));
    return rowsOf(treeOf(paths), new Set(paths.flatMap(foldersTo)));
  });
  const fold = (path: string, isOpen: boolean) => {
    const next = new Set(open.value);
    if (isOpen) next.add(path);
    else next.delete(path);
    open.value = next;
    keep.save("folders", [...next].join("\n"));
  };
  const reveal = (path: string) => {
    const missing = foldersTo(path).filter((folder) => !open.value.has(folder));
    if (missing.length) open.value = new Set([...open.value, ...missing]);
  };
  return { ...vault, modelOf, tab: signal<ListTab>("files"), filter, tag: signal(""), rows, fold, reveal };
}

type State = ReturnType<typeof create>;

function openPane(app: App, model: NoteModel, target: Target & { kind: "note" }): void {
  app.showPane({
    key: `note ${model.vault}:${target.path} ${target.lines?.join("-") ?? target.fragment ?? ""}`,
    title: noteName(target.path),
    icon: "file-text",
    href: app.href(target),
    body: () => <NoteBeside model={model} place={target} canEdit={app.session.isPerson} onTag={(tag) => app.go(href("search", { tag }))} />,
  });
}

function pathOf(route: Route): string {
  return route.view === "notes" ? (route.params["path"] ?? "") : "";
}

function linesOf(route: Route): readonly [number, number] | undefined {
  const found = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(route.query["lines"] ?? route.query["line"] ?? "");
  if (!found) return undefined;
  const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
  return first >= 1 && last >= first ? [first, last] : undefined;
}

function List({ app, state, route }: ViewProps<State>): JSX.Element {
  const path = pathOf(route);
  useEffect(() => void state.store.load(), []);
  useEffect(() => {
    if (path) state.reveal(path);
  }, [path]);
  return (
    <div class="k-notes-list">
      <Tabs tabs={TABS} current={state.tab.value} label="Notes by" onChange={(tab) => (state.tab.value = tab)}>
        {state.tab.value === "files" ? <Files app={app} state={state} path={path} /> : state.tab.value === "recent" ? <Recents app={app} state={state} path={path} /> : <Tags app={app} state={state} path={path} />}
      </Tabs>
    </div>
  );
}

function Files({ app, state, path }: { app: App; state: State; path: string }): JSX.Element {
  const { store } = state;
  const failure = store.list.failure.value;
  if (failure && !failure.isOffline && !store.notes.value.length) return <FailureNotice failure={failure} />;
  if (!store.notes.value.length) {
    return store.list.data.value ? (
      <Empty icon="file-text" title="No notes yet" acts={<Button href={`obsidian://open?vault=${encodeURIComponent(app.session.vault.value)}`}>Open Obsidian</Button>}>
        Notes you write in Obsidian appear here.
      </Empty>
    ) : (
      <SkeletonRows count={10} />
    );
  }
  return (
    <>
      <SearchBox label="Filter by name" value={state.filter.value} onInput={(text) => (state.filter.value = text)} />
      {state.rows.value.length ? (
        <NoteTree rows={state.rows.value} selected={path || undefined} onFold={state.fold} label="Files" />
      ) : (
        <p class="k-empty k-quiet">No matching names.</p>
      )}
      <p class="k-notes-count">
        {count(store.total.value, "note")}
        {app.session.vaults.value.length > 1 ? ` in ${app.session.vault.value}` : ""}
        {store.total.value > store.notes.value.length && !store.list.isLoading.value ? `, the first ${store.notes.value.length.toLocaleString("en")} shown` : ""}
      </p>
    </>
  );
}

function NoteRow({ app, path, meta, isSelected, at }: { app: App; path: string; meta?: string; isSelected: boolean; at?: { tabIndex: number; mainId: string } }): JSX.Element {
  return (
    <Row
      icon="file-text"
      title={noteName(path)}
      tip={path}
      detail={folderOf(path)}
      meta={meta}
      isSelected={isSelected}
      href={app.href({ kind: "note", path })}
      {...at}
      actions={<IconButton icon="panel-right" size="small" label={`Open ${noteName(path)} to the side`} onClick={() => app.open({ kind: "note", path }, "pane")} />}
    />
  );
}

const CHANGED = 100;

function Recents({ app, state, path }: { app: App; state: State; path: string }): JSX.Element {
  const notes = state.store.notes.value;
  const known = new Set(notes.map((note) => note.path));
  const read = state.read.items.value.filter((one) => known.has(one) || !notes.length);
  const changed = [...notes].sort((one, other) => (one.modified < other.modified ? 1 : -1)).slice(0, CHANGED);
  return (
    <div class="k-notes-scroll">
      {read.length > 0 && (
        <>
          <h3 class="k-group">Recently opened</h3>
          <ul class="k-rows" aria-label="Recently opened">
            {read.map((one) => (
              <li key={one}>
                <NoteRow app={app} path={one} isSelected={one === path} />
              </li>
            ))}
          </ul>
        </>
      )}
      <h3 class="k-group">Recently changed</h3>
      {!notes.length && <SkeletonRows />}
      <ul class="k-rows" aria-label="Recently changed">
        {changed.map((note) => (
          <li key={note.path}>
            <NoteRow app={app} path={note.path} meta={ago(note.modified)} isSelected={note.path === path} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Tags({ app, state, path }: { app: App; state: State; path: string }): JSX.Element {
  const tags = state.store.tags;
  useEffect(() => {
    if (!tags.data.value) void tags.load();
  }, []);
  if (state.tag.value) return <Tagged app={app} state={state} tag={state.tag.value} path={path} />;
  if (!tags.data.value) return tags.failure.value ? <FailureNotice failure={tags.failure.value} /> : <SkeletonRows />;
  if (!tags.data.value.length) {
    return (
      <Empty icon="tag" title="No tags yet">
        Add a #tag to a note and it appears here.
      </Empty>
    );
  }
  return (
    <VirtualList
      items={tags.data.value}
      keyOf={(row) => row.tag}
      label="Tags"
      row={(row, at) => <Row icon="tag" title={row.tag} meta={row.notes.toLocaleString("en")} onClick={() => (state.tag.value = row.tag)} tabIndex={at.tabIndex} mainId={at.mainId} />}
    />
  );
}

const TAGGED_PAGE = 1_000;

function Tagged({ app, state, tag, path }: { app: App; state: State; tag: string; path: string }): JSX.Element {
  const found = signalOf(state, tag);
  useEffect(() => {
    allPages(async (page) => (await app.client.post("/tools/explore_vault", { body: { tag, ...page } })).results, TAGGED_PAGE, Infinity)
      .then((rows) => (found.value = rows.map((row) => row.path)))
      .catch((error: unknown) => app.fail(error));
  }, [tag]);
  const back = (
    <Button kind="quiet" size="small" icon="chevron-left" onClick={() => (state.tag.value = "")}>
      All tags
    </Button>
  );
  return (
    <>
      <div class="k-notes-tag">
        {back}
        <a class="k-chip" href={href("search", { tag })} title={`Search notes with ${tag}`}>
          <Icon name="tag" />
          <span class="k-cut">{tag}</span>
        </a>
      </div>
      {found.value ? (
        <VirtualList
          items={found.value}
          keyOf={(one) => one}
          label={`Notes with ${tag}`}
          selectedKey={path}
          row={(one, at) => <NoteRow app={app} path={one} isSelected={one === path} at={at} />}
        />
      ) : (
        <SkeletonRows />
      )}
    </>
  );
}

const tagged = new WeakMap<State, { tag: string; notes: ReturnType<typeof signal<readonly string[] | undefined>> }>();

/** The notes of the tag that is shown; forgotten with the next one. */
function signalOf(state: State, tag: string): ReturnType<typeof signal<readonly string[] | undefined>> {
  const known = tagged.get(state);
  if (known?.tag === tag) return known.notes;
  const notes = signal<readonly string[] | undefined>(undefined);
  tagged.set(state, { tag, notes });
  return notes;
}

function Main({ app, state, route }: ViewProps<State>): JSX.Element {
  const path = pathOf(route);
  const isWide = !app.isNarrow.value && roomOf(app) > WIDE_PX;
  useEffect(() => {
    if (path) state.read.add(path);
  }, [path]);
  const lines = linesOf(route);
  if (!path) {
    return (
      <>
        <MainHead app={app} title="Notes" />
        <Empty
          icon="file-text"
          title="Choose a note"
          acts={
            <Button icon="search" onClick={() => app.palette.open()}>
              Find a note
            </Button>
          }
        >
          Read it here with its outline, properties and backlinks. Most editing stays in Obsidian.
        </Empty>
      </>
    );
  }
  const model = state.modelOf({ path, vault: route.query["vault"] });
  return (
    <>
      <MainHead app={app} title={noteName(path)} back={href("notes")}>
        <Actions app={app} model={model} lines={lines} />
      </MainHead>
      <div class="k-main-scroll" key={`${model.vault}:${path}`}>
        <div class="k-content k-note-content" data-wide={isWide ? "" : undefined}>
          {model.vault && (
            <p class="k-crumbs">
              <span class="k-chip">Vault {model.vault}</span>
            </p>
          )}
          {!model.vault && folderOf(path) && (
            <nav class="k-crumbs" aria-label="Folders">
              {foldersTo(path).map((folder) => (
                <a key={folder} href={href("search", { folder })} title={`Notes in ${folder}`}>
                  {folder.slice(folder.lastIndexOf("/") + 1)}
                </a>
              ))}
            </nav>
          )}
          <NoteReader
            model={model}
            place={{ ...(lines ? { lines } : {}), ...(route.hash ? { fragment: route.hash } : {}) }}
            canEdit={app.session.isPerson}
            isWide={isWide}
            onTag={(tag) => app.go(href("search", { tag }))}
          />
        </div>
      </div>
    </>
  );
}

/** The room for a note's text and what stands beside it. */
function roomOf(app: App): number {
  return innerWidth - 56 - (app.isListOpen.value ? 300 : 0) - (app.pane.value && innerWidth >= 1_200 ? 400 : 0);
}

function Actions({ app, model, lines }: { app: App; model: NoteModel; lines: readonly [number, number] | undefined }): JSX.Element {
  const { path, vault } = model;
  const ask = () => app.ask({ path, ...(lines ? { lines } : {}), ...quoted() });
  const more = (event: MouseEvent) =>
    app.floaters.openMenu(event, "Note", [
      { title: "Copy link", icon: "link", run: () => void app.copy(`[[${path.replace(/\.md$/i, "")}]]`).then(() => app.tell("Link copied")) },
      { title: "Copy path", icon: "copy", run: () => void app.copy(path).then(() => app.tell("Path copied")) },
      { title: "Copy page address", icon: "globe", run: () => void app.copy(location.href).then(() => app.tell("Address copied")) },
      "line",
      { title: model.isSource.value ? "Reading view" : "Source view", icon: model.isSource.value ? "book-open" : "code", run: () => (model.isSource.value = !model.isSource.value) },
      { title: "Open to the side", icon: "panel-right", run: () => app.open({ kind: "note", path, vault }, "pane") },
    ]);
  return (
    <>
      {!vault && (
        <>
          <IconButton icon="message-square" size="small" label="Ask about this" onClick={ask} />
          <IconButton icon="waypoints" size="small" label="Show in the graph" href={href(`graph/${path}`)} />
        </>
      )}
      <IconButton icon="external-link" size="small" label="Open in Obsidian" href={app.obsidian(path, vault || undefined)} />
      <IconButton icon="ellipsis" size="small" label="More" onClick={more} />
    </>
  );
}

const MAX_HITS = 8;

function findNotes(app: App, state: State, query: string): PaletteItem[] | Promise<PaletteItem[]> {
  const loading = state.store.load();
  if (query.trim() && !state.store.notes.value.length) return loading.then(() => fittingNotes(app, state, query));
  return fittingNotes(app, state, query);
}

function fittingNotes(app: App, state: State, query: string): PaletteItem[] {
  const rows = state.store.notes.value;
  if (!query.trim()) return state.read.items.value.map((path) => itemOf(app, path));
  const scored = rows
    .map(({ path }) => ({ path, score: Math.max(fit(query, noteName(path)), fit(query, path) / 3) }))
    .filter(({ score }) => score >= 40)
    .sort((one, other) => other.score - one.score);
  return scored.slice(0, MAX_HITS).map(({ path }) => itemOf(app, path));
}

function itemOf(app: App, path: string): PaletteItem {
  return { id: `note ${path}`, title: noteName(path), icon: "file-text", detail: folderOf(path), run: () => app.open({ kind: "note", path }) };
}

const BREATH_MS = 90;

async function findHeadings(app: App, query: string, abort: AbortSignal): Promise<PaletteItem[]> {
  if (query.trim().length < 2) return [];
  await new Promise((resolve) => setTimeout(resolve, BREATH_MS));
  if (abort.aborted) return [];
  const answer = await app.client.post("/tools/search_keyword", { body: { query: /[\p{L}\p{N}]$/u.test(query) ? `${query}*` : query, limit: 20 }, signal: abort });
  return answer.results
    .filter((hit) => /^#/.test(hit.heading) && fit(query, hit.heading.replace(/^#+\s*/, "")) > 90)
    .map((hit) => ({
      id: `heading ${hit.path} ${hit.start_line}`,
      title: hit.heading.replace(/^#+\s*/, ""),
      icon: "heading" as const,
      detail: noteName(hit.path),
      run: () => app.open({ kind: "note", path: hit.path, fragment: hit.heading.replace(/^#+\s*/, "") }),
    }));
}

async function findTags(app: App, state: State, query: string): Promise<PaletteItem[]> {
  const wanted = query.trim().replace(/^#/, "");
  if (!wanted) return [];
  const tags = state.store.tags.data.value ?? (await state.store.tags.load()) ?? [];
  return tags
    .map((row) => ({ row, score: fit(wanted, row.tag) }))
    .filter(({ score }) => score > 95)
    .sort((one, other) => other.score - one.score)
    .slice(0, MAX_HITS)
    .map(({ row }) => ({ id: `tag ${row.tag}`, title: `#${row.tag.replace(/^#/, "")}`, icon: "tag", detail: count(row.notes, "note"), run: () => app.go(href("search", { tag: row.tag })) }));
}

export default defineView({
  create,
  List,
  Main,
  titleOf: ({ route }) => noteName(pathOf(route)),
  palette: (app, state) => [
    { id: "notes", title: "Notes", find: (query) => findNotes(app, state, query) },
    { id: "headings", title: "Headings", limit: 5, find: (query, abort) => findHeadings(app, query, abort) },
    { id: "tags", title: "Tags", limit: 4, find: (query) => findTags(app, state, query) },
    {
      id: "search",
      title: "Search",
      limit: 1,
      rank: 100, // Enter takes it where nothing else fits
      find: (query) => (query.trim() ? [{ id: "search", title: `Search for “${query.trim()}”`, icon: "search", run: () => app.go(href("search", { q: query.trim() })) }] : []),
    },
  ],
});
