import { render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import { HostContext, type Host } from "../host";
import { Markdown, kindOfAddress } from "./index";

const opened: unknown[] = [];
const host = {
  open: (target: unknown) => opened.push(target),
  href: (target: { path?: string }) => `/app/notes/${target.path}`,
  copy: async () => undefined,
  resolveLink: (link: string) => (link === "Rain" ? "Plans/Rain.md" : undefined),
} as unknown as Host;

function shown(text: string, more: object = {}): HTMLElement {
  const root = document.createElement("div");
  document.body.append(root);
  render(
    <HostContext.Provider value={host}>
      <Markdown text={text} path="Garden.md" {...more} />
    </HostContext.Provider>,
    root,
  );
  return root;
}

afterEach(() => {
  document.body.replaceChildren();
  opened.length = 0;
});

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\u0000script:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](vbscript:msgbox)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example/x)",
  "[x](\\\\evil.example\\x)",
  "[x](blob:http://127.0.0.1/x)",
  "[x](obsidian://open?vault=v)",
  "![x](https://evil.example/x.png)",
  "![x](data:image/svg+xml,<svg onload=alert(1)>)",
  "![[https://evil.example/x.png]]",
  "[[javascript:alert(1)|x]]",
  "[a]: javascript:alert(1)\n\n[a]",
  "<https://evil.example/\"onmouseover=alert(1)>",
  "```mermaid\nclick A \"javascript:alert(1)\"\n```",
  "```\"><script>alert(1)</script>\nx\n```",
  "> [!<script>]- <img src=x onerror=alert(1)>\n> x",
  "> [!constructor] x\n> y",
  "```constructor\nx\n```",
  "```__proto__\nx\n```",
  "- [<] <b onclick=alert(1)>x</b>",
  "# <a id=app name=cookie>x</a>",
  "|<img src=x onerror=alert(1)>|\n|:-:|\n|[x](javascript:alert(1))|",
  "[^1]\n\n[^1]: <script>alert(1)</script>",
  "[^__proto__]\n\n[^__proto__]: x",
  "---\na: <script>alert(1)</script>\n---\nx",
  "==<script>alert(1)</script>== %%<script>%%",
  "<style>@import 'https://evil.example/x.css'</style>",
  "<iframe srcdoc='<script>alert(1)</script>'>",
  "<form action=https://evil.example><button>x",
  "<base href=https://evil.example>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'>",
  "$\\href{javascript:alert(1)}{x}$",
  `${"[".repeat(3_000)}x${"](y)".repeat(3_000)}`,
  `${">".repeat(3_000)} x`,
  `${"- ".repeat(2_000)}x`,
  `${"==".repeat(3_000)}x`,
  `${"[[".repeat(3_000)}x`,
];

describe("Arabic and Hebrew", () => {
  it("begin at the right in lists, quotes, callouts and tables, and code is left as it is", () => {
    const root = shown("- مهمة\n  1. أولى\n\n> قول\n\n> [!note] تنبيه\n> نص\n\n| أ | ب |\n|---|---|\n| 1 | 2 |\n\n```\nx\n```");

    for (const block of ["ul", "ol", "blockquote", ".k-callout", "table"]) expect(root.querySelector(block)?.getAttribute("dir"), block).toBe("auto");
    expect(root.querySelector("pre")?.closest("[dir]")).toBeNull();
  });
});

