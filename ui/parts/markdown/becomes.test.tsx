/** What Markdown becomes: elements that were meant, and every word that was written. */

import { describe, expect, it } from "vitest";
import { render } from "preact";
import { HostContext, type Host } from "../host";
import { CITATIONS, Markdown } from ".";

const host = {
  href: (target: { path?: string; lines?: readonly number[]; fragment?: string }) =>
    `/app/notes/${target.path}${target.lines ? `?lines=${target.lines.join("-")}` : ""}${target.fragment ? `#${target.fragment}` : ""}`,
  open: () => undefined,
} as unknown as Host;

function drawn(text: string): HTMLElement {
  const root = document.createElement("div");
  render(
    <HostContext.Provider value={host}>
      <Markdown text={text} features={CITATIONS} />
    </HostContext.Provider>,
    root,
  );
  return root.firstElementChild as HTMLElement;
}

const NOISE = / (?:data-line|data-line-end|target|rel|title|role|aria-\w+|tabindex|disabled|type|id|dir)="[^"]*"| disabled=""|<svg class="k-icon".*?<\/svg>|<div class="k-code-head">.*?<\/div>/g;
const code = (text: string) => `<figure class="k-code"><pre><code>${text}</code></pre></figure>`;
const cite = (address: string, name: string, lines = "") =>
  `<a class="k-cite" data-note="${address.replace(/[?#].*/, "")}" href="/app/notes/${address}"><span class="k-cite-name">${name}</span>${lines && `<span class="k-cite-lines"><span class="k-only-read">${lines.includes("–") ? "lines" : "line"} </span>${lines}</span>`}</a>`;

describe("Markdown", () => {
  it.each([
    ["# One #", "<h1>One</h1>"],
    ["###### Six", "<h6>Six</h6>"],
    ["#no heading", "<p>#no heading</p>"],
    ["Title\n===", "<h1>Title</h1>"],
    ["a\nb", "<p>a\nb</p>"],
    ["a  \nb", "<p>a<br>b</p>"],
    ["*a* **b** _c_ __d__ ~~e~~ ==f==", "<p><em>a</em> <strong>b</strong> <em>c</em> <strong>d</strong> <s>e</s> <mark>f</mark></p>"],
    ["**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"],
    ["snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"],
    ["\\*not\\* \\[[no]]", "<p>*not* [[no]]</p>"],
    ["`` a ` b ``", "<p><code>a ` b</code></p>"],
    ["`<b>&lt;`", "<p><code>&lt;b&gt;&amp;lt;</code></p>"],
    ["a &lt; b &amp; &#99; &#x64; &nope;", "<p>a &lt; b &amp; c d &amp;nope;</p>"],
    ["```py\n# x\n```", `<div>${code("# x")}</div>`],
    ["````\n```\n````", `<div>${code("```")}</div>`],
    ["```\nopen", `<div>${code("open")}</div>`],
    ["    code\n\n    more", code("code\n\nmore")],
    ["- a\n- b", "<ul><li>a</li><li>b</li></ul>"],
    ["- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"],
    ["- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"],
    ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["1. a\n\n   more\n2. b", '<ol start="1"><li><p>a</p><p>more</p></li><li><p>b</p></li></ol>'],
    ["- a\n```\nx\n```", `<ul><li>a</li></ul><div>${code("x")}</div>`],
    ["- [ ] a\n- [x] b", '<ul><li class="k-task"><input><div>a</div></li><li class="k-task" data-done=""><input><div>b</div></li></ul>'],
    ["> a\n> b\n\nc", "<blockquote><p>a\nb</p></blockquote><p>c</p>"],
    ["> [!note] T\n> x", '<div class="k-callout" data-tone="info"><div class="k-callout-title"><span>T</span></div><p>x</p></div>'],
    ["a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"],
    ["---\nk: v\n---\ntext", `<details><summary>Properties</summary>${code("k: v")}</details><p>text</p>`],
    [
      "| a | b |\n|---|--:|\n| [[x\\|y]] | 2 |",
      `<div class="k-table"><table><thead><tr><th>a</th><th data-align="right">b</th></tr></thead><tbody><tr><td>${cite("x.md", "y")}</td><td data-align="right">2</td></tr></tbody></table></div>`,
    ],
    ["[[A/B#C|d]] [[B#C]]", `<p>${cite("A/B.md#C", "d")} ${cite("B.md#C", "B › C")}</p>`],
    ["![[E]]", '<p><span class="k-embed"><a class="k-note-link" href="/app/notes/E">E</a></span></p>'],
    ["[[B]] (lines 3-9). [[B]] (line 4) [[B|L2-3]]", `<p>${cite("B.md?lines=3-9", "B", "3–9")}. ${cite("B.md?lines=4-4", "B", "4")} ${cite("B.md?lines=2-3", "B", "2–3")}</p>`],
    ["[[B]], L3–L5; [[B]] [lines 3 to 5]", `<p>${cite("B.md?lines=3-5", "B", "3–5")}; ${cite("B.md?lines=3-5", "B", "3–5")}</p>`],
    ["[n](Other%20note.md#h)", '<p><a class="k-note-link" href="/app/notes/Other note.md#h">n</a></p>'],
    ["see https://a.example/x_y_z.", '<p>see <a class="k-web" href="https://a.example/x_y_z">https://a.example/x_y_z</a>.</p>'],
    ["![p](https://a.example/p.png)", '<p><span class="k-embed"><a class="k-web" href="https://a.example/p.png">p<bdi class="k-where"> (a.example)</bdi></a></span></p>'],
    ["<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"],
    ["5%% of a, 6%% of b", "<p>5%% of a, 6%% of b</p>"],
    ["\ufeff# a\r\n\rb", "<h1>a</h1><p>b</p>"],
  ])("%j becomes what was meant", (text, html) => {
    expect(drawn(text).innerHTML.replace(NOISE, "")).toBe(html);
  });

  const PIECES = [..."ab*_`~=#>-+1.\\\t", " ", " ", "\n", "\n", "\n\n", "  ", "- ", "> ", "1. ", "# ", "**", "    "];

  /** A text of pieces, the same for each number. */
  function madeUp(seed: number): string {
    let state = seed * 2_654_435_761;
    const next = (below: number) => ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0), Math.floor((state / 2 ** 32) * below));
    return Array.from({ length: next(60) }, () => PIECES[next(PIECES.length)]).join("");
  }

  const TEXTS = Array.from({ length: 600 }, (_, seed) => madeUp(seed + 1)).filter((text) => !/```|~~~/.test(text)); // there a language isn't shown

  it("loses no letter of a text", () => {
    expect(TEXTS.length).toBeGreaterThan(400);
    for (const text of TEXTS) {
      const node = drawn(text);
      for (const own of node.querySelectorAll(".k-code-head, summary")) own.remove();
      expect([text, node.textContent?.match(/[ab]/g) ?? []]).toEqual([text, text.match(/[ab]/g) ?? []]);
    }
  });

  it("says of each block where it stands, within the text", () => {
    for (const text of TEXTS) {
      for (const node of drawn(text).querySelectorAll<HTMLElement>("[data-line]")) {
        const [first, last] = [Number(node.dataset["line"]), Number(node.dataset["lineEnd"])];
        expect([text, first >= 1, first <= last, last <= text.split("\n").length]).toEqual([text, true, true, true]);
      }
    }
  });
});
