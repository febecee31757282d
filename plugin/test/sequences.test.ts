/**
 * What a person and agents do to one note in any order, through the plugin's own review and decisions: the editor, the file and
 * what waits are each time what a model of the note says, which knows nothing of places, digests or editors.
 */
import { history, isolateHistory, undo } from "@codemirror/commands";
import { EditorState, type TransactionSpec } from "@codemirror/state";
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
}
vi.mock("obsidian", () => ({ setIcon: () => undefined, MarkdownView, Notice: class { constructor(text: string) { notices.push(text); } } }));
const { Decisions } = await import("../src/decisions");
const { findPlaces, plain } = await import("../src/places");
const { placesOf, reviewField, setPlaces } = await import("../src/review");
const { Waiting } = await import("../src/waiting");

const PATH = "a.md";
const PIECES = ["# Titel 🌱", "日本語の行", "$$ x = $1 $$", "````md", "```ai-edit", "```", "````", "e\u0301 und é", "  indented", "> quote $&"];
const TYPED = ["x", "\n", "🌱", "# h\n", "漢", "```\n"];

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

  constructor(
    public disk: string,
    hunks: ServerHunk[],
    private readonly end: string,
  ) {
    this.hunks = hunks;
    this.text = plain(disk);
    this.state = EditorState.create({ doc: this.text, extensions: [history(), reviewField] });
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
    this.decisions = new Decisions(this.app, connection, this.waiting);
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

  /** The app keeps the file's line ends and mark, and writes what the editor has. */
  async save(): Promise<void> {
    const mark = this.disk.startsWith("\uFEFF") ? "\uFEFF" : "";
    this.disk = mark + this.state.doc.toString().replaceAll("\n", this.end);
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
    if (method === "PUT") this.hunks = this.hunks.map((hunk) => (path.endsWith(`/${hunk.id}`) ? { ...hunk, new: body.new_text, words: [["added", body.new_text]] } : hunk));
    else if (path.endsWith("/reject")) decide("rejected");
    else if (path.endsWith("/applied")) decide("accepted");
    else if (path.endsWith("/accept")) this.accept(chosen, body.digest, () => decide("accepted"));
    this.digest++;
    return {};
  }

  private accept(chosen: ServerHunk[], digest: string, decide: () => void): void {
    if (digest !== String(this.digest)) throw Object.assign(new Error("it was changed meanwhile"), { code: "digest_mismatch" });
    for (const { id, stale } of chosen) {
      const hunk = this.open().find((one) => one.id === id)!;
      if (stale || hunk.stale) throw new Error("it is stale");
      const at = this.disk.indexOf(hunk.old);
      this.disk = this.disk.slice(0, at) + hunk.new + this.disk.slice(at + hunk.old.length);
    }
    decide();
    // The app reads the file anew, as nothing in the editor waits to be saved.
    const text = plain(this.disk);
    this.state = this.state.update({ changes: { from: 0, to: this.state.doc.length, insert: text }, annotations: isolateHistory.of("full") }).state;
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
  return new World(disk, hunks, end);
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
  else if (!hunk) return "none";
  else if (act === 5) await world.decisions.reject([hunk]);
  else if (act === 6) await world.decisions.edit(hunk, `edited ${roll(99)} $\`${"\n"}`);
  else return accept(world, roll(3) ? [hunk] : open);
  await world.refresh();
  return "done";
}

async function accept(world: World, hunks: readonly Hunk[]): Promise<string> {
  const fitting = hunks.filter((hunk) => !hunk.stale);
  const isDirty = world.isDirty;
  const wanted = fitting.reduce<string | undefined>((text, hunk) => (text === undefined ? undefined : accepted(text, hunk)), world.text);
  const isDone = await world.decisions.accept(PATH, hunks);
  if (isDone) {
    expect(wanted, "accepted, though its lines aren't there").toBeDefined();
    world.before.push(world.text);
    world.text = wanted!;
    expect(world.isDirty).toBe(false);
  }
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
      const what = await step(world, roll(9), roll);
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
  console.log(`sequences: ${[...seen].map(([what, times]) => `${times} ${what}`).join(", ")}`);

  for (const what of ["by the editor", "by the server", "refused"]) expect(seen.get(what)).toBeGreaterThan(100);
  expect(notices.some((text) => text.includes("changed while this waited"))).toBe(true);
});
