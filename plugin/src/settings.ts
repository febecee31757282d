/** The plugin's tab in Obsidian's settings: the connection, what is the plugin's own, and the owner's settings of the server. */

import { Notice, PluginSettingTab, type SettingDefinitionItem, type SettingGroupItem } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { describeState, sentence } from "./connection";
import { reindex } from "./indexing";
import type KnapperPlugin from "./main";
import { PairDialog } from "./pairing";

/** What is kept in `data.json`, which may be synced: neither addresses nor tokens. */
export interface PluginSettings {
  /** How what waits is shown in notes: as cards, which don't touch the file; as blocks in the file; or not at all. */
  showing: "cards" | "blocks" | "off";
  /** Begin anew in the chat whenever another note is opened, rather than go on where one was. */
  clearOnSwitch: boolean;
  /** Show below each answer how many tokens it took, and what it cost. */
  showTokens: boolean;
  /** The tag below drawn blocks, which the search for them uses. */
  tag: string;
  /** Have the models' prompts and replies told with each answer, for "Show the prompts of the last answer". */
  debug: boolean;
}

export const DEFAULTS: PluginSettings = { showing: "cards", clearOnSwitch: false, showTokens: false, tag: "#ai_edit", debug: false };

const SHOWINGS = { cards: "Cards", blocks: "Blocks in the file", off: "Not in notes" } as const;

/** Settings out of `data.json`, which other versions and other programs write too. */
export function readSettings(stored: unknown): PluginSettings {
  const { marks, ...given } = (stored !== null && typeof stored === "object" ? stored : {}) as Partial<PluginSettings> & { marks?: unknown };
  const settings = { ...DEFAULTS, ...(marks === false ? { showing: "off" as const } : {}), ...given };
  return Object.hasOwn(SHOWINGS, settings.showing) ? settings : { ...settings, showing: DEFAULTS.showing };
}

interface ServerSetting {
  name: string;
  value: string | number | string[] | null;
  default: string | number | string[] | null;
  source: string;
  doc: string;
  kind: string;
  secret: boolean;
  savable: boolean;
  restart: boolean;
  choices?: string[];
  least?: number;
  most?: number;
}

const SERVER_KEY = "server:";

/** The settings of the server that this tab names, by their groups; the page has all others. */
const GROUPS: readonly { heading: string; rows: Readonly<Record<string, string>> }[] = [
  {
    heading: "Models",
    rows: { "model.name": "Model", "scout.model": "Scout's model", "embeddings.kind": "Embeddings", "embeddings.model": "Embedding model", "model.turn_tokens": "Tokens of one answer", "model.day_tokens": "Tokens of one day", "model.day_cents": "Cents of one day" },
  },
  {
    heading: "Notes that go with a message",
    rows: {
      "agents.link_depth": "Link depth", "agents.same_folder": "Same folder", "agents.excluded_folders": "Excluded folders", "agents.token_limit": "Token limit of notes",
      "agents.linked_notes": "Linked notes", "agents.chat_history_length": "Chat history length", "agents.orchestrate": "A model chooses the agents",
    },
  },
  { heading: "Edits", rows: { "agents.editable": "Editable notes", "agents.can": "What a task may do", "proposals.expire_days": "Days that a proposal waits" } },
  {
    heading: "Scout",
    rows: { "scout.rounds": "Exploration rounds", "scout.notes": "Notes to select", "scout.keyword_limit": "Keyword search results", "scout.tools": "Tools", "scout.show_tags": "Show the vault's tags", "scout.timeout_s": "Seconds" },
  },
  {
    heading: "Web",
    rows: { "web.access": "Web access", "web.provider": "Search service", "web.auto_search": "Search by itself", "web.max_results": "Search results", "web.max_pages": "Pages to read", "web.token_budget": "Tokens of web text" },
  },
  { heading: "Runs", rows: { "runs.strategy": "Strategy", "runs.code_mode": "Code mode", "runs.depth": "Levels", "runs.nodes": "Parts", "runs.minutes": "Minutes", "runs.tokens": "Tokens", "runs.cents": "Cents" } },
];

export class KnapperSettingTab extends PluginSettingTab {
  override icon = "file-check-2";
  private server: ServerSetting[] = [];

