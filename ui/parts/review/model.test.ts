import { describe, expect, it } from "vitest";
import { byOrigin, changeTitle, diffLines, fileTextOf, fitsFilter, lastDays, newLines, nextOpen, piecesOf, plotOf, restrictionOf, revealed, sideBySide, stateOfFile, stateTextOf, stepFrom, turned, unitsOf, withEnds, type Change, type Proposal, type ProposalRow } from "./model";

const hunk = (id: string, state = "open", more: object = {}) => ({ id, state, line: 3, old: "a\n", new: "b\n", words: [["removed", "a"], ["added", "b"], ["same", "\n"]], ...more });
const file = (number: number, more: object = {}) => ({ number, group: number, path: `${number}.md`, kind: "edit", state: "open", follows: false, hunks: [hunk(`${number}.1`), hunk(`${number}.2`)], diff: "", ...more });
const proposal = (...files: object[]) => ({ id: "p", status: "open", files }) as unknown as Proposal;
const row = (id: string, client: string, run = "") => ({ id, client, run }) as unknown as ProposalRow;
const change = (id: string, at: string, client = "agent", more: object = {}) => ({ id, at, client, files: [{ action: "edited", path: "Plans/Rain.md" }], ...more }) as unknown as Change;

describe("what can be decided", () => {
  it("is each hunk of an edited note, and other files whole", () => {
    const found = unitsOf(proposal(file(1), file(2, { kind: "create", hunks: [hunk("2.1")] }), file(3, { group: 4 }), file(4)));

    expect(found.map((unit) => unit.id)).toEqual(["1.1", "1.2", "file-2", "file-3", "file-4"]);
  });

  it("says of a file with an accepted and a rejected place that it is partly accepted", () => {
    const stateOf = (...states: string[]) => stateOfFile({ state: "accepted", hunks: states.map((state) => hunk("1.1", state)) } as never);

    expect([stateOf("accepted", "rejected"), stateOf("accepted", "accepted")]).toEqual(["partly_accepted", "accepted"]);
  });

  it("tells of a file what is proposed, and what became of it", () => {
    const told = (state: string) => fileTextOf(file(1, { state, hunks: [hunk("1.1", state)] }) as never);

    expect([told("open"), told("accepted"), told("stale")]).toEqual(["Edit · +1 −1", "Edit · +1 −1 · Accepted", "Edit · +1 −1 · No longer applies"]);
    expect(fileTextOf(file(1, { kind: "move", state: "rejected", hunks: [] }) as never)).toBe("Move · Rejected");
  });

  it("tells its state once, and the places where they differ", () => {
    const told = (status: string, items: object) => stateTextOf({ status, items } as never);

    expect([told("open", { open: 2 }), told("stale", { stale: 1 }), told("accepted", { accepted: 3 }), told("rejected", {})]).toEqual(["2 open", "No longer applies", "Accepted · 3 places", "Rejected"]);
    expect(told("partly_accepted", { accepted: 1, stale: 2 })).toBe("Partly accepted · 1 accepted, 2 no longer apply");
    expect(told("expired", { open: 1 })).toBe("Expired · 1 open");
  });

  it("goes on with the next open one, and from the last to the first", () => {
    const units = unitsOf(proposal(file(1, { hunks: [hunk("1.1"), hunk("1.2", "accepted"), hunk("1.3")] })));

    expect(nextOpen(units, "1.2")?.id).toBe("1.3");
    expect(nextOpen(units.map((unit) => (unit.id === "1.3" ? { ...unit, isOpen: false } : unit)), "1.3")?.id).toBe("1.1");
    expect(nextOpen([], "x")).toBeUndefined();
  });

  it("is gone through by steps, and stays at both ends", () => {
    const units = unitsOf(proposal(file(1)));

    expect(stepFrom(units, "", 1)?.id).toBe("1.1");
    expect(stepFrom(units, "1.1", 1)?.id).toBe("1.2");
    expect(stepFrom(units, "1.2", 1)?.id).toBe("1.2");
    expect(stepFrom(units, "1.1", -1)?.id).toBe("1.1");
  });

  it("is grouped by client and run, in the order of the newest", () => {
    const groups = byOrigin([row("1", "mcp"), row("2", "agent", "r"), row("3", "mcp"), row("4", "agent")]);

    expect(groups.map((group) => [group.client, group.run, group.rows.length])).toEqual([["mcp", "", 2], ["agent", "r", 1], ["agent", "", 1]]);
  });

  it("names the restriction of the run before that of the client", () => {
    const one = (run: string) => ({ client: "mcp", run, source: run || "own", since: "", until: null, inherited: false });

    expect(restrictionOf([one(""), one("s")], "mcp", "s")?.source).toBe("s");
    expect(restrictionOf([one(""), one("s")], "mcp", "t")?.source).toBe("own");
    expect(restrictionOf([one("s")], "mcp", "")).toBeUndefined();
  });
});

