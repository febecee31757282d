import { describe, expect, it } from "vitest";
import { afterEvent, changedLimits, comparedParts, fileName, isGoing, isWeak, limitsText, spentText, timelineOf, treeRows, workMs, type Run, type RunNode } from "./model";

const T0 = Date.parse("2026-03-10T12:00:00Z");
const at = (seconds: number) => new Date(T0 + seconds * 1_000).toISOString();
const span = (doing: string, from: number, to: number | null) => ({ doing, started: at(from), ended: to === null ? null : at(to) });
const node = (id: string, more: Partial<RunNode> = {}): RunNode => ({
  id,
  parent: id === "root" ? "" : id.includes(".") ? id.slice(0, id.lastIndexOf(".")) : "root",
  title: `Part ${id}`,
  depth: 0,
  state: "done",
  reason: "",
  cached: false,
  children: [],
  score: 0.9,
  tier: "",
  citation_count: 0,
  tokens: 0,
  cost_usd: null,
  spans: [],
  ...more,
});
const run = (...nodes: RunNode[]) => ({ id: "r", nodes, node_count: nodes.length, checkpoints: [], state: "running", is_live: true, cached: 0, usage: { total_tokens: 0 } }) as unknown as Run;
const event = (name: string, data: object) => ({ id: 1, event: name, data: { ...data, type: name } as Record<string, unknown> });

describe("the tree", () => {
  const nodes = [node("root", { children: ["2", "1"] }), node("1"), node("2", { children: ["2.1"] }), node("2.1")];

  it("stands in the order of the plan, with what is folded left out", () => {
    expect(treeRows(nodes, new Set()).map((row) => [row.node.id, row.depth, row.isExpanded])).toEqual([["root", 0, true], ["2", 1, true], ["2.1", 2, undefined], ["1", 1, undefined]]);
    expect(treeRows(nodes, new Set(["2"])).map((row) => row.node.id)).toEqual(["root", "2", "1"]);
  });

  it("survives parts that name each other, and parents that aren't told yet", () => {
    expect(treeRows([node("1", { parent: "2", children: ["2"] }), node("2", { parent: "1", children: ["1"] })], new Set())).toEqual([]);
    expect(treeRows([node("3.1", { parent: "3" })], new Set()).map((row) => row.node.id)).toEqual(["3.1"]);
  });

  it("names what found too little", () => {
    expect([node("1"), node("2", { score: 0.2 }), node("3", { tier: "B" }), node("4", { score: null })].map(isWeak)).toEqual([false, true, true, false]);
  });
});

describe("the timeline", () => {
  it("has all parts on one axis", () => {
    const { ms, bars, breaks } = timelineOf([node("root", { spans: [span("planning", 0, 2), span("joining", 8, 10)] }), node("1", { spans: [span("retrieving", 2, 6), span("answering", 6, 8)] })], T0);

    expect(ms).toBe(10_000);
    expect(breaks).toEqual([]);
    expect(bars.get("1")?.map((bar) => [bar.left, bar.width])).toEqual([[20, 40], [60, 20]]);
    expect(bars.get("root")?.[1]?.text).toBe("Combining the answers: 2 s");
  });

  it("cuts out the time between the end of a run and its resumption", () => {
    const { ms, bars, breaks } = timelineOf([node("1", { spans: [span("answering", 0, 10), span("answering", 90_000, 90_010)] })], T0);

    expect(ms).toBe(20_000);
    expect(breaks.map((one) => one.text)).toEqual(["1499 min 50 s"]);
    const [first, second] = bars.get("1") ?? [];
    expect(first?.width).toBeGreaterThan(45);
    expect((second?.left ?? 0) + (second?.width ?? 0)).toBeCloseTo(100);
  });

  it("goes on to now where something lasts, and is empty before anything began", () => {
    const going = node("1", { state: "running", spans: [span("waiting", 0, 5), span("answering", 5, null)] });

    expect(timelineOf([going], T0 + 10_000).ms).toBe(10_000);
    expect(workMs(going, T0 + 10_000)).toBe(5_000);
    expect(timelineOf([node("1")], T0)).toEqual({ ms: 0, bars: new Map([["1", []]]), breaks: [] });
  });
});

