/** Who is signed in: this browser, with a cookie that scripts can't read and a key that is kept here. */

import { batch, signal } from "@preact/signals";
import { Client, Failure, fetchTransport } from "../client";
import * as keep from "./keep";

const SESSION_PATH = "/page/session";
const KEY_HEADER = "x-knapper-key";

interface SessionReply {
  vaults?: string[];
  version?: string;
  key?: string;
}

export class Session {
  /** `unknown` until the server was asked, or a key was found that was good the last time. */
  readonly state = signal<"unknown" | "in" | "out">("unknown");
  /** Why nobody is signed in, if somebody tried. */
  readonly problem = signal<Failure | null>(null);
  /** The vaults to choose from. */
  readonly vaults = signal<readonly string[]>(keep.load("vaults").split("\n").filter(Boolean));
  readonly vault = signal(keep.load("vault"));
  readonly version = signal("");
  readonly isReached = signal(true);
  /** Whoever signs in to the page is a person: may accept, see settings, and give rights. */
  readonly isPerson = true;
  readonly client: Client;
  private key = keep.load("key");

  constructor(transport = fetchTransport()) {
    this.client = new Client({
      transport,
      headers: (): Record<string, string> => (this.key ? { [KEY_HEADER]: this.key } : {}),
      vault: () => (this.vaults.value.length > 1 ? this.vault.value : ""),
      onUnauthorized: () => this.state.value === "in" && this.forget(),
      onReach: (isReached) => (this.isReached.value = isReached),
    });
  }

  /**
   * Ask whether this browser is signed in; with a code, sign in where it isn't.
   *
   * With a key from the last time, the page is shown before the answer: a key that isn't good any more opens nothing, and the
   * answer then leads to the gate.
   */
  async begin(code: string): Promise<void> {
    if (this.key && !code && this.vaults.value.length) {
      batch(() => {
        this.pickVault();
        this.state.value = "in";
      });
    }
    try {
      if (await this.isKnown()) return;
      if (code) await this.signIn(code);
      else this.state.value = "out";
    } catch (error) {
      if (this.state.value !== "in" || !(error instanceof Failure && error.isOffline)) this.refuse(error);
    }
  }

  /** Sign in with a code that is good once, or with the whole address that holds one. */
  async signIn(told: string): Promise<void> {
    const code = told.trim().split("#token=").at(-1) ?? "";
    if (!code) return;
    try {
      const reply = await this.client.raw<SessionReply>("POST", SESSION_PATH, { body: { code } });
      this.key = reply.key ?? "";
      keep.save("key", this.key);
      this.learn(reply);
    } catch (error) {
      this.refuse(error);
    }
  }

  async signOut(): Promise<void> {
    await this.client.raw("DELETE", SESSION_PATH);
    keep.dropDrafts();
    this.forget();
  }

  choose(vault: string): void {
    keep.save("vault", vault);
    this.vault.value = vault;
  }

  private async isKnown(): Promise<boolean> {
    if (!this.key) return false;
    try {
      this.learn(await this.client.raw<SessionReply>("GET", SESSION_PATH));
      return true;
    } catch (error) {
      if (error instanceof Failure && error.status === 401) return false;
      throw error;
    }
  }

  private learn(reply: SessionReply): void {
    const [vaults, before] = [reply.vaults ?? [], this.vaults.value];
    keep.save("vaults", vaults.join("\n"));
    // What is shown already is of vaults that there were the last time.
    if (this.state.value === "in" && vaults.join("\n") !== before.join("\n")) return location.reload();
    batch(() => {
      this.vaults.value = vaults;
      this.version.value = reply.version ?? "";
      this.pickVault();
      this.problem.value = null;
      this.state.value = "in";
    });
  }

  /** Keep to the vault that was chosen last, while there is one of that name. */
  private pickVault(): void {
    if (!this.vaults.value.includes(this.vault.value)) this.vault.value = this.vaults.value[0] ?? "";
  }

  private forget(): void {
    this.key = "";
    keep.save("key", "");
    keep.save("vaults", "");
    this.state.value = "out";
  }

  private refuse(error: unknown): void {
    batch(() => {
      this.problem.value = error instanceof Failure ? error : new Failure(String(error));
      this.state.value = "out";
    });
  }
}

/** Take the code out of the address, so that no history and no bookmark keeps it. */
export function takeCode(): string {
  const code = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** Read which proposal of which vault the address means, and take that out of it. */
export function takePlace(): { vault: string; proposal: string } | null {
  const told = new URLSearchParams(location.hash.slice(1));
  const proposal = told.get("proposal") ?? "";
  if (!/^[\w-]+$/.test(proposal)) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return { vault: told.get("vault") ?? "", proposal };
}
