/** What a key costs of ours in a long note with many cards. */
import { EditorState } from "@codemirror/state";
import { expect, it, vi } from "vitest";

vi.mock("obsidian", () => ({ setIcon: () => undefined }));

it("moves fifty places in a note of 20,000 lines in well under a millisecond", async () => {
  const { reviewField, setPlaces } = await import("../src/review");
  const { findPlaces } = await import("../src/places");
  const text = Array.from({ length: 20_000 }, (_, at) => `Line ${at} of a note that is long enough.`).join("\n");
  const hunks = Array.from({ length: 50 }, (_, at) => {
    const line = 200 + at * 390;
    const old = `Line ${line - 1} of a note that is long enough.\n`;
    return { id: `1.${at}`, state: "open" as const, line, old, new: `Row ${line}\n`, words: [["removed", old] as ["removed", string]], proposal: "p", path: "a.md", client: "c", reason: "", run: "", tainted: false };
  });
  let state = EditorState.create({ doc: text, extensions: [reviewField] });
  state = state.update({ effects: setPlaces.of(findPlaces(hunks, state.doc, text)) }).state;
  const spent: number[] = [];
  for (let key = 0; key < 300; key++) {
    const begun = performance.now();
    state = state.update({ changes: { from: 3, insert: "a" } }).state;
    spent.push(performance.now() - begun);
  }
  spent.sort((one, other) => one - other);
  console.log(`a key: ${spent[150]!.toFixed(3)} ms at the median, ${spent[285]!.toFixed(3)} ms at the 95th percentile`);

  expect(state.field(reviewField).places.filter((place) => place.fit === "fits")).toHaveLength(50);
});
