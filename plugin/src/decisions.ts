/** Accept, reject and edit what waits: through the server, or through the editor where it has unsaved text. */

import { isolateHistory } from "@codemirror/commands";
import { type MarkdownView, Notice } from "obsidian";
import { type Failure, failureOf } from "../../ui/client/transport";
import type { Extent, Verb } from "./card";
import type { Connection } from "./connection";
import { describeFailure } from "./connection";
import { type Editors, editorViewOf, type WriteAnswer } from "./editors";
import { findPlaces, newText, type Place } from "./places";
import { placeOf } from "./review";
import { type Hunk, type Proposal, type ServerFile, type ServerHunk, toHunk, type Waiting } from "./waiting";

const MISMATCH = "digest_mismatch";
export const NOTHING_HERE = "No pending edits in current note";

/** Files and hunks of a proposal, by their paths and ids; all of it where neither is named. */
export interface Parts {
  files?: readonly string[];
  hunks?: readonly string[];
}

/** Whether a file of a proposal, or a hunk of it, is to be decided about. */
type IsWanted = (file: ServerFile, hunk?: ServerHunk) => boolean;

/** Each decision waits for those before it, as all of one note are about the same text. */
export class Decisions {
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly editors: Editors,
    private readonly connection: Connection,
    private readonly waiting: Waiting,
  ) {}

  /** Decide about a hunk, about all of the same note, or about its whole proposal; failures are shown. */
  async decide(verb: Verb, hunk: Hunk, extent: Extent): Promise<boolean> {
    if (extent === "proposal" && hunk.proposal) return this.decideProposal(verb, hunk.proposal);
    const hunks = extent === "hunk" ? [hunk] : this.waiting.hunksOf(hunk.path);
    return verb === "accept" ? this.accept(hunk.path, hunks) : this.reject(hunks);
  }

  /** Accept or reject all that can be of one proposal, whatever notes it is about, as it was last shown. */
  async decideProposal(verb: Verb, id: string): Promise<boolean> {
    const shown = this.waiting.proposals.get(id);
    if (!shown) return this.fail(new Error(`the proposal ${id} isn't open any more`));
    return this.attempt(() => this.decideShown(verb, shown), verb === "accept" ? "Proposal accepted" : "Proposal rejected", [id]);
  }

  /** Accept or reject parts of a proposal just as it is given; failures are thrown. */
  decideParts(verb: Verb, shown: Proposal, parts: Parts): Promise<void> {
    return this.inTurn(() => this.decideShown(verb, shown, parts)).finally(() => this.waiting.load(shown.id));
  }

  /** Decide about all that waits in the vault, and all blocks that are known of; says how many there were, and why not of others. */
  async decideAll(verb: Verb): Promise<void> {
    const ids = this.waiting.rows.filter((row) => row.kind === "proposal").map((row) => row.id);
    const blocks = this.waiting.ownBlocks();
    const refused: Failure[] = [];
    let done = 0;
    const summary = () => `${verb === "accept" ? "Accepted" : "Rejected"} ${done} pending ${done === 1 ? "edit" : "edits"}`;
    const work = async () => {
      for (const id of ids) if (!this.waiting.proposals.has(id)) await this.waiting.load(id);
      // All of a note whose text isn't saved goes into its editor before a save, after which what was typed stands between.
      const typed = verb === "accept" ? await this.acceptUnsaved(ids.flatMap((id) => this.waiting.proposals.get(id) ?? [])) : new Set<string>();
      for (const id of typed) await this.waiting.load(id);
      for (const id of ids) {
        const shown = this.waiting.proposals.get(id);
        try {
          if (shown) await this.decideShown(verb, shown, {}, typed.has(id));
          if (shown || typed.has(id)) done++; // else it was decided elsewhere
        } catch (error) {
          const failure = failureOf(error);
          if (failure.isPassing) throw error; // so it would be with the others
          refused.push(failure);
        }
        if (shown) await this.waiting.load(id);
      }
      await this.decideBlocks(verb, blocks);
      done += blocks.length;
      if (refused.length) throw new Error(`${summary()}, but not ${refused.length}: ${describe(refused[0]!)}`);
    };
    if (!ids.length && !blocks.length) new Notice("No pending edits found");
    else await this.attempt(work, summary, []);
  }

  /** Accept hunks of one note. */
  async accept(path: string, hunks: readonly Hunk[]): Promise<boolean> {
    const fitting = hunks.filter((hunk) => !hunk.stale);
    if (!fitting.length) {
      new Notice(hunks.length ? "This doesn't fit the note any more" : NOTHING_HERE);
      return false;
    }
    const done = fitting.length === 1 ? "Edit accepted" : `Accepted ${fitting.length} pending edits`;
    return this.attempt(() => this.acceptHunks(path, fitting), done, ids(fitting));
  }

  /** Reject hunks; the note stays as it is, but for blocks that show them. */
  async reject(hunks: readonly Hunk[]): Promise<boolean> {
    if (!hunks.length) {
      new Notice(NOTHING_HERE);
      return false;
    }
    const done = hunks.length === 1 ? "Edit rejected" : `Rejected ${hunks.length} pending edits`;
    const work = async () => {
      await this.decideBlocks("reject", hunks);
      for (const [id, own] of byProposal(hunks.filter((hunk) => !hunk.block))) await this.post(id, "reject", { hunks: own.map((hunk) => hunk.id) });
    };
    return this.attempt(work, done, ids(hunks));
  }

  /** Replace the text that a hunk would put into the note. */
  async edit(hunk: Hunk, text: string): Promise<boolean> {
    const work = async () => {
      const client = this.client();
      const { digest } = await this.same(hunk.proposal, [hunk]);
      const path = `/proposals/${encodeURIComponent(hunk.proposal)}/hunks/${encodeURIComponent(hunk.id)}`;
      await client.raw("PUT", path, { body: { digest, new_text: text } });
    };
    return this.attempt(work, "", [hunk.proposal]);
  }

  /** Put the open parts of proposals into their notes as blocks; what is typed there is saved first. */
  async draw(proposals: readonly string[]): Promise<boolean> {
    const work = async () => {
      const paths = proposals.flatMap((id) => this.waiting.proposals.get(id)?.files.map((file) => file.path) ?? []);
      await this.editors.around(paths, async (answers) => {
        for (const id of proposals) answers.push(await this.post(id, "draw", {}));
      });
    };
    return this.attempt(work, "Shown as blocks in the note", proposals);
  }

  /** Undo changes at the server; what is typed in open notes is saved first, and stays. */
  undo(request: { change_id?: string; run?: string; partial?: boolean }): Promise<{ undone: unknown[] }> {
    return this.inTurn(() =>
      this.editors.around(null, async (answers) => {
        const done = await this.client().raw<WriteAnswer & { undone: unknown[] }>("POST", "/changes/undo", { body: request });
        answers.push(done);
        return done;
      }),
    );
  }

  private async acceptHunks(path: string, hunks: readonly Hunk[]): Promise<void> {
    const view = this.editors.of(path);
    const disk = view && !hunks.some((hunk) => hunk.block) ? await this.editors.unsaved(view) : undefined;
    if (view && disk !== undefined) return this.acceptInEditor(view, disk, hunks);
    await this.decideBlocks("accept", hunks);
    const rest = hunks.filter((hunk) => !hunk.block);
    if (rest.length) await this.editors.around([path], (answers) => this.acceptAtServer(rest, answers));
  }

  /** Accept or reject a block of a note, whether a proposal knows it or not; the server knows its exact bytes. */
  decideBlock(verb: Verb, path: string, block: string): Promise<boolean> {
    const known = this.waiting.hunksOf(path).filter((hunk) => hunk.block === block);
    return this.attempt(() => this.resolve(verb, path, [block]), verb === "accept" ? "Edit accepted" : "Edit rejected", ids(known));
  }

  /** Blocks of notes, whether a proposal knows them or not. */
  private async decideBlocks(verb: Verb, hunks: readonly Hunk[]): Promise<void> {
    const drawn = hunks.filter((hunk) => hunk.block);
    for (const path of new Set(drawn.map((hunk) => hunk.path))) {
      const blocks = [...new Set(drawn.filter((hunk) => hunk.path === path).map((hunk) => hunk.block!))];
      await this.resolve(verb, path, blocks);
    }
  }

  private async resolve(verb: Verb, path: string, blocks: readonly string[]): Promise<void> {
    await this.editors.around([path], async (answers) => answers.push(await this.client().raw<WriteAnswer>("POST", `/blocks/${verb}`, { body: { path, ids: blocks } })));
    await this.waiting.loadBlocks(path);
  }

  /** @param isPartlyIn Whether a part of it went into an editor already. */
  private async decideShown(verb: Verb, shown: Proposal, { files, hunks }: Parts = {}, isPartlyIn = false): Promise<void> {
    const isWanted: IsWanted = (file, hunk) => (files?.includes(file.path) ?? true) && (!hunk || (hunks?.includes(hunk.id) ?? true));
    const parts = { ...(files && { files }), ...(hunks && { hunks }) };
    const paths = shown.files.flatMap((file) => [file.path, ...(file.target ? [file.target] : [])]);
    if (verb === "reject") {
      const isDrawn = shown.files.some((file) => file.hunks.some((hunk) => hunk.block));
      await this.editors.around(isDrawn ? paths : [], async (answers) => answers.push(await this.post(shown.id, "reject", parts)));
      return;
    }
    const isIn = (await this.acceptUnsaved([shown], isWanted)).has(shown.id) || isPartlyIn;
    await this.editors.around(paths, async (answers) => answers.push(await this.acceptProposal(shown, parts, isWanted, isIn)));
  }

  /**
   * Put what is wanted of proposals into the editors of those notes whose text isn't saved: what is typed there stays.
   *
   * @returns The proposals of which something was put there. What doesn't fit, and what belongs together with another file, is left.
   */
  private async acceptUnsaved(all: readonly Proposal[], isWanted: IsWanted = () => true): Promise<Set<string>> {
    const byPath = new Map<string, Hunk[][]>();
    for (const shown of all) {
      for (const file of shown.files) {
        const own = file.hunks.filter((hunk) => isWanted(file, hunk) && canAccept(hunk)).map((hunk) => toHunk(hunk, file, shown));
        const isBound = file.kind !== "edit" || shown.files.some((other) => other !== file && other.group === file.group);
        if (own.length && !isBound && !own.some((hunk) => hunk.block)) byPath.set(file.path, [...(byPath.get(file.path) ?? []), own]);
      }
    }
    const put = new Set<string>();
    for (const [path, parts] of byPath) {
      const view = this.editors.of(path);
      const disk = view ? await this.editors.unsaved(view) : undefined;
      if (!view || disk === undefined) continue;
      const fitting = parts.filter((own) => putIntoEditor(view, disk, own)).flat();
      if (fitting.length) await this.keep(view, fitting);
      for (const id of ids(fitting)) put.add(id);
    }
    return put;
  }

  /**
   * Accept what is left of a proposal, where that is still what was shown.
   *
   * @param isPartlyIn Whether a part of it went into an editor already.
   */
  private async acceptProposal(shown: Proposal, parts: Parts, isWanted: IsWanted, isPartlyIn: boolean): Promise<WriteAnswer> {
    if (!isPartlyIn && this.waiting.proposals.get(shown.id)?.digest === shown.digest) {
      try {
        return await this.post(shown.id, "accept", { ...parts, digest: shown.digest });
      } catch (error) {
        if (failureOf(error).code !== MISMATCH) throw error;
      }
    }
    const now = await this.reread(shown.id);
    const open = now?.files.filter((file) => isWanted(file) && isOpen(file)) ?? [];
    if (!now || !open.some((file) => file.kind !== "edit" || file.hunks.some((hunk) => isWanted(file, hunk) && canAccept(hunk)))) {
      if (isPartlyIn) return {};
      throw new Error("it doesn't fit any more, or was decided elsewhere");
    }
    for (const file of open) {
      if (!isSameFile(shown.files.find((one) => one.number === file.number), file)) throw new Error("it was changed meanwhile; look at it again");
    }
    return this.post(shown.id, "accept", { ...stillOpen(parts, open), digest: now.digest });
  }

  private async acceptAtServer(hunks: readonly Hunk[], answers: WriteAnswer[]): Promise<void> {
    for (const [id, own] of byProposal(hunks)) {
      const body = { hunks: own.map((hunk) => hunk.id) };
      try {
        answers.push(await this.post(id, "accept", { ...body, digest: this.digestOf(id, own) }));
      } catch (error) {
        if (failureOf(error).code !== MISMATCH) throw error;
        // Something else of the proposal changed; what was shown of these parts still holds, or this throws.
        const proposal = await this.same(id, own);
        answers.push(await this.post(id, "accept", { ...body, digest: proposal.digest }));
      }
    }
  }

  /** The digest of a proposal whose parts are those that were shown; empty where one isn't, which no proposal has. */
  private digestOf(id: string, shown: readonly Hunk[]): string {
    const proposal = this.waiting.proposals.get(id);
    const known = new Map(proposal?.files.flatMap((file) => file.hunks).map((hunk) => [hunk.id, hunk]));
    return proposal && shown.every((hunk) => isSame(hunk, known.get(hunk.id))) ? proposal.digest : "";
  }

  /** Put hunks into an editor, all or none; then the note is saved, and the server told. */
  private async acceptInEditor(view: MarkdownView, disk: string, hunks: readonly Hunk[]): Promise<void> {
    if (!putIntoEditor(view, disk, hunks)) throw new Error("the text there was changed while this waited; nothing was accepted");
    await this.keep(view, hunks);
  }

  /** Save what hunks were put into, and tell the server of each; all are told before a failure is thrown. */
  private async keep(view: MarkdownView, hunks: readonly Hunk[]): Promise<void> {
    await view.save();
    const failures: unknown[] = [];
    for (const [id, own] of byProposal(hunks)) await this.post(id, "applied", { hunks: own.map((hunk) => hunk.id) }).catch((error) => failures.push(error));
    if (failures.length) throw failureOf(failures[0]);
  }

  /** Read a proposal anew, and make sure that the parts are still those that were shown. */
  private async same(id: string, shown: readonly Hunk[]): Promise<Proposal> {
    const proposal = await this.reread(id);
    if (!proposal || !this.digestOf(id, shown)) throw new Error("it was changed meanwhile; look at it again");
    return proposal;
  }

  private async reread(id: string): Promise<Proposal | undefined> {
    await this.waiting.load(id);
    return this.waiting.proposals.get(id);
  }

  private async post(id: string, verb: Verb | "applied" | "draw", body: Record<string, unknown>): Promise<WriteAnswer> {
    const reply = await this.client().raw<(WriteAnswer & { status?: string; reason?: string }) | null>("POST", `/proposals/${encodeURIComponent(id)}/${verb}`, { body });
    if (reply?.status === "refused") throw new Error(reply.reason ?? "the server's rules refuse this");
    return reply ?? {};
  }

  private client() {
    const { client } = this.connection;
    if (!client) throw new Error("the server isn't connected");
    return client;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work, work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private async attempt(work: () => Promise<unknown>, done: string | (() => string), touched: readonly string[]): Promise<boolean> {
    let isDone = true;
    try {
      await this.inTurn(work);
      const words = typeof done === "string" ? done : done();
      if (words) new Notice(words);
    } catch (error) {
      isDone = this.fail(error);
    }
    await Promise.all(touched.filter(Boolean).map((id) => this.waiting.load(id)));
    return isDone;
  }

  private fail(error: unknown): false {
    new Notice(`Knapper: ${describe(failureOf(error))}`, 8_000);
    return false;
  }
}

