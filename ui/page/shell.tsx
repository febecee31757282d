/** The shell: rail, folding list, content, pane; on a phone one of them at a time, with a bar below. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Badge, Button, DialogFrame, Empty, Floating, fitting, HostContext, Icon, IconButton, KeySheet, PaletteDialog, SkeletonRows, SkeletonText, type PaletteItem } from "../parts";
import { href, type App, type OpenView } from "./app";
import * as keep from "./keep";
import { Sign } from "./sign";
import type { ViewEntry } from "./view";

/** Draw the whole page of somebody who is signed in. */
export function Shell({ app }: { app: App }): JSX.Element {
  const route = app.router.route.value;
  const entry = app.entries.find((candidate) => candidate.id === route.view);
  const open = app.views.value.get(route.view);
  const problem = useSignal<unknown>(null);
  useEffect(() => {
    problem.value = null;
    app.load(route.view).catch((error: unknown) => (problem.value = error));
  }, [route.view, app.session.isReached.value]); // a view that wasn't loaded while the server was lost is loaded when it is back
  const about = open?.view.titleOf?.({ app, state: open.state, route }); // drawn again when what it reads changes
  useEffect(() => void (document.title = [about, entry?.title, "Knapper"].filter(Boolean).join(" · ")), [about, entry?.title]);

  const hasList = open ? open.view.List !== undefined : false;
  const isItem = open?.view.isItem?.(route) ?? Object.keys(route.params).length > 0;
  const phone = app.pane.value ? "pane" : hasList && !isItem ? "list" : "main";
  return (
    <HostContext.Provider value={app}>
      <div class="k-shell" data-list={hasList && app.isListOpen.value ? "open" : "closed"} data-pane={app.pane.value ? "open" : "closed"} data-phone={phone}>
        <a class="k-skip" href="#main" onClick={(event) => focusMain(event)}>
          Skip to the content
        </a>
        <Rail app={app} />
        {!app.session.isReached.value && <Offline app={app} />}
        {open && hasList && <ListColumn app={app} open={open} />}
        <main id="main" class="k-main" tabIndex={-1} aria-label={entry?.title}>
          {problem.value && !app.session.isReached.value ? (
            <Empty icon="wifi-off" title="This view isn't loaded yet">
              It opens as soon as the server can be reached.
            </Empty>
          ) : problem.value ? (
            <Empty icon="circle-alert" title="This view couldn't be loaded" acts={<Button onClick={() => location.reload()}>Reload the page</Button>}>
              Knapper may have been updated while the page was open.
            </Empty>
          ) : open ? (
            <open.view.Main app={app} state={open.state} route={route} />
          ) : (
            <div class="k-content">
              <SkeletonText />
            </div>
          )}
        </main>
        {app.pane.value && <Pane app={app} />}
      </div>
      <PaletteDialog palette={app.palette} />
      <Floating floaters={app.floaters} />
    </HostContext.Provider>
  );
}

function focusMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Rail({ app }: { app: App }): JSX.Element {
  const here = app.router.route.value.view;
  const isNarrow = app.isNarrow.value;
  const shown = app.entries.filter((entry) => !isNarrow || !entry.within);
  const at = (isNarrow && app.entries.find((entry) => entry.id === here)?.within) || here;
  const link = (entry: ViewEntry) => (
    <a
      key={entry.id}
      class="k-rail-item"
      href={href(entry.routes[0] ?? "")}
      title={entry.title}
      aria-current={at === entry.id ? "page" : undefined}
      onClick={() => app.closePane()}
    >
      <Icon name={entry.icon} size={20} />
      <span class="k-rail-name">{entry.title}</span>
      {entry.id === "review" && <Badge count={app.waitingCount.value} label={`${app.waitingCount.value} waiting`} />}
    </a>
  );
  const [last, ...others] = [...shown].reverse();
  return (
    <nav class="k-rail" aria-label="Views">
      <Sign size={24} />
      {others.reverse().map(link)}
      <span class="k-rail-room" />
      <button type="button" class="k-rail-item k-rail-more" title="Find anything" aria-label="Find anything" onClick={() => app.palette.open()}>
        <Icon name="command" size={20} />
      </button>
      <button type="button" class="k-rail-item k-rail-more" title="Appearance and account" aria-label="Appearance and account" aria-haspopup="menu" onClick={(event) => openAccount(event, app)}>
        <Icon name="user" size={20} />
      </button>
      {last && link(last)}
    </nav>
  );
}

