// @vitest-environment jsdom
/** How a server is reached from a desktop and from a phone, where the token lies, and which way events come. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";

type Asked = { url: string; method?: string; headers?: Record<string, string>; body?: string };
const asked: string[] = [];
let answer: (asked: Asked) => { status: number; json: unknown } | Promise<never> = () => ({ status: 200, json: {} });
vi.mock("obsidian", () => ({
  TFile: class {},
  Platform: { isMobile: false, isIosApp: false, isAndroidApp: false, isMacOS: false, isWin: false },
  requestUrl: async (given: Asked) => {
    asked.push(`${given.method ?? "GET"} ${given.url}`);
    const { status, json } = await answer(given);
    const text = JSON.stringify(json);
    return { status, text, json, headers: {}, arrayBuffer: new ArrayBuffer(0) };
  },
}));
const { Platform, TFile } = await import("obsidian");
const { Connection, describeState } = await import("../src/connection");
const { checkAddress } = await import("../src/transport");

const HOME = "http://127.0.0.1:25627";
const AWAY = "https://box.tail1234.ts.net";
const TOKEN = "knp_secret";
let stored = new Map<string, unknown>();
let secrets = new Map<string, string>();
let open: InstanceType<typeof Connection>[] = [];
/** Notes of the vault that is open. */
let here = new Set<string>();
const NOTES = ["Garden.md", "Rain.md", "Plans/May.md"];

function connection(): InstanceType<typeof Connection> {
  const app = {
    vault: { getAbstractFileByPath: (path: string) => (here.has(path) ? new (TFile as new () => object)() : null) },
    loadLocalStorage: (key: string) => stored.get(key) ?? null,
    saveLocalStorage: (key: string, value: unknown) => void stored.set(key, value),
    secretStorage: { getSecret: (id: string) => secrets.get(id) ?? null, setSecret: (id: string, secret: string) => void secrets.set(id, secret) },
  };
  const made = new Connection(app as never);
  open.push(made);
  return made;
}

/** A server that tells one event, and is quiet then. */
function serve(vault = "notes"): void {
  answer = ({ url, method }) => {
    const path = new URL(url).pathname;
    if (path === "/pair") return { status: 201, json: { name: "Obsidian", vault: "notes", token: TOKEN, product: "knapper" } };
    if (path === "/tools/find_notes") return { status: 200, json: { results: NOTES.map((note) => ({ path: note })) } };
    if (path === "/clients") return { status: 200, json: { results: [{ name: "Obsidian", vault }] } };
    if (path === "/events" && url.includes("after=0")) return { status: 200, json: { events: [{ id: 1, event: "start", data: { waiting: [] } }], ended: false } };
    return method === "DELETE" ? { status: 200, json: {} } : new Promise<never>(() => undefined);
  };
}

beforeEach(() => {
  [stored, secrets, open, here] = [new Map(), new Map(), [], new Set(NOTES)];
  asked.length = 0;
  Object.assign(Platform, { isMobile: false });
  serve();
});
afterEach(() => {
  for (const one of open) one.stop();
  vi.unstubAllGlobals();
});

it("goes to this computer in plain, to any other by HTTPS alone, and from a phone never in plain", () => {
  const plain = [`${HOME}/`, "http://localhost:1", "http://[::1]:25627"];
  const refused = ["http://192.168.1.4:25627", "http://127.0.0.1.evil.example", "http://127.0.0.1@evil.example", "https://a@evil.example", `${AWAY}/path`, "ftp://x", ""];

  expect(plain.map((one) => checkAddress(one, false))).toEqual([HOME, ...plain.slice(1)]);
  expect(plain.map((one) => checkAddress(one, true))).toEqual([undefined, undefined, undefined]);
  expect([false, true].map((isPhone) => checkAddress(` ${AWAY}/ `, isPhone))).toEqual([AWAY, AWAY]);
  for (const one of refused) for (const isPhone of [false, true]) expect(checkAddress(one, isPhone), one).toBeUndefined();
});

