/** Bring the server's index of the vault up to date, with its progress in a notice. */

import { Notice } from "obsidian";
import { follow } from "../../ui/client/events";
import { failureOf } from "../../ui/client/transport";
import { describeFailure } from "./connection";
import type KnapperPlugin from "./main";

const PHASES: Readonly<Record<string, string>> = { scan: "Scanning the vault", read: "Reading notes", embed: "Embedding passages" };
const DONE_MS = 6_000;

/** Begin a refresh, or join the one that runs. */
export async function reindex(plugin: KnapperPlugin): Promise<void> {
  const { client } = plugin.host;
  const notice = new Notice("Knapper: looking through the vault…", 0);
  try {
    const { job_id: id } = await client.post("/index", { body: {} });
    for await (const { event, data } of follow(client, `/index/${encodeURIComponent(id)}/events`, { isLast: (one) => one.event === "indexed" })) {
      if (event === "progress") notice.setMessage(`Knapper: ${progressText(data)}`);
      else if (event === "indexed") notice.setMessage(`Knapper: ${outcomeText(data)}`);
    }
  } catch (error) {
    notice.setMessage(`Knapper: ${describeFailure(failureOf(error))}`);
  }
  window.setTimeout(() => notice.hide(), DONE_MS);
}

function progressText(data: Readonly<Record<string, unknown>>): string {
  const [done, total] = [Number(data["done"]) || 0, Number(data["total"]) || 0];
  const what = PHASES[String(data["phase"])] ?? "At work";
  return total ? `${what}: ${done.toLocaleString()} of ${total.toLocaleString()}` : `${what}…`;
}

function outcomeText(data: Readonly<Record<string, unknown>>): string {
  const state = String(data["state"]);
  if (state === "complete") return `the index is up to date; ${(Number(data["indexed"]) || 0).toLocaleString()} notes read, ${(Number(data["embedded"]) || 0).toLocaleString()} passages computed`;
  return state === "cancelled" ? "stopped; what was read is kept" : "the index couldn't be brought up to date; the server's log says why";
}
