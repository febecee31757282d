/** What search, notes and the palette share of a vault: its list of notes, and what was used last. */

import { NotesStore, Recent } from "../parts/notes/store";
import type { App } from "./app";
import * as keep from "./keep";

export interface VaultState {
  store: NotesStore;
  /** Notes that were read last, by path. */
  read: Recent;
  /** What was searched last. */
  searched: Recent;
}

const states = new WeakMap<App, VaultState>();

/** The state of the app's vault; made once. */
export function vaultOf(app: App): VaultState {
  const known = states.get(app);
  if (known) return known;
  const kept = (name: string) => {
    const own = `${name}.${app.session.vault.value || "vault"}`;
    return [() => keep.load(own), (text: string) => keep.save(own, text)] as const;
  };
  const state = { store: new NotesStore(app.client), read: new Recent(...kept("read")), searched: new Recent(...kept("searched"), 8) };
  app.onNews((event) => event.event === "change" && state.store.touch());
  states.set(app, state);
  return state;
}
