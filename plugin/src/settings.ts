/** The plugin's tab in Obsidian's settings: the connection, what is the plugin's own, and the owner's settings of the server. */

import { Notice, PluginSettingTab, type SettingDefinitionItem, type SettingDefinitionList, type SettingGroupItem, SuggestModal } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { findFolders } from "../../ui/parts/chat/suggest";
import { sentence } from "../../ui/parts/format";
import { describeFailure, describeState } from "./connection";
import { reindex } from "./indexing";
import type KnapperPlugin from "./main";
import { canKeepKey, describeKey, KeyDialog, keepKey, type KeyRow, ModelChoice, providerName } from "./models";
import { PairDialog } from "./pairing";

/** What is kept in `data.json`, which may be synced: neither addresses nor tokens. */
export interface PluginSettings {
  /** How what waits is shown in notes: as cards, which don't touch the file; as blocks in the file; or not at all. */
  showing: "cards" | "blocks" | "off";
  /** Begin anew in the chat whenever another note is opened, rather than go on where one was. */
  clearOnSwitch: boolean;
  /** Show below each answer how many tokens it took, and what it cost. */
  showTokens: boolean;
  /** Have the models' prompts and replies told with each answer, for "Show the prompts of the last answer". */
  debug: boolean;
}

export const DEFAULTS: PluginSettings = { showing: "cards", clearOnSwitch: false, showTokens: false, debug: false };

const SHOWINGS = { cards: "Cards", blocks: "Blocks in the file", off: "Not in notes" } as const;

/** Settings out of `data.json`, which other versions and other programs write too. */
export function readSettings(stored: unknown): PluginSettings {
  const { marks, tag: _, ...given } = (stored !== null && typeof stored === "object" ? stored : {}) as Partial<PluginSettings> & { marks?: unknown; tag?: unknown };
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
  /** Of a secret, in place of its value. */
  is_set?: boolean;
  savable: boolean;
  restart: boolean;
  choices?: string[];
  /** 0 where it isn't given. */
  least?: number;
  most?: number;
}

const SERVER_KEY = "server:";
const FOLDERS = "agents.excluded_folders";
const TYPING_MS = 600;
/** The settings that name a model, with what choosing one is called. */
const MODELS: Readonly<Record<string, string>> = { "model.name": "Choose a model", "scout.model": "Choose Scout's model" };

