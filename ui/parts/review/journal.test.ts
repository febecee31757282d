import { expect, it } from "vitest";
import { Journal } from "./journal";

it("knows how many changes there are, beyond those that it loads", async () => {
  const get = async (_: string, { query }: { query: { limit: number; offset: number } }) => ({
    results: Array.from({ length: query.limit }, (_, at) => ({ id: `c${query.offset + at}`, at: new Date().toISOString(), client: "page", files: [] })),
    total: 5_321,
  });
  const journal = new Journal({ get } as never);
  await journal.loaded.load();

  expect(journal.loaded.data.value).toHaveLength(2_000);
  expect(journal.total.value).toBe(5_321);
});
