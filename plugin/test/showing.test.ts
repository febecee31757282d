// @vitest-environment jsdom
/** What waits where no editor is: in reading view, and in a base. */
import { beforeEach, expect, it, vi } from "vitest";
import type { Hunk } from "../src/waiting";
import { findings } from "./elements";

const opened: [string, unknown][] = [];
vi.mock("obsidian", () => {
  class BasesView {
    app = { workspace: { getLeaf: () => ({ openFile: async ({ path }: { path: string }, state: unknown) => void opened.push([path, state]) }) } };
    data: unknown;
    private readonly ends: (() => void)[] = [];
    register(work: () => void) {
      this.ends.push(work);
    }
    unload() {
      for (const work of this.ends) work();
    }
  }
  return { BasesView, Component: class {}, MarkdownView: class {}, Notice: class {}, setIcon: () => undefined };
});
const { registerBases } = await import("../src/bases");
const { registerReading } = await import("../src/reading");

function hunkOf(path: string, line: number, client = "Claude", stale?: Hunk["stale"]): Hunk {
  return { id: `1.${line}`, state: "open", line, old: "a\n", new: "b\n", words: [["removed", "a\n"], ["added", "b\n"]], proposal: "p", path, client, reason: `because of ${line}`, run: "", tainted: false, ...(stale ? { stale } : {}) };
}

const decided: unknown[] = [];
const listeners = new Set<() => void>();
let hunks: Hunk[] = [];
let post!: (element: HTMLElement, context: object) => void;
let base!: (controller: object, into: HTMLElement) => { data: unknown; onload(): void; onDataUpdated(): void; unload(): void };
const plugin = {
  waiting: { allHunks: () => hunks, on: (listener: () => void) => (listeners.add(listener), () => listeners.delete(listener)) },
  decisions: {
    decide: async (...all: unknown[]) => void decided.push(all),
    accept: async (path: string, own: Hunk[]) => void decided.push(["accept", path, own.map(({ id }) => id)]),
    reject: async (own: Hunk[]) => void decided.push(["reject", own.map(({ id }) => id)]),
  },
  rerenderReading: () => undefined,
  registerMarkdownPostProcessor: (work: typeof post) => (post = work),
  registerBasesView: (_: string, { factory }: { factory: typeof base }) => (base = factory),
};
registerBases(plugin as never);
registerReading(plugin as never, { cardsOf: (path: string) => hunks.filter((hunk) => hunk.path === path) } as never);

beforeEach(() => {
  document.body.replaceChildren();
  decided.length = opened.length = 0;
});

const NOTE = "---\ntag: x\n---\n# Garden\n\nBeds.\n\n- one\n- two\n\n";

/** Draw a part of the note, as Obsidian hands it over; give the lines of the cards below it. */
function section(lineStart: number, lineEnd: number): HTMLElement {
  const element = document.body.appendChild(document.createElement("div"));
  post(element, { sourcePath: "Garden.md", getSectionInfo: () => ({ text: NOTE, lineStart, lineEnd }) });
  return element;
}

it("stands in reading view below the part of the note that it is about, each card once", () => {
  hunks = [2, 5, 6, 9, 99].map((line) => hunkOf("Garden.md", line));
  const lines = [[0, 2], [3, 3], [5, 5], [7, 8]].map(([first, last]) => [...section(first!, last!).querySelectorAll<HTMLElement>(".knapper-card")].map((card) => card.dataset["hunk"]));

  expect(lines).toEqual([["p 1.2"], ["p 1.5"], ["p 1.6"], ["p 1.9", "p 1.99"]]);
});

it("is decided in reading view too, but for what doesn't fit any more", async () => {
  hunks = [hunkOf("Garden.md", 4), hunkOf("Garden.md", 6, "Claude", { code: "gone", message: "the lines are gone", line: 6, current_text: "Other." })];
  const fits = section(3, 3).querySelectorAll("button");
  const stale = section(5, 5);
  fits[0]!.click();
  await vi.waitFor(() => expect(decided).toEqual([["accept", hunks[0], "hunk"]]));

  expect([...stale.querySelectorAll("button")].map((made) => made.textContent)).not.toContain("Accept");
  expect(stale.textContent).toContain("No longer applies: the lines are gone.");
  expect(stale.textContent).toContain("Other.");
  expect(await findings()).toEqual([]);
});

it("isn't drawn twice in live preview, whose editor has the cards", () => {
  hunks = [hunkOf("Garden.md", 4)];
  const editor = document.body.appendChild(document.createElement("div"));
  editor.className = "cm-editor";
  const element = editor.appendChild(document.createElement("div"));
  post(element, { sourcePath: "Garden.md", getSectionInfo: () => ({ text: NOTE, lineStart: 3, lineEnd: 3 }) });

  expect(element.childElementCount).toBe(0);
});

/** A base whose query found these notes, by group. */
function found(groups: Record<string, string[]>): object {
  const groupedData = Object.entries(groups).map(([key, paths]) => ({ key, hasKey: () => key !== "", entries: paths.map((path) => ({ file: { path } })) }));
  return { groupedData };
}

it("is listed in a base for the notes of its query, in their order and groups", async () => {
  hunks = [hunkOf("Garden.md", 4), hunkOf("Garden.md", 6, "script"), hunkOf("Rain.md", 1), hunkOf("Elsewhere.md", 1)];
  const view = base({}, document.body);
  view.onload();
  view.data = found({ Plans: ["Rain.md", "Quiet.md"], Beds: ["Garden.md"], Empty: ["Quiet.md"] });
  view.onDataUpdated();
  const rows = [...document.querySelectorAll("[role=group]")];

  expect(rows.map((row) => row.getAttribute("aria-label"))).toEqual(["Pending edits of Rain.md", "Pending edits of Garden.md"]);
  expect([...document.querySelectorAll("[role=heading]")].map((head) => head.textContent)).toEqual(["Plans", "Beds"]);
  expect(await findings()).toEqual([]);
  expect(rows[1]!.textContent).toContain("2 places, by Claude, script");
  const [open, accept, reject] = rows[1]!.querySelectorAll("button");
  for (const made of [open, accept, reject]) made!.click();
  expect(opened).toEqual([["Garden.md", { eState: { line: 3 } }]]);
  expect(decided).toEqual([["accept", "Garden.md", ["1.4", "1.6"]], ["reject", ["1.4", "1.6"]]]);
});

it("leaves a base as it is decided, and leaves nothing behind", () => {
  hunks = [hunkOf("Garden.md", 4)];
  const view = base({}, document.body);
  view.onload();
  for (const listener of listeners) listener(); // what waits is told before the query has run
  view.data = found({ "": ["Garden.md"] });
  view.onDataUpdated();
  expect(document.querySelectorAll("[role=group]")).toHaveLength(1);
  expect(document.querySelectorAll("[role=heading]")).toHaveLength(0);
  hunks = [];
  for (const listener of listeners) listener();
  expect(document.body.textContent).toBe("No changes are waiting in the notes of this base.");
  const before = listeners.size;
  view.unload();

  expect(document.body.childElementCount).toBe(0);
  expect(listeners.size).toBe(before - 1);
});