describe("events", () => {
  it("change a part, add one, and leave the others as they are", () => {
    const before = run(node("root"), node("1", { state: "running" }));
    const after = afterEvent(afterEvent(before, event("node", { node: node("1", { cached: true }) })), event("node", { node: node("2") }));

    expect(after.nodes.map((one) => one.id)).toEqual(["root", "1", "2"]);
    expect([after.node_count, after.cached]).toEqual([3, 1]);
    expect(after.nodes[0]).toBe(before.nodes[0]);
    expect(afterEvent(before, event("unheard", {}))).toBe(before);
  });

  it("never show fewer tokens of the run than of its parts", () => {
    const after = afterEvent(afterEvent(run(node("root")), event("node", { node: node("1", { tokens: 240 }) })), event("node", { node: node("2", { tokens: 60, cached: true }) }));

    expect(after.usage.total_tokens).toBe(240);
  });

  it("tell what is waited for until something goes on", () => {
    const waiting = afterEvent(run(), event("notice", { text: "trying again in 3 s (1 of 2): the model is busy" }));
    expect(waiting.notice).toBe("trying again in 3 s (1 of 2): the model is busy");
    expect(afterEvent(waiting, event("node", { node: node("1") })).notice).toBe("");
  });

  it("put questions there, once, and take them away when they are answered", () => {
    const asked = { node_id: "1", id: "q", question: "Where?", options: ["skip"], answer: "", unattended: false };
    const open = afterEvent(afterEvent(run(), event("checkpoint", asked)), event("checkpoint", asked));

    expect(open.checkpoints.length).toBe(1);
    expect(afterEvent(open, event("checkpoint", { ...asked, answer: "there" })).checkpoints).toEqual([]);
    expect(afterEvent(open, event("checkpoint", { ...asked, unattended: true })).checkpoints).toEqual([]);
  });
});

describe("words", () => {
  it("tell what was used and allowed", () => {
    expect(spentText({ total_tokens: 12_300, requests: 4, cost_usd: 0.12 }, 1_000_000)).toBe("12.3k tokens of 1M · 4 requests · $0.12");
    expect(spentText({ input_tokens: 1, output_tokens: 2, requests: 0, cost_usd: null })).toBe("3 tokens");
    expect(limitsText({ depth: 3, nodes: 50, seconds: 90, tokens: 0, cents: 1, parallel: 4 })).toBe("3 levels, 50 parts, 1.5 minutes, unlimited tokens, 1 cent");
    expect(isGoing({ state: "running", is_live: false })).toBe(false);
  });

  it("make a file's name of any task", () => {
    expect(fileName("Compare α/β: <b>now</b>?")).toBe("Compare α β b now b");
    expect(fileName("../..")).toBe("Run");
    expect(fileName("x".repeat(200)).length).toBe(60);
  });

  it("keep only limits that were changed to numbers", () => {
    expect(changedLimits({ nodes: 50, depth: 3 }, { nodes: "60", depth: "3", tokens: "", minutes: "x" })).toEqual({ nodes: 60 });
  });
});

describe("two runs", () => {
  it("stand beside each other by their parts' titles", () => {
    const one = run(node("root"), node("1", { title: "Alpha grows?" }), node("2", { title: "Only here" }));
    const other = run(node("root"), node("1", { title: "New" }), node("2", { title: "alpha  grows?" }));

    expect(comparedParts(one, other).map((row) => [row.title, row.one?.id, row.other?.id])).toEqual([
      ["The whole task", "root", "root"],
      ["Alpha grows?", "1", "2"],
      ["Only here", "2", undefined],
      ["New", undefined, "1"],
    ]);
  });
});
