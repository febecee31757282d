import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ago, allPages, cost, duration, fit, fitting, Floating, keyNames, PageFloaters, Palette, partsOf, resource, Row, Rows, sentence, Shortcuts, Told, tokens, VirtualList, visibleRange } from "./index";

let root: HTMLElement;

beforeEach(() => {
  vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} });
  root = document.createElement("div");
  document.body.append(root);
});

afterEach(() => {
  render(null, root);
  document.body.replaceChildren();
  vi.unstubAllGlobals();
});

const press = (key: string, more: object = {}) => new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });

describe("a long list", () => {
  const items = Array.from({ length: 5_000 }, (_, index) => `Note ${index}`);
  const list = (selectedKey?: string) => (
    <VirtualList items={items} keyOf={(item) => item} label="Notes" rowHeight={32} selectedKey={selectedKey} row={(item, at) => <Row title={item} href="#" {...at} />} />
  );

  it("draws what is in view and little beyond", () => {
    expect(visibleRange(0, 640, 32, 5_000)).toEqual([0, 28]);
    expect(visibleRange(3_200, 640, 32, 5_000)).toEqual([92, 128]);
    expect(visibleRange(159_360, 640, 32, 5_000)).toEqual([4_972, 5_000]);
    expect(visibleRange(900, 640, 32, 0)).toEqual([0, 0]);
  });

  it("has as many rows as fit, one Tab stop, and says how long it is", () => {
    act(() => render(list(), root));

    const rows = [...root.querySelectorAll("[role=listitem]")];
    expect(rows.length).toBeGreaterThan(5);
    expect(rows.length).toBeLessThan(60);
    expect(rows[0]?.getAttribute("aria-setsize")).toBe("5000");
    expect(root.querySelectorAll("[tabindex='0']").length).toBe(1);
  });

  it("goes by the arrow keys, to its ends too", async () => {
    act(() => render(list(), root));
    const first = root.querySelector<HTMLElement>(".k-row-main");
    first?.focus();
    act(() => void first?.dispatchEvent(press("ArrowDown")));
    await vi.waitFor(() => expect(document.activeElement?.textContent).toBe("Note 1"));
    act(() => void document.activeElement?.dispatchEvent(press("End")));

    await vi.waitFor(() => expect(root.querySelector("[tabindex='0']")).not.toBeNull());
  });
});

describe("shortcuts", () => {
  it("take keys, sequences, and leave fields alone", () => {
    const shortcuts = new Shortcuts();
    const run = vi.fn();
    shortcuts.register([
      { keys: "g n", title: "Notes", group: "Go to", run: () => run("g n") },
      { keys: "n", title: "New", group: "x", run: () => run("n") },
      { keys: "?", title: "Help", group: "x", run: () => run("?") },
      { keys: "mod+k", title: "Find", group: "x", run: () => run("mod+k") },
      { keys: "shift+enter", title: "x", group: "x", run: () => run("shift+enter") },
      { keys: "shift+a", title: "All", group: "x", run: () => run("shift+a") },
      { keys: "a", title: "One", group: "x", run: () => run("a") },
    ]);
    const end = shortcuts.listen(root);
    const input = document.createElement("input");
    root.append(input);

    for (const event of [press("g"), press("n"), press("n"), press("?", { shiftKey: true }), press("k", { ctrlKey: true }), press("Enter", { shiftKey: true }), press("A", { shiftKey: true }), press("a")]) root.dispatchEvent(event);
    for (const event of [press("n"), press("?"), press("k", { ctrlKey: true })]) input.dispatchEvent(event);
    end();
    root.dispatchEvent(press("n"));

    expect(run.mock.calls.flat()).toEqual(["g n", "n", "?", "mod+k", "shift+enter", "shift+a", "a", "mod+k"]);
    expect(keyNames("mod+k")).toEqual(["Ctrl", "K"]);
    expect(keyNames("g s")).toEqual(["G", "S"]);
  });
});

describe("the palette", () => {
  it("shows what was asked for last, in the providers' order", async () => {
    const palette = new Palette();
    let answer: (rows: { id: string; title: string; run: () => void }[]) => void = () => undefined;
    palette.register(
      { id: "late", title: "Late", find: (query) => (query === "a" ? new Promise((resolve) => (answer = resolve)) : []) },
      { id: "now", title: "Now", find: (query) => fitting([{ id: "1", title: `Go ${query}`, run: () => undefined }], query) },
    );
    palette.open();
    palette.ask("a");
    expect(palette.items.map((item) => item.title)).toEqual(["Go a"]);
    palette.ask("ab");
    answer([{ id: "2", title: "stale", run: () => undefined }]);
    await new Promise((resolve) => setTimeout(resolve, 100));

    expect(palette.items.map((item) => item.title)).toEqual(["Go ab"]);
  });

  it("fits letters in their order", () => {
    expect(fit("grn", "Garden")).toBeGreaterThan(0);
    expect(fit("ngr", "Garden")).toBe(0);
    expect(fit("gard", "Garden")).toBeGreaterThan(fit("gard", "Great yard"));
  });
});