/** The settings of the server that this tab names, by their groups; the page has all others. */
const GROUPS: readonly { heading: string; rows: Readonly<Record<string, string>>; hasFolders?: boolean }[] = [
  {
    heading: "Models",
    rows: { "model.name": "Model", "scout.model": "Scout's model", "embeddings.kind": "Embeddings", "embeddings.model": "Embedding model", "model.turn_tokens": "Tokens of one answer", "model.day_tokens": "Tokens of one day", "model.day_cents": "Cents of one day" },
  },
  {
    heading: "Notes that go with a message",
    hasFolders: true,
    rows: {
      "agents.link_depth": "Link depth", "agents.same_folder": "Same folder", "agents.token_limit": "Token limit of notes",
      "agents.linked_notes": "Linked notes", "agents.semantic_notes": "Notes near in meaning", "agents.semantic_similarity": "Similarity of those in %",
      "agents.chat_history_length": "Chat history length", "agents.orchestrate": "A model chooses the agents",
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
  private keys: readonly KeyRow[] = [];
  /** Whether the server can keep keys. */
  private hasKeyring = false;
  /** Why the server's settings couldn't be read. */
  private problem = "";
  /** Whether the tab is drawn with what was read just now. */
  private isFresh = false;
  /** How often each text was changed, as each letter of it is told. */
  private readonly typed = new Map<string, number>();

  constructor(private readonly owner: KnapperPlugin) {
    super(owner.app, owner);
    owner.register(owner.connection.on("state", () => this.refresh()));
  }

  /** Asked for when the tab is shown, and at each update: values that were changed elsewhere come with the second one. */
  override getSettingDefinitions(): SettingDefinitionItem[] {
    if (this.isFresh) this.isFresh = false;
    else void this.read();
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
          { name: "Clear chat on note switch", desc: "Each note has its own conversation, which continues when you return. With this on, it starts over.", control: { type: "toggle", key: "clearOnSwitch" } },
          { name: "Show token usage and cost", desc: "Below each answer. The cost is a dash where no price is known.", control: { type: "toggle", key: "showTokens" } },
          { name: "Debug mode", desc: 'Answers include the prompts and replies of the models; "Show the prompts of the last answer" shows them. They hold the text of your notes.', control: { type: "toggle", key: "debug" } },
        ],
      },
      { type: "group", heading: "Keys and tokens", items: this.keysAndTokens() },
      ...GROUPS.flatMap(({ heading, rows, hasFolders }): SettingDefinitionItem[] => {
        const group = { type: "group" as const, heading, items: Object.entries(rows).flatMap(([name, label]) => this.define(name, label)) };
        return hasFolders ? [group, this.folders()] : [group];
      }),
    ];
  }

  override getControlValue(key: string): unknown {
    if (!key.startsWith(SERVER_KEY)) return this.owner.settings[key as keyof PluginSettings];
    const [name, choice] = partsOf(key);
    const row = this.rowOf(name);
    if (row && choice !== undefined) return chosenOf(row).includes(choice);
    const value = row?.value ?? row?.default ?? "";
    if (row && isSwitch(row)) return value === "on";
    return Array.isArray(value) ? value.join(", ") : row?.kind === "count" ? Number(value) : String(value);
  }

  override async setControlValue(key: string, value: unknown): Promise<void> {
    if (key.startsWith(SERVER_KEY)) {
      const [name, choice] = partsOf(key);
      const row = this.rowOf(name);
      if (row && (!isTyped(row) || (await this.isWhole(key)))) await this.save(row, choice === undefined ? typedOf(row, value) : withChoice(row, choice, value));
      return;
    }
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
    if (state.kind === "other_vault" && state.missing) {
      rows.push({ name: "Use this server's vault all the same", desc: "What it knows and changes are its own notes, and not those of this vault.", action: () => this.owner.connection.trustVault() });
    }
    const reindexing = { name: "Reindex", desc: "Saved notes are found without this. It looks through the whole vault for notes that changed, and shows its progress.", action: () => void reindex(this.owner) };
    const disconnect = { name: "Disconnect", desc: "The server forgets this device.", action: () => void this.owner.connection.unpair() };
    return [...rows, reindexing, disconnect];
  }

  private rowOf(name: string): ServerSetting | undefined {
    return this.owner.connection.isReady ? this.server.find((one) => one.name === name) : undefined;
  }

  /** Why a setting of the server can't be shown. */
  private get reason(): string {
    if (this.problem) return `The server's settings couldn't be read: ${this.problem}`;
    return this.owner.connection.isReady ? "The server doesn't have this setting; a newer one may." : "The server isn't connected, so its settings can't be read or changed.";
  }

  /** What one answer may take, and the keys, which are handed to the server and never come back. */
  private keysAndTokens(): SettingGroupItem[] {
    const countOf = (name: string): number => Number(this.rowOf(name)?.value ?? this.rowOf(name)?.default ?? 0);
    const web = this.rowOf("web.access")?.value === "on" ? `, pages of the web ${countOf("web.token_budget").toLocaleString()}` : "";
    const most = countOf("model.turn_tokens");
    const end = most ? `An answer that reaches ${most.toLocaleString()} is stopped.` : "No limit is set for one answer.";
    const expected = `Notes take ${countOf("agents.token_limit").toLocaleString()} at most${web}, and what Scout reads in ${countOf("scout.rounds")} rounds comes on top. ${end}`;
    return [
      { name: "Expected tokens of one answer", desc: this.rowOf("agents.token_limit") ? expected : this.reason },
      ...this.keys.map((row): SettingGroupItem => {
        const title = `API key of ${providerName(row.provider)}`;
        const keep = (key: string): Promise<void> => keepKey(this.owner.host.client, row, this.hasKeyring, key).then(() => this.read());
        const base = { name: title, desc: describeKey(row, this.hasKeyring) };
        if (!canKeepKey(row, this.hasKeyring)) return base;
        return { ...base, action: () => new KeyDialog(this.owner, { title, isSet: row.place !== "none", keep }).open() };
      }),
      ...this.searchKey(),
    ];
  }

  /** The key of the search service, which some need. */
  private searchKey(): SettingGroupItem[] {
    const row = this.rowOf("web.api_key");
    if (!row) return [{ name: "API keys", desc: this.reason }];
    const title = "API key of the search service";
    const base = { name: title, desc: row.is_set ? `Set. From: ${row.source}.` : "Not set. DuckDuckGo needs none." };
    const keep = async (key: string): Promise<void> => {
      await this.owner.host.client.put("/settings", { body: { values: { "web.api_key": key || null } } });
      await this.read();
    };
    return [row.savable ? { ...base, action: () => new KeyDialog(this.owner, { title, isSet: row.is_set === true, keep }).open() } : base];
  }

  /** The folders whose notes stay out: each with its way back, and one that adds another. */
  private folders(): SettingDefinitionList {
    const row = this.rowOf(FOLDERS);
    const shown = row ? chosenOf(row) : [];
    const list: SettingDefinitionList = { type: "list", heading: "Excluded folders", emptyState: row ? `None. ${row.doc}` : this.reason, items: shown.map((name) => ({ name })) };
    if (!row?.savable) return list;
    const save = (next: readonly string[]) => void this.save(row, next).then(() => this.redraw());
    list.onDelete = (at) => save(shown.filter((_, index) => index !== at));
    list.addItem = { name: "Exclude a folder", action: () => new FolderChoice(this.owner, shown, (path) => save([...shown, path])).open() };
    return list;
  }

  private define(name: string, label: string): SettingGroupItem[] {
    const row = this.rowOf(name);
    if (row?.savable && MODELS[name]) return [defineSetting(row, name, label, this.reason), { name: MODELS[name], desc: "Among those that providers offer now.", action: () => new ModelChoice(this.owner, (model) => void this.save(row, model).then(() => this.redraw())).open() }];
    if (!row || !isList(row)) return [defineSetting(row, name, label, this.reason)];
    const switches = row.choices!.map((choice): SettingGroupItem => ({ name: CHOICES[choice] ?? wordsOf(choice), control: { type: "toggle", key: `${SERVER_KEY}${name}#${choice}`, disabled: !row.savable } }));
    return [{ name: label, desc: describe(row) }, ...switches];
  }

  /** The connection has another state: what was read of a server before says nothing of the one that is there now. */
  private refresh(): void {
    if (!this.owner.connection.isReady) [this.server, this.keys] = [[], []];
    this.problem = "";
    if (this.owner.connection.isReady && !this.server.length) void this.read();
    else this.redraw();
  }

  private async read(): Promise<void> {
    const { client } = this.owner.connection;
    if (!client || !this.owner.connection.isReady) return;
    let settings: ServerSetting[] = [];
    let keys = { results: [] as readonly KeyRow[], has_keyring: false };
    let problem = "";
    try {
      ({ settings } = await client.raw<{ settings: ServerSetting[] }>("GET", "/settings"));
      keys = await client.get("/models/keys", {});
    } catch (error) {
      problem = describeFailure(failureOf(error));
    }
    if (client !== this.owner.connection.client) return; // another server was asked meanwhile
    const isSame = problem === this.problem && JSON.stringify([settings, keys.results]) === JSON.stringify([this.server, this.keys]);
    [this.server, this.problem, this.keys, this.hasKeyring] = [settings, problem, keys.results, keys.has_keyring];
    if (!isSame) this.redraw();
  }

  private redraw(): void {
    if (!this.containerEl.isShown()) return;
    this.isFresh = true;
    this.update();
    this.isFresh = false;
  }

  /** Wait while somebody types; gives whether nothing more came. */
  private isWhole(key: string): Promise<boolean> {
    const turn = (this.typed.get(key) ?? 0) + 1;
    this.typed.set(key, turn);
    return new Promise((resolve) => window.setTimeout(() => resolve(this.typed.get(key) === turn), TYPING_MS));
  }

  private async save({ name }: ServerSetting, value: unknown): Promise<void> {
    const { client } = this.owner.connection;
    if (!client) return;
    try {
      const reply = await client.raw<{ settings: ServerSetting[] }>("PUT", "/settings", { body: { values: { [name]: value } } });
      const saved = new Map(reply.settings.map((one) => [one.name, one]));
      this.server = this.server.map((one) => saved.get(one.name) ?? one);
      this.owner.onServerSettings();
      if (saved.get(name)?.restart) new Notice(`${name} holds after the server's next start`);
    } catch (error) {
      new Notice(`Knapper: ${describeFailure(failureOf(error))}`, 8_000);
    }
  }
}

