import { h, render } from "preact";
import { act } from "preact/test-utils";
import { describe, expect, it, vi } from "vitest";
import { chipsOf, daysAgo } from "./filters";
import { HostContext, type Host } from "../host";
import { fittingChoices } from "../picker";
import { argumentsOf, asTyped, NO_SEARCH, piecesOf, readSearch, snippetOf, wordsOf, writeSearch, type SearchMode } from "./query";
import { HitList, missingOf, remarksOf } from "./results";
import { listBy, outermost } from "./listing";
import { reasonsOf, SearchSession, type Hit, type SearchAnswer } from "./session";

const marked = (content: string, spans: number[][], length?: number) =>
  snippetOf(content, spans, length)
    .map(({ text, isMatch }) => (isMatch ? `[${text}]` : text))
    .join("");

describe("hits", () => {
  const hit = (source: string) => ({ source, heading: "top-level", content: "x", start_line: 1, end_line: 1, matches: [] }) as unknown as Hit;
  const host = { href: () => "#" } as unknown as Host;

  it("keep the first as the active one when its words' order gives way to another", () => {
    const root = document.createElement("div");
    const show = (...names: string[]) =>
      act(() => render(h(HostContext.Provider, { value: host }, h(HitList, { hits: names.map(hit), text: "x", label: "Found", active: 0, onActive: () => undefined })), root));
    show("A.md", "B.md");
    show("B.md", "A.md");

    expect([...root.querySelectorAll("[role=option]")].map((row) => [row.getAttribute("data-note"), row.getAttribute("aria-selected")])).toEqual([["B.md", "true"], ["A.md", "false"]]);
  });
});

describe("addresses", () => {
  it("keep every filter, and leave out what is empty", () => {
    const search = { ...NO_SEARCH, text: "rain & sun", folders: ["A b/c", "D"], tags: ["x/y"], properties: ["due", "a=b,c"], from: "2026-01-31", dates: "created" as const };
    const address = writeSearch(search);

    expect(readSearch(Object.fromEntries(new URLSearchParams(Object.entries(address) as [string, string][])))).toEqual(search);
    expect(Object.values(writeSearch(NO_SEARCH)).filter(Boolean)).toEqual([]);
  });

  it("take nothing that isn't a day for one", () => {
    expect(readSearch({ from: "<script>", to: "2026-1-1", dates: "constructor" })).toEqual(NO_SEARCH);
  });

  it("become what the server takes", () => {
    expect(argumentsOf({ ...NO_SEARCH, text: "rain", tags: ["x"], from: "2026-01-31", dates: "created" }, "hybrid")).toEqual({
      query: "rain", mode: "hybrid", n_results: 40, explain: true, tags: ["x"], created_from: "2026-01-31",
    });
  });
});

it.each([
  ["water bar", "water bar*"],
  ["water ", "water "],
  ['"water bar', '"water bar'],
  ["water -bar", "water -bar"],
  ["bar*", "bar*"],
  ["b", "b"],
  ["über", "über*"],
])("a text as it is typed: %j is asked as %j", (text, asked) => expect(asTyped(text)).toBe(asked));

