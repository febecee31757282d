/** What others may ask of the plugin: addresses of `obsidian://knapper`, and Obsidian's command line. */

import type { CliData, CliFlags, ObsidianProtocolData } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { describeFailure } from "./connection";
import type KnapperPlugin from "./main";
import { PairDialog } from "./pairing";

const MAX_TEXT = 10_000;
const MAX_HITS = 100;
const MAX_LINE = 200;

/** Take addresses and commands from outside. */
export function registerOutside(plugin: KnapperPlugin): void {
  plugin.registerObsidianProtocolHandler("knapper", (said) => void openAddress(plugin, said));
  const add = (name: string, description: string, flags: CliFlags | null, work: (given: CliData) => Promise<string>) =>
    plugin.registerCliHandler(name, description, flags, (given) => work(given).then(printable, (error: unknown) => `Error: ${printable(describeFailure(failureOf(error)))}`));
  const id = { id: { value: "<id>", description: "Id of the proposal, as knapper:pending lists it", required: true } };
  add("knapper", "Say whether Knapper is connected, and how much waits", null, () => Promise.resolve(standing(plugin)));
  add("knapper:ask", "Ask about the notes; the answer cites its lines", { question: { value: "<text>", description: "What to ask", required: true }, note: { value: "<path>", description: "The note it is about" } }, (given) => ask(plugin, given));
  add("knapper:search", "Search the notes by words and meaning", { query: { value: "<text>", description: "What to look for", required: true }, limit: { value: "<number>", description: "How many hits (default: 10)" } }, (given) => search(plugin, given));
  add("knapper:pending", "List changes waiting for a decision", null, () => pending(plugin));
  add("knapper:accept", "Accept a proposal", id, (given) => decide(plugin, "accept", given["id"] ?? ""));
  add("knapper:reject", "Reject a proposal", id, (given) => decide(plugin, "reject", given["id"] ?? ""));
  add("knapper:undo", "Undo the last change, or the one that is named, or all of a run", { id: { value: "<id>", description: "Id of the change" }, run: { value: "<id>", description: "Id of the run" } }, (given) => undo(plugin, given));
}

/**
 * Open what an address names. Any page of the web can have such an address followed, so it only shows: a question is written
 * into the box and not sent, and nothing is decided.
 */
async function openAddress(plugin: KnapperPlugin, said: ObsidianProtocolData): Promise<void> {
  const get = (name: string): string => (said[name] ?? "").slice(0, MAX_TEXT);
  switch (said["open"]) {
    case "chat":
      return plugin.openChat({ ...(said["note"] === undefined ? {} : { note: get("note") }), text: get("text") });
    case "search":
      return plugin.openSearch(get("query"));
    case "related":
      return plugin.openSearch("", "related");
    case "pending":
      return get("proposal") ? plugin.showProposal(get("proposal")) : plugin.openReview("waiting");
    case "changes":
      return plugin.openReview("changes");
    case "runs":
      return plugin.openRun(get("run"));
    case "settings":
      return plugin.openSettings();
    default:
      new PairDialog(plugin, { address: get("address"), code: get("code") }).open();
  }
}

function standing(plugin: KnapperPlugin): string {
  const { connection, waiting } = plugin;
  return `${connection.isReady ? `Connected with ${connection.pairing?.address ?? "a server"}` : `Not connected (${connection.state.kind})`}. ${waiting.count} pending.`;
}

async function ask(plugin: KnapperPlugin, { question = "", note }: CliData): Promise<string> {
  const reply = await plugin.host.client.post("/chat", { body: { message: question, ...(note ? { active_file: note } : {}) } });
  const cited = (reply.citations as unknown as { path: string; start_line: number; end_line: number }[]).map((one) => `${one.path}:${one.start_line}-${one.end_line}`);
  const proposed = (reply.proposals as unknown as { proposal_id?: string }[]).map((one) => `Proposed: ${one.proposal_id ?? ""}`);
  return [reply.response, ...(reply.question?.question ? [reply.question.question] : []), ...cited, ...proposed].join("\n");
}

async function search(plugin: KnapperPlugin, { query = "", limit = "10" }: CliData): Promise<string> {
  const wanted = Math.min(Math.max(Number(limit) || 10, 1), MAX_HITS);
  const { results } = await plugin.host.client.raw<{ results: { source: string; start_line?: number; content?: string }[] }>("GET", "/search", { query: { query, limit: wanted } });
  return results.map((hit) => `${hit.source}:${hit.start_line ?? 1}  ${(hit.content ?? "").replace(/\s+/g, " ").trim().slice(0, MAX_LINE)}`).join("\n") || "Nothing found.";
}

async function pending({ waiting }: KnapperPlugin): Promise<string> {
  const open = waiting.rows.filter((row) => row.kind === "proposal");
  await Promise.all(open.filter((row) => !waiting.proposals.has(row.id)).map((row) => waiting.load(row.id)));
  const lines = open.map((row) => {
    const files = waiting.proposals.get(row.id)?.files.map((file) => file.path) ?? [];
    return `${row.id}  ${row.client ?? ""}  ${files.join(", ")}  ${row.reason ?? ""}`.trimEnd();
  });
  return lines.join("\n") || "Nothing is pending.";
}

/** As a card's button does: what is typed and not saved stays, and the editor's undo has it. */
async function decide(plugin: KnapperPlugin, verb: "accept" | "reject", id: string): Promise<string> {
  if (!plugin.waiting.proposals.has(id)) await plugin.waiting.load(id);
  if (!plugin.waiting.proposals.has(id)) throw new Error(`no proposal ${id} is open`);
  const isDone = await plugin.decisions.decideProposal(verb, id);
  if (!isDone) throw new Error("it wasn't done; a notice in Obsidian says why");
  return verb === "accept" ? `Accepted ${id}.` : `Rejected ${id}.`;
}

async function undo(plugin: KnapperPlugin, { id, run }: CliData): Promise<string> {
  const { undone } = await plugin.decisions.undo({ ...(run ? { run } : id ? { change_id: id } : {}), partial: false });
  return undone.length === 1 ? "Undid one change." : `Undid ${undone.length} changes.`;
}

/** Text for a terminal: what notes and agents write can't move its cursor, colour it, or turn lines around. */
export function printable(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (sign) => (sign === "\n" || sign === "\t" ? sign : "\ufffd"));
}
