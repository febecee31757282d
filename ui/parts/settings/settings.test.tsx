// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { Client, type Exchange } from "../../client";
import { PageFloaters } from "../menus";
import { HostContext, type Host } from "../host";
import { Shortcuts } from "../keys";
import { missingParts, progressText } from "./indexing";
import {
  countdown, failureTitle, groupsOf, GROUPS, keyPlace, qrPath, readInput, readModel, rightsLines, sourceOf, switchWords, tokenText, trialHint, valueText, whyFixed, writeModel,
  type ProgramRow, type SettingRow,
} from "./model";
import { SettingField } from "./row";
import { settingsOfServer, SettingsStore } from "./store";
import { share } from "./usage";

function setting(given: Partial<SettingRow> = {}): SettingRow {
  return { name: "agents.link_depth", doc: "How many links.", kind: "count", value: 2, default: 2, least: 0, most: 3, source: "default", secret: false, is_set: false, savable: true, restart: false, ...given };
}

test("a number is read with its range, and what is none is told at once", () => {
  expect(readInput(setting(), " 3 ")).toEqual({ value: 3 });
  expect(readInput(setting({ most: 2_000_000 }), "1,000 000")).toEqual({ value: 1_000_000 });
  for (const text of ["", "x", "-1", "1.5", "1e3", "0x2", "９"]) expect(readInput(setting(), text)).toEqual({ problem: "Enter a whole number: 0 to 3." });
  expect(readInput(setting(), "4")).toEqual({ problem: "4 is out of range: 0 to 3." });
});

test("texts, addresses and lists are read as the file has them", () => {
  expect(readInput(setting({ kind: "text" }), "  de ")).toEqual({ value: "de" });
  expect(readInput(setting({ kind: "verbatim" }), "query: ")).toEqual({ value: "query: " });
  expect(readInput(setting({ kind: "text" }), "a\nb")).toHaveProperty("problem");
  expect(readInput(setting({ kind: "texts" }), " A/ \n\n B/\r\n")).toEqual({ value: ["A/", "B/"] });
  expect(readInput(setting({ kind: "url" }), "http://localhost:1/v1")).toEqual({ value: "http://localhost:1/v1" });
  expect(readInput(setting({ kind: "url" }), "")).toEqual({ value: "" });
  for (const text of ["javascript:alert(1)", "ftp://host", "localhost:1", "http://", "http://a b"]) expect(readInput(setting({ kind: "url" }), text)).toHaveProperty("problem");
});

test("a source is told by name, and a variable keeps a setting from being changed here", () => {
  expect(sourceOf(setting({ source: "/home/me/.config/knapper/config.toml:12" }))).toEqual({ kind: "file", text: "From config.toml, line 12" });
  expect(sourceOf(setting({ source: "C:\\Users\\me\\config.toml:3" }))).toEqual({ kind: "file", text: "From config.toml, line 3" });
  expect(sourceOf(setting({ source: "KNAP_MODEL" }))).toEqual({ kind: "variable", text: "From the environment variable KNAP_MODEL" });
  expect(sourceOf(setting({ source: "/home/me/.env:2" })).kind).toBe("variable");
  expect(sourceOf(setting({ source: "--vault" })).kind).toBe("flag");
  expect(whyFixed(setting({ source: "KNAP_MODEL" }))).toContain("unset it");
  expect(whyFixed(setting({ savable: false }))).toContain("configuration file");
  expect(whyFixed(setting())).toBe("");
});

test("two words are a switch, other choices aren't", () => {
  expect(switchWords(setting({ kind: "choice", choices: ["off", "on"] }))).toEqual({ off: "off", on: "on" });
  expect(switchWords(setting({ kind: "choice", choices: ["no", "yes"] }))).toEqual({ off: "no", on: "yes" });
  expect(switchWords(setting({ kind: "choice", choices: ["auto", "off", "on"] }))).toBeNull();
  expect(valueText(setting({ kind: "choice", choices: ["no", "yes"] }), "yes")).toBe("on");
  expect(valueText(setting({ name: "model.timeout_s" }), 300)).toBe("300 s");
  expect(valueText(setting({ kind: "texts" }), [])).toBe("none");
  expect(valueText(setting({ name: "search.fusion" }), "convex")).toBe("Weighted sum (convex)");
  expect(valueText(setting({ name: "web.provider" }), "brave")).toBe("Brave");
  expect(valueText(setting({ name: "rerank.kind" }), "constructor")).toBe("constructor");
});