  constructor(private readonly owner: KnapperPlugin) {
    super(owner.app, owner);
    owner.register(owner.connection.on("state", () => this.refresh()));
  }

  override getSettingDefinitions(): SettingDefinitionItem[] {
    return [
      { type: "group", heading: "Connection", items: this.connection() },
      {
        type: "group",
        heading: "Notes",
        items: [
          {
            name: "Show pending edits in notes",
            desc: "Cards stand below the lines that they are about, and the file stays as it is until you accept. Blocks are written into the file, for sync, phones and other editors.",
            control: { type: "dropdown", key: "showing", options: { ...SHOWINGS } },
          },
          { name: "Clear chat on note switch", desc: "Each note has its own conversation, which goes on when you come back. With this it begins anew.", control: { type: "toggle", key: "clearOnSwitch" } },
          { name: "Show token usage and cost", desc: "Below each answer. The cost is a dash where no price is known.", control: { type: "toggle", key: "showTokens" } },
          { name: "Tag of drawn edits", desc: "What “Search drawn edits” looks for.", control: { type: "text", key: "tag", placeholder: DEFAULTS.tag } },
          { name: "Debug mode", desc: "Answers tell the models’ prompts and replies; “Show the prompts of the last answer” shows them. They hold the text of your notes.", control: { type: "toggle", key: "debug" } },
        ],
      },
      ...GROUPS.map(({ heading, rows }) => ({ type: "group" as const, heading, items: Object.entries(rows).flatMap(([name, label]) => this.define(name, label)) })),
    ];
  }

  override getControlValue(key: string): unknown {
    if (!key.startsWith(SERVER_KEY)) return this.owner.settings[key as keyof PluginSettings];
    const [name, choice] = partsOf(key);
    const row = this.server.find((one) => one.name === name);
    if (row && choice !== undefined) return chosenOf(row).includes(choice);
    const value = row?.value ?? row?.default ?? "";
    if (row && isSwitch(row)) return value === "on";
    return Array.isArray(value) ? value.join(", ") : row?.kind === "count" ? Number(value) : String(value);
  }

  override async setControlValue(key: string, value: unknown): Promise<void> {
    if (key.startsWith(SERVER_KEY)) return this.save(...partsOf(key), value);
    this.owner.settings = { ...this.owner.settings, [key]: value };
    await this.owner.saveSettings();
  }

  private connection(): SettingGroupItem[] {
    const { pairing, state } = this.owner.connection;
    const rows: SettingGroupItem[] = [
      { name: pairing ? `Vault "${pairing.vault}" at ${pairing.address}` : "No server", desc: describeState(state) },
      {
        name: pairing ? "Pair again" : "Pair",
        desc: "With the address and code of `knap connect`.",
        action: () => new PairDialog(this.owner, { address: pairing?.address ?? "", code: "" }).open(),
      },
    ];
    if (!pairing) return rows;
    const reindexing = { name: "Reindex", desc: "Saved notes are found by themselves. This looks through the whole vault again, and says how far it is.", action: () => void reindex(this.owner) };
    const disconnect = { name: "Disconnect", desc: "The server forgets this device.", action: () => void this.owner.connection.unpair() };
    return [...rows, reindexing, disconnect];
  }

  private define(name: string, label: string): SettingGroupItem[] {
    const reason = this.owner.connection.isReady ? "The server doesn't have this setting; a newer one may." : "The server isn't connected, so its settings can't be read or changed.";
    const row = this.owner.connection.isReady ? this.server.find((one) => one.name === name) : undefined;
    if (!row || !isList(row)) return [defineSetting(row, name, label, reason)];
    const switches = row.choices!.map((choice): SettingGroupItem => ({ name: CHOICES[choice] ?? wordsOf(choice), control: { type: "toggle", key: `${SERVER_KEY}${name}#${choice}`, disabled: !row.savable } }));
    return [{ name: label, desc: describe(row) }, ...switches];
  }

  private refresh(): void {
    if (this.owner.connection.isReady && !this.server.length) void this.read();
    else if (this.containerEl.isShown()) this.update();
  }

