/** Which model answers, and its key: chosen of what providers offer now, and kept by the server. */

import { Modal, Notice, Setting, SuggestModal } from "obsidian";
import type { Client } from "../../ui/client/client";
import { failureOf } from "../../ui/client/transport";
import { sentence } from "../../ui/parts/format";
import { describeFailure } from "./connection";
import type KnapperPlugin from "./main";

/** Where a provider's key is; the key itself is never told. */
export interface KeyRow {
  /** Or a server's address. */
  provider: string;
  place: "settings" | "keyring" | "none";
}

const PROVIDERS: Readonly<Record<string, string>> = { openai: "OpenAI", anthropic: "Anthropic", fireworks: "Fireworks", openrouter: "OpenRouter" };
const PLACES = { settings: "Set in the server's configuration or by a variable.", keyring: "Set in the keyring of the server's computer.", none: "Not set." };

/** What a provider is called. */
export function providerName(provider: string): string {
  return PROVIDERS[provider] ?? provider;
}

/** Hand a key to the server, or take it away there: into the keyring, or into its configuration file where it has none. */
export async function keepKey(client: Client, { provider, place }: KeyRow, hasKeyring: boolean, key: string): Promise<void> {
  if (hasKeyring && place !== "settings") await client.put("/models/keys", { body: { provider, ...(key ? { key } : {}) } });
  else await client.put("/settings", { body: { values: { [`model.${provider}_api_key`]: key || null } } });
}

/** Whether a key can be kept: that of a server's address has no place without a keyring. */
export function canKeepKey({ provider }: KeyRow, hasKeyring: boolean): boolean {
  return hasKeyring || PROVIDERS[provider] !== undefined;
}

/** Say where a key is. */
export function describeKey(row: KeyRow, hasKeyring: boolean): string {
  return canKeepKey(row, hasKeyring) ? PLACES[row.place] : `${PLACES[row.place]} It needs a keyring, which the server's computer doesn't have.`;
}

/** The names of all models: those of the configuration, and what each provider offers whose key is set, and Ollama. */
async function findModels(client: Client): Promise<string[]> {
  const [configured, { results }] = await Promise.all([client.get("/models", {}), client.get("/models/keys", {})]);
  const providers = ["ollama", ...results.filter(({ provider, place }) => PROVIDERS[provider] && place !== "none").map(({ provider }) => provider)];
  const offered = await Promise.all(providers.map((provider) => client.get("/models/offered", { query: { provider: provider as "ollama" } })));
  const names = offered.flatMap(({ models }, index) => models.map((name) => `${providers[index]!}:${name}`));
  return [...new Set([...configured.results.map(({ name }) => name), ...names])];
}

/** Finds a model by a part of its name; one that nobody offers can be typed whole. */
export class ModelChoice extends SuggestModal<string> {
  private models: Promise<string[]> | null = null;

  constructor(
    private readonly plugin: KnapperPlugin,
    private readonly onModel: (name: string) => void,
  ) {
    super(plugin.app);
    this.setPlaceholder("Which model?");
  }

  async getSuggestions(query: string): Promise<string[]> {
    const wanted = query.trim();
    try {
      this.emptyStateText = "No model is offered: set a key first, or type a whole name";
      const names = await (this.models ??= findModels(this.plugin.host.client));
      const found = names.filter((name) => name.toLowerCase().includes(wanted.toLowerCase()));
      return !wanted || names.includes(wanted) ? found : [...found, wanted];
    } catch (error) {
      this.models = null;
      this.emptyStateText = sentence(describeFailure(failureOf(error)));
      return wanted ? [wanted] : [];
    }
  }

  renderSuggestion(name: string, into: HTMLElement): void {
    into.setText(name);
  }

  onChooseSuggestion(name: string): void {
    this.onModel(name);
  }
}

export interface KeyOrder {
  title: string;
  /** Whether there is one that can be taken away. */
  isSet: boolean;
  /** An empty one takes away what is kept. */
  keep: (key: string) => Promise<void>;
}

/** Takes a key and hands it to the server; nothing of it stays here. */
export class KeyDialog extends Modal {
  private key = "";
  private problem!: HTMLElement;

  constructor(
    plugin: KnapperPlugin,
    private readonly order: KeyOrder,
  ) {
    super(plugin.app);
  }

  override onOpen(): void {
    const { contentEl, order } = this;
    contentEl.addClass("knapper", "knapper-key");
    this.setTitle(order.title);
    contentEl.createEl("p", { text: "The server keeps it on its computer, and sends it to this service alone. It isn't kept here, and nobody can read it back." });
    new Setting(contentEl).setName("Key").addText((text) => {
      text.inputEl.type = "password";
      text.inputEl.autocomplete = "off";
      text.onChange((value) => {
        this.key = value.trim();
        this.problem.setText("");
      });
      text.inputEl.addEventListener("keydown", (event) => {
        if (event.key === "Enter") void this.keep(this.key);
      });
    });
    this.problem = contentEl.createDiv({ cls: "knapper-problem", attr: { role: "alert" } });
    const bar = new Setting(contentEl).addButton((made) => made.setButtonText("Cancel").onClick(() => this.close()));
    if (order.isSet) bar.addButton((made) => made.setButtonText("Remove").onClick(() => void this.hand("")));
    bar.addButton((made) =>
      made
        .setButtonText("Save key")
        .setCta()
        .onClick(() => void this.keep(this.key)),
    );
  }

  override onClose(): void {
    this.key = "";
    this.contentEl.empty();
  }

  private async keep(key: string): Promise<void> {
    if (key) await this.hand(key);
    else this.problem.setText("Type or paste the key first.");
  }

  private async hand(key: string): Promise<void> {
    try {
      await this.order.keep(key);
      this.close();
      new Notice(key ? "Key saved" : "Key removed");
    } catch (error) {
      this.problem.setText(sentence(describeFailure(failureOf(error))));
    }
  }
}
