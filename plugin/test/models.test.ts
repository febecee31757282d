import { describe, expect, it } from "vitest";
import type { Client } from "../../ui/client/client";
import { canKeepKey, describeKey, keepKey, type KeyRow } from "../src/models";

/** What a client was asked to put. */
async function sent(row: KeyRow, hasKeyring: boolean, key: string): Promise<unknown[]> {
  const calls: unknown[] = [];
  const put = (path: string, { body }: { body: unknown }) => Promise.resolve(void calls.push(path, body));
  await keepKey({ put } as unknown as Client, row, hasKeyring, key);
  return calls;
}

describe("a key", () => {
  it("goes into the server's keyring, or into its file where there is none or that has it", async () => {
    const row: KeyRow = { provider: "openai", place: "none" };

    expect(await sent(row, true, "k")).toEqual(["/models/keys", { provider: "openai", key: "k" }]);
    expect(await sent({ ...row, place: "keyring" }, true, "")).toEqual(["/models/keys", { provider: "openai" }]);
    expect(await sent(row, false, "k")).toEqual(["/settings", { values: { "model.openai_api_key": "k" } }]);
    expect(await sent({ ...row, place: "settings" }, true, "")).toEqual(["/settings", { values: { "model.openai_api_key": null } }]);
  });

  it("of a server's address has no place without a keyring", () => {
    const row: KeyRow = { provider: "https://box/v1", place: "none" };

    expect([canKeepKey(row, true), canKeepKey(row, false)]).toEqual([true, false]);
    expect(describeKey(row, false)).toContain("It needs a keyring");
    expect(describeKey({ ...row, place: "keyring" }, true)).toContain("Set in the keyring");
  });
});
