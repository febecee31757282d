// @vitest-environment jsdom
/** The plugin's own Markdown against markdown-it, which the page has, with the same rules of the shared parts on top. */
import Other from "markdown-it/index.mjs";
import { describe, expect, it } from "vitest";
import { CITATIONS } from "../../ui/parts/markdown/cited";
import { callouts, frontMatter, marks, nest, tasks, type TokenNode, wikilinks } from "../../ui/parts/markdown/syntax";
import Own from "../src/instead/markdown-it";

const RULES = [frontMatter, marks, wikilinks, callouts, tasks, ...CITATIONS.flatMap(({ setup }) => (setup ? [setup] : []))];
const other = new Other({ html: false, linkify: true });
other.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
const own = new Own();
for (const use of RULES) (other.use(use), own.use(use as never));

/** The blocks whose first line is told; of all but containers, the last one too: markdown-it counts empty lines behind those. */
const CONTAINER = /list|item|quote|table|code_block/;
const UNPLACED = new Set(["inline", "tr_open", "thead_open", "tbody_open", "th_open", "td_open", "bullet_list_open"]);

/** What is drawn of tokens, and no more. */
function drawn(nodes: readonly TokenNode[]): string {
  const told = nodes.filter(({ token }) => token.type !== "text" || token.content);
  return told.map(({ token, children }) => tell(token, children)).join(" ");
}

function tell(token: TokenNode["token"], children: readonly TokenNode[]): string {
  const { type, hidden, meta, map, info } = token;
  const place = map && !UNPLACED.has(type) ? `@${map[0]}${CONTAINER.test(type) ? "" : `-${map[1]}`}` : "";
  const address = ["href", "src", "start", "style"].map((name) => token.attrGet(name) ?? "").join("");
  const content = children.length && type !== "image" ? `(${drawn(children)})` : token.content.replace(/\n+$/, "");
  return `${type}${hidden ? " hidden" : ""}${place}${address && `<${address}>`}${meta ? JSON.stringify(meta) : ""}${type === "fence" ? info.trim() : ""}"${content}"`;
}

const both = (text: string) => [drawn(nest(own.parse(text, {}) as never)), drawn(nest(other.parse(text, {})))];

