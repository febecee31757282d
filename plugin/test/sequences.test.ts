/**
 * What a person and agents do to one note in any order, through the plugin's own review and decisions: the editor, the file and
 * what waits are each time what a model of the note says, which knows nothing of places, digests or editors.
 */
import { history, isolateHistory, undo, undoDepth } from "@codemirror/commands";
import { EditorState, Text, type TransactionSpec } from "@codemirror/state";
import { expect, it, vi } from "vitest";
import type { Hunk, ServerHunk } from "../src/waiting";

const notices: string[] = [];
class MarkdownView {
  constructor(
    readonly file: { path: string },
    readonly editor: { cm: object },
    readonly getViewData: () => string,
    readonly save: () => Promise<void>,
  ) {}
  getMode = () => "source";
  requestSave = () => undefined;
}
vi.mock("obsidian", () => ({ setIcon: () => undefined, MarkdownView, Component: class {}, Notice: class { constructor(text: string) { notices.push(text); } } }));
const { Decisions } = await import("../src/decisions");
const { Editors, textsField } = await import("../src/editors");
const { lineChanges } = await import("../src/merging");
const { findPlaces, plain } = await import("../src/places");
const { placesOf, reviewField, setPlaces } = await import("../src/review");
const { Waiting } = await import("../src/waiting");

const PATH = "a.md";
const PIECES = ["# Titel 🌱", "日本語の行", "$$ x = $1 $$", "````md", "```ai-edit", "```", "````", "e\u0301 und é", "  indented", "> quote $&"];
const TYPED = ["x", "\n", "🌱", "# h\n", "漢", "```\n"];

/** How often the app saved an older text over what the server had written. */
let overwritten = 0;

/** Numbers that are the same in each run. */
function dice(seed: number): (size: number) => number {
  let state = (seed * 2_654_435_761) | 0;
  return (size) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % size;
  };
}

/** A vault with one note, its server, and Obsidian with the note open. */
class World {
  readonly app: any;
  readonly waiting: InstanceType<typeof Waiting>;
  readonly decisions: InstanceType<typeof Decisions>;
  state: EditorState;
  /** What the model says: the text, those before it, and whether it was saved. */
  text: string;
  readonly before: string[] = [];
  private hunks: ServerHunk[];
  private digest = 0;
  /** What the app has read or written last. */
  private seen: string;
  /** The app reads a changed file late: at one of the moments that are waited for. */
  private isLate = false;
  /** What it hasn't read is another program's. */
  private isOutside = false;
  /** What acceptances at the server made of the file, which it takes back where nothing else was changed since. */
  private readonly journal: { before: string; after: string; hunks: readonly ServerHunk[] }[] = [];

  constructor(
    public disk: string,
    hunks: ServerHunk[],
    private readonly end: string,
    private readonly roll: (size: number) => number,
  ) {
    this.hunks = hunks;
    this.text = this.seen = plain(disk);
    this.state = this.make(this.text);
    const world = this;
    const cm = {
      get state() {
        return world.state;
      },
      dispatch: (spec: TransactionSpec) => (world.state = world.state.update(spec).state),
    };
    const view = new MarkdownView({ path: PATH }, { cm }, () => this.state.doc.toString(), () => this.save());
    this.app = {
      workspace: { getActiveViewOfType: () => view, getLeavesOfType: () => [{ view }] },
      vault: { read: () => Promise.resolve(this.disk) },
    };
    const connection = { client: { raw: (method: string, path: string, { body = {} }: { body?: any } = {}) => this.answer(method, path, body) }, isReady: true } as never;
    this.waiting = new Waiting(connection);
    this.decisions = new Decisions(new Editors(this.app, () => this.pass()), connection, this.waiting);
  }

  private make(doc: string): EditorState {
    return EditorState.create({ doc, extensions: [history(), reviewField, textsField] });
  }

  /** The note is closed, and opened again: there is nothing to undo. */
  reopen(): void {
    this.state = this.make(this.state.doc.toString());
    this.before.length = 0;
  }