/** Finds folders in the server's list of them, as the plugin itself looks through no vault. */
class FolderChoice extends SuggestModal<string> {
  constructor(
    private readonly owner: KnapperPlugin,
    private readonly taken: readonly string[],
    private readonly onFolder: (path: string) => void,
  ) {
    super(owner.app);
    this.setPlaceholder("Which folder's notes are to stay out?");
  }

  async getSuggestions(query: string): Promise<string[]> {
    try {
      this.emptyStateText = "No such folder";
      return (await findFolders(this.owner.host.client, query)).map(({ path }) => path).filter((path) => !this.taken.includes(path));
    } catch (error) {
      this.emptyStateText = sentence(describeFailure(failureOf(error)));
      return [];
    }
  }

  renderSuggestion(path: string, into: HTMLElement): void {
    into.setText(path);
  }

  onChooseSuggestion(path: string): void {
    this.onFolder(path);
  }
}

/** What choices are called, where their own names say too little. */
const CHOICES: Readonly<Record<string, string>> = {
  add: "Add lines", delete: "Replace and delete lines", create: "Create notes", navigate: "Open notes for me",
  current: "The open note", linked: "The open note and linked ones", context: "All that go in", ddgs: "DuckDuckGo",
};

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

/** A list of choices, with one of them switched. */
function withChoice(row: ServerSetting, choice: string, isOn: unknown): string[] | undefined {
  return row.choices?.filter((one) => (one === choice ? isOn : chosenOf(row).includes(one)));
}