/** One transaction, which is one undo step; false where one of the hunks doesn't fit. */
function putIntoEditor(view: MarkdownView, disk: string, hunks: readonly Hunk[]): boolean {
  const editor = editorViewOf(view);
  const places = hunks.map((hunk) => editor && (placeOf(editor.state, hunk.proposal, hunk.id) ?? findPlaces([hunk], editor.state.doc, disk)[0]));
  const fitting = places.filter((place): place is Place => place?.fit === "fits");
  if (!editor || fitting.length !== hunks.length) return false;
  editor.dispatch({
    changes: fitting.map((place) => ({ from: place.from, to: place.to, insert: newText(place.hunk) })),
    annotations: isolateHistory.of("full"),
    userEvent: "input.accept",
  });
  return true;
}

function describe(failure: Failure): string {
  if (failure.status === 403) return `the server's rules refuse this: ${describeFailure(failure)}`;
  return describeFailure(failure);
}

/** What was shown of a hunk, and isn't there any more or is something else, must not be accepted. */
function isSame(shown: Hunk, now: ServerHunk | undefined): boolean {
  return now !== undefined && now.state === "open" && !now.stale && now.old === shown.old && now.new === shown.new;
}

function canAccept(hunk: ServerHunk): boolean {
  return hunk.state === "open" && !hunk.stale;
}

