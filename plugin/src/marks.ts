/** Keep the cards of all open editors in step with what waits. */

import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { Component, MarkdownView, type TAbstractFile, TFile } from "obsidian";
import { type CardActions, cardId, cardKey } from "./card";
import { findBlocks } from "./blocks";
import { editorViewOf, noteOf, openNotes } from "./editors";
import type KnapperPlugin from "./main";
import { findPlaces } from "./places";
import { placesOf, reviewExtension, setPlaces, type Stop } from "./review";
import type { Hunk } from "./waiting";

/** What the fence of each block has. */
const BLOCK = "ai-edit";

export class Marks extends Component {
  readonly extension: Extension;
  /** What was last put into an editor, so that the same isn't drawn again. */
  private readonly shown = new WeakMap<EditorView, { path: string; key: string }>();
  /** Proposals that were put into their files, or that couldn't be. */
  private readonly written = new Set<string>();
  private timer = 0;
  private readingKeys = new Map<string, string>();

  constructor(private readonly plugin: KnapperPlugin) {
    super();
    this.extension = reviewExtension((editor) => this.actions(editor));
  }

  override onload(): void {
    const { vault, workspace } = this.plugin.app;
    this.register(this.plugin.waiting.on(() => this.soon()));
    this.registerEvent(workspace.on("file-open", () => this.soon()));
    this.registerEvent(workspace.on("layout-change", () => this.soon()));
    this.registerEvent(vault.on("modify", (file) => void this.noticeBlocks(file)));
    this.registerEvent(vault.on("rename", (file, before) => (this.plugin.waiting.forget(before), void this.noticeBlocks(file))));
    this.registerEvent(vault.on("delete", ({ path }) => this.plugin.waiting.forget(path)));
    this.register(() => window.clearTimeout(this.timer));
    this.register(() => this.clear());
  }