  private async read(): Promise<void> {
    try {
      this.server = (await this.owner.connection.client!.raw<{ settings: ServerSetting[] }>("GET", "/settings")).settings;
    } catch {
      this.server = []; // the state says why
    }
    if (this.containerEl.isShown()) this.update();
  }

  private async save(name: string, choice: string | undefined, value: unknown): Promise<void> {
    const row = this.server.find((one) => one.name === name);
    const { client } = this.owner.connection;
    if (!row || !client) return;
    const typed = choice === undefined ? typedOf(row, value) : row.choices?.filter((one) => (one === choice ? value : chosenOf(row).includes(one)));
    try {
      const reply = await client.raw<{ settings: ServerSetting[] }>("PUT", "/settings", { body: { values: { [name]: typed } } });
      const saved = new Map(reply.settings.map((one) => [one.name, one]));
      this.server = this.server.map((one) => saved.get(one.name) ?? one);
      this.owner.onServerSettings();
      if (saved.get(name)?.restart) new Notice(`${name} holds after the server's next start`);
    } catch (error) {
      new Notice(`Knapper: ${sentence(failureOf(error))}`, 8_000);
    }
  }
}

/** What single words of a list are called; scout's tools by their names. */
const CHOICES: Readonly<Record<string, string>> = { add: "Add lines", delete: "Replace and delete lines", create: "Create notes", navigate: "Open notes for me" };

/** A setting's name, and the choice that a switch of a list is for. */
function partsOf(key: string): [name: string, choice: string | undefined] {
  const [name = "", choice] = key.slice(SERVER_KEY.length).split("#");
  return [name, choice];
}

/** Whether each of its choices has a switch. */
function isList(row: ServerSetting): boolean {
  return row.kind === "texts" && row.choices !== undefined && row.choices.length > 0;
}

function chosenOf(row: ServerSetting): readonly string[] {
  const value = row.value ?? row.default;
  return Array.isArray(value) ? value : [];
}

function wordsOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function typedOf(row: ServerSetting, value: unknown): unknown {
  if (isSwitch(row)) return value ? "on" : "off";
  return row.kind === "texts" ? String(value).split(",").map((text) => text.trim()).filter(Boolean) : value;
}

/** Say what a setting does, within which range, what it is by itself, and where its value comes from. */
function describe(row: ServerSetting): string {
  const { least, most } = row;
  const range = row.kind === "count" && least !== undefined && most !== undefined ? ` ${least.toLocaleString()} to ${most.toLocaleString()}.` : "";
  const words = row.kind === "texts" && !isList(row) ? " Separated by commas." : "";
  const given = row.default === null || row.default === "" ? "none" : Array.isArray(row.default) ? row.default.join(", ") || "none" : String(row.default);
  return `${row.doc}${range}${words} Default: ${given}. From: ${row.source}.`;
}

function isSwitch(row: ServerSetting): boolean {
  return row.choices?.length === 2 && row.choices.includes("on") && row.choices.includes("off");
}

function rangeOf({ kind, least, most }: ServerSetting): [number, number] | undefined {
  return kind === "count" && least !== undefined && most !== undefined && most - least <= 100 ? [least, most] : undefined;
}

/** How a setting of the server is shown; where that isn't connected, it can't be changed, and says why. */
export function defineSetting(row: ServerSetting | undefined, name: string, label: string, reason: string): SettingGroupItem {
  const key = SERVER_KEY + name;
  if (!row) return { name: label, desc: reason, control: { type: "text", key, disabled: true } };
  const desc = row.savable ? describe(row) : `${describe(row)} It is set in the server's configuration file.`;
  const base = { key, disabled: !row.savable };
  const range = rangeOf(row);
  if (isSwitch(row)) return { name: label, desc, control: { type: "toggle", ...base } };
  if (row.choices && row.kind !== "texts") return { name: label, desc, control: { type: "dropdown", ...base, options: Object.fromEntries(row.choices.map((one) => [one, one])) } };
  if (range) return { name: label, desc, control: { type: "slider", ...base, min: range[0], max: range[1], step: 1 } };
  return { name: label, desc, control: { type: row.kind === "count" ? "number" : "text", ...base } };
}
