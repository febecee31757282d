import { expect, it } from "vitest";
import { Sessions } from "./sessions";

it("lists no question again that was answered meanwhile, when an older reply comes late", async () => {
  const replies: ((rows: object[]) => void)[] = [];
  const get = () => new Promise((resolve) => replies.push((results) => resolve({ results })));
  const { waiting } = new Sessions({ get } as never);
  const early = waiting.load();
  const late = waiting.load();
  replies[1]?.([]);
  await late;
  replies[0]?.([{ run_id: "r1", question: "Which bed?" }]);
  await early;

  expect(waiting.data.value?.results).toEqual([]);
});