/** Whether it is written by letters, each of which is told as a change. */
function isTyped(row: ServerSetting): boolean {
  return row.choices === undefined && rangeOf(row) === undefined;
}

function wordsOf(name: string): string {
  return sentence(name.replaceAll("_", " "));
}

function typedOf(row: ServerSetting, value: unknown): unknown {
  if (isSwitch(row)) return value ? "on" : "off";
  return row.kind === "texts" ? String(value).split(",").map((text) => text.trim()).filter(Boolean) : value;
}

/** Say what a setting does, within which range, what it is by itself, and where its value comes from. */
function describe(row: ServerSetting): string {
  const { least = 0, most } = row;
  const range = row.kind === "count" && most !== undefined ? ` ${least.toLocaleString()} to ${most.toLocaleString()}.` : "";
  const words = row.kind === "texts" && !isList(row) ? " Separated by commas." : "";
  const given = [row.default ?? ""].flat().map((one) => (typeof one === "number" ? one.toLocaleString() : (CHOICES[one] ?? one))).join(", ") || "none";
  return `${row.doc}${range}${words} Default: ${given}. From: ${row.source}.`;
}

function isSwitch(row: ServerSetting): boolean {
  return row.choices?.length === 2 && row.choices.includes("on") && row.choices.includes("off");
}

function rangeOf({ kind, least = 0, most }: ServerSetting): [number, number] | undefined {
  return kind === "count" && most !== undefined && most - least <= 100 ? [least, most] : undefined;
}

/** How a setting of the server is shown; where that isn't connected, it can't be changed, and says why. */
export function defineSetting(row: ServerSetting | undefined, name: string, label: string, reason: string): SettingGroupItem {
  const key = SERVER_KEY + name;
  if (!row) return { name: label, desc: reason, control: { type: "text", key, disabled: true } };
  const desc = row.savable ? describe(row) : `${describe(row)} It is set in the server's configuration file.`;
  const base = { key, disabled: !row.savable };
  const range = rangeOf(row);
  if (isSwitch(row)) return { name: label, desc, control: { type: "toggle", ...base } };
  if (row.choices && row.kind !== "texts") return { name: label, desc, control: { type: "dropdown", ...base, options: Object.fromEntries(row.choices.map((one) => [one, CHOICES[one] ?? one])) } };
  if (range) return { name: label, desc, control: { type: "slider", ...base, min: range[0], max: range[1], step: 1 } };
  if (row.kind !== "count") return { name: label, desc, control: { type: "text", ...base } };
  const { least = 0, most = Number.MAX_SAFE_INTEGER } = row;
  const validate = (value: number): string | undefined => (Number.isInteger(value) && value >= least && value <= most ? undefined : `Give ${least.toLocaleString()} to ${most.toLocaleString()}`);
  return { name: label, desc, control: { type: "number", ...base, validate } };
}
