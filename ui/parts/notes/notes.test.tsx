import { render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import { HostContext, type Host } from "../host";
import { Markdown } from "../markdown";
import { kindOfValue, valueOf } from "./editing";
import { FEATURES, NoteScopeContext } from "./features";
import { mediaKindOf, widthOf } from "./media";
import { NoteModel, sentenceOf, withBox } from "./model";
import { blocksIn } from "./reader";
import { partOf } from "./source";
import { NotesStore } from "./store";
import { foldersOf, propertiesOf, Recent } from "./store";
import { foldersTo, rowNamed, rowsOf, stepOf, treeOf } from "./tree";

const PATHS = ["Note 10.md", "Note 2.md", "Plans/Rain.md", "Plans/2026/May.md", "Zoo/A.md"];

describe("the tree", () => {
  it("shows folders before notes, by name as a person counts, and what is open", () => {
    const rows = rowsOf(treeOf(PATHS), new Set(["Plans"]));

    expect(rows.map((row) => `${"  ".repeat(row.depth)}${row.name}${row.isFolder ? `/ ${row.notes}` : ""}`)).toEqual([
      "Plans/ 2", "  2026/ 1", "  Rain", "Zoo/ 1", "Note 2", "Note 10",
    ]);
    expect(rows[2]).toMatchObject({ place: 2, siblings: 2 });
  });

  it("is gone through by the keys of a tree", () => {
    const rows = rowsOf(treeOf(PATHS), new Set(["Plans"]));

    expect(stepOf(rows, 0, "ArrowRight")).toEqual({ kind: "focus", index: 1 });
    expect(stepOf(rows, 1, "ArrowRight")).toEqual({ kind: "open", path: "Plans/2026" });
    expect(stepOf(rows, 2, "ArrowLeft")).toEqual({ kind: "focus", index: 0 });
    expect(stepOf(rows, 0, "ArrowLeft")).toEqual({ kind: "close", path: "Plans" });
    expect(stepOf(rows, 2, "Enter")).toEqual({ kind: "choose", path: "Plans/Rain.md" });
    expect(stepOf(rows, 5, "ArrowDown")).toEqual({ kind: "focus", index: 5 });
    expect(stepOf(rows, 0, "x")).toBeUndefined();
    expect(rowNamed(rows, 0, "n")).toBe(4);
    expect(rowNamed(rows, 4, "note 1")).toBe(5);
  });

  it("takes 20,000 notes in less than a second", () => {
    const paths = Array.from({ length: 20_000 }, (_, at) => `F${at % 200}/G${at % 7}/Note ${at}.md`);
    const began = performance.now();

    expect(rowsOf(treeOf(paths), new Set(paths.flatMap(foldersTo))).length).toBe(20_000 + 200 * 7 + 200);
    expect(performance.now() - began).toBeLessThan(4_000);
  });
});

it("counts folders, and what properties there are", () => {
  expect(foldersOf(PATHS.map((path) => ({ path })))).toEqual([{ path: "Plans", notes: 2 }, { path: "Plans/2026", notes: 1 }, { path: "Zoo", notes: 1 }]);
  expect(propertiesOf([{ a: 1, tags: ["x", "y"] }, { a: 1 }, null, { a: { deep: 1 } }])).toEqual([
    { name: "a", notes: 3, values: ["1"] }, { name: "tags", notes: 1, values: ["x", "y"] },
  ]);
});

it("keeps the last few, each once", () => {
  let kept = "";
  const recent = new Recent(() => "A\nB", (text) => (kept = text), 3);
  for (const item of ["B", "C\nD", "E", ""]) recent.add(item);

  expect(kept.split("\n")).toEqual(["E", "C D", "B"]);
});

it.each([
  ["- [ ] one", true, "- [x] one"],
  ["\t1. [x] one [ ]", false, "\t1. [ ] one [ ]"],
  ["> - [-] one", true, "> - [x] one"],
  ["- one [ ]", true, undefined],
  ["text", true, undefined],
])("the box of %j becomes %j", (line, isDone, next) => expect(withBox(line, isDone)).toBe(next));

it("takes the sentence of a link out of its line", () => {
  expect(sentenceOf("- [ ] First one. We like the [[Rain]]. Last one.", ["[[Rain"])).toBe("We like the [[Rain]].");
  expect(sentenceOf(`${"long ".repeat(200)}[[Rain]]`, ["[[Rain"]).length).toBeLessThan(240);
});

it("knows how a property is edited", () => {
  expect([true, 2, "2026-01-31", "x", ["a"], [{ a: 1 }], { a: 1 }, null].map(kindOfValue)).toEqual(["flag", "number", "date", "text", "list", "object", "object", "text"]);
  expect([valueOf("list", "a\n\n b "), valueOf("number", "2.5"), valueOf("number", "x")]).toEqual([["a", "b"], 2.5, "x"]);
});

it("shows only what the server sends", () => {
  expect(["a.PNG", "a.pdf", "a.html", "a.constructor", "a", ".png"].map(mediaKindOf)).toEqual(["image", "pdf", undefined, undefined, undefined, "image"]);
  expect([widthOf("300"), widthOf("300x200"), widthOf("wide")]).toEqual([300, 300, undefined]);
});

it("marks the innermost blocks of some lines", () => {
  const root = document.createElement("div");
  const block = (line: number, end: number, into: Element = root) => {
    const node = document.createElement("p");
    [node.dataset["line"], node.dataset["lineEnd"]] = [String(line), String(end)];
    into.append(node);
    return node;
  };
  const list = block(3, 6);
  const [one, two] = [block(3, 4, list), block(5, 6, list)];

  expect(blocksIn([list, one, two], [4, 5])).toEqual([one, two]);
  expect(blocksIn([list, one, two], [6, 9])).toEqual([two]);
});

it("resolves links as the server did, whatever their case", async () => {
  const get = async () => ({ content: "", hash: "h", total_chars: 0 });
  const post = async (path: string) => (path.endsWith("outlinks") ? { links: [{ target: "Rain", leads_to: "Plans/Rain.md" }, { target: "Snow", leads_to: null }] } : { outline: [] });
  const model = new NoteModel({ get, post } as never, "Garden.md");
  await model.page.load();

  expect([model.resolve("rain"), model.resolve("Rain.md"), model.resolve("Snow"), model.resolve("constructor")]).toEqual(["Plans/Rain.md", "Plans/Rain.md", undefined, undefined]);
});

const host = { open: () => undefined, href: (target: { path?: string }) => `/app/notes/${target.path}`, copy: async () => undefined, resolveLink: (link: string) => link } as unknown as Host;

function shown(text: string): HTMLElement {
  const root = document.createElement("div");
  document.body.append(root);
  const embeds = [{ embed: "![[Other]]", line: 1, path: "Other.md", content: "<img src=x onerror=alert(1)> [x](javascript:alert(1)) ![[Again]]", start_line: 1, end_line: 1 }];
  render(
    <HostContext.Provider value={host}>
      <NoteScopeContext.Provider value={{ embeds: embeds as never, depth: 0, onTag: () => undefined }}>
        <Markdown text={text} path="Garden.md" features={FEATURES} />
      </NoteScopeContext.Provider>
    </HostContext.Provider>,
    root,
  );
  return root;
}

afterEach(() => document.body.replaceChildren());

describe("what the reader adds", () => {
  it("draws tags, ids of blocks, embeds", () => {
    const root = shown("A #water/summer and #12, a#b.\n\nA line. ^here\n\n![[Other]]");

    expect([...root.querySelectorAll("button.k-tag")].map((tag) => tag.textContent)).toEqual(["#water/summer"]);
    expect(root.querySelector("[id='^here']")?.textContent).toBe("A line.");
    expect(root.querySelector(".k-embedded")?.textContent).toContain("javascript:alert(1)");
    expect(root.querySelectorAll(".k-embedded .k-embedded").length).toBe(0);
  });

  it("tells formulas from prices", async () => {
    const root = shown("It costs $5 and $6.\n\nBut $a^2$ is one.\n\n$$\n\\frac{1}{2}\n$$");

    expect(root.querySelectorAll(".k-formula").length).toBe(2);
    await vi.waitFor(() => expect(root.querySelectorAll(".katex").length).toBe(2));
  });

  it.each([
    "$\\href{javascript:alert(1)}{x}$",
    "$\\htmlStyle{color:red}{x}$",
    "$\\includegraphics{https://evil.example/x.png}$",
    "$\\url{javascript:alert(1)}$",
    "$\\def\\a{\\a\\a}\\a$",
    "![[\"><img src=x onerror=alert(1)>.png]]",
    "![x](\"onerror=alert(1).png)",
    "![[../../etc/passwd.svg]]",
    "#<img/src=x/onerror=alert(1)>",
    "Text ^\"><script>alert(1)</script>",
    "# <svg onload=alert(1)>",
    "```mermaid\nclick A call alert(1)\n```",
    `$${"{".repeat(2_000)}$`,
    `${"$".repeat(3_000)}x`,
    `${"#a".repeat(3_000)}`,
  ])("makes nothing that runs of %j", async (text) => {
    const root = shown(text);
    await new Promise((resolve) => setTimeout(resolve, 60));

    expect(root.querySelectorAll("script,style,iframe,object,embed,form,base,meta,link,use,animate").length).toBe(0);
    for (const node of root.querySelectorAll("*")) {
      for (const attribute of node.attributes) {
        expect(attribute.name).not.toMatch(/^on|srcdoc|formaction|xlink/i);
        if (["href", "src"].includes(attribute.name)) expect(attribute.value).toMatch(/^(https?:\/\/|mailto:|\/app\/notes\/|#)/);
      }
    }
  });
});

it("shows a long text around the lines that are meant, each with its own number", () => {
  expect(partOf("a\nb", [2, 2])).toEqual({ text: "a\nb", first: 1, isCut: false });
  const content = Array.from({ length: 9_000 }, (_, index) => String(index + 1)).join("\n");
  const part = partOf(content, [8_990, 8_990]);

  expect([part.isCut, part.text.split("\n")[8_989], part.text.split("\n")[part.first - 1]]).toEqual([true, "8990", String(part.first)]);
  expect(part.text.split("\n").slice(0, part.first - 1).join("")).toBe("");
  expect(partOf(content)).toMatchObject({ isCut: false, first: 1 });
});

describe("the notes of a vault", () => {
  it("are there for all who wait for the list, and tags are read to their end", async () => {
    const tags = Array.from({ length: 1_500 }, (_, at) => ({ tag: `t${at}`, notes: 1 }));
    const asked: string[] = [];
    const post = async (path: string, { body }: { body: { limit: number; offset: number } }) => {
      asked.push(path);
      if (path === "/tools/list_tags") return { results: tags.slice(body.offset, body.offset + body.limit), total: tags.length };
      return { results: [{ path: "A.md", modified: "2026-01-01" }], total: 1 };
    };
    const store = new NotesStore({ post } as never);
    void store.load();
    await store.load();
    await store.tags.load();

    expect(store.notes.value.map((note) => note.path)).toEqual(["A.md"]);
    expect(store.tags.data.value).toHaveLength(1_500);
    expect(asked.filter((path) => path === "/tools/find_notes")).toHaveLength(1);
  });
});