it("keeps the token in the secret storage of this device, and forgets it when it is told to", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
  const made = connection();
  await made.pair(HOME, " ABCD-EFGH ");
  await vi.waitFor(() => expect(made.isReady).toBe(true));

  expect([...secrets.values()]).toEqual([TOKEN]);
  expect(JSON.stringify([...stored.values()])).not.toContain(TOKEN);
  await made.unpair();
  expect([...secrets.values()]).toEqual([""]);
  expect(made.pairing).toBeNull();
  expect(asked.at(-1)).toBe(`DELETE ${HOME}/clients/Obsidian`);
});

it("polls where fetch is denied, as on phones and in newer versions of Electron", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("denied")));
  Object.assign(Platform, { isMobile: true });
  const made = connection();
  await made.pair(AWAY, "ABCD-EFGH");
  await vi.waitFor(() => expect(made.state).toEqual({ kind: "ready", streams: false }));

  await vi.waitFor(() => expect(asked.at(-1)).toMatch(/\/events\?after=1&wait=\d+$/));
  expect(asked.filter((one) => one.includes("/events"))).toHaveLength(2);
});

it("streams where fetch reaches the server, and asks nothing else", async () => {
  const fetched: [string, string | undefined][] = [];
  const streaming = (url: string, { headers }: { headers: Record<string, string> }) => {
    fetched.push([new URL(url).pathname, headers["authorization"]]);
    const text = 'id: 1\nevent: start\ndata: {"waiting": []}\n\n';
    const body = new ReadableStream({ start: (into) => into.enqueue(new TextEncoder().encode(text)) });
    return Promise.resolve({ status: 200, body, text: () => Promise.resolve(""), headers: new Headers() });
  };
  vi.stubGlobal("fetch", streaming);
  const made = connection();
  const heard: string[] = [];
  made.on("news", ({ event }) => heard.push(event));
  await made.pair(HOME, "ABCD-EFGH");
  await vi.waitFor(() => expect(heard).toEqual(["start"]));

  expect(made.state).toEqual({ kind: "ready", streams: true });
  expect(fetched).toEqual([["/health", undefined], ["/events", `Bearer ${TOKEN}`]]);
  expect(asked.filter((one) => one.includes("/events"))).toEqual([]);
});

it("says that a server uses the pairing for another vault, and shows nothing of it", async () => {
  serve("diary");
  const made = connection();
  await made.pair(HOME, "ABCD-EFGH");
  await vi.waitFor(() => expect(made.state).toEqual({ kind: "other_vault", vault: "diary" }));

  expect(made.client).toBeNull();
});

it("doesn't take whatever answers at an address for Knapper", async () => {
  answer = () => ({ status: 201, json: { name: "Obsidian", vault: "notes", token: "x", product: "other" } });
  const made = connection();

  await expect(made.pair(HOME, "ABCD-EFGH")).rejects.toMatchObject({ code: "other_program" });
  expect([secrets.size, stored.size]).toEqual([0, 0]);
});

it("tells another vault by its notes and not by its name, and stays away from it until somebody says otherwise", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
  here = new Set(["Garden.md"]);
  const made = connection();
  await made.pair(HOME, "ABCD-EFGH");
  await vi.waitFor(() => expect(made.state).toEqual({ kind: "other_vault", vault: "notes", missing: ["Rain.md", "Plans/May.md"] }));

  expect(describeState(made.state)).toContain("Rain.md, Plans/May.md and others of its notes aren't here");
  expect(made.client).toBeNull();
  expect(asked.some((one) => one.includes("/events"))).toBe(false);
  made.trustVault();
  await vi.waitFor(() => expect(made.isReady).toBe(true));
});

it("looks for the server's notes once, and takes a vault that is synced in part for the same", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
  here = new Set(["Garden.md", "Rain.md"]);
  const made = connection();
  await made.pair(HOME, "ABCD-EFGH");
  await vi.waitFor(() => expect(made.isReady).toBe(true));
  made.start();
  await vi.waitFor(() => expect(made.isReady).toBe(true));

  expect(asked.filter((one) => one.includes("/tools/find_notes"))).toHaveLength(1);
});
