/** The settings of a server, and what becomes of each change; several views may share one. */

import { signal, type Signal } from "@preact/signals";
import { failureOf, type Client, type Failure } from "../../client";
import { resource, type Resource } from "../resource";
import type { SettingRow, SettingValue } from "./model";

/** How the last change of a setting stands. */
export type Standing = { state: "saving" | "saved" } | { state: "failed"; failure: Failure };

const SAVED_MS = 2_500;

interface SettingsAnswer {
  config_file: string;
  /** Whether the file can be changed; where nothing is said of that, a change tells. */
  is_writable?: boolean;
  settings: SettingRow[];
}

/** Where settings are read from, and saved. */
interface SettingsSource {
  load: (signal: AbortSignal) => Promise<SettingsAnswer>;
  save: (values: Readonly<Record<string, SettingValue>>) => Promise<SettingsAnswer>;
}

/** The settings of the server. */
export function settingsOfServer(client: Client): SettingsSource {
  return {
    load: (signal) => client.get("/settings", { signal }),
    save: (values) => client.put("/settings", { body: { values: values as never } }),
  };
}

/** What a program may see and change. */
export function rightsOfProgram(client: Client, name: string): SettingsSource {
  return {
    load: (signal) => client.get("/clients/{name}/rights", { path: { name }, signal }),
    save: (values) => client.put("/clients/{name}/rights", { path: { name }, body: { values: values as never } }),
  };
}

export class SettingsStore {
  readonly settings: Resource<SettingsAnswer>;
  /** By the settings' names; those that weren't changed are in none. */
  readonly standing: Signal<ReadonlyMap<string, Standing>> = signal(new Map());

  constructor(private readonly source: SettingsSource) {
    this.settings = resource((abort) => source.load(abort));
  }

  row(name: string): SettingRow | undefined {
    return this.settings.data.value?.settings.find((row) => row.name === name);
  }

  /** Save a value; null takes it out of the file, so that the default counts. Gives whether it went well. */
  async save(name: string, value: SettingValue): Promise<boolean> {
    return this.saveAll({ [name]: value });
  }

  /** Save several values, all or none; what is wrong is told beside each of them. */
  async saveAll(values: Readonly<Record<string, SettingValue>>): Promise<boolean> {
    const names = Object.keys(values);
    this.stand(names, { state: "saving" });
    try {
      const { settings } = await this.source.save(values);
      this.take(settings);
      this.stand(names, { state: "saved" });
      setTimeout(() => this.forget(names, "saved"), SAVED_MS);
      return true;
    } catch (error) {
      this.stand(names, { state: "failed", failure: failureOf(error) });
      return false;
    }
  }

  /** Forget that a setting couldn't be saved, such as when it is edited again. */
  forget(names: readonly string[], state: Standing["state"] = "failed"): void {
    const kept = [...this.standing.value].filter(([name, standing]) => !names.includes(name) || standing.state !== state);
    if (kept.length !== this.standing.value.size) this.standing.value = new Map(kept);
  }

  private take(changed: readonly SettingRow[]): void {
    const data = this.settings.data.value;
    if (!data) return;
    const fresh = new Map(changed.map((row) => [row.name, row]));
    this.settings.set({ ...data, settings: data.settings.map((row) => fresh.get(row.name) ?? row) });
  }

  private stand(names: readonly string[], standing: Standing): void {
    this.standing.value = new Map([...this.standing.value, ...names.map((name) => [name, standing] as const)]);
  }
}
