/** The kept conversations: listed, searched, renamed, copied, exported, deleted. */

import { signal, type Signal } from "@preact/signals";
import type { Client, Reply } from "../../client";
import { allPages, resource } from "../resource";

export type Session = Reply<"get", "/sessions">["results"][number];
export type WaitingTask = Reply<"get", "/ask/waiting">["results"][number];

const PAGE = 200;
/** What the server tells at once. */
const MOST_AT_ONCE = 500;

export class Sessions {
  readonly query: Signal<string> = signal("");
  readonly list;
  /** Tasks that wait for an answer of the person, whoever began them. */
  readonly waiting;

  private shown = PAGE;

  constructor(private readonly client: Client) {
    this.list = resource(async (abort, query: string) => {
      let total = 0;
      const size = Math.min(this.shown, MOST_AT_ONCE);
      const results = await allPages(
        async (page) => {
          const found = await client.get("/sessions", { query: { ...page, ...(query ? { query } : {}) }, signal: abort });
          total = found.total;
          return found.results;
        },
        size,
        this.shown,
      );
      return { results, total };
    });
    this.waiting = resource((abort) => client.get("/ask/waiting", { signal: abort }));
  }

  async load(): Promise<void> {
    await Promise.all([this.list.load(this.query.value.trim()), this.waiting.load()]);
  }

  /** Show more of them. */
  async more(): Promise<void> {
    this.shown += MOST_AT_ONCE;
    await this.list.load(this.query.value.trim());
  }

  title(id: string): string {
    return this.list.data.value?.results.find((session) => session.id === id)?.title ?? "";
  }

  async rename(id: string, title: string): Promise<void> {
    await this.client.patch("/sessions/{session_id}", { path: { session_id: id }, body: { title } });
    await this.load();
  }

  /** Copy a conversation up to a turn, to go on from there; gives the copy's id. A title takes the place of the server's. */
  async fork(id: string, upto?: number, title = ""): Promise<string> {
    const { session } = await this.client.post("/sessions/{session_id}/fork", { path: { session_id: id }, body: upto === undefined ? {} : { upto } });
    if (title) await this.client.patch("/sessions/{session_id}", { path: { session_id: session.id }, body: { title } });
    return session.id;
  }

  /** Write a conversation as a note; gives the answer, which may be a proposal that waits. */
  async export(id: string): Promise<Readonly<Record<string, unknown>>> {
    return this.client.post("/sessions/{session_id}/export", { path: { session_id: id }, body: {} });
  }

  async delete(id: string): Promise<void> {
    await this.client.delete("/sessions/{session_id}", { path: { session_id: id } });
    await this.load();
  }
}

/** Group conversations by when they were used last. */
export function byAge(sessions: readonly Session[], now: number = Date.now()): { title: string; sessions: Session[] }[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const groups = [
    { title: "Today", from: midnight },
    { title: "Yesterday", from: midnight - day },
    { title: "Last 7 days", from: midnight - 6 * day },
    { title: "Last 30 days", from: midnight - 29 * day },
    { title: "Earlier", from: Number.NEGATIVE_INFINITY },
  ].map((group) => ({ ...group, sessions: [] as Session[] }));
  for (const session of sessions) {
    const at = new Date(session.updated).getTime();
    groups.find((group) => at >= group.from)?.sessions.push(session);
  }
  return groups.filter((group) => group.sessions.length).map(({ title, sessions: rows }) => ({ title, sessions: rows }));
}
