// @vitest-environment node
import { describe, expect, it, vi } from "vitest";
import { Client, converse, EventReader, Failure, fillPath, follow, queryText, type Exchange, type ServerEvent, type Transport } from "./index";

/** A page's window, as far as the client uses it. */
vi.stubGlobal("window", Object.assign(new EventTarget(), { setTimeout, clearTimeout }));

type Scripted = { status?: number; json?: unknown; pieces?: string[]; fails?: Failure };

/** Answers requests one after the other as a test says, and remembers them. */
function scripted(answers: Scripted[], canStream = true): { transport: Transport; asked: Exchange[] } {
  const asked: Exchange[] = [];
  const next = (exchange: Exchange): Scripted => {
    asked.push(exchange);
    const answer = answers.shift();
    if (!answer) throw new Failure("nothing more is scripted", "test");
    if (answer.fails) throw answer.fails;
    return answer;
  };
  const text = (answer: Scripted) => async () => JSON.stringify(answer.json ?? {});
  const transport: Transport = {
    send: async (exchange) => {
      const answer = next(exchange);
      return { status: answer.status ?? 200, header: () => null, text: text(answer), blob: async () => new Blob() };
    },
  };
  if (canStream) {
    transport.stream = async (exchange) => {
      const answer = next(exchange);
      const pieces = async function* () {
        yield* answer.pieces ?? [];
      };
      return { status: answer.status ?? 200, pieces: pieces(), text: text(answer) };
    };
  }
  return { transport, asked };
}

function clientOf(answers: Scripted[], more: { canStream?: boolean; vault?: string; onUnauthorized?: () => void } = {}) {
  const { transport, asked } = scripted(answers, more.canStream ?? true);
  const client = new Client({
    transport,
    headers: () => ({ "x-knapper-key": "k" }),
    vault: () => more.vault ?? "",
    ...(more.onUnauthorized ? { onUnauthorized: more.onUnauthorized } : {}),
  });
  return { client, asked };
}

