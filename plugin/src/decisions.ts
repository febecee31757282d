/** Accept, reject and edit what waits: through the server, or through the editor where it has unsaved text. */

import { isolateHistory } from "@codemirror/commands";
import type { EditorView } from "@codemirror/view";
import { type App, MarkdownView, Notice, type TFile } from "obsidian";
import { type Failure, failureOf } from "../../ui/client/transport";
import type { Extent, Verb } from "./card";
import type { Connection } from "./connection";
import { sentence } from "./connection";
import { newText, type Place, plain } from "./places";
import { placeOf } from "./review";
import type { Hunk, Proposal, ServerHunk, Waiting } from "./waiting";

const MISMATCH = "digest_mismatch";

export class Decisions {
  constructor(
    private readonly app: App,
    private readonly connection: Connection,
    private readonly waiting: Waiting,
  ) {}

  /** Decide about a hunk, about all of the same note, or about its whole proposal; failures are shown. */
  async decide(verb: Verb, hunk: Hunk, extent: Extent): Promise<boolean> {
    if (extent === "proposal") return this.decideProposal(verb, hunk.proposal);
    const hunks = extent === "note" ? this.waiting.hunksOf(hunk.path) : [hunk];
    return verb === "accept" ? this.accept(hunk.path, hunks) : this.reject(hunks);
  }

  /** Accept or reject all that can be of one proposal, whatever notes it is about. */
  async decideProposal(verb: Verb, id: string): Promise<boolean> {
    const proposal = this.waiting.proposals.get(id);
    if (!proposal) return this.fail(new Error(`the proposal ${id} isn't open any more`));
    if (verb === "reject") return this.attempt(() => this.post(id, "reject", {}), "Proposal rejected", [id]);
    for (const file of proposal.files) {
      const view = this.editorFor(file.path);
      const hunks = this.waiting.hunksOf(file.path).filter((hunk) => hunk.proposal === id && !hunk.stale);
      // What is typed and not saved stays: those notes get theirs through the editor, one after the other.
      const isBound = proposal.files.some((other) => other !== file && other.group === file.group);
      if (!view || !hunks.length || isBound || !(await this.isDirty(view))) continue;
      if (!(await this.accept(file.path, hunks))) return false;
    }
    const left = await this.reread(id);
    if (!left || !hasOpenParts(left)) return true;
    return this.attempt(() => this.post(id, "accept", { digest: left.digest }), "Proposal accepted", [id]);
  }

  /** Accept hunks of one note. */
  async accept(path: string, hunks: readonly Hunk[]): Promise<boolean> {
    const fitting = hunks.filter((hunk) => !hunk.stale);
    if (!fitting.length) {
      new Notice(hunks.length ? "This doesn't fit the note any more" : "No pending edits in current note");
      return false;
    }
    const view = this.editorFor(path);
    if (view && (await this.isDirty(view))) return this.acceptInEditor(view, fitting);
    const done = fitting.length === 1 ? "Edit accepted" : `Accepted ${fitting.length} pending edits`;
    return this.attempt(() => this.acceptAtServer(fitting), done, ids(fitting));
  }

  /** Reject hunks; the note stays as it is. */
  async reject(hunks: readonly Hunk[]): Promise<boolean> {
    if (!hunks.length) {
      new Notice("No pending edits in current note");
      return false;
    }
    const done = hunks.length === 1 ? "Edit rejected" : `Rejected ${hunks.length} pending edits`;
    const work = async () => {
      for (const [id, own] of byProposal(hunks)) await this.post(id, "reject", { hunks: own.map((hunk) => hunk.id) });
    };
    return this.attempt(work, done, ids(hunks));
  }

  /** Replace the text that a hunk would put into the note. */
  async edit(hunk: Hunk, text: string): Promise<boolean> {
    const work = async () => {
      const client = this.client();
      const proposal = await this.same(hunk.proposal, [hunk]);
      const path = `/proposals/${encodeURIComponent(hunk.proposal)}/hunks/${encodeURIComponent(hunk.id)}`;
      await client.raw("PUT", path, { body: { digest: proposal.digest, new_text: text } });
    };
    return this.attempt(work, "", [hunk.proposal]);
  }

  private async acceptAtServer(hunks: readonly Hunk[]): Promise<void> {
    for (const [id, own] of byProposal(hunks)) {
      const body = { hunks: own.map((hunk) => hunk.id) };
      try {
        await this.post(id, "accept", { ...body, digest: this.waiting.proposals.get(id)?.digest ?? "" });
      } catch (error) {
        if (failureOf(error).code !== MISMATCH) throw error;
        // Something else of the proposal changed; what was shown of these parts still holds, or this throws.
        const proposal = await this.same(id, own);
        await this.post(id, "accept", { ...body, digest: proposal.digest });
      }
    }
  }