describe("what floats", () => {
  it("asks before something is done", async () => {
    HTMLDialogElement.prototype.showModal = function () { this.open = true; };
    HTMLDialogElement.prototype.close = function () { this.open = false; };
    const floaters = new PageFloaters();
    act(() => render(<Floating floaters={floaters} />, root));
    const asked = floaters.confirm({ title: "Delete it?", text: "It can't be undone.", act: "Delete", isDanger: true });
    await vi.waitFor(() => expect(root.querySelector("dialog h2")?.textContent).toBe("Delete it?"));
    act(() => [...root.querySelectorAll("button")].find((button) => button.textContent === "Delete")?.click());

    expect(await asked).toBe(true);
    await vi.waitFor(() => expect(root.querySelector("dialog")).toBeNull());
  });
});

describe("resources", () => {
  it("use the last answer only", async () => {
    const answers: ((text: string) => void)[] = [];
    const found = resource((_signal, word: string) => new Promise<string>((resolve) => answers.push((text) => resolve(word + text))));
    void found.load("a");
    const second = found.load("b");
    answers[1]?.("2");
    answers[0]?.("1");
    await second;

    expect(found.data.value).toBe("b2");
    expect(found.isLoading.value).toBe(false);
  });

  it("are drawn in parts where they are many", () => {
    const rows = Array.from({ length: 120 }, (_, at) => String(at));
    act(() => render(<Rows items={rows} keyOf={(row) => row} row={(row) => <span>{row}</span>} label="Many" />, root));

    expect([...root.querySelectorAll("ul")].map((part) => part.children.length)).toEqual([50, 50, 20]);
    expect(root.querySelectorAll(".k-rows-part")).toHaveLength(3);
    expect(partsOf([])).toEqual([]);
  });

  it("load a list page by page, until one isn't full or there are enough", async () => {
    const asked: object[] = [];
    const tell = (total: number) => (page: { limit: number; offset: number }) => {
      asked.push(page);
      return Promise.resolve(Array.from({ length: Math.max(0, Math.min(page.limit, total - page.offset)) }, (_, at) => page.offset + at));
    };

    expect(await allPages(tell(5), 2, 10)).toEqual([0, 1, 2, 3, 4]);
    expect(asked).toEqual([{ limit: 2, offset: 0 }, { limit: 2, offset: 2 }, { limit: 2, offset: 4 }]);
    expect(await allPages(tell(100), 2, 4)).toEqual([0, 1, 2, 3]);
    expect(await allPages(tell(0))).toEqual([]);
  });
});

describe("words", () => {
  it("say amounts and times as a person does", () => {
    const now = Date.parse("2026-05-05T12:00:00Z");
    expect([cost(null), cost(0), cost(0.00314), cost(1.5)]).toEqual(["–", "$0", "$0.0031", "$1.50"]);
    expect([tokens(840), tokens(12_300), tokens(1_200_000)]).toEqual(["840", "12.3k", "1.2M"]);
    expect([duration(320), duration(4_200), duration(185_000)]).toEqual(["320 ms", "4.2 s", "3 min 5 s"]);
    expect([ago(now - 5_000, now), ago(now - 300_000, now, "en"), ago(now - 90_000_000, now, "en")]).toEqual(["now", "5 min. ago", "yesterday"]);
    expect(ago("nonsense", now)).toBe("");
  });

  it("begin with a capital letter, but for a name at their start", () => {
    const shown = ["no note has that", "wait: it is busy", "done", "qwen3@http://localhost: too many requests", "ollama:qwen3 is gone", "garden.md is gone"].map(sentence);

    expect(shown).toEqual(["No note has that", "Wait: it is busy", "Done", "qwen3@http://localhost: too many requests", "ollama:qwen3 is gone", "garden.md is gone"]);
  });

  it("of the server show a command as code", () => {
    render(<Told text="is `knap serve` running?" />, root);

    expect(root.innerHTML).toBe("Is <code>knap serve</code> running?");

    render(<Told text="no file 'a`b.md' is there" />, root);

    expect(root.innerHTML).toBe("No file 'a`b.md' is there");
  });
});
