/** Places of hunks against a model, over random sequences of what people and agents do. */
import { history, isolateHistory, undo } from "@codemirror/commands";
import { EditorState, Text, type TransactionSpec } from "@codemirror/state";
import { expect, it } from "vitest";
import { findPlaces, move, newPieces, newText, type Place, plain, removedPieces } from "../src/places";
import type { Hunk } from "../src/waiting";

const LINES = ["# Titel 🌱", "日本語の行", "$$ x = $1 $$", "````md", "```ai-edit", "```", "````", "same", "same", "e\u0301 und é", "", "\tlast one"];

/** Numbers that are the same in each run. */
function dice(seed: number): (size: number) => number {
  let state = seed * 2_654_435_761;
  return (size) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % size;
  };
}

function hunkOf(id: string, line: number, old: string, now: string): Hunk {
  const words: Hunk["words"] = [...(old ? [["removed", old] as ["removed", string]] : []), ...(now ? [["added", now] as ["added", string]] : [])];
  return { id, state: "open", line, old, new: now, words, proposal: "p", path: "a.md", client: "c", reason: "", run: "", tainted: false };
}

it("keeps each place at its lines, and accepting changes nothing else, over 1,000 random sequences", () => {
  let accepted = 0;
  let changed = 0;
  for (let seed = 1; seed <= 1_000; seed++) {
    const roll = dice(seed);
    const end = seed % 2 ? "\r\n" : "\n";
    const lines = Array.from({ length: 12 + roll(12) }, (_, at) => `${LINES[roll(LINES.length)]}${roll(3) ? ` ${at}` : ""}`);
    const disk = (seed % 3 ? "" : "\uFEFF") + lines.join(end) + (roll(2) ? end : "");
    const saved = plain(disk);
    const starts = [1, 5, 9].map((first) => first + roll(3));
    const hunks = starts.map((line, at) => {
      const old = roll(4) ? `${lines[line - 1]}${end}` : "";
      return hunkOf(`1.${at + 1}`, line, old, !old || roll(3) ? `new ${at} $& 漢字 🌱${end}` : "");
    });
    let state = EditorState.create({ doc: saved, extensions: [history()] });
    let places = findPlaces(hunks, state.doc, disk);
    expect(places.every((place) => place.fit === "fits")).toBe(true);
    const apply = (spec: TransactionSpec) => {
      const transaction = state.update(spec);
      places = places.map((place) => move(place, transaction.changes, transaction.newDoc));
      state = transaction.state;
    };
    for (let step = 0; step < 8; step++) {
      const act = roll(5);
      if (act < 2) {
        const from = roll(state.doc.length + 1);
        const to = Math.min(state.doc.length, from + (roll(3) ? 0 : roll(6)));
        apply({ changes: { from, to, insert: ["x", "\n", "🌱", "# h\n", ""][roll(5)]! }, annotations: isolateHistory.of("full") });
      } else if (act === 2) {
        const one = places.find((place) => place.fit === "fits");
        if (!one) continue;
        const before = state.doc.toString();
        const wanted = before.slice(0, one.from) + newText(one.hunk) + before.slice(one.to);
        places = places.filter((place) => place !== one);
        apply({ changes: { from: one.from, to: one.to, insert: newText(one.hunk) }, annotations: isolateHistory.of("full") });
        expect(state.doc.toString()).toBe(wanted);
        const undone: { state?: EditorState } = {};
        undo({ state, dispatch: (transaction) => (undone.state = transaction.state) });
        expect(undone.state?.doc.toString()).toBe(before);
        accepted++;
      } else if (act === 3) {
        places = places.filter((_, at) => at !== roll(places.length));
      } else {
        undo({ state, dispatch: (transaction) => apply({ changes: transaction.changes, annotations: isolateHistory.of("full") }) });
      }
      for (const place of places) check(place, state.doc);
      changed += places.filter((place) => place.fit === "changed").length;
    }
  }
  expect(accepted).toBeGreaterThan(500);
  expect(changed).toBeGreaterThan(100);
});

/** What fits is exactly the old lines, whole; what doesn't is never accepted. */
function check(place: Place, doc: Text): void {
  expect(place.from).toBeLessThanOrEqual(place.to);
  expect(place.to).toBeLessThanOrEqual(doc.length);
  if (place.fit !== "fits") return;
  expect(doc.sliceString(place.from, place.to)).toBe(plain(place.hunk.old));
  expect(doc.lineAt(place.from).from).toBe(place.from);
}

it("finds the place in an editor that is ahead of the disk", () => {
  const disk = "a\nb\nc\nd\n";
  const [place] = findPlaces([hunkOf("1.1", 3, "c\n", "C\n")], Text.of("new\na\nb\nc\nd\n".split("\n")), disk);
  expect(place).toMatchObject({ from: 8, to: 10, fit: "fits" });
});

it("doesn't guess among lines that are alike", () => {
  const doc = Text.of("same\nX\nsame\n".split("\n"));
  const [place] = findPlaces([hunkOf("1.1", 2, "same\n", "other\n")], doc, "same\nsame\nsame\n");
  expect(place?.fit).toBe("changed");
});

it("fits again when the edit is taken back", () => {
  const [place] = findPlaces([hunkOf("1.1", 2, "b\n", "B\n")], Text.of("a\nb\nc".split("\n")), "a\nb\nc");
  const state = EditorState.create({ doc: "a\nb\nc" });
  const typed = state.update({ changes: { from: 3, insert: "!" } });
  const changed = move(place!, typed.changes, typed.newDoc);
  const back = typed.state.update({ changes: { from: 3, to: 4 } });
  expect(changed.fit).toBe("changed");
  expect(move(changed, back.changes, back.newDoc)).toMatchObject({ from: 2, to: 4, fit: "fits" });
});

it("splits words into what goes and what comes", () => {
  const words: Hunk["words"] = [["same", "get "], ["removed", "two"], ["added", "one"], ["same", "\r\n"]];
  expect(removedPieces(words)).toEqual([{ from: 4, to: 7 }]);
  expect(newPieces(words).map((piece) => piece.text).join("")).toBe("get one\n");
});
