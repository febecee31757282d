/** Which models there are and what they cost, and what was spent: of the day, of the conversation, and what is left. */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Client, Reply } from "../../client";
import { cost, tokens } from "../format";
import { resource } from "../resource";
import type { Spent } from "./turn";

export type ModelRow = Reply<"get", "/models">["results"][number];
export type Usage = Reply<"get", "/usage">;

/** Keeps a word between visits: the page in its browser's storage, the plugin in its own. */
export interface Keep {
  load(name: string): string;
  save(name: string, text: string): void;
}

const MODEL = "chat-model";

export class Spending {
  /** The model of the next message; empty for the configured one. */
  readonly model: Signal<string>;
  readonly models;
  readonly usage;
  /** The row of the model that answers next; undefined where nothing is known of it. */
  readonly current: ReadonlySignal<ModelRow | undefined>;
  /** Its name; empty where none is configured. */
  readonly name: ReadonlySignal<string>;

  constructor(
    client: Client,
    private readonly keep: Keep,
  ) {
    this.model = signal(keep.load(MODEL));
    this.models = resource((abort) => client.get("/models", { signal: abort }));
    this.usage = resource((abort, session: string) => client.get("/usage", { query: session ? { session_id: session } : {}, signal: abort }));
    this.name = computed(() => this.model.value || (this.models.data.value?.configured ?? ""));
    this.current = computed(() => this.models.data.value?.results.find((row) => row.name === this.name.value));
  }

  choose(model: string): void {
    this.model.value = model === this.models.data.value?.configured ? "" : model;
    this.keep.save(MODEL, this.model.value);
  }
}

/** A model's name without its provider and address. */
export function modelName(name: string): string {
  const bare = name.replace(/@https?:\/\/.*$/, "");
  const rest = /^(?:ollama|openai|anthropic|fireworks|openrouter):(.+)$/.exec(bare)?.[1] ?? bare;
  return rest.slice(rest.lastIndexOf("/") + 1);
}

/** What a model costs for a million tokens: read, and written. */
export function price(row: ModelRow | undefined): string {
  if (row?.price) return `${cost(row.price.input_usd)} in · ${cost(row.price.output_usd)} out`;
  return row?.is_local ? "on this computer" : "price –";
}

/** What a message took, in a few words; an unknown cost is a dash, as the plugin's setting says. */
export function spentText(spent: Spent): string {
  if (!spent.input_tokens && !spent.output_tokens && !spent.cost_usd) return ""; // nothing was reported, as when the answer broke off
  return `${tokens(spent.input_tokens + spent.output_tokens)} tokens · ${cost(spent.cost_usd)}`;
}

/** Tokens, and what they cost where that is known. */
function amount(number: number, dollars: number | null | undefined): string {
  return [`${tokens(number)} tokens`, ...(dollars === null || dollars === undefined ? [] : [cost(dollars)])].join(" · ");
}

/** What was spent in this conversation and today, and what is left of the limits. */
export function usageParts(usage: Usage | undefined): { label: string; value: string; tip: string }[] {
  if (!usage) return [];
  const { session, today, left } = usage;
  const rows = [];
  if (session?.requests) {
    rows.push({ label: "Conversation", value: amount(session.total_tokens ?? 0, session.cost_usd), tip: "Tokens and cost of this conversation's messages" });
  }
  rows.push({ label: "Today", value: amount(today.total_tokens ?? 0, today.total_tokens ? today.cost_usd : 0), tip: "Tokens and known cost of all models in this vault today" });
  const rest = [left.tokens === null ? "" : `${tokens(left.tokens)} tokens`, left.usd === null ? "" : cost(left.usd)].filter(Boolean);
  if (rest.length) rows.push({ label: "Left", value: rest.join(" · "), tip: "What remains of today's limits" });
  else rows.push({ label: "Daily limit", value: "none", tip: "You can set one in the settings" });
  return rows;
}
