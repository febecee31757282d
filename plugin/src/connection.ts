/** The connection with one server: pairing, its token, its state, and the news of the vault. */

import { type App, Platform, requestUrl, TFile } from "obsidian";
import { Client } from "../../ui/client/client";
import { follow, type ServerEvent } from "../../ui/client/events";
import { Failure, failureOf, failureOfAnswer, isAbort } from "../../ui/client/transport";
import { appTransport, canStream, checkAddress } from "./transport";

/** What is kept of a pairing on this device, outside of the synced settings; the token is in the app's secret storage. */
export interface Pairing {
  address: string;
  /** The vault's name at the server. */
  vault: string;
  /** What this device is called there. */
  name: string;
  /** Id of the token in the secret storage. */
  secret: string;
  /** Whether the server's notes were found here, or somebody said that this is its vault. */
  isSure?: boolean;
}

export type ConnectionState =
  | { kind: "unpaired" }
  | { kind: "connecting" }
  | { kind: "ready"; streams: boolean }
  | { kind: "offline"; message: string }
  | { kind: "revoked" }
  /** With notes that aren't here, where it is told by them and not by the server. */
  | { kind: "other_vault"; vault: string; missing?: readonly string[] }
  | { kind: "failed"; message: string };

const STORED = "knapper-pairing";
/** Notes of the server that are looked for here, to tell whether this is its vault. */
const PROBES = 20;
const RETRY_MS = [2_000, 5_000, 10_000, 30_000];

interface PairReply {
  name: string;
  vault: string;
  token: string;
  product: string;
}

interface Listeners {
  state: (state: ConnectionState) => void;
  news: (event: ServerEvent) => void;
}

export class Connection {
  state: ConnectionState = { kind: "unpaired" };
  client: Client | null = null;
  private abort: AbortController | null = null;
  private readonly listeners = { state: new Set<Listeners["state"]>(), news: new Set<Listeners["news"]>() };

  constructor(private readonly app: App) {}

  /** The pairing of this device with this vault; null where there is none. */
  get pairing(): Pairing | null {
    const stored: unknown = this.app.loadLocalStorage(STORED);
    return isPairing(stored) ? stored : null;
  }

  get isReady(): boolean {
    return this.state.kind === "ready";
  }

  /** Tell of each new state, or of each event of the vault; the function that is returned ends it. */
  on<K extends keyof Listeners>(kind: K, listener: Listeners[K]): () => void {
    const those = this.listeners[kind] as Set<Listeners[K]>;
    those.add(listener);
    return () => those.delete(listener);
  }

  /**
   * Exchange a code for a token of this device's own, and connect.
   *
   * Throws a `Failure` whose hint says what to do.
   */
  async pair(typed: string, code: string): Promise<PairReply> {
    const address = checkAddress(typed, Platform.isMobile);
    if (address === undefined) throw new Failure(addressProblem(), "bad_address");
    const body = JSON.stringify({ code: code.trim(), name: "Obsidian", device: deviceName() });
    let answer;
    try {
      answer = await requestUrl({ url: `${address}/pair`, method: "POST", contentType: "application/json", body, throw: false });
    } catch {
      throw new Failure(`nothing answers at ${address}`, "offline", "start the server with `knap serve` or `knap service start`");
    }
    if (answer.status !== 201) throw failureOfAnswer(answer.status, answer.text);
    const reply = answer.json as PairReply;
    if (reply.product !== "knapper" || typeof reply.token !== "string" || !reply.token) {
      throw new Failure(`what answers at ${address} isn't Knapper`, "other_program");
    }
    const earlier = this.pairing;
    const secret = `knapper-${window.crypto.randomUUID().slice(0, 8)}`;
    this.app.secretStorage.setSecret(secret, reply.token);
    if (earlier) this.app.secretStorage.setSecret(earlier.secret, "");
    const pairing: Pairing = { address, vault: reply.vault, name: reply.name, secret };
    this.app.saveLocalStorage(STORED, pairing);
    this.start();
    return reply;
  }

  /** Forget the pairing here, and have the server revoke it where it can be reached. */
  async unpair(): Promise<void> {
    const { pairing, client } = this;
    this.stop();
    if (pairing) {
      this.app.secretStorage.setSecret(pairing.secret, "");
      this.app.saveLocalStorage(STORED, null);
    }
    this.set({ kind: "unpaired" });
    if (pairing && client) await client.raw("DELETE", `/clients/${encodeURIComponent(pairing.name)}`).catch(() => undefined);
  }

  /** Connect, and follow the news until `stop`. */
  start(): void {
    this.stop();
    const pairing = this.pairing;
    const token = pairing && this.app.secretStorage.getSecret(pairing.secret);
    if (!pairing || !token) return this.set({ kind: "unpaired" });
    const abort = new AbortController();
    this.abort = abort;
    void this.run(pairing, token, abort.signal);
  }

  stop(): void {
    this.abort?.abort();
    this.abort = null;
    this.client = null;
  }