const TEXTS = [
  "Plain text.\nAnother line.  \nAfter a break\\\nand another.\n\nA new paragraph.",
  "# One\n## Two ##\n### Three #\n#nothing\n####### seven\n#\n\nSet\n===\n\nSet too\n---\n\n***\n- - -\n___",
  "*a* **b** ***c*** _d_ __e__ a_b_c *a **b** c* **a *b* c** ~~gone~~ ~one~ 5 * 3 * 2 **bold**text *a*b *(a)* **a",
  "- a\n- b\n  - c\n  - d\n    1. e\n    2. f\n- g",
  "- a\n\n- b\n\n  more\n- c",
  "1. a\n2. b\n\n\n3. c\n\n10) x\n11) y\n\n7. seven\n8. eight",
  "* a\n+ b\n- c\n\ntext\n- list after text\ntext again\n\n2. not after\ntext\n2. two",
  "- [ ] open\n- [x] done **now**\n  - [ ] inner\n\n1. [ ] numbered",
  "> quote\nlazy\n> > inner\n> back\n\n> [!note] A *title*\n> body\n\n> [!tip]-\n> folded\n\n> - a\n> - b\n>\n> end",
  "```js\nconst a = `b`;\n\n```\n\n~~~\n```\n~~~\n\n````md\n```\ninner\n```\n````\n\n- item\n  ```\n  code\n    deeper\n  ```\n\n    indented\n\n    more",
  "```open\nnever closed\n\n# no heading",
  "| a | b |\n|---|:-:|\n| 1 | 2 \\| 3 |\n| `x` |\n| 1 | 2 | 3 |\n\nText\n| h |\n| --: |\n| r |\nafter",
  "[a](b.md) [c](<d e.md>) [f](g \"title\") ![i](j.png) [![k](l.png)](https://m.example) [n [o](p) q](r) [s](javascript:x) [t] [u](v(w)x)",
  "[one][1] and [1] and [Two][] here\n\n[1]: https://a.example/x \"T\"\n[two]: <b c.md>",
  "<https://a.example/x?y=1&z=2> <me@a.example> https://b.example/path_(x). See http://c.example, (https://d.example/e) xhttps://no",
  "Code `a` and ``b ` c`` and ` d ` and `unclosed, `*x*`, **`b`**",
  "Escapes \\* \\_ \\[ \\] \\` \\# \\a &amp; &copy; &#35; &#x22; &nope; &",
  "See [[Garden]] (lines 3-5), [[Garden#Beds|L3-5]] and [[Rain|the rain]], ![[Picture.png]] [[ ]] [[a\nb]]. ==marked *it*== and ==not",
  "5%% and 6%% stay. ==a== ==b== a==b==c",
  "---\ntitle: x\n---\n# After",
  "日本語**強調**です。*a*、**「b」**c 🌱**d**🌱 é*f*é",
  "**Bold:** text\n- **a:** b\n- **c**: d\n\n1. **One** – x\n   - y\n\n   para\n2. **Two**",
  "a\n\n\n\nb\n   c\n    d\n\n     code\ne",
  "- a\n\n      code in item\n- b\n\n\n- c\n-\n- d",
  "- > quote in item\n  > more\n- # heading in item\n- ```\n  code\n  ```\n  after",
  "***a** b* ***a* b** **a*b*c** *a**b**c* **a **b** c** ****x**** *a _b* c_ _a *b_ c*",
  "| a |\n| - |\n\n|a|b|\n|-|\n\na | b\n- | -\n1 | 2",
  "$$\nx = *y*\n$$\n\n$a_b$ and $c_d$",
  "Text with <b>HTML</b> and <script>alert(1)</script>\n<div>\n\nblock\n</div>",
  "\tcode by tab\n\n-\ttabbed item\n\n\tpara in it\n\n>\tquote",
];

describe("the same as markdown-it", () => {
  it.each(TEXTS.map((text) => [text.slice(0, 50), text]))("%j", (_, text) => {
    const [mine, theirs] = both(text);

    expect(mine).toEqual(theirs);
  });

  it("over 3,000 texts put together at random", () => {
    const pieces = ["a", "b c", "*", "**", "_", "`", "[x](y.md)", "[[Note]]", " (lines 1-2)", "\n", "\n\n", "- ", "\n- ", "\n  - ", "\n1. ", "> ", "\n> ", "# ", "```\n", "|", "\n|-|\n", "~~", "==", "\\", ".", " ", "!", "é", "🌱"];
    let seed = 7;
    const roll = (size: number) => ((seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff) >>> 8) % size;
    const differing: string[] = [];
    for (let round = 0; round < 3_000; round++) {
      const text = Array.from({ length: 2 + roll(14) }, () => pieces[roll(pieces.length)]).join("");
      const [mine, theirs] = both(text);
      if (JSON.stringify(mine) !== JSON.stringify(theirs)) differing.push(text);
    }
    console.log(`${differing.length} of 3,000 differ`, JSON.stringify(differing.slice(0, 12)));

    expect(differing.length).toBeLessThan(60);
  });
});

it("takes time in proportion to the text, whatever is in it", () => {
  const signs = ["[", "![", "](", "[a](", "[a](b \"", "[a](<", "*", "**a ", "*_", "_a*", "`", "`a``", "> ", "- ", "1. ", "  - ", "==", "==a", "[[", "\\", "&a", "<a:", "~~", "|", "a|b\n-|-\n", "# ", " ", "\t", "\n> ", "\n- ", "h", "http://", "[a]: b\n", "- a\n\n", "$"];
  const slow: string[] = [];
  for (const sign of signs) {
    const text = `${sign.repeat(Math.ceil(20_000 / sign.length))}x`;
    const begun = performance.now();
    own.parse(text, {});
    if (performance.now() - begun > 2_000) slow.push(`${sign} ${performance.now() - begun}`);
  }

  expect(slow).toEqual([]);
});
