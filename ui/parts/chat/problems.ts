/** What can go wrong in a conversation, by kind, and the way out of each. */

import type { Problem } from "./turn";

export type ProblemKind = "offline" | "unpaired" | "setup" | "busy" | "refused" | "limit" | "model" | "gone" | "idle" | "other";

/** Ways out, in the order in which they are offered; the first is the main one. */
export type WayOut = "connect" | "again" | "settings" | "other-model" | "new" | "reload";

export interface Explained {
  kind: ProblemKind;
  title: string;
  ways: readonly WayOut[];
  /** Where in the settings it is put right. */
  section: string;
}

const KINDS: Readonly<Record<ProblemKind, Omit<Explained, "kind" | "section"> & { section?: string }>> = {
  offline: { title: "The server can't be reached", ways: ["again"] },
  unpaired: { title: "Not connected to a server", ways: ["connect", "again"] },
  setup: { title: "No model is set up yet", ways: ["settings", "again"] },
  busy: { title: "Something else is running in this conversation", ways: ["again", "new"] },
  refused: { title: "This isn't allowed", ways: ["settings"], section: "clients" },
  limit: { title: "A limit is reached", ways: ["settings", "again"], section: "limits" },
  model: { title: "The model didn't answer", ways: ["again", "other-model"] },
  gone: { title: "This conversation no longer exists", ways: ["new"] },
  idle: { title: "Nothing to do", ways: [] },
  other: { title: "That didn't work", ways: ["again"] },
};

const BY_CODE: Readonly<Record<string, ProblemKind>> = {
  offline: "offline", stopping: "offline",
  unpaired: "unpaired", unauthorized: "unpaired",
  no_model: "setup", model_name: "setup", model_key: "setup", missing_extra: "setup",
  session_busy: "busy", session_changed: "busy", too_many_turns: "busy", too_many_tasks: "busy", busy: "busy", rate_limited: "busy",
  note_hidden: "refused", model_not_allowed: "refused", read_only: "refused", tainted: "refused", needs_person: "refused", refused: "refused", web_off: "refused",
  budget_spent: "limit", turn_limit: "limit",
  no_session: "gone", nothing_to_do: "idle",
};

const OVERLOADED: Partial<Explained> = { title: "The server is busy", ways: ["again"] };
/** What a code tells more exactly than its kind does. */
const OWN: Readonly<Record<string, Partial<Explained>>> = {
  model_key: { title: "The model's key is missing or isn't accepted" },
  missing_extra: { title: "A part of Knapper isn't installed", ways: ["again"] },
  stopping: { title: "The server was stopped" },
  web_off: { title: "Web access is off", section: "web" },
  session_changed: { title: "This conversation was continued elsewhere" },
  too_many_turns: OVERLOADED, too_many_tasks: OVERLOADED, busy: OVERLOADED, rate_limited: OVERLOADED,
};

/** Say what kind of problem it is; the model's own words and the server's hint are shown beside. */
export function explain(problem: Problem, status = 0): Explained {
  const known = Object.hasOwn(BY_CODE, problem.code) ? BY_CODE[problem.code] : undefined;
  const kind = known ?? (problem.code.startsWith("model_") || ["timeout", "unreachable"].includes(problem.code) ? "model" : byStatus(status));
  return { kind, section: "models", ...KINDS[kind], ...(Object.hasOwn(OWN, problem.code) ? OWN[problem.code] : {}) };
}

function byStatus(status: number): ProblemKind {
  if (status === 403) return "refused";
  if (status === 409 || status === 429) return "busy";
  if (status === 502) return "model";
  return "other";
}

/** Divide a message of the server into ours and the words that it quotes of the model's own server. */
export function ownWords(message: string): { said: string; quoted: string } {
  const found = /^(.*?); it says: "(.*)"([^"]*)$/s.exec(message);
  return found ? { said: `${found[1] ?? ""}${found[3] ?? ""}`, quoted: found[2] ?? "" } : { said: message, quoted: "" };
}