test("a model's name is taken apart and put together as the server reads it", () => {
  for (const name of ["openai:gpt-5", "ollama:qwen3:8b", "openrouter:a/b", "tiny@http://127.0.0.1:8080/v1"]) expect(writeModel(readModel(name))).toEqual({ name });
  expect(readModel("tiny", "http://h/v1")).toEqual({ provider: "compatible", name: "tiny", address: "http://h/v1" });
  expect(readModel("")).toEqual({ provider: "", name: "", address: "" });
  expect(writeModel({ provider: "openai", name: " ", address: "" })).toHaveProperty("field", "name");
  expect(writeModel({ provider: "openai", name: "a b", address: "" })).toHaveProperty("field", "name");
  expect(writeModel({ provider: "compatible", name: "a", address: "http://user:key@host/v1" })).toHaveProperty("field", "address");
  expect(writeModel({ provider: "compatible", name: "a", address: "javascript:x" })).toHaveProperty("field", "address");
  expect(keyPlace(readModel("ollama:qwen3"))).toBeNull();
  expect(keyPlace(readModel("anthropic:claude"))).toEqual({ provider: "anthropic", setting: "model.anthropic_api_key" });
  expect(keyPlace(readModel("tiny@http://h/v1/"))?.provider).toBe("http://h/v1");
  expect(failureTitle("model_key")).toContain("key");
  expect(trialHint({ code: "model_key", hint: "`knap models key openai` stores one" })).toBe("Enter the provider's key below, under Keys, then test again.");
  expect(trialHint({ code: "timeout", hint: "raise model.timeout_s" })).toBe("raise model.timeout_s");
  expect(failureTitle("something new")).toBe("The model doesn't answer");
});

test("every setting stands in one group, and what the server has besides stands at the end", () => {
  const names = Object.values(GROUPS).flat().flatMap((group) => group.names);
  expect(new Set(names).size).toBe(names.length);
  const last = groupsOf("about", [setting(), setting({ name: "new.one" }), setting({ name: "model.name" })]).at(-1);
  expect(last).toEqual({ title: "Others", names: ["new.one"] });
  expect(groupsOf("nowhere", [])).toEqual([]);
});

const RIGHTS: ProgramRow["rights"] = { is_read_only: false, capabilities: ["add", "create"], scope: "linked", small: "apply", large: "propose", max_files: 5, write: ["Inbox/"], read_only: [], read: [], hidden: ["Private/"], vaults: [] };

test("rights are told in a few lines", () => {
  const program: ProgramRow = { name: "reader", kind: "named", is_configured: true, credential: "own", last_used: null, rights: RIGHTS };
  expect(rightsLines(program)).toEqual([
    "Small changes are applied, others proposed",
    "May not: delete, move, navigate, properties",
    "Changes only the open note and those it links to",
    "Changes only: Inbox/",
    "Can't read: Private/",
  ]);
  expect(rightsLines({ ...program, rights: { ...RIGHTS, is_read_only: true, write: [], hidden: [] } })).toEqual(["Can read only"]);
  expect(tokenText({ ...program, name: "cli", credential: "none" })).toBe("At the command line");
  expect(tokenText({ ...program, credential: "none" })).toContain("can't connect");
  for (const name of ["__proto__", "constructor"]) expect(tokenText({ ...program, name, credential: "none" })).toContain("can't connect");
});