describe("hostile text", () => {
  it.each(HOSTILE.map((text) => [text.slice(0, 60), text]))("%j makes nothing but text and harmless elements", (_, text) => {
    const root = shown(text);

    expect(root.querySelectorAll("script,style,iframe,object,embed,form,base,meta,link,img,video,audio,image,use,animate").length).toBe(0);
    for (const node of root.querySelectorAll("*")) {
      for (const attribute of node.attributes) {
        expect(attribute.name).not.toMatch(/^on|srcdoc|formaction|xlink/i);
        if (["href", "src"].includes(attribute.name)) expect(attribute.value).toMatch(/^(https?:\/\/|mailto:|\/app\/notes\/|#)/);
      }
    }
  });

  it("follows only what is of the web, a note or a place", () => {
    expect(["https://a.b", "mailto:a@b.c", "Rain.md", "#x", "javascript:x", "//a.b", "a:b", " java\tscript:x"].map(kindOfAddress)).toEqual([
      "web", "web", "note", "place", "none", "none", "none", "none",
    ]);
  });

  it("puts no link into a link, which would lead elsewhere than the one that is shown", () => {
    const root = shown("[![inside](https://a.example/p.png) and **x**](https://b.example)");

    expect([...root.querySelectorAll("a")].map((link) => link.href)).toEqual(["https://b.example/"]);
    expect(root.textContent).toBe("inside and x (b.example)");
  });

  it.each([
    ["https://a.example/x_y_z", ""],
    ["https://a.example", ""],
    ["<https://a.example/%C3%A4>", ""],
    ["<mailto:a@b.example>", ""],
    ["[a.example](https://a.example/deep/path)", ""],
    ["[a note](https://a.example/x)", " (a.example)"],
    ["[https://bank.example](https://evil.example/x)", " (evil.example)"],
    ["[bank.example](https://bank.example@evil.example/)", " (evil.example)"],
    ["https://bank.example@evil.example/", " (evil.example)"],
    ["[аpple.example](https://аpple.example)", " (xn--pple-43d.example)"],
    ["[\u202emoc.knab](https://evil.example)", " (evil.example)"],
    ["[write](mailto:a@b.example)", " (a@b.example)"],
    ["![a picture](https://a.example/p.png)", " (a.example)"],
    ["[![inside](https://a.example/p.png)](https://b.example)", " (b.example)"],
  ])("shows beside %s where it leads, unless its text says so", (text, where) => {
    const link = [...shown(text).querySelectorAll("a")].at(0);

    expect(link?.querySelector(":scope > .k-where")?.textContent ?? "").toBe(where);
  });
});

describe("Obsidian's syntax", () => {
  it("gives an id to the first of two headings of the same text", () => {
    const root = shown("# A b\n\n## A b\n\n# C", { prefix: "n-" });

    expect([...root.querySelectorAll("h1,h2")].map((node) => node.id)).toEqual(["n-a-b", "", "n-c"]);
  });

  it("opens a wikilink by its resolved path", () => {
    const root = shown("See [[Rain#Sun|the rain]] and [[Snow]].");
    const [known, unknown] = [...root.querySelectorAll("a")];

    known?.click();

    expect(known?.textContent).toBe("the rain");
    expect(opened).toEqual([{ kind: "note", path: "Plans/Rain.md", fragment: "Sun" }]);
    expect(unknown?.dataset["unknown"]).toBe("");
  });

  it("draws tasks, and tells which line is set", () => {
    const onTask = vi.fn();
    const root = shown("# T\n\n- [ ] one\n- [x] two\n- three", { onTask });
    const boxes = [...root.querySelectorAll<HTMLInputElement>("input")];

    boxes[1]?.click();

    expect(boxes.map((box) => box.checked)).toEqual([false, true]);
    expect(root.querySelectorAll("li")[0]?.textContent).toBe("one");
    expect(onTask).toHaveBeenCalledWith(4, false);
  });

  it("draws callouts with their title, folded or not", () => {
    const root = shown("> [!warning]- Mind **this**\n> the step\n\n> [!tip]\n> dig");

    expect(root.querySelector("details summary")?.textContent).toBe("Mind this");
    expect(root.querySelector("details")?.open).toBe(false);
    expect(root.querySelector("[role=note]")?.textContent).toBe("Tipdig");
  });

  it("keeps front matter, comments and HTML out of the elements, and counts its lines", () => {
    const root = shown("---\nstatus: open\n---\n# Garden\n\nA ==mark== %%hidden%% and `code`.[^1]\n\n[^1]: Foot");

    expect(root.querySelector("h1")?.dataset["line"]).toBe("4");
    expect(root.querySelector("mark")?.textContent).toBe("mark");
    expect(root.textContent).not.toContain("hidden");
    expect(root.textContent).not.toContain("status");
    expect(root.querySelector(".k-footnotes")?.textContent).toContain("Foot");
  });

  it("colours code once its language is loaded, and copies it whole", async () => {
    const root = shown("```python\ndef water(can):\n    return 2\n```");

    expect(root.querySelector("code")?.textContent).toBe("def water(can):\n    return 2");
    await vi.waitFor(() => expect(root.querySelector(".hljs-keyword")?.textContent).toBe("def"));
  });
});
