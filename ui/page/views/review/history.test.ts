import { expect, it } from "vitest";
import { History, keyOf, worksOf, type Step } from "./history";

function step(kind: Step["kind"], id: string, minute: number, more: Partial<Step> = {}): Step {
  return { kind, id, work: "s1", client: "agent", at: `2026-03-14T09:${String(minute).padStart(2, "0")}:00.000+00:00`, ...more };
}

it("tells each piece of work from its question on, though that is stored with the answer", () => {
  const steps = [
    step("undone", "c2", 9, { changes: ["c1"] }),
    step("changed", "c9", 8, { work: "c9" }),
    step("rejected", "p1/001", 8, { proposal_id: "p1" }),
    step("accepted", "c1", 7, { proposal_id: "p1" }),
    step("found", "s1/1", 5, { proposals: ["p1"] }),
    step("asked", "s1/1", 5, { text: "What grows?" }),
    step("rejected", "p1", 4, { undated: true }),
    step("proposed", "p1", 4),
  ];
  const works = worksOf(steps);

  expect(works.map((work) => [work.id, work.title])).toEqual([
    ["s1", "What grows?"],
    ["c9", ""],
  ]);
  expect(works[0]?.steps.map((one) => one.kind)).toEqual(["asked", "found", "proposed", "rejected", "accepted", "rejected", "undone"]);
  expect(new Set(steps.map(keyOf)).size).toBe(steps.length);
});

it("tells what was refused in a turn after its question, and anything else where it happened", () => {
  const turn = [step("found", "s1/1", 5), step("asked", "s1/1", 5), step("refused", "r1", 4, { times: 2 })];
  const alone = [step("refused", "r2", 6, { work: "r2" })];

  expect(worksOf([...alone, ...turn]).map((work) => work.steps.map((one) => one.kind))).toEqual([["refused"], ["asked", "found", "refused"]]);
});

it("loads earlier steps in pages, and as many again when there is news", async () => {
  const asked: unknown[] = [];
  const get = async (_: string, { query }: { query: { limit: number; before?: string } }) => {
    asked.push([query.limit, query.before]);
    return { results: Array.from({ length: query.limit }, (_, at) => step("changed", `${query.before ?? ""}${at}`, 1)), more: true, next: `${query.before ?? ""}x`, notes: ["runs are missing"] };
  };
  const history = new History({ get } as never);
  await history.loaded.load();
  for (let page = 0; page < 13; page++) history.loadMore();
  await history.loaded.load();

  expect(history.loaded.data.value).toHaveLength(560);
  expect(history.hasMore.value).toBe(true);
  expect(history.notices.value).toEqual(["runs are missing"]);
  expect(asked).toContainEqual([500, undefined]);
  expect(asked).toContainEqual([60, "x"]);
});