test("what is missing of the index is told with its reason", () => {
  const status = { built: "", chunks: 5, embedded: 3, files: 2, index_incomplete: false, indexing: false, embedding: false, model: "m", notes: 2, pending: 2, problems: 1, replaced_model: "", size_bytes: 1, skipped: [], stale: 0, unchecked: false, success: true, vault: "v" };
  expect(missingParts(status)).toHaveLength(2);
  expect(missingParts({ ...status, replaced_model: "old" })[0]).toContain("replaced old");
  expect(missingParts({ ...status, pending: 0, problems: 0 })).toEqual([]);
  expect(missingParts({ ...status, model: "", problems: 0 })[0]).toContain("off");
  expect(missingParts({ ...status, embedding: true })[0]).toBe("2 of 5 passages have no embedding yet, so they are found by words only. Embeddings are being computed right now.");
  expect(missingParts({ ...status, watch_failed: "2026-11-30T12:00:00+00:00" })[0]).toMatch(/^Following changes has failed since Nov 30, 2026/);
  expect(missingParts({ ...status, index_incomplete: true, notes: 0 })[0]).toContain("nothing can be found");
  const whole = { ...status, pending: 0, problems: 0 };
  expect(missingParts({ ...whole, stale: 3 })).toEqual(["3 changed files aren't in the index yet; “Update now” takes them in, and a running “knap watch” or server does so by itself."]);
  expect(missingParts({ ...whole, stale: 1, indexing: true })).toEqual(["1 changed file isn't in the index yet, which is being written right now."]);
  expect(missingParts({ ...whole, unchecked: true })[0]).toContain("Not every file could be checked");
  expect(missingParts({ ...whole, index_incomplete: true, unchecked: true })).toHaveLength(1);
  expect(progressText({ phase: "read", done: 120, total: 2_000 })).toBe("Reading notes: 120 of 2,000");
  expect(progressText({ phase: "scan", done: 0, total: 0 })).toBe("Scanning the vault…");
  expect([share(1, null), share(5, 10), share(20, 10), share(-1, 10)]).toEqual([null, 0.5, 1, 0]);
});

test("a QR code is one outline, and the time runs down", () => {
  expect(qrPath(["101", "010", "011"])).toEqual({ side: 3, path: "M0 0h1v1h-1zM2 0h1v1h-1zM1 1h1v1h-1zM1 2h2v1h-2z" });
  expect([countdown(120_000), countdown(65_200), countdown(900), countdown(-5)]).toEqual(["2:00", "1:06", "0:01", "0:00"]);
});

async function shown(row: SettingRow, answer: (exchange: Exchange) => { status: number; body: unknown }) {
  const sent: unknown[] = [];
  const client = new Client({
    headers: () => ({}),
    transport: {
      send: (exchange) => {
        sent.push(JSON.parse(exchange.body ?? "null"));
        const { status, body } = answer(exchange);
        return Promise.resolve({ status, header: () => null, text: () => Promise.resolve(JSON.stringify(body)), blob: () => Promise.resolve(new Blob()) });
      },
    },
  });
  const host: Host = { client, floaters: new PageFloaters(), shortcuts: new Shortcuts(), open: () => undefined, href: () => undefined, copy: () => Promise.resolve() };
  const store = new SettingsStore(settingsOfServer(client));
  store.settings.set({ config_file: "", settings: [row] });
  const root = document.createElement("div");
  document.body.append(root);
  const Drawn = () => <SettingField store={store} row={store.row(row.name) ?? row} />;
  await act(() => render(<HostContext.Provider value={host}><Drawn /></HostContext.Provider>, root));
  return { root, store, sent };
}

test("the server's word stands beside the field, with its hint, and hostile text is text", async () => {
  const hostile = `<img src=x onerror="boom()">`;
  const { root, sent } = await shown(setting({ kind: "text", name: "audio.language", value: "", default: "", doc: hostile }), () => ({ status: 422, body: { error: hostile, code: "config_invalid", hint: "try de" } }));
  const input = root.querySelector("input") as HTMLInputElement;
  await act(async () => {
    input.value = "x";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    await Promise.resolve();
  });
  await act(() => new Promise((resolve) => setTimeout(resolve)));
  expect(sent).toEqual([{ values: { "audio.language": "x" } }]);
  expect(root.querySelector("[role=alert]")?.textContent).toBe(`${hostile}. Try de.`);
  expect(root.querySelector("img")).toBeNull();
});

test("a key that was saved is nowhere in the document", async () => {
  const key = "sk-nobody-is-told";
  const row = setting({ name: "web.api_key", kind: "text", secret: true, value: null, default: null });
  const { root } = await shown(row, () => ({ status: 200, body: { success: true, config_file: "", settings: [{ ...row, is_set: true, source: "/c/config.toml:2" }] } }));
  const input = root.querySelector("input") as HTMLInputElement;
  expect(input.type).toBe("password");
  await act(() => {
    input.value = key;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await act(async () => {
    root.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await new Promise((resolve) => setTimeout(resolve));
  });
  expect(root.innerHTML).not.toContain(key);
  expect(input.value).toBe("");
});
