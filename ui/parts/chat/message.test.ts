import { describe, expect, it } from "vitest";
import { CITATIONS, findCitation, parserOf, type CitedLink } from "../markdown";
import { Choice, whatHappens } from "./choice";
import { droppedNotes, joinMessage, readFile, splitMessage, triggerAt, type Attachment } from "./message";
import { byAge, type Session } from "./sessions";
import { modelName, price, spentText, usageParts } from "./spending";

/** A small generator of numbers, the same each time. */
function random(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % most;
  };
}

describe("a message with attachments", () => {
  it("is read back as it was written, whatever they hold", () => {
    const next = random(7);
    const pieces = ["a", "\n", "```", "````", "`", "Attached: x", "Selected: y", "\n\n", " ", "é", "[[N]]", "\n```\n", "~~~"];
    const text = () => Array.from({ length: next(12) }, () => pieces[next(pieces.length)]).join("");
    for (let round = 0; round < 500; round += 1) {
      const attachments: Attachment[] = Array.from({ length: next(4) }, (_, index) => ({ kind: next(2) ? "file" : "selection", name: `n${index}.md`, text: text() }));
      const written = `begin ${text().trim()}`.replaceAll(/(Attached|Selected): /g, "");

      expect(splitMessage(joinMessage(written, attachments)), `round ${round}`).toEqual({ text: written.trim(), attachments });
    }
  });

  it("shows a message without any as it is, also one that looks a little like it", () => {
    for (const text of ["Hi", "Attached: x", "Attached: x\n```\nno end", "```\ncode\n```", ""]) expect(splitMessage(text).text).toBe(text);
  });

  it("takes text files alone", async () => {
    const file = (name: string, ...parts: BlobPart[]) => Object.assign(new File(parts, name), {
      arrayBuffer: () => Promise.resolve(typeof parts[0] === "string" ? new TextEncoder().encode(parts[0]).buffer : (parts[0] as Uint8Array).buffer),
    });

    await expect(readFile(file("a.txt", "hello\n"))).resolves.toEqual({ kind: "file", name: "a.txt", text: "hello" });
    await expect(readFile(file("a.png", new Uint8Array([137, 80, 255, 0])))).rejects.toThrow("isn't a text file");
    await expect(readFile(file("big.txt", "x".repeat(500_000)))).rejects.toThrow("too large");
  });
});

describe("what is completed while somebody writes", () => {
  it("is a note after two brackets, and a command after a slash at the beginning", () => {
    expect(triggerAt("See [[Gar", 9)).toEqual({ kind: "note", query: "Gar", from: 4, to: 9 });
    expect(triggerAt("See [[Gar]] x", 9)).toEqual({ kind: "note", query: "Gar", from: 4, to: 11 });
    expect(triggerAt("/car", 4)).toEqual({ kind: "command", query: "car", from: 0, to: 4 });
    for (const text of ["a/b", "[[x]] ", "[x", "no", "/a/b"]) expect(triggerAt(text, text.length)).toBeNull();
  });

  it("takes notes that are dropped, and no address of the web", () => {
    const data = (text: string, own = "") => ({ getData: (type: string) => (type === "text/plain" ? text : own) });

    expect(droppedNotes(data("obsidian://open?vault=v&file=Plans%2FRain"))).toEqual(["Plans/Rain.md"]);
    expect(droppedNotes(data("", "A.md\nB.md"))).toEqual(["A.md", "B.md"]);
    expect(droppedNotes(data("Plans/Rain.md"))).toEqual(["Plans/Rain.md"]);
    expect([data("https://x.example/a.md"), data("some text"), data("a\nb.md")].flatMap(droppedNotes)).toEqual([]);
  });
});

describe("citations", () => {
  const links = (text: string) =>
    parserOf(CITATIONS)
      .parse(text, {})
      .flatMap((token) => token.children ?? [])
      .filter((token) => token.type === "wikilink")
      .map((token) => token.meta as CitedLink);
  const one = (path: string, heading: string, first: number, last: number) => ({ path, heading, start_line: first, end_line: last, hash: "h" });

  it("take the lines that stand behind a link", () => {
    expect(links("[[Garden#Watering]] (lines 10-11), [[Rain]] (line 3) and [[Other]] (see lines 1)")).toMatchObject([
      { target: "Garden", fragment: "Watering", first: 10, last: 11 },
      { target: "Rain", first: 3, last: 3 },
      { target: "Other" },
    ]);
    expect(links("[[A]] (lines 5-2)")).toMatchObject([{ first: 5, last: 5 }]);
  });

  it("are found by their lines, then their heading, then their note", () => {
    const known = [one("Garden.md", "# Garden", 1, 20), one("Garden.md", "## Watering", 10, 11), one("Plans/Rain.md", "", 1, 3)];
    const find = (target: string, fragment = "", first?: number, last?: number) =>
      findCitation({ target, fragment, ...(first ? { first, last: last ?? first } : {}) }, known);

    expect(find("Garden", "", 10, 11)).toBe(known[1]);
    expect(find("garden", "watering")).toBe(known[1]);
    expect(find("Garden")).toBe(known[0]);
    expect(find("Rain")).toBe(known[2]);
    expect(find("ain")).toBeUndefined();
  });

  it("of another vault are named with that vault", () => {
    const known = [{ ...one("Fence.md", "", 3, 3), vault: "work" }];
    const find = (target: string) => findCitation({ target, fragment: "" }, known);

    expect(find("work:Fence")).toBe(known[0]);
    expect(find("Fence")).toBeUndefined();
  });
});