describe("differences", () => {
  const words = [["same", "Every evening, with "], ["added", "rain "], ["same", "water.\n"], ["removed", "Old.\n"], ["same", "End\n"]];

  it("stand side by side, with lines that end alike beside each other", () => {
    const rows = sideBySide(words, [10, 12]);
    const text = (line: (typeof rows)[number]["old"]) => line && `${line.number}${line.isChanged ? "*" : ""} ${line.pieces.map((piece) => piece.text).join("")}`;

    expect(rows.map((pair) => [text(pair.old), text(pair.new)])).toEqual([
      ["10 Every evening, with water.", "12* Every evening, with rain water."],
      ["11* Old.", null],
      ["12 End", "13 End"],
    ]);
  });

  it("lose no text of either side, whatever the words are", () => {
    const sides = ["same", "removed", "added"];
    const texts = ["a", "\n", "b\nc", " ", "\n\n", "wörter 中\n", "d "];
    for (let seed = 1; seed < 400; seed++) {
      const random = Array.from({ length: seed % 9 }, (_, index) => [sides[(seed * 7 + index * 5) % 3] ?? "", texts[(seed * 3 + index * 11) % texts.length] ?? ""]);
      const of = (other: string) => random.filter(([side]) => side !== other).map(([, text]) => text).join("");
      const rows = sideBySide(random, [1, 1]);
      const shown = (side: "old" | "new") => rows.map((pair) => pair[side]).filter((line) => line !== null).map((line) => line.pieces.map((piece) => piece.text).join(""));
      const lines = (text: string) => (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");

      expect(shown("old").join("\n")).toBe(of("added") ? lines(of("added")).join("\n") : "");
      expect(shown("new").join("\n")).toBe(of("removed") ? lines(of("removed")).join("\n") : "");
      expect(piecesOf(random).filter((piece) => piece.side !== "added").map((piece) => piece.text).join("")).toBe(of("added"));
      expect(piecesOf(random).filter((piece) => piece.side !== "removed").map((piece) => piece.text).join("")).toBe(of("removed"));
    }
  });

  it("are phrases where single words differ one after the other", () => {
    const pieces = piecesOf([["removed", "two"], ["added", "three"], ["same", " "], ["removed", "old"], ["added", "new"], ["same", " cans"]]);

    expect(pieces).toEqual([
      { side: "removed", text: "two old" },
      { side: "added", text: "three new" },
      { side: "same", text: " cans" },
    ]);
    expect(piecesOf([["added", "a"], ["same", " "], ["added", "b"]]).length).toBe(3);
  });

  it("count lines on the new side by what the hunks before have added", () => {
    const found = newLines([hunk("1", "open", { line: 3, old: "a\n", new: "a\nb\nc\n" }), hunk("2", "open", { line: 9, old: "x", new: "" }), hunk("3", "open", { line: 20 })] as never);

    expect([...found.values()]).toEqual([3, 11, 21]);
  });

  it("are turned round, what goes before what comes", () => {
    const diff = "--- a\n+++ b\n@@ -1,2 +1,3 @@\n same\n-old\n+new\n+more\n";

    expect(turned(diff)).toBe("@@ -1,3 +1,2 @@\n same\n-new\n-more\n+old");
    expect(diffLines(diff).map((line) => line.kind)).toEqual(["place", "same", "removed", "added", "added"]);
    expect(diffLines(diff)[0]?.text).toBe("Line 1");
  });

  it("show line ends where nothing else differs", () => {
    expect(revealed("allow \u202eton\u202c \u{e0041}\u0007x\u200b")).toBe("allow ⟨U+202E⟩ton⟨U+202C⟩ ⟨U+E0041⟩⟨U+0007⟩x⟨U+200B⟩");
    expect(revealed("a\tb\r\n 👩\u200d💻 ❤\ufe0f می\u200cخواهم")).toBe("a\tb\r\n 👩\u200d💻 ❤\ufe0f می\u200cخواهم");
    expect(withEnds("\r\n")).toBe("⏎\n");
    expect(withEnds("a\n")).toBe("a\n");
  });
});

describe("the journal", () => {
  const now = new Date(2026, 2, 10, 15);

  it("counts by day and client, the busiest first, and the rest as others", () => {
    const days = lastDays(3, now);
    const at = (day: number) => new Date(2026, 2, day, 12).toISOString();
    const plot = plotOf([change("1", at(10), "b"), change("2", at(10), "a"), change("3", at(9), "b"), change("4", at(1), "z"), change("5", at(8), "c")], days, 2);

    expect(days).toEqual(["2026-03-08", "2026-03-09", "2026-03-10"]);
    expect(plot.clients).toEqual(["b", "others"]);
    expect(plot.days.map((day) => day.counts)).toEqual([[0, 1], [1, 0], [1, 1]]);
    expect(plot.most).toBe(2);
    expect(plotOf([], days).most).toBe(1);
  });

  it("names what a change did, and finds it by path and reason", () => {
    const moved = change("1", "2026-03-10", "agent", { reason: "Tidy up", files: [{ action: "moved", path: "A.md", target: "B/A2.md" }, { action: "linked", path: "C.md" }] });

    expect(changeTitle(moved)).toBe("A → A2 and 1 more");
    expect(changeTitle(change("2", "", "agent", { files: [], hidden_files: 2 }))).toBe("2 hidden files");
    expect(["b/", "tidy", "", "c.md"].map((text) => fitsFilter(moved, { client: "", run: "", text }))).toEqual([true, true, true, true]);
    expect(fitsFilter(moved, { client: "mcp", run: "", text: "" })).toBe(false);
    expect(fitsFilter(moved, { client: "", run: "", text: "zebra" })).toBe(false);
  });
});
