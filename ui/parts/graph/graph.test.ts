import { expect, it } from "vitest";
import { beginningOf, colorsOf, fitLabel, foldersApart, neighboursOf, sizeOf, type GraphNode } from "./model";

const node = (id: string, group = "", depth = 1): GraphNode => ({ id, title: id, group, depth });

it("gives the largest groups colours of their own, and the rest one", () => {
  const nodes = Array.from({ length: 12 }, (_, group) => Array.from({ length: 12 - group }, (_, at) => node(`${group}-${at}`, `g${group}`))).flat();
  const colors = colorsOf(nodes);

  expect(new Set([...colors.values()]).size).toBe(11);
  expect(colors.get("g10")).toBe(colors.get("g11"));
});

it("lays the same graph out the same, and leaves what is known in its place", () => {
  const data = { nodes: [node("A", "", 0), node("B"), node("__proto__")], edges: [{ source: "A", target: "B" }] };
  const known = new Map([["B", { x: 7, y: 8 }]]);

  expect(beginningOf(data)).toEqual(beginningOf(data));
  expect(beginningOf(data, known).get("B")).toEqual({ x: 7, y: 8 });
  expect(neighboursOf(data).get("A")).toEqual(new Set(["B"]));
  expect(sizeOf(node("A", "", 0), 0)).toBeGreaterThan(sizeOf(node("B"), 100));
});

it("tells folders apart as deep as it takes", () => {
  expect([...foldersApart(["en/A/x.md", "en/B/y.md", "en/C/z.md"]).values()]).toEqual(["en/A", "en/B", "en/C"]);
  expect([...foldersApart(["A/x.md", "B/y.md", "z.md"]).values()]).toEqual(["A", "B", ""]);
});

it("writes a label where it has room, and shortens one that has none", () => {
  const fit = (label: string, x: number) => fitLabel(label, { x, size: 5 }, 100, 3, (text) => text.length * 5);

  expect(fit("Watering", 20)).toEqual({ text: "Watering", left: 28 });
  expect(fit("Watering", 80)).toEqual({ text: "Watering", left: 32 });
  expect(fit("Watering the beds", 40)).toEqual({ text: "Watering…", left: 48 });
  expect(fit("Watering the beds", 60)).toEqual({ text: "Watering…", left: 7 });
  expect(fit("Watering the beds", -20)).toEqual({ text: "Watering the beds", left: -12 });
});