  /** As the marks do when what waits has changed. */
  async refresh(): Promise<void> {
    await this.waiting.load("p");
    this.state = this.state.update({ effects: setPlaces.of(findPlaces(this.waiting.hunksOf(PATH), this.state.doc, this.disk)) }).state;
  }

  type(from: number, to: number, insert: string): void {
    this.before.push(this.text);
    this.text = this.text.slice(0, from) + insert + this.text.slice(to);
    this.state = this.state.update({ changes: { from, to, insert }, annotations: isolateHistory.of("full") }).state;
  }

  undo(): void {
    this.text = this.before.pop() ?? this.text;
    undo({ state: this.state, dispatch: (transaction) => (this.state = transaction.state) });
  }

  /** A moment passes: the app reads the file, or somebody types, or the app saves what it has, or nothing happens. */
  private async pass(): Promise<void> {
    await Promise.resolve();
    const act = this.roll(5);
    if (act < 2 || this.isOutside) this.read();
    else if (act === 2) this.typeSomewhere();
    else if (act === 3 && this.state.doc.toString() !== this.seen) await this.save();
  }

  /** The app reads the file anew; it merges what it has there with what is typed. */
  private read(): void {
    const text = plain(this.disk);
    if (!this.isLate || text === this.seen) return;
    const [before, now] = [Text.of(this.seen.split("\n")), this.state.doc];
    const changes = lineChanges(before, Text.of(text.split("\n"))).map(lineChanges(before, now));
    this.state = this.state.update({ changes, annotations: isolateHistory.of("full") }).state;
    this.seen = text;
    this.isLate = this.isOutside = false;
  }

  /** Another program writes into the file; the app doesn't know of it yet, and saves nothing by itself before it does. */
  writeOutside(): void {
    this.disk = this.disk.replace(/^\uFEFF?/, (mark) => `${mark}z${this.end}`);
    this.digest++;
    this.isLate = this.isOutside = true;
  }

  /** At the note's end, where no hunk is; the model of it has a place for that. */
  private typeSomewhere(): void {
    const { length } = this.state.doc;
    this.late += "y";
    this.state = this.state.update({ changes: { from: length, insert: "y" }, annotations: isolateHistory.of("full") }).state;
  }

  /** What was typed while a decision was under way. */
  late = "";

  /** All that the app does by itself in a while. */
  async calm(): Promise<void> {
    for (let moment = 0; moment < 3; moment++) await this.pass();
    this.read();
    if (this.state.doc.toString() !== plain(this.disk)) await this.save();
  }

  /** The app keeps the file's line ends and mark, and writes what the editor has. */
  async save(): Promise<void> {
    const mark = this.disk.startsWith("\uFEFF") ? "\uFEFF" : "";
    if (this.isLate) overwritten++;
    this.isLate = false;
    this.seen = this.state.doc.toString();
    this.disk = mark + this.seen.replaceAll("\n", this.end);
    this.digest++;
    await Promise.resolve();
  }

  get isDirty(): boolean {
    return this.state.doc.toString() !== plain(this.disk);
  }

  open(): ServerHunk[] {
    return this.hunks.filter((hunk) => hunk.state === "open").map((hunk) => this.located(hunk));
  }

  /** Where the server finds a hunk's lines in the file: exactly once as whole lines, or it is stale. */
  private located(hunk: ServerHunk): ServerHunk {
    const text = `\n${plain(this.disk)}`;
    const wanted = `\n${plain(hunk.old)}`;
    const at = text.indexOf(wanted);
    if (at < 0 || text.indexOf(wanted, at + 1) >= 0) return { ...hunk, stale: { code: "changed", message: "the lines are gone", line: hunk.line } };
    return { ...hunk, line: text.slice(0, at + 1).split("\n").length - 1 };
  }

