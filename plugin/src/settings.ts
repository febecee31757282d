/** The plugin's tab in Obsidian's settings: the connection, what is the plugin's own, and the owner's settings of the server. */

import { Notice, PluginSettingTab, type SettingDefinitionItem, type SettingGroupItem } from "obsidian";
import { failureOf } from "../../ui/client/transport";
import { describeState, sentence } from "./connection";
import type KnapperPlugin from "./main";
import { PairDialog } from "./pairing";

/** What is kept in `data.json`, which may be synced: neither addresses nor tokens. */
export interface PluginSettings {
  /** Draw what waits in open notes; the file isn't touched. */
  marks: boolean;
  /** Begin anew in the chat whenever another note is opened, rather than go on where one was. */
  clearOnSwitch: boolean;
  /** Show below each answer how many tokens it took, and what it cost. */
  showTokens: boolean;
  /** The tag below drawn blocks, which the search for them uses. */
  tag: string;
}

export const DEFAULTS: PluginSettings = { marks: true, clearOnSwitch: false, showTokens: false, tag: "#ai_edit" };

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
            desc: "Cards below the lines that they are about. The note itself stays as it is until you accept.",
            control: { type: "toggle", key: "marks" },
          },
          { name: "Clear chat on note switch", desc: "Each note has its own conversation, which goes on when you come back. With this it begins anew.", control: { type: "toggle", key: "clearOnSwitch" } },
          { name: "Show token usage and cost", desc: "Below each answer. The cost is a dash where no price is known.", control: { type: "toggle", key: "showTokens" } },
          { name: "Tag of drawn edits", desc: "What “Search drawn edits” looks for.", control: { type: "text", key: "tag", placeholder: DEFAULTS.tag } },
        ],
      },
      ...(this.server.length ? [{ type: "group" as const, heading: "Server", items: this.server.filter((row) => row.savable && !row.secret).map(define) }] : []),
    ];
  }

  override getControlValue(key: string): unknown {
    if (!key.startsWith(SERVER_KEY)) return this.owner.settings[key as keyof PluginSettings];
    const row = this.server.find((one) => SERVER_KEY + one.name === key);
    const value = row?.value ?? row?.default ?? "";
    return Array.isArray(value) ? value.join(", ") : row?.kind === "count" ? Number(value) : String(value);
  }

  override async setControlValue(key: string, value: unknown): Promise<void> {
    if (key.startsWith(SERVER_KEY)) return this.save(key.slice(SERVER_KEY.length), value);
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
    const disconnect = { name: "Disconnect", desc: "The server forgets this device.", action: () => void this.owner.connection.unpair() };
    return [...rows, disconnect];
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

  private async save(name: string, value: unknown): Promise<void> {
    const row = this.server.find((one) => one.name === name);
    const { client } = this.owner.connection;
    if (!row || !client) return;
    const typed = row.kind === "texts" ? String(value).split(",").map((text) => text.trim()).filter(Boolean) : value;
    try {
      const reply = await client.raw<{ settings: ServerSetting[] }>("PUT", "/settings", { body: { values: { [name]: typed } } });
      const saved = new Map(reply.settings.map((one) => [one.name, one]));
      this.server = this.server.map((one) => saved.get(one.name) ?? one);
      if (saved.get(name)?.restart) new Notice(`${name} holds after the server's next start`);
    } catch (error) {
      new Notice(`Knapper: ${sentence(failureOf(error))}`, 8_000);
    }
  }
}

function define(row: ServerSetting): SettingGroupItem {
  const { least, most } = row;
  const range = row.kind === "count" && least !== undefined && most !== undefined ? ` ${least} to ${most}.` : "";
  const preset = row.default === null || row.default === "" ? "none" : Array.isArray(row.default) ? row.default.join(", ") || "none" : String(row.default);
  const desc = `${row.doc}${range} Default: ${preset}. From: ${row.source}.`;
  const key = SERVER_KEY + row.name;
  if (row.choices) return { name: row.name, desc, control: { type: "dropdown", key, options: Object.fromEntries(row.choices.map((one) => [one, one])) } };
  if (row.kind === "count" && least !== undefined && most !== undefined && most - least <= 100) {
    return { name: row.name, desc, control: { type: "slider", key, min: least, max: most, step: 1 } };
  }
  return { name: row.name, desc, control: row.kind === "count" ? { type: "number", key } : { type: "text", key } };
}
