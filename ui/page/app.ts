/** What the shell holds, and gives to each view: session, addresses, pane, palette, keys, news. */

import { computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { follow, type Client, type ServerEvent } from "../client";
import { Failure } from "../client";
import { dateLanguage, isNarrow, noteName, PageFloaters, Palette, sentence, Shortcuts, type Host, type Target, type Where } from "../parts";
import * as keep from "./keep";
import { href, Router } from "./router";
import type { Session } from "./session";
import type { PaneContent, View, ViewEntry } from "./view";

export type Theme = "system" | "light" | "dark";

/** Something that waits for a person: a proposal, a task's question, a run's question. */
export interface WaitingRow {
  kind: string;
  id: string;
  [name: string]: unknown;
}

/** A loaded view with its state. */
export interface OpenView {
  entry: ViewEntry;
  view: View;
  state: unknown;
}

type Opener = (target: Target, where: Where) => boolean;

const RETRY_MS = 30_000;

/** A language that `Intl` knows; empty for any other word. */
function usableLanguage(code: string): string {
  try {
    return code && (Intl.getCanonicalLocales(code)[0] ?? "");
  } catch {
    return "";
  }
}

export class App implements Host {
  readonly floaters = new PageFloaters();
  readonly shortcuts = new Shortcuts();
  readonly palette = new Palette();
  readonly router: Router;
  readonly client: Client;
  readonly pane: Signal<PaneContent | null> = signal(null);
  readonly theme: Signal<Theme>;
  readonly isListOpen: Signal<boolean>;
  /** Whether the window is as narrow as a phone. */
  readonly isNarrow: Signal<boolean> = signal(isNarrow());
  /** What waits for a person in this vault. */
  readonly waiting: Signal<readonly WaitingRow[]> = signal([]);
  readonly waitingCount: ReadonlySignal<number> = computed(() => this.waiting.value.length);
  /** Views that were opened, by their id. */
  readonly views: Signal<ReadonlyMap<string, OpenView>> = signal(new Map());
  resolveLink?: Host["resolveLink"];
  image?: Host["image"];
  diagram?: Host["diagram"];
  private readonly openers: Opener[] = [];
  private paneOpener: HTMLElement | null = null;
  private readonly listeners = new Set<(event: ServerEvent) => void>();
  private readonly loading = new Map<string, Promise<OpenView>>();

  constructor(
    readonly session: Session,
    readonly entries: readonly ViewEntry[],
  ) {
    this.client = session.client;
    this.router = new Router(entries);
    const theme = keep.load("theme");
    this.theme = signal(theme === "light" || theme === "dark" ? theme : "system");
    this.isListOpen = signal(keep.load("list") !== "closed");
    effect(() => {
      document.documentElement.dataset["theme"] = this.theme.value;
      keep.save("theme", this.theme.value === "system" ? "" : this.theme.value);
    });
    dateLanguage.value = usableLanguage(keep.load("dates"));
    effect(() => keep.save("dates", dateLanguage.value));
    effect(() => keep.save("list", this.isListOpen.value ? "" : "closed"));
    matchMedia("(max-width: 719px)").addEventListener("change", (event) => (this.isNarrow.value = event.matches));
    this.palette.onOpen = () => void Promise.all(entries.map((entry) => this.load(entry.id).catch(() => undefined)));
  }

  /** Load a view, and make its state; once. */
  load(id: string): Promise<OpenView> {
    const known = this.loading.get(id);
    if (known) return known;
    const entry = this.entries.find((candidate) => candidate.id === id);
    if (!entry) return Promise.reject(new Error(`there is no view ${id}`));
    const loading = entry.load().then(({ default: view }) => {
      const state = view.create(this);
      const open = { entry, view, state };
      this.views.value = new Map(this.views.value).set(id, open);
      // By the order of the views: they are loaded as they come, and Enter takes what stands first.
      const rank = 1 + this.entries.indexOf(entry);
      const providers = (view.palette?.(this, state) ?? []).map((provider) => ({ rank, ...provider }));
      if (providers.length) this.palette.register(...providers);
      return open;
    });
    this.loading.set(id, loading);
    loading.catch(() => this.loading.delete(id));
    return loading;
  }

  /** Go to an address of the page, as `href` writes it. */
  go(to: string, options?: { replace?: boolean }): void {
    this.router.go(to, options);
  }

  open(target: Target, where: Where = "view"): void {
    if (target.kind === "note" && where === "pane" && !this.views.value.has("notes")) {
      void this.load("notes").then(() => this.open(target, where)).catch((error: unknown) => this.fail(error));
      return;
    }
    if (this.openers.some((opener) => opener(target, where))) return;
    const to = this.href(target);
    if (where === "tab") globalThis.open(to, "_blank", "noopener");
    else this.go(to);
  }

  /** Begin a conversation about a note: the chat's view reads these of its address. */
  ask(about: { path: string; lines?: readonly [number, number]; quote?: string }): void {
    if (this.isPaneOver) this.closePane();
    this.go(href("chat", { note: about.path, lines: about.lines?.join("-"), quote: about.quote }));
  }

  obsidian(path: string, vault = this.session.vault.value): string {
    return `obsidian://open?vault=${encodeURIComponent(vault)}&file=${encodeURIComponent(path)}`;
  }

  /**
   * Register what opens targets otherwise than by their address, such as a note in the pane; gives whether it did.
   *
   * @param isLast Asked after all others, such as a simple reader where a view may have a better one.
   */
  onOpen(opener: Opener, isLast = false): void {
    if (isLast) this.openers.push(opener);
    else this.openers.unshift(opener);
  }

  openSettings(section: string): void {
    this.go(href(`settings/${section}`));
  }

  href(target: Target): string {
    switch (target.kind) {
      case "note":
        return href(`notes/${target.path}`, { vault: target.vault, lines: target.lines?.join("-") }, target.fragment);
      case "proposal":
        return href(`review/${target.id}`);
      case "run":
        return href(`runs/${target.id}`, { part: target.part });
      case "session":
        return href(`chat/${target.id}`);
      case "graph":
        return href("graph", "run" in target ? { run: target.run } : { session: target.session, turn: target.turn });
      case "search":
        return href("search", { q: target.query });
    }
  }

  showPane(content: PaneContent): void {
    this.keepOpener();
    this.pane.value = content;
  }

  /** Whether the pane lies over the content, as it has no room beside it. */
  get isPaneOver(): boolean {
    return innerWidth < 1_200;
  }

  /** Learn where the focus goes when the pane is closed: to what has it, unless that is the pane. */
  keepOpener(): void {
    const active = document.activeElement;
    if (active instanceof HTMLElement && active !== document.body && !active.closest(".k-pane")) this.paneOpener = active;
  }

  /** Close the pane; the focus goes back to what opened it, unless it has gone elsewhere. */
  closePane(): void {
    const back = this.paneOpener;
    this.paneOpener = null;
    this.pane.value = null;
    // Once it is gone: on a phone what opened it is hidden until then.
    requestAnimationFrame(() => {
      if (document.activeElement === document.body && back?.isConnected) back.focus({ preventScroll: true });
    });
  }

  async copy(text: string): Promise<void> {
    await navigator.clipboard.writeText(text);
  }

  /** Show what went wrong, with its next step. */
  fail(error: unknown): void {
    const failure = error instanceof Failure ? error : new Failure(error instanceof Error ? error.message : String(error));
    this.floaters.toast({ text: sentence(failure.message), tone: "removed", ...(failure.hint ? { hint: failure.hint } : {}) });
  }

  tell(text: string): void {
    this.floaters.toast({ text });
  }

  /** Hear the vault's news (`change`, `waiting`, `settled`); gives what ends it. */
  onNews(listener: (event: ServerEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Follow the vault's news until the signal is aborted. */
  async followNews(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const event of follow(this.client, "/events", { signal, isLast: () => false })) this.hear(event);
      } catch {
        // A server without news, or one that refuses them: asked again later, and the views load by themselves.
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  private hear(event: ServerEvent): void {
    const row = event.data as unknown as WaitingRow;
    const others = () => this.waiting.value.filter((known) => known.kind !== row.kind || known.id !== row.id);
    if (event.event === "start") this.waiting.value = (event.data["waiting"] ?? []) as WaitingRow[];
    else if (event.event === "waiting") this.waiting.value = [...others(), row];
    else if (event.event === "settled") this.waiting.value = others();
    for (const listener of this.listeners) listener(event);
  }
}

export { vaultOf, type VaultState } from "./vault"; // several views share it: so it comes in the chunk that all of them have
export { firstStepsOf } from "./first";
export { href, noteName };