  private async answer(method: string, path: string, body: any): Promise<any> {
    await Promise.resolve();
    const chosen = this.open().filter((hunk) => !body.hunks || body.hunks.includes(hunk.id));
    const decide = (state: "accepted" | "rejected") => (this.hunks = this.hunks.map((hunk) => (chosen.some((one) => one.id === hunk.id) ? { ...hunk, state } : hunk)));
    if (method === "GET") return { id: "p", status: this.open().length ? "open" : "accepted", digest: String(this.digest), client: "c", created: "", files: [{ number: 1, group: 1, path: PATH, kind: "edit", state: "open", hunks: this.open(), diff: "" }] };
    if (path === "/changes/undo") return this.takeBack();
    if (method === "PUT") this.hunks = this.hunks.map((hunk) => (path.endsWith(`/${hunk.id}`) ? { ...hunk, new: body.new_text, words: [["added", body.new_text]] } : hunk));
    else if (path.endsWith("/reject")) decide("rejected");
    else if (path.endsWith("/applied")) decide("accepted");
    else if (path.endsWith("/accept")) this.accept(chosen, body.digest, () => decide("accepted"));
    this.digest++;
    return {};
  }

  /** The hunks that the server would take back. */
  get undoable(): readonly ServerHunk[] | undefined {
    const last = this.journal.at(-1);
    return last?.after === this.disk ? last.hunks : undefined;
  }

  private takeBack(): { undone: string[] } {
    if (!this.undoable) throw new Error("the note was changed since");
    this.disk = this.journal.pop()!.before;
    this.digest++;
    this.isLate = true;
    return { undone: ["c"] };
  }

  private accept(chosen: ServerHunk[], digest: string, decide: () => void): void {
    if (digest !== String(this.digest)) throw Object.assign(new Error("it was changed meanwhile"), { code: "digest_mismatch" });
    const before = this.disk;
    for (const { id, stale } of chosen) {
      const hunk = this.open().find((one) => one.id === id)!;
      if (stale || hunk.stale) throw new Error("it is stale");
      const at = this.disk.indexOf(hunk.old);
      this.disk = this.disk.slice(0, at) + hunk.new + this.disk.slice(at + hunk.old.length);
    }
    this.journal.push({ before, after: this.disk, hunks: chosen });
    decide();
    this.isLate = true;
  }
}

/** What acceptance makes of a text: the lines that a hunk was made for are gone, and the new ones there. */
function accepted(text: string, hunk: ServerHunk): string | undefined {
  const at = `\n${text}`.indexOf(`\n${plain(hunk.old)}`);
  return at < 0 ? undefined : text.slice(0, at) + plain(hunk.new) + text.slice(at + plain(hunk.old).length);
}