describe("snippets", () => {
  it("mark what matched, and leave Markdown's signs out", () => {
    const text = "## Rain\nThe [[Plans/Rain|rain]] falls\n- [ ] on **tomatoes**";
    const spans = ["rain]", "tomatoes"].map((word) => [text.indexOf(word), text.indexOf(word) + (word === "rain]" ? 4 : 8)]);

    expect(marked(text, spans)).toBe("The [rain] falls on [tomatoes]");
  });

  it("show a table's cells and a fence's code without their signs", () => {
    expect(marked("| type | *default* |\n| --- | :-: |\n| text | a_b |", [])).toBe("type · default text · a_b");
    expect(marked("Set this:\n```toml\nconfirm = 1\n```\n---\nand 3 * 4", [])).toBe("Set this: confirm = 1 and 3 * 4");
  });

  it("count characters as the server does, also behind an emoji", () => {
    expect(marked("😀😀 rain", [[3, 7]])).toBe("😀😀 [rain]");
  });

  it("are cut around the place with most matches", () => {
    const text = `${"x ".repeat(300)}rain ${"y ".repeat(300)}rain and rain ${"z ".repeat(300)}`;
    const spans = [...text.matchAll(/rain/g)].map((found) => [found.index, found.index + 4]);
    const shown = marked(text, spans, 100);

    expect(shown).toContain("[rain] and [rain]");
    expect(shown.startsWith("…")).toBe(true);
    expect(shown.endsWith("…")).toBe(true);
    expect(shown.length).toBeLessThan(120);
  });

  it("stand spans that don't fit the text", () => {
    expect(marked("ab", [[5, 9], [-3, 1], [], [1]])).toContain("b");
  });

  it("take no time over a hostile text", () => {
    const began = performance.now();
    for (const sign of ["[", "](", "`", "- ", "#", "\n---\n", "^a", "|", "| ", "|-", "* ", "*a", "-", ": "]) snippetOf(sign.repeat(20_000));
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});

it("marks the matched words of a title", () => {
  const words = wordsOf([{ content: "Watering the garden", matches: [[0, 8]] }], "water the");

  expect(piecesOf("Watering the roses", words).filter((piece) => piece.isMatch)).toEqual([{ text: "Watering", isMatch: true }]);
});

const hit = (more: Partial<Hit>): Hit => ({ source: "A.md", content: "", heading: "", start_line: 1, end_line: 2, score: 1, hash: "", ...more });

it("says why a hit is here", () => {
  const told = reasonsOf(hit({ cosine: 0.6, explain: { name: 0.2, keyword: 1, dense: 0.6, chunk: 1, note: 1 }, also: [{ source: "B.md", start_line: 1, end_line: 1, hash: "" }] }));

  expect(told.map((reason) => reason.title)).toEqual(["Name", "Words", "Meaning", "Also in 1"]);
  expect(reasonsOf(hit({}))).toEqual([]);
  expect(reasonsOf(hit({ explain: { keyword: 0 }, matches: [[0, 4]] })).map((reason) => reason.id)).toEqual(["words"]);
});

const answer = (...names: string[]): SearchAnswer => ({ success: true, results: names.map((source) => hit({ source })), index_stale: false, as_of: "", index_incomplete: false, pending: 0 });

it("says what an answer may miss", () => {
  expect(missingOf({ answer: { ...answer(), index_incomplete: true } })).toBe("Indexing isn't finished");
  expect(missingOf({ answer: { ...answer(), pending: 2_000 } })).toBe("2,000 passages found by words only so far");
  expect(missingOf({ answer: answer() })).toBe("");
});

it("says where meaning or a reranker took no part, and leaves out how fresh it is and how it was ranked", () => {
  const letters = "searched by words only: the embedding model doesn't know the letters of this question";
  const notes = [letters, "of the names with a word of the question, the best 100 counted", "3 changed files aren't in the index yet: run `knap index`, or keep `knap watch` running"];

  expect(remarksOf({ answer: { ...answer(), notes } })).toEqual([letters]);
  expect(remarksOf({ answer: answer() })).toEqual([]);
});

type Asks = ConstructorParameters<typeof SearchSession>[0];
const sessionOf = (passages: Asks["passages"], notes: Asks["notes"] = () => () => Promise.reject(new Error("nothing is listed"))) => new SearchSession({ passages, notes }, 0);

describe("a session", () => {
  it("shows words first, then meaning, and drops what is too late", async () => {
    const asked: [string, SearchMode, AbortSignal, (answer: SearchAnswer) => void][] = [];
    const session = sessionOf((search, mode, signal) => new Promise((resolve) => asked.push([search.text, mode, signal, resolve])));
    session.run({ ...NO_SEARCH, text: "ra" });
    session.run({ ...NO_SEARCH, text: "rain" });
    await vi.waitFor(() => expect(asked.map(([text, mode]) => `${text} ${mode}`)).toEqual(["ra keyword", "rain keyword", "rain hybrid"]));
    asked[0]?.[3](answer("late.md"));
    asked[2]?.[3](answer("meaning.md"));
    await vi.waitFor(() => expect(session.found.value?.mode).toBe("hybrid"));
    asked[1]?.[3](answer("words.md"));
    await Promise.resolve();

    expect(asked[0]?.[2].aborted).toBe(true);
    expect(session.found.value?.answer.results[0]?.source).toBe("meaning.md");
    expect(session.isBusy.value).toBe(false);
  });

  it("keeps what was found while a half word finds nothing", async () => {
    const session = sessionOf(async (search, mode) => (search.text === "rain" ? answer("rain.md") : mode === "keyword" ? answer() : new Promise(() => undefined)));
    session.run({ ...NO_SEARCH, text: "rain" });
    await vi.waitFor(() => expect(session.found.value?.mode).toBe("hybrid"));
    session.run({ ...NO_SEARCH, text: "rainin" });
    await new Promise((resolve) => setTimeout(resolve, 5));

    expect(session.found.value?.answer.results[0]?.source).toBe("rain.md");
    expect(session.isBusy.value).toBe(true);
  });
});

it("names the chips, and what is without each", () => {
  const chips = chipsOf({ ...NO_SEARCH, folders: ["A"], tags: ["x"], from: "2026-01-31", to: "2026-01-31" });

  expect(chips.map((chip) => chip.id)).toEqual(["folder A", "tag x", "date"]);
  expect(chips[2]?.without().from).toBe("");
  expect(daysAgo(1, new Date(2026, 2, 1))).toBe("2026-02-28");
});

it("offers what fits, best first", () => {
  const choices = ["Plans", "Garden/Plants", "Rain"].map((value) => ({ value, title: value }));

  expect(fittingChoices(choices, "plan").map((choice) => choice.value)).toEqual(["Plans", "Garden/Plants"]);
});

describe("filters without words", () => {
  const notes = ["A/1.md", "B/2.md", "A/3.md", "A/4.md", "B/5.md"].map((path, at) => ({ path, modified: `2026-01-${30 - at}T10:00:00Z`, preview: `# ${at + 1} What lives below` }));
  const asked: unknown[] = [];
  const client = {
    post: async (_: string, { body }: { body: { folder: string; limit: number; offset: number } }) => {
      asked.push(body);
      const rows = notes.filter((note) => note.path.startsWith(body.folder));
      return { success: true, results: rows.slice(body.offset, body.offset + body.limit), total: rows.length, index_stale: false, index_incomplete: false, as_of: "" };
    },
  } as unknown as Parameters<typeof listBy>[0];
  const { signal } = new AbortController();

  it("list the notes of several folders in pages, and none before one that is shown", async () => {
    const next = listBy(client, { ...NO_SEARCH, folders: ["A", "B"], tags: ["x"] }, 2);
    const first = await next(signal);
    const second = await next(signal);

    expect(asked[0]).toMatchObject({ folder: "A", tags: ["x"], sort: "-modified" });
    expect([first.total, second.total]).toEqual([5, 5]);
    expect(first.answer.results.map((hit) => hit.source)).toEqual(["A/1.md", "B/2.md", "A/3.md"]);
    expect(second.answer.results.map((hit) => hit.source)).toEqual(notes.map((note) => note.path));
    expect(first.answer.results[0]?.content).toBe("What lives below"); // without the title that stands above it
  });

  it("are a session's answer, a page at a time", async () => {
    const session = sessionOf(
      () => Promise.reject(new Error("no words were given")),
      (search) => listBy(client, search, 2),
    );
    session.run({ ...NO_SEARCH, folders: ["A"] });
    await vi.waitFor(() => expect(session.found.value?.answer.results).toHaveLength(2));
    session.more();
    await vi.waitFor(() => expect(session.found.value?.answer.results).toHaveLength(3));

    expect(session.found.value).toMatchObject({ mode: "list", total: 3 });
    expect(reasonsOf(session.found.value?.answer.results[0] as Hit).map((reason) => reason.id)).toEqual(["changed"]);
  });

  it("count a folder once, though one inside it is chosen too", () => {
    expect(outermost(["A/B", "a", "AB", "A/", "C"])).toEqual(["A/", "AB", "C"]);
  });
});