function isOpen(file: ServerFile): boolean {
  return file.state === "open" && !file.stale;
}

/** Whether what is left of a file is what was shown of it; it may have less. */
function isSameFile(shown: ServerFile | undefined, now: ServerFile): boolean {
  if (!shown || shown.path !== now.path || shown.kind !== now.kind || shown.target !== now.target) return false;
  if (now.kind !== "edit" && shown.diff !== now.diff) return false;
  const before = new Map(shown.hunks.map((hunk) => [hunk.id, hunk]));
  return now.hunks.filter(canAccept).every((hunk) => {
    const known = before.get(hunk.id);
    return known?.old === hunk.old && known.new === hunk.new;
  });
}

/** The named files that are still open: the others got theirs through an editor. */
function stillOpen({ files, hunks }: Parts, open: readonly ServerFile[]): Parts {
  const left = new Set(open.flatMap((file) => file.hunks.filter(canAccept).map((hunk) => hunk.id)));
  return { ...(files && { files: files.filter((path) => open.some((file) => file.path === path)) }), ...(hunks && { hunks: hunks.filter((id) => left.has(id)) }) };
}

function ids(hunks: readonly Hunk[]): string[] {
  return [...new Set(hunks.map((hunk) => hunk.proposal))];
}

function byProposal(hunks: readonly Hunk[]): Map<string, Hunk[]> {
  const grouped = new Map<string, Hunk[]>();
  for (const hunk of hunks) grouped.set(hunk.proposal, [...(grouped.get(hunk.proposal) ?? []), hunk]);
  return grouped;
}