/** On a phone, what stands at the end of the rail elsewhere. */
function More({ app }: { app: App }): JSX.Element | null {
  if (!app.isNarrow.value) return null;
  return <IconButton icon="ellipsis" label="Appearance and account" onClick={(event) => openAccount(event, app)} />;
}

function openAccount(event: MouseEvent, app: App): void {
  const { session, theme } = app;
  const themes = [
    { id: "system", title: "System", icon: "monitor" },
    { id: "light", title: "Light", icon: "sun" },
    { id: "dark", title: "Dark", icon: "moon" },
  ] as const;
  app.floaters.openMenu(event, "Appearance and account", [
    { title: "Find anything", icon: "command", keys: "mod+k", run: () => app.palette.open() },
    "line",
    ...themes.map(({ id, title, icon }) => ({ title, icon, isChecked: theme.value === id, run: () => void (theme.value = id) })),
    "line",
    ...(session.vaults.value.length > 1
      ? [...session.vaults.value.map((name) => ({ title: name, icon: "vault" as const, isChecked: session.vault.value === name, run: () => changeVault(app, name) })), "line" as const]
      : []),
    { title: "Keyboard shortcuts", icon: "keyboard", keys: "?", run: () => showKeys(app) },
    { title: "Sign out", icon: "log-out", run: () => void session.signOut().catch((error: unknown) => app.fail(error)) },
  ]);
}

/** Begin anew with another vault: nothing of the one before may stay in a view. */
function changeVault(app: App, name: string): void {
  app.session.choose(name);
  location.assign("/");
}

function Offline({ app }: { app: App }): JSX.Element {
  const again = () => void app.client.raw("GET", "/page/session").catch(() => undefined);
  useEffect(() => {
    const timer = setInterval(again, 3_000);
    addEventListener("online", again);
    return () => {
      clearInterval(timer);
      removeEventListener("online", again);
    };
  }, []);
  return (
    <div class="k-offline" role="status">
      <Icon name="wifi-off" />
      <span>The server can't be reached. The page reconnects by itself.</span>
      <Button size="small" onClick={again}>
        Try now
      </Button>
    </div>
  );
}

function ListColumn({ app, open }: { app: App; open: OpenView }): JSX.Element {
  const { List, ListActions } = open.view;
  const props = { app, state: open.state, route: app.router.route.value };
  return (
    <section class="k-list" aria-label={`List of ${open.entry.title.toLowerCase()}`}>
      <header class="k-column-head">
        <h2 class="k-cut">{open.entry.title}</h2>
        {ListActions && <ListActions {...props} />}
        <More app={app} />
        {!app.isNarrow.value && <IconButton icon="panel-left" size="small" label="Hide the list" onClick={() => (app.isListOpen.value = false)} />}
      </header>
      <div class="k-list-body">{List ? <List {...props} /> : <SkeletonRows />}</div>
      <Divider name="list-width" side="right" smallest={240} largest={400} usual={300} label="Width of the list" />
    </section>
  );
}