  /** Draw once for several events of one moment. */
  private soon(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.refresh(), 10);
  }

  /** Have the blocks of a saved note read, where it may have some: those of a note that isn't open count, too. */
  private async noticeBlocks(file: TAbstractFile): Promise<void> {
    const { app, waiting } = this.plugin;
    if (!(file instanceof TFile) || (!waiting.follows(file.path) && (file.extension !== "md" || !(await app.vault.cachedRead(file)).includes(BLOCK)))) return;
    await waiting.loadBlocks(file.path);
  }

  private async refresh(): Promise<void> {
    this.plugin.waiting.setOpen(new Set(openNotes(this.plugin.app).map((view) => view.file!.path)));
    void this.writeBlocks();
    for (const view of openNotes(this.plugin.app)) {
      const editor = editorViewOf(view);
      if (editor && view.file) await this.draw(editor, view, view.file);
      if (view.file && view.getMode() === "preview") this.refreshReading(view.file.path);
    }
  }

  private async draw(editor: EditorView, view: MarkdownView, file: TFile): Promise<void> {
    const hunks = this.cardsOf(file.path);
    const key = hunks.map(cardKey).join("\n");
    const shown = this.shown.get(editor);
    if (shown?.key === key && shown.path === file.path) return;
    if (!hunks.length && !placesOf(editor.state).length) {
      this.shown.set(editor, { path: file.path, key });
      return;
    }
    const disk = hunks.length ? await this.plugin.app.vault.read(file) : "";
    if (view.file !== file || noteOf(this.plugin.app, editor) !== view) return; // another note was opened meanwhile
    this.shown.set(editor, { path: file.path, key });
    const held = editor.dom.contains(editor.dom.ownerDocument.activeElement) ? editor.dom.ownerDocument.activeElement?.closest<HTMLElement>(".knapper-card")?.dataset["hunk"] : undefined;
    editor.dispatch({ effects: setPlaces.of(findPlaces(hunks, editor.state.doc, disk)) });
    if (held) this.focus(editor, held, true); // the card may be another one now
  }

  /** What is shown as cards in a note; where blocks are wished, only what can't be one. */
  cardsOf(path: string): Hunk[] {
    const { settings, waiting } = this.plugin;
    if (settings.showing === "off") return [];
    const hunks = waiting.hunksOf(path).filter((hunk) => !hunk.block);
    return settings.showing === "cards" ? hunks : hunks.filter((hunk) => hunk.stale ?? this.written.has(hunk.proposal));
  }

  /** Write what waits into its files as blocks, where that is wished: each proposal once. */
  private async writeBlocks(): Promise<void> {
    const { settings, waiting, decisions, connection } = this.plugin;
    if (settings.showing !== "blocks" || !connection.isReady) return;
    const ids = new Set(waiting.allHunks().filter((hunk) => !hunk.stale && !hunk.block && !this.written.has(hunk.proposal)).map((hunk) => hunk.proposal));
    for (const id of ids) this.written.add(id);
    for (const id of ids) await decisions.draw([id]);
  }

  private refreshReading(path: string): void {
    const key = this.cardsOf(path).map(cardKey).join("\n");
    if ((this.readingKeys.get(path) ?? "") === key) return;
    this.readingKeys.set(path, key);
    this.plugin.rerenderReading(path);
  }

  private clear(): void {
    for (const view of openNotes(this.plugin.app)) {
      const editor = editorViewOf(view);
      if (editor && placesOf(editor.state).length) editor.dispatch({ effects: setPlaces.of([]) });
    }
  }

  /** Redraw everything, such as after a setting was changed. */
  redraw(): void {
    this.soon();
  }

  /** Where one stops in an editor: at cards, and at the blocks of pending edits in its text. */
  stops(editor: EditorView, path: string): Stop[] {
    const cards = placesOf(editor.state).map(({ hunk, from, to, fit }): Stop => ({ hunk, from, to, at: from, isCard: true, canAccept: fit === "fits" }));
    const blocks = findBlocks(editor.state.doc.toString());
    for (const hunk of this.plugin.waiting.hunksOf(path)) {
      const block = blocks.get(hunk.block ?? "");
      // The cursor goes below a block: within it, live preview would show its source.
      if (block) cards.push({ hunk, ...block, at: block.to, isCard: false, canAccept: !hunk.stale });
    }
    return cards.sort((one, other) => one.from - other.from);
  }

  /** Put the cursor at a card or a block, and the focus on the card. */
  go(editor: EditorView, { at, hunk, isCard }: Stop): void {
    editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    if (isCard) this.focus(editor, cardId(hunk));
    else editor.focus();
  }

  /** Focus a card; one that was drawn anew only where nothing else in the editor has got the focus meanwhile. */
  private focus(editor: EditorView, id: string, isAgain = false): void {
    // The card is drawn after the editor has measured itself.
    editor.requestMeasure({
      read: () => null,
      write: () => {
        const cards = editor.dom.querySelectorAll<HTMLElement>(".knapper-card");
        const card = [...cards].find((one) => one.dataset["hunk"] === id);
        const within = isAgain ? editor.dom : card;
        if (!within?.contains(editor.dom.ownerDocument.activeElement)) card?.focus({ preventScroll: true });
      },
    });
  }

  private actions(editor: EditorView): CardActions {
    const { decisions } = this.plugin;
    return {
      decide: async (verb, hunk, extent) => {
        const hadFocus = editor.dom.contains(editor.dom.ownerDocument.activeElement);
        const isDone = await decisions.decide(verb, hunk, extent);
        if (isDone && hadFocus) editor.focus();
      },
      edit: (hunk, text) => decisions.edit(hunk, text),
      leave: (hunk, to) => {
        if (to === "text") return editor.focus();
        const places = placesOf(editor.state);
        const at = places.findIndex((place) => place.hunk.id === hunk.id && place.hunk.proposal === hunk.proposal);
        const next = places[(at + (to === "next" ? 1 : places.length - 1)) % places.length];
        if (!next) return;
        editor.dispatch({ selection: { anchor: next.from }, effects: EditorView.scrollIntoView(next.from, { y: "center" }) });
        this.focus(editor, cardId(next.hunk));
      },
    };
  }
}