  private async run(pairing: Pairing, token: string, signal: AbortSignal): Promise<void> {
    this.set({ kind: "connecting" });
    const headers = () => ({ authorization: `Bearer ${token}` });
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        const plain = new Client({ transport: appTransport(pairing.address, false), headers });
        const known = await plain.raw<{ results: { name: string; vault: string }[] }>("GET", "/clients", { signal });
        const vault = known.results.find((row) => row.name === pairing.name)?.vault ?? pairing.vault;
        if (vault !== pairing.vault) return this.set({ kind: "other_vault", vault });
        const missing = pairing.isSure ? [] : await this.missing(plain, pairing, signal);
        if (missing.length) return this.set({ kind: "other_vault", vault, missing });
        const streams = await canStream(pairing.address);
        if (signal.aborted) return;
        this.client = streams ? new Client({ transport: appTransport(pairing.address, true), headers }) : plain;
        tries = 0;
        await this.listen(this.client, streams, signal);
      } catch (error) {
        if (signal.aborted || isAbort(error)) return;
        const failure = failureOf(error);
        if (failure.status === 401) {
          this.client = null;
          return this.set({ kind: "revoked" });
        }
        if (!failure.isPassing) return this.set({ kind: "failed", message: describeFailure(failure) });
        this.set({ kind: "offline", message: failure.message });
      }
      await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]!, signal);
    }
  }

  /** Say that the server's vault is this one, whatever its notes are. */
  trustVault(): void {
    const { pairing } = this;
    if (pairing) this.app.saveLocalStorage(STORED, { ...pairing, isSure: true });
    this.start();
  }

  /** Notes of the server that aren't in this vault, where those are most of them: a vault may be synced in part. */
  private async missing(client: Client, pairing: Pairing, signal: AbortSignal): Promise<string[]> {
    const { results } = await client.raw<{ results: { path: string }[] }>("POST", "/tools/find_notes", { body: { limit: PROBES }, signal });
    const missing = results.map((row) => row.path).filter((path) => !(this.app.vault.getAbstractFileByPath(path) instanceof TFile));
    if (missing.length * 2 > results.length) return missing;
    if (results.length && this.pairing?.secret === pairing.secret) this.app.saveLocalStorage(STORED, { ...pairing, isSure: true });
    return [];
  }

  /** One request that waits for news, and nothing else while idle. */
  private async listen(client: Client, streams: boolean, signal: AbortSignal): Promise<void> {
    const ready: ConnectionState = { kind: "ready", streams };
    const onConnection = (isLost: boolean) => {
      if (isLost) this.set({ kind: "offline", message: "the connection was lost" });
      else if (this.state.kind !== "ready") this.set(ready);
    };
    for await (const event of follow(client, "/events", { signal, isLast: () => false, onConnection })) {
      if (this.state.kind !== "ready") this.set(ready);
      for (const listener of this.listeners.news) listener(event);
    }
  }

  private set(state: ConnectionState): void {
    this.state = state;
    for (const listener of this.listeners.state) listener(state);
  }
}

function isPairing(value: unknown): value is Pairing {
  if (value === null || typeof value !== "object") return false;
  return (["address", "vault", "name", "secret"] as const).every((key) => typeof (value as Record<string, unknown>)[key] === "string");
}

/** Why an address isn't taken. */
export function addressProblem(): string {
  return Platform.isMobile
    ? "write the address of your computer with https://, such as https://box.tail1234.ts.net"
    : "write an address such as http://127.0.0.1:25627, or one with https://";
}

function deviceName(): string {
  if (Platform.isIosApp) return Platform.isTablet ? "iPad" : "iPhone";
  if (Platform.isAndroidApp) return "Android";
  if (Platform.isMacOS) return "Mac";
  return Platform.isWin ? "Windows" : "Linux";
}

/** A failure in one line, with the next step. */
export function describeFailure(failure: Failure): string {
  return failure.hint ? `${failure.message}: ${failure.hint}` : failure.message;
}

/** A state in one line, with the way out. */
export function describeState(state: ConnectionState): string {
  switch (state.kind) {
    case "unpaired":
      return "Not connected. Run `knap connect` on your computer, then open its link or type its code here.";
    case "connecting":
      return "Connecting…";
    case "ready":
      return state.streams ? "Connected." : "Connected; answers come by polling, as streams aren't possible here.";
    case "offline":
      return `Not reachable: ${state.message}. Start it with \`knap serve\` or \`knap service start\`; this goes on by itself.`;
    case "revoked":
      return "The server doesn't know this device any more. Pair it again with `knap connect`.";
    case "other_vault":
      if (state.missing) return `The server's vault, "${state.vault}", seems to be another one: ${state.missing.slice(0, 2).join(", ")} and others of its notes aren't here. Pair this vault with \`knap connect --vault NAME\`, or use that one all the same, in the settings.`;
      return `The server uses this pairing for another vault, "${state.vault}". Pair this vault anew with \`knap connect --vault NAME\`.`;
    case "failed":
      return `The server refused: ${state.message}`;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (window.clearTimeout(timer), resolve()), { once: true });
  });
}