function Pane({ app }: { app: App }): JSX.Element | null {
  const node = useRef<HTMLElement>(null);
  const content = app.pane.value;
  const key = content?.key;
  const { current: before } = useRef(document.activeElement); // on a phone it is hidden, and has no focus, in a moment
  const giveBack = () => {
    const isHere = document.activeElement === document.body || node.current?.contains(document.activeElement);
    if (isHere && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
  };
  useEffect(() => giveBack, []);
  useEffect(() => {
    app.keepOpener(); // a list may have moved the focus since: its effects run before this one
    node.current?.focus({ preventScroll: true });
  }, [key]);
  if (!content) return null;
  return (
    <aside ref={node} class="k-pane" tabIndex={-1} aria-label={content.title}>
      <Divider name="pane-width" side="left" smallest={320} largest={640} usual={400} label="Width of the pane" />
      <header class="k-column-head">
        <Icon name={content.icon} />
        <h2 class="k-cut" title={content.title}>
          {content.title}
        </h2>
        {content.href && <IconButton icon="maximize-2" size="small" label="Open full size" href={content.href} onClick={() => app.closePane()} />}
        <IconButton icon="x" size="small" label="Close the pane" onClick={() => app.closePane()} />
      </header>
      <div class="k-pane-body">{content.body()}</div>
    </aside>
  );
}

interface DividerProps {
  name: string;
  side: "left" | "right";
  smallest: number;
  largest: number;
  usual: number;
  label: string;
}

/** The line between two columns, which is dragged or moved by arrow keys; its place is remembered. */
function Divider({ name, side, smallest, largest, usual, label }: DividerProps): JSX.Element {
  const width = useSignal(Number(keep.load(name)) || usual);
  const set = (wanted: number) => {
    width.value = Math.round(Math.max(smallest, Math.min(largest, wanted)));
    document.body.style.setProperty(`--k-${name}`, `${width.value}px`);
    keep.save(name, width.value === usual ? "" : String(width.value));
  };
  useEffect(() => set(width.value), []);
  const drag = (event: PointerEvent) => {
    const line = event.currentTarget as HTMLElement;
    const [from, before] = [event.clientX, width.value];
    line.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent) => set(before + (moved.clientX - from) * (side === "right" ? 1 : -1));
    line.addEventListener("pointermove", move);
    line.addEventListener("lostpointercapture", () => line.removeEventListener("pointermove", move), { once: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    set(width.value + (side === "right" ? step : -step));
  };
  return (
    <div
      class="k-divider"
      data-side={side}
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuemin={smallest}
      aria-valuemax={largest}
      aria-valuenow={width.value}
      onPointerDown={drag}
      onKeyDown={onKeyDown}
      onDblClick={() => set(usual)}
    />
  );
}

interface HeadProps {
  app: App;
  title: string;
  /** Leads back to the list on a phone; the view's first address. */
  back?: string;
  children?: JSX.Element | JSX.Element[] | false | null | undefined;
}

/** The head of a view's content: its title, and its actions. It brings the list back where it is folded. */
export function MainHead({ app, title, back, children }: HeadProps): JSX.Element {
  const hasList = app.views.value.get(app.router.route.value.view)?.view.List !== undefined;
  return (
    <header class="k-column-head k-main-head">
      {back && app.isNarrow.value && <IconButton icon="chevron-left" label="Back to the list" href={back} />}
      {hasList && !app.isListOpen.value && !app.isNarrow.value && (
        <IconButton icon="panel-left" size="small" label="Show the list" onClick={() => (app.isListOpen.value = true)} />
      )}
      <h1 class="k-cut" title={title}>
        {title}
      </h1>
      {children}
      {!back && <More app={app} />}
    </header>
  );
}

export function showKeys(app: App): void {
  void app.floaters.dialog((close) => (
    <DialogFrame title="Keyboard shortcuts" onClose={close}>
      <KeySheet shortcuts={app.shortcuts} />
    </DialogFrame>
  ));
}

/** What the shell itself offers by keys and in the palette. */
export function registerShell(app: App): void {
  app.shortcuts.register([
    { keys: "mod+k", title: "Find anything", group: "Everywhere", run: () => app.palette.open() },
    { keys: "/", title: "Search", group: "Everywhere", run: () => app.go(href("search")) },
    { keys: "?", title: "Keyboard shortcuts", group: "Everywhere", run: () => showKeys(app) },
    { keys: "[", title: "Show or hide the list", group: "Everywhere", run: () => (app.isListOpen.value = !app.isListOpen.value) },
    {
      keys: "escape",
      title: "Close the pane",
      group: "Everywhere",
      when: () => app.pane.value !== null,
      run: () => app.closePane(),
    },
    ...app.entries.map((entry) => ({
      keys: `g ${entry.key}`,
      title: entry.title,
      group: "Go to",
      run: () => app.go(href(entry.routes[0] ?? "")),
    })),
  ]);
  app.palette.register({ id: "commands", title: "Commands", limit: 8, find: (query) => fitting(commands(app), query) });
}

function commands(app: App): PaletteItem[] {
  return [
    ...app.entries.map((entry) => ({
      id: `go-${entry.id}`,
      title: entry.title,
      icon: entry.icon,
      keys: `g ${entry.key}`,
      run: () => app.go(href(entry.routes[0] ?? "")),
    })),
    { id: "theme-light", title: "Light theme", icon: "sun", run: () => void (app.theme.value = "light") },
    { id: "theme-dark", title: "Dark theme", icon: "moon", run: () => void (app.theme.value = "dark") },
    { id: "theme-system", title: "System theme", icon: "monitor", run: () => void (app.theme.value = "system") },
    { id: "keys", title: "Keyboard shortcuts", icon: "keyboard", keys: "?", run: () => showKeys(app) },
    { id: "sign-out", title: "Sign out", icon: "log-out", run: () => void app.session.signOut().catch((error: unknown) => app.fail(error)) },
  ];
}