function make(seed: number, roll: (size: number) => number): World {
  const end = seed % 2 ? "\r\n" : "\n";
  // Each line is there once, so that the model finds it without knowing of places.
  const lines = Array.from({ length: 10 + roll(12) }, (_, at) => `${PIECES[roll(PIECES.length)]} ${seed}.${at}.`);
  const disk = (seed % 3 ? "" : "\uFEFF") + lines.join(end) + end;
  const hunks = [1, 4, 8].map((first, at): ServerHunk => {
    const line = first + roll(3);
    const [old, fresh] = [lines[line - 1]! + end, roll(4) ? `new ${at} $& $1 漢字 🌱${end}${roll(2) ? `\`\`\`${end}$$${end}` : ""}` : ""];
    return { id: `1.${at + 1}`, state: "open", line, old, new: fresh, words: [["removed", old], ["added", fresh]] };
  });
  return new World(disk, hunks, end, roll);
}

async function step(world: World, act: number, roll: (size: number) => number): Promise<string> {
  const open = world.waiting.hunksOf(PATH);
  const hunk = open[roll(Math.max(open.length, 1))];
  if (act < 3) {
    const from = roll(world.text.length + 1);
    // Within a sign of two code units nobody types.
    const at = /[\uDC00-\uDFFF]/.test(world.text[from] ?? "") ? from - 1 : from;
    const size = /[\uD800-\uDBFF]/.test(world.text[at] ?? "") ? 2 : 1;
    world.type(at, roll(3) ? at : Math.min(world.text.length, at + size), TYPED[roll(TYPED.length)]!);
    return "typed";
  }
  if (act === 3) await world.save();
  else if (act === 4) world.undo();
  else if (act === 9) return takeBack(world);
  else if (!hunk) return "none";
  else if (act === 5) await world.decisions.reject([hunk]);
  else if (act === 6) await world.decisions.edit(hunk, `edited ${roll(99)} $\`${"\n"}`);
  else return accept(world, roll(3) ? [hunk] : open, !roll(4));
  await world.refresh();
  return "done";
}

/** Undo at the server, over whatever is typed; where the typing left the lines alone, as only then there is one answer. */
async function takeBack(world: World): Promise<string> {
  const wanted = world.undoable?.reduceRight<string | undefined>((text, hunk) => (text && hunk.new ? accepted(text, { ...hunk, old: hunk.new, new: hunk.old }) : undefined), world.text);
  if (wanted === undefined) return "none";
  await world.decisions.undo({});
  await world.calm();
  world.text = wanted + world.late;
  world.late = "";
  world.reopen();
  await world.refresh();
  return "taken back";
}

async function accept(world: World, hunks: readonly Hunk[], isOutside: boolean): Promise<string> {
  // Where both have changed the first line, either order of theirs is right.
  if (isOutside && plain(world.disk).split("\n")[0] === world.text.split("\n")[0]) {
    world.writeOutside();
    world.text = `z\n${world.text}`;
  }
  const fitting = hunks.filter((hunk) => !hunk.stale);
  const isDirty = world.isDirty;
  const wanted = fitting.reduce<string | undefined>((text, hunk) => (text === undefined ? undefined : accepted(text, hunk)), world.text);
  const depth = undoDepth(world.state);
  const isDone = await world.decisions.accept(PATH, hunks);
  if (isDone) {
    expect(wanted, "accepted, though its lines aren't there").toBeDefined();
    await world.calm();
    if (undoDepth(world.state) === depth + 1) world.before.push(world.text);
    world.text = wanted! + world.late;
    expect(world.isDirty).toBe(false);
  } else {
    await world.calm();
    world.text += world.late;
  }
  world.late = "";
  if (undoDepth(world.state) !== world.before.length) world.reopen();
  await world.refresh();
  return !isDone ? "refused" : isDirty ? "by the editor" : "by the server";
}

it("keeps the note what the model of it says, over 1,000 random sequences", async () => {
  const seen = new Map<string, number>();
  for (let seed = 1; seed <= 1_000; seed++) {
    const roll = dice(seed);
    const world = make(seed, roll);
    await world.refresh();
    for (let turn = 0; turn < 10; turn++) {
      const what = await step(world, roll(10), roll);
      seen.set(what, (seen.get(what) ?? 0) + 1);
      const text = world.state.doc.toString();
      expect(text, `sequence ${seed}, step ${turn}: ${what}`).toBe(world.text);
      for (const { fit, from, to, hunk } of placesOf(world.state)) if (fit === "fits") expect(text.slice(from, to)).toBe(plain(hunk.old));
      expect(placesOf(world.state).length).toBe(world.waiting.hunksOf(PATH).length);
    }
    await world.save();
    expect(world.disk.startsWith("\uFEFF")).toBe(seed % 3 === 0);
    expect(plain(world.disk)).toBe(world.text);
    expect(/[^\r]\n/.test(world.disk)).toBe(seed % 2 === 0);
  }
  console.log(`sequences: ${overwritten} overwritten, ${[...seen].map(([what, times]) => `${times} ${what}`).join(", ")}`);

  for (const what of ["by the editor", "by the server", "refused"]) expect(seen.get(what)).toBeGreaterThan(100);
  expect(seen.get("taken back")).toBeGreaterThan(20);
  expect(overwritten).toBeGreaterThan(50);
  expect(notices.some((text) => text.includes("changed while this waited"))).toBe(true);
});