  /** One transaction, which is one undo step; then the note is saved, and the server told. */
  private async acceptInEditor(view: MarkdownView, hunks: readonly Hunk[]): Promise<boolean> {
    const editor = editorViewOf(view);
    const places = hunks.map((hunk) => editor && placeOf(editor.state, hunk.proposal, hunk.id));
    const fitting = places.filter((place): place is Place => place?.fit === "fits");
    if (!editor || fitting.length !== hunks.length) {
      new Notice("The text there was changed while this waited; nothing was accepted");
      return false;
    }
    editor.dispatch({
      changes: fitting.map((place) => ({ from: place.from, to: place.to, insert: newText(place.hunk) })),
      annotations: isolateHistory.of("full"),
      userEvent: "input.accept",
    });
    await view.save();
    const work = async () => {
      for (const [id, own] of byProposal(hunks)) await this.post(id, "applied", { hunks: own.map((hunk) => hunk.id) });
    };
    return this.attempt(work, hunks.length === 1 ? "Edit accepted" : `Accepted ${hunks.length} pending edits`, ids(hunks));
  }

  /** Read a proposal anew, and make sure that the parts are still those that were shown. */
  private async same(id: string, shown: readonly Hunk[]): Promise<Proposal> {
    const proposal = await this.reread(id);
    const now = new Map(proposal?.files.flatMap((file) => file.hunks).map((hunk) => [hunk.id, hunk]));
    if (!proposal || !shown.every((hunk) => isSame(hunk, now.get(hunk.id)))) {
      throw new Error("it was changed meanwhile; look at it again");
    }
    return proposal;
  }

  private async reread(id: string): Promise<Proposal | undefined> {
    await this.waiting.load(id);
    return this.waiting.proposals.get(id);
  }

  private post(id: string, verb: Verb | "applied" | "draw", body: Record<string, unknown>): Promise<unknown> {
    return this.client().raw("POST", `/proposals/${encodeURIComponent(id)}/${verb}`, { body });
  }

  private client() {
    const { client } = this.connection;
    if (!client) throw new Error("the server isn't connected");
    return client;
  }

  /** Put the open parts of proposals into their notes as blocks; what is typed there is saved first. */
  async draw(proposals: readonly string[]): Promise<boolean> {
    const work = async () => {
      const paths = new Set(proposals.flatMap((id) => this.waiting.proposals.get(id)?.files.map((file) => file.path) ?? []));
      for (const view of openNotes(this.app)) if (paths.has(view.file?.path ?? "")) await view.save();
      for (const id of proposals) await this.post(id, "draw", {});
    };
    return this.attempt(work, "Shown as blocks in the note", proposals);
  }

  private async attempt(work: () => Promise<unknown>, done: string, touched: readonly string[]): Promise<boolean> {
    let isDone = true;
    try {
      await work();
      if (done) new Notice(done);
    } catch (error) {
      isDone = this.fail(error);
    }
    await Promise.all(touched.map((id) => this.waiting.load(id)));
    return isDone;
  }

  private fail(error: unknown): false {
    new Notice(`Knapper: ${describe(failureOf(error))}`, 8_000);
    return false;
  }

  private editorFor(path: string): MarkdownView | null {
    const active = this.app.workspace.getActiveViewOfType(MarkdownView);
    if (active?.file?.path === path) return active;
    return openNotes(this.app).find((view) => view.file?.path === path) ?? null;
  }

  private async isDirty(view: MarkdownView): Promise<boolean> {
    if (!view.file) return false;
    return plain(view.getViewData()) !== plain(await this.app.vault.read(view.file));
  }
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

function describe(failure: Failure): string {
  if (failure.status === 403) return `the server's rules refuse this: ${sentence(failure)}`;
  return sentence(failure);
}

function isSame(shown: Hunk, now: ServerHunk | undefined): boolean {
  return now !== undefined && now.state === "open" && !now.stale && now.old === shown.old && now.new === shown.new;
}

function hasOpenParts(proposal: Proposal): boolean {
  return proposal.files.some((file) =>
    file.kind === "edit" ? file.hunks.some((hunk) => hunk.state === "open" && !hunk.stale) : file.state === "open" && !file.stale,
  );
}

function ids(hunks: readonly Hunk[]): string[] {
  return [...new Set(hunks.map((hunk) => hunk.proposal))];
}

function byProposal(hunks: readonly Hunk[]): Map<string, Hunk[]> {
  const grouped = new Map<string, Hunk[]>();
  for (const hunk of hunks) grouped.set(hunk.proposal, [...(grouped.get(hunk.proposal) ?? []), hunk]);
  return grouped;
}