const frame = (id: number, event: string, data: object = {}) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`;
const offline = () => new Failure("lost", "offline");

async function all(events: AsyncIterable<ServerEvent>): Promise<string[]> {
  const found: string[] = [];
  for await (const event of events) found.push(`${event.id} ${event.event}`);
  return found;
}

describe("calls", () => {
  it("put values into the path, and what else is given into the query", async () => {
    const { client, asked } = clientOf([{ json: { results: [] } }, { json: {} }], { vault: "home" });

    await client.get("/search", { query: { query: "a b" } });
    await client.get("/notes/{path}", { path: { path: "Plans/R?in & #1.md" } });

    expect(asked.map((one) => one.path)).toEqual(["/search?vault=home&query=a+b", "/notes/Plans/R%3Fin%20%26%20%231.md?vault=home"]);
    expect(asked[0]?.headers["x-knapper-key"]).toBe("k");
  });

  it("send a body with the vault, as JSON", async () => {
    const { client, asked } = clientOf([{ json: {} }], { vault: "home" });

    await client.post("/proposals/{proposal_id}/accept", { path: { proposal_id: "a/b" } });

    expect(asked[0]?.path).toBe("/proposals/a%2Fb/accept");
    expect(JSON.parse(asked[0]?.body ?? "")).toEqual({ vault: "home" });
  });

  it("fail with the server's code, hint and details", async () => {
    const { client } = clientOf([{ status: 409, json: { error: "it changed", code: "note_changed", hint: "read it again", hash: "h" } }]);

    const failure = await client.get("/proposals").catch((error: unknown) => error);

    expect(failure).toMatchObject({ message: "it changed", code: "note_changed", hint: "read it again", status: 409 });
    expect((failure as Failure).details).toMatchObject({ hash: "h" });
  });

  it.each([
    ["send it as 'Authorization: Bearer TOKEN'; `knap token` tells where it lies", "sign in again, or connect this device anew"],
    ["/openapi.json lists what there is", "the server may be of another version"],
    ["it may have been deleted; list the runs", "it may have been deleted"],
    ["list the proposals for their ids", "it may have been deleted, or is another vault's"],
    ["try again", "try again"],
  ])("fail with a hint in a person's words: %s", async (hint, shown) => {
    const { client } = clientOf([{ status: 409, json: { error: "it failed", code: "stale", hint } }]);

    await expect(client.get("/proposals")).rejects.toMatchObject({ hint: shown });
  });

  it("tell when the server doesn't know the caller", async () => {
    const onUnauthorized = vi.fn();
    const { client } = clientOf([{ status: 401, json: {} }], { onUnauthorized });

    await client.get("/proposals").catch(() => undefined);

    expect(onUnauthorized).toHaveBeenCalledOnce();
  });

  it("write paths and queries that no value breaks out of", () => {
    expect(fillPath("/notes/{path}", { path: "../x?y#z" })).toBe("/notes/../x%3Fy%23z");
    expect(fillPath("/runs/{run_id}", { run_id: "../x" })).toBe("/runs/..%2Fx");
    expect(queryText({ a: undefined, b: null, c: ["x"], d: 0, e: false })).toBe("?c=%5B%22x%22%5D&d=0&e=false");
  });
});

describe("events", () => {
  it("are said to come again as soon as a stream is open, also while nothing happens", async () => {
    const { client } = clientOf([{ fails: offline() }, { fails: offline() }, { pieces: [": nothing yet\n\n"] }]);
    const [abort, told] = [new AbortController(), [] as boolean[]];
    const onConnection = (isLost: boolean): void => {
      told.push(isLost);
      if (!isLost) abort.abort();
    };

    expect(await all(follow(client, "/events", { signal: abort.signal, onConnection }))).toEqual([]);
    expect(told).toEqual([true, false]);
  });

  it("are read whatever pieces they come in", () => {
    const text = `: still here\n\n${frame(1, "start")}id: 2\r\nevent: text\r\ndata: {"text":\r\ndata: "ä"}\r\n\r\ndata: not json\n\n`;
    for (const size of [1, 2, 3, 7, text.length]) {
      const reader = new EventReader();
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));

      expect(pieces.flatMap((piece) => reader.push(piece)).map((event) => [event.id, event.event, event.data["text"]])).toEqual([
        [1, "start", undefined],
        [2, "text", "ä"],
      ]);
    }
  });

  it("go on after a lost connection, each once", async () => {
    const { client, asked } = clientOf([
      { pieces: [frame(1, "start"), frame(2, "text")] },
      { pieces: [frame(2, "text"), frame(3, "text"), frame(4, "done"), frame(5, "text")] },
    ]);

    expect(await all(follow(client, "/chat/t/events"))).toEqual(["1 start", "2 text", "3 text", "4 done"]);
    expect(asked[1]?.headers["last-event-id"]).toBe("2");
  });

  it("are asked for again and again where nothing can stream", async () => {
    const row = (id: number, event: string) => ({ id, event, data: { type: event } });
    const { client, asked } = clientOf(
      [
        { json: { events: [row(1, "start")], last: 1, ended: false } },
        { json: { events: [], last: 1, ended: false } },
        { json: { events: [row(2, "text")], last: 2, ended: true } },
      ],
      { canStream: false },
    );

    expect(await all(follow(client, "/runs/r/events"))).toEqual(["1 start", "2 text"]);
    expect(asked.map((one) => one.path)).toEqual([0, 1, 1].map((after) => `/runs/r/events?after=${after}&wait=20`));
  });

  it("are polled once streams were refused and plain requests weren't", async () => {
    const { client } = clientOf([
      { fails: offline() },
      { json: { events: [], last: 0, ended: false } },
      { json: { events: [{ id: 1, event: "done", data: {} }], last: 1, ended: true } },
    ]);

    expect(await all(follow(client, "/runs/r/events"))).toEqual(["1 done"]);
  });

  it("throw what can't pass", async () => {
    const { client } = clientOf([{ status: 404, json: { code: "no_run", error: "no such run" } }]);

    await expect(all(follow(client, "/runs/r/events"))).rejects.toMatchObject({ code: "no_run" });
  });

  it("end when they are left", async () => {
    const leaving = new AbortController();
    const { client } = clientOf([{ pieces: [frame(1, "start"), frame(2, "text")] }]);
    const found: number[] = [];

    for await (const event of follow(client, "/events", { signal: leaving.signal, isLast: () => false })) {
      found.push(event.id);
      if (event.id === 2) leaving.abort();
    }

    expect(found).toEqual([1, 2]);
  });

  it("end with the last one, though the connection stays open", async () => {
    const open = async function* () {
      yield frame(1, "start", { turn_id: "t1" }) + frame(2, "done");
      await new Promise(() => undefined);
    };
    const transport: Transport = {
      send: () => Promise.reject(new Failure("nothing is polled", "test")),
      stream: async () => ({ status: 200, pieces: open(), text: async () => "" }),
    };
    const client = new Client({ transport, headers: () => ({}), vault: () => "" });

    expect(await all(converse(client, "/chat/stream", "/chat", { message: "?" }))).toEqual(["1 start", "2 done"]);
    expect(await all(follow(client, "/runs/r/events", { isLast: (event) => event.event === "done" }))).toEqual(["1 start", "2 done"]);
  });

  it("of a turn go on by its id", async () => {
    const { client, asked } = clientOf([
      { pieces: [frame(1, "start", { turn_id: "t1" }), frame(2, "text")] },
      { pieces: [frame(3, "done")] },
    ]);

    expect(await all(converse(client, "/chat/stream", "/chat", { message: "?" }))).toEqual(["1 start", "2 text", "3 done"]);
    expect(asked[1]?.path).toBe("/chat/t1/events");
    expect(asked[1]?.headers["last-event-id"]).toBe("2");
  });

  it("of a turn are asked for where answers can't come in pieces", async () => {
    const begun = { events: [{ id: 1, event: "start", data: { turn_id: "t1" } }], last: 1, ended: false };
    const rest = { events: [{ id: 2, event: "text", data: {} }, { id: 3, event: "done", data: {} }], last: 3, ended: true };
    const { client, asked } = clientOf([{ json: begun }, { json: rest }], { canStream: false });

    expect(await all(converse(client, "/chat/stream", "/chat", { message: "?" }))).toEqual(["1 start", "2 text", "3 done"]);
    expect(JSON.parse(asked[0]?.body ?? "")).toEqual({ message: "?", wait: 0 });
    expect(asked[1]?.path).toBe("/chat/t1/events?after=1&wait=20");
  });
});