describe("what a message is answered with", () => {
  it("is plain chat until something is chosen, and as configured again after that", () => {
    const choice = new Choice();
    choice.learn({ choice: { scope: { link_depth: 1 }, token_limit: 9_000, rounds: 5 }, switches: { scout: true }, ranges: { token_limit: [3_000, 50_000] } });
    expect([choice.toggles.value.scout, choice.isChat.value]).toEqual([true, false]);
    choice.flip("scout");
    expect(choice.isChat.value).toBe(true);
    choice.add("A.md");
    expect([choice.isChat.value, choice.body("N.md")]).toMatchObject([false, { added: ["A.md"], note: "N.md", token_limit: 9_000, rounds: 5 }]);
    choice.reset();
    expect(choice.isChat.value).toBe(true);
    choice.want();
    expect(choice.isChat.value).toBe(false);
    expect([choice.clamp("token_limit", 10, 1), choice.clamp("token_limit", 1e9, 1), choice.clamp("token_limit", Number.NaN, 4_000)]).toEqual([3_000, 50_000, 4_000]);
  });

  it("always keeps one agent on, and says in a line what happens", () => {
    const choice = new Choice();

    expect(choice.flip("task")).toBe(false);
    expect(whatHappens(choice.toggles.value, true)).toContain("Plain chat");
    expect(whatHappens({ scout: true, web: false, task: true }, false)).toBe("Scout chooses notes, Task answers");
    expect(whatHappens({ scout: true, web: false, task: false }, false)).toContain("nothing is answered");
  });

  it("isn't changed behind somebody's back by what the server has configured", () => {
    const choice = new Choice();
    choice.flip("scout");
    choice.set({ depth: 3 });
    choice.learn({ choice: { scope: { link_depth: 0 } }, switches: { web: true } });

    expect([choice.chosen.value.depth, choice.toggles.value.web]).toEqual([3, false]);
  });

  it("follows what is configured in all that nobody changed, also once an agent was switched", () => {
    const choice = new Choice();
    const configured = (depth: number, rounds: number, notes: number) => choice.learn({ choice: { scope: { link_depth: depth }, rounds, notes } });
    configured(2, 5, 20);
    choice.flip("scout");
    choice.set({ numbers: { ...choice.chosen.value.numbers, notes: 7 } });
    configured(1, 9, 30);
    expect([choice.chosen.value.depth, choice.numberOf("rounds"), choice.numberOf("notes")]).toEqual([1, 9, 7]);

    choice.take({ toggles: { scout: true }, scope: { link_depth: 1 }, rules: {}, added: [] } as never);
    configured(3, 9, 30);
    expect(choice.chosen.value.depth).toBe(1);
    choice.reset();
    expect([choice.chosen.value.depth, choice.isChosen.value]).toEqual([3, false]);
  });
});

describe("cost", () => {
  const spent = (total: number, cost: number | null) => ({ requests: total ? 1 : 0, input_tokens: total, output_tokens: 0, total_tokens: total, cost_usd: cost });
  const limits = { turn_tokens: null, run_tokens: null, day_tokens: null, day_cents: null };

  it("that isn't known is left out of sums and a dash below an answer, as is a price that isn't", () => {
    const parts = usageParts({ success: true, today: spent(1_200, null), session: spent(1_200, null), limits, left: { tokens: 5_000, usd: 1.5 } } as never);

    expect(parts.map((part) => part.value)).toEqual(["1.2k tokens", "1.2k tokens", "5k tokens · $1.50"]);
    expect(usageParts({ success: true, today: spent(0, null), session: null, limits, left: { tokens: null, usd: null } } as never).map((part) => part.value)).toEqual(["0 tokens · $0", "none"]);
    expect(price(undefined)).toBe("price –");
    expect(spentText(spent(1_200, null) as never)).toBe("1.2k tokens · –");
    expect(spentText(spent(1_200, 0.12) as never)).toBe("1.2k tokens · $0.12");
    expect(spentText(spent(0, null) as never)).toBe("");
  });

  it("names a model without its provider", () => {
    expect(["openai:gpt-4o", "fireworks:accounts/fireworks/models/deep", "ollama:qwen3:8b", "tiny@http://127.0.0.1:1/v1"].map(modelName)).toEqual(["gpt-4o", "deep", "qwen3:8b", "tiny"]);
  });
});

it("groups conversations by when they were used", () => {
  const now = new Date(2026, 5, 15, 12).getTime();
  const at = (days: number) => ({ id: String(days), updated: new Date(now - days * 86_400_000).toISOString() }) as Session;

  expect(byAge([0, 1, 5, 20, 90].map(at), now).map((group) => group.title)).toEqual(["Today", "Yesterday", "Last 7 days", "Last 30 days", "Earlier"]);
});
