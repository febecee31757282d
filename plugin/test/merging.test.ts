/** What two writers did to one text: nothing of either is lost where they didn't meet. */
import { Text } from "@codemirror/state";
import { expect, it } from "vitest";
import { lineChanges, lostChanges, patched, writtenText } from "../src/merging";

const text = (...lines: string[]) => Text.of(lines);
const NOTE = text("# Garden", "", "Beds.", "", "Two cans.", "```", "Spade.", "```", "");

/** Numbers that are the same in each run. */
function dice(seed: number): (size: number) => number {
  let state = seed;
  return (size) => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % 65_536 % size;
}

it("leads from one text to the other, whatever both are", () => {
  const roll = dice(7);
  const make = () => Text.of(Array.from({ length: 1 + roll(9) }, () => ["", "a", "b", "🌱", "漢", "c c"][roll(6)]!));
  for (let turn = 0; turn < 5_000; turn++) {
    const [before, after] = [make(), make()];
    expect(lineChanges(before, after).apply(before).toString()).toBe(after.toString());
  }
});

it("brings back what was saved over, beside what was typed", () => {
  const after = text("# Garden", "", "Two beds.", "", "One can.", "```", "Spade.", "```", "");
  const now = text("# My garden", "", "Beds.", "", "Two cans.", "```", "Spade.", "```", "More.");
  const { changes, isUnclear } = lostChanges(NOTE, after, now);

  expect(isUnclear).toBe(false);
  expect(changes.apply(now).toString()).toBe("# My garden\n\nTwo beds.\n\nOne can.\n```\nSpade.\n```\nMore.");
});

it("changes nothing where all of it is there, also where somebody typed beside it", () => {
  const after = text("# Garden", "", "Two beds.", "", "Two cans.", "```", "Spade.", "```", "");
  const now = text("# Garden", "Typed.", "Two beds.", "Typed.", "Two cans.", "```", "Spade.", "```", "");

  expect(lostChanges(NOTE, after, now).changes.empty).toBe(true);
});

it("says so where both changed the same line", () => {
  const after = text("# Garden", "", "Two beds.", "", "Two cans.", "```", "Spade.", "```", "");
  const now = text("# Garden", "", "Beds, typed.", "", "Two cans.", "```", "Spade.", "```", "");

  expect(lostChanges(NOTE, after, now)).toMatchObject({ isUnclear: true });
  expect(lostChanges(NOTE, after, now).changes.empty).toBe(true);
});

it("carries out what the server says that it wrote, and nothing that is of another text", () => {
  const note = text("# Garden", "", "Beds.", "--- a list", "Two cans.");
  const diff = "--- a/Garden.md\n+++ b/Garden.md\n@@ -1,5 +1,6 @@\n # Garden\r\n \r\n-Beds.\r\n---- a list\r\n+Two beds.\r\n+A bench.\r\n+--- a list\r\n-Two cans.\n\\ No newline at end of file\n+One can.\n\\ No newline at end of file\n";

  expect(patched(note, diff)?.toString()).toBe("# Garden\n\nTwo beds.\nA bench.\n--- a list\nOne can.");
  expect(patched(text("# Garden", "", "Typed.", "--- a list", "Two cans."), diff)).toBeUndefined();
  expect(patched(text("# Garden"), diff)).toBeUndefined();
  expect(patched(text("a", "b", "c", ""), "--- a/N.md\n+++ b/N.md\n@@ -1,0 +2 @@\n+new\n@@ -3 +3,0 @@\n-c\n")?.toString()).toBe("a\nnew\nb\n");
  expect(patched(text(""), "--- a/N.md\n+++ b/N.md\n@@ -0,0 +1,2 @@\n+\uFEFFa\n+b\n")?.toString()).toBe("a\nb\n");
});

it("takes no diff for what was written where one of them was cut", () => {
  const [before, diff] = [text("a", "b", ""), "--- a/N.md\n+++ b/N.md\n@@ -1,2 +1,2 @@\n-a\n+one\n b\n"];
  const cut = { path: "N.md", diff: "--- a/N.md\n+++ b/N.md\n@@ -1,2 +1,2 @@\n-a\n", diff_truncated: true };

  expect(writtenText(before, [{ path: "N.md", diff }])?.toString()).toBe("one\nb\n");
  expect(writtenText(before, [{ path: "N.md", diff }, { path: "N.md" }])?.toString()).toBe("one\nb\n");
  expect(writtenText(before, [])).toBeUndefined();
  expect(writtenText(before, [cut])).toBeUndefined();
  expect(writtenText(before, [{ path: "N.md", diff }, { path: "N.md", diff_truncated: true }])).toBeUndefined();
});
