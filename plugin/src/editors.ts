/** The editors of open notes and their files: what is typed and not saved, and what the server writes beside it. */

import { isolateHistory } from "@codemirror/commands";
import { type EditorState, StateEffect, StateField, Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { type App, Component, type Debouncer, MarkdownView, Notice, type TAbstractFile, type TFile } from "obsidian";
import { Failure } from "../../ui/client/transport";
import { lostChanges, type WrittenFile, writtenText } from "./merging";
import { plain } from "./places";

/** `ahead`: something typed isn't saved. `behind`: the file has something that the app hasn't read into the editor yet. */
export type Standing = "saved" | "ahead" | "behind";

/** A text that an editor has had, and those before it. */
interface Had {
  readonly doc: Text;
  readonly before: Had | null;
}

interface Texts {
  readonly had: Had;
  /** The file, as it was last read here. */
  readonly file: Text | null;
}

const setFile = StateEffect.define<Text>();

/** The texts that an editor has had since it was last the same as its file: a file with one of those has nothing that is new to it. */
export const textsField: StateField<Texts> = StateField.define<Texts>({
  create: ({ doc }) => ({ had: { doc, before: null }, file: null }),
  update: (texts, { docChanged, newDoc, effects }) => {
    const read = effects.find((effect) => effect.is(setFile))?.value;
    if (!docChanged && !read) return texts;
    const file = read ?? texts.file;
    const had = docChanged ? { doc: newDoc, before: texts.had } : texts.had;
    if (file?.eq(newDoc)) return { had: { doc: newDoc, before: null }, file };
    return { had: read ? since(had, read) : had, file };
  },
});

/** Forget what an editor had before its file had the same; all is kept where the file has something else. */
function since(had: Had, file: Text): Had {
  const newer: Text[] = [];
  for (let one: Had | null = had; one; one = one.before) {
    if (one.doc.eq(file)) return newer.reduceRight<Had>((before, doc) => ({ doc, before }), { doc: one.doc, before: null });
    newer.push(one.doc);
  }
  return had;
}

/** Whether an editor has had a text, after another one where that is given. */
function hasHad(state: EditorState | undefined, text: Text, after?: Text): boolean {
  for (let one: Had | null = state?.field(textsField, false)?.had ?? null; one && one.doc !== after; one = one.before) if (one.doc.eq(text)) return true;
  return false;
}

/** What the server wrote into a note that is open, until its editor has it. */
interface Written {
  readonly view: MarkdownView;
  readonly file: TFile;
  /** The file before and after. */
  readonly before: Text;
  readonly after: Text;
  /** What the editor had before. */
  readonly start: Text;
}

/** What the server says of files that it has just written. */
export interface WriteAnswer {
  readonly files?: readonly WrittenFile[];
}

const STEP_MS = 50;
const PATIENCE_MS = 5_000;

export class Editors extends Component {
  private written: Written[] = [];

  constructor(
    private readonly app: App,
    private readonly pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => window.setTimeout(resolve, ms)),
  ) {
    super();
  }

  override onload(): void {
    this.registerEvent(this.app.vault.on("modify", (file) => void this.onModify(file)));
  }

  /** The editor of a note, the one with the focus first; null where it isn't open. */
  of(path: string): MarkdownView | null {
    const active = this.app.workspace.getActiveViewOfType(MarkdownView);
    if (active?.file?.path === path) return active;
    return openNotes(this.app).find((view) => view.file?.path === path) ?? null;
  }

  /**
   * The file of a note whose editor has something that isn't saved; undefined where it has nothing.
   *
   * Throws a `Failure` where the app hasn't read within some seconds what others wrote: a save would overwrite it.
   */
  async unsaved(view: MarkdownView): Promise<string | undefined> {
    for (let waited = 0; ; waited += STEP_MS) {
      const { standing, disk } = await this.look(view);
      if (standing !== "behind") return standing === "ahead" ? disk : undefined;
      if (waited >= PATIENCE_MS) throw new Failure(`${view.file?.path ?? "the note"} was changed beside Obsidian, which hasn't read it yet`, "behind", "try again in a moment");
      await this.pause(STEP_MS);
    }
  }

  /**
   * Have notes written beside their editors, and wait until those have what was written.
   *
   * @param paths All open notes where none are given. What is typed in those that are given is saved first; else it stays as it
   *   is, as the server takes back no change of a note that was changed since.
   * @param work Adds the server's answers in their order: where the app saves a note in the moment between, they alone have what
   *   was written.
   */
  async around<T>(paths: Iterable<string> | null, work: (answers: WriteAnswer[]) => Promise<T>): Promise<T> {
    const wanted = paths && new Set(paths);
    const open: Omit<Written, "after">[] = [];
    const held: MarkdownView[] = [];
    for (const view of openNotes(this.app)) {
      const { file } = view;
      if (!file || (wanted && !wanted.has(file.path))) continue;
      const isUnsaved = (await this.unsaved(view)) !== undefined;
      if (isUnsaved && wanted) await view.save();
      else if (isUnsaved) held.push(view);
      open.push({ view, file, before: await this.read(file), start: textOf(view) });
    }
    // The app's own save, some seconds after a key, would come between the server's write and what is read of it here.
    for (const view of held) (view.requestSave as Partial<Debouncer<[], void>>).cancel?.();
    const answers: WriteAnswer[] = [];
    try {
      return await work(answers);
    } finally {
      for (const view of held) view.requestSave();
      await Promise.all(open.map((one) => this.follow(one, answers)));
    }
  }

  private async follow(open: Omit<Written, "after">, answers: readonly WriteAnswer[]): Promise<void> {
    const files = answers.flatMap(({ files = [] }) => files.filter(({ path }) => path === open.file.path));
    const after = writtenText(open.before, files) ?? (await this.read(open.file).catch(() => open.before)); // it was moved or deleted
    const whole = files.some(({ diff_truncated: isCut }) => isCut) ? files.at(-1)?.hash : undefined;
    if (whole && whole !== (await this.hash(open.file).catch(() => whole))) new Notice(`${open.file.path} was saved while the server wrote a long change into it. See whether the change is there.`, 0);
    if (after.eq(open.before)) return;
    const written = { ...open, after };
    this.written.push(written);
    for (let waited = 0; waited < PATIENCE_MS && this.written.includes(written); waited += STEP_MS) {
      await this.settle(written);
      if (this.written.includes(written)) await this.pause(STEP_MS);
    }
  }

  /** A file was written, here or elsewhere. */
  private async onModify(file: TAbstractFile): Promise<void> {
    for (const view of openNotes(this.app)) if (view.file === file) await this.look(view).catch(() => undefined); // it is gone again
  }

  /** Read a note's file, and compare its editor with it. */
  private async look(view: MarkdownView): Promise<{ standing: Standing; disk: string }> {
    for (const written of this.written.filter((one) => one.view === view)) await this.settle(written);
    if (!view.file) return { standing: "saved", disk: "" };
    const disk = await this.app.vault.read(view.file);
    const file = toText(disk);
    const editor = writable(view);
    editor?.dispatch({ effects: setFile.of(file) });
    if (textOf(view).eq(file)) return { standing: "saved", disk };
    return { standing: hasHad(editor?.state, file) ? "ahead" : "behind", disk };
  }

  /** See whether an editor has what was written; where the app has saved an older text over it, or read it over what was typed, put that there again. */
  private async settle(written: Written): Promise<void> {
    const { view, file, before, after, start } = written;
    const disk = await this.read(file).catch(() => null);
    if (!this.written.includes(written)) return;
    const isOpen = view.file === file;
    const doc = isOpen ? textOf(view) : disk;
    const isThere = !disk || !doc || doc.eq(after) || (isOpen && hasHad(editorViewOf(view)?.state, after, start));
    if (!isThere && !doc.eq(disk)) {
      writable(view)?.dispatch({ effects: setFile.of(disk) });
      return; // the app is about to read it, and to merge it with what is typed
    }
    this.written = this.written.filter((one) => one !== written);
    if (isThere && (!doc?.eq(after) || start.eq(before))) return;
    const { changes, isUnclear } = lostChanges(before, isThere ? start : after, doc);
    const editor = isOpen ? writable(view) : undefined;
    let isDone = !isUnclear;
    if (changes.empty) {
      // Nothing is lost, or nothing can be said.
    } else if (editor) {
      editor.dispatch({ changes, annotations: isolateHistory.of("full"), userEvent: "input.accept" });
      await view.save();
    } else {
      const written = await this.app.vault.process(file, (raw) => (as(doc, raw) === raw ? as(changes.apply(doc), raw) : raw));
      isDone &&= changes.apply(doc).eq(toText(written));
    }
    if (!isDone) new Notice(`What was just written into ${file.path} and what you typed met in the same lines. Look at them again.`, 0);
  }

  /** The hash of a file in the server's form. */
  private async hash(file: TFile): Promise<string> {
    const digest = await crypto.subtle.digest("SHA-256", await this.app.vault.readBinary(file));
    return `sha256:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }

  private async read(file: TFile): Promise<Text> {
    return toText(await this.app.vault.read(file));
  }
}

function toText(raw: string): Text {
  return Text.of(plain(raw).split("\n"));
}

/** A text with the byte order mark and the line ends of a file. */
function as(text: Text, raw: string): string {
  return (raw.startsWith("\uFEFF") ? "\uFEFF" : "") + text.toString().replaceAll("\n", raw.includes("\r\n") ? "\r\n" : "\n");
}

/** The editor of a view in which one can type; undefined in reading view. */
function writable(view: MarkdownView): EditorView | undefined {
  return view.getMode() === "preview" ? undefined : editorViewOf(view);
}

function textOf(view: MarkdownView): Text {
  return writable(view)?.state.doc ?? toText(view.getViewData());
}

/** All views of notes that are loaded; a deferred one has no editor yet. */
export function openNotes(app: App): MarkdownView[] {
  const views = app.workspace.getLeavesOfType("markdown").map((leaf) => leaf.view);
  return views.filter((view): view is MarkdownView => view instanceof MarkdownView && view.file !== null);
}

/** CodeMirror's view behind Obsidian's editor; undefined in reading view of older notes. */
export function editorViewOf(view: MarkdownView): EditorView | undefined {
  return (view.editor as unknown as { cm?: EditorView }).cm;
}

/** The note that an editor shows. */
export function noteOf(app: App, editor: EditorView): MarkdownView | undefined {
  return openNotes(app).find((view) => editorViewOf(view) === editor);
}

/** Open a note in a tab, at a line counted from 1 where one is given. */
export async function openNote(app: App, file: TFile, line?: number): Promise<void> {
  const leaf = app.workspace.getLeaf(false);
  await leaf.openFile(file, line === undefined ? {} : { eState: { line: line - 1 } });
}
