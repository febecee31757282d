/** Call the server. */

import * as keep from "./keep.js";

const KEY_HEADER = "x-knapper-key";

/** Say what went wrong, as the server says it: a message, a stable code, and a next step. */
export class Failure extends Error {
  constructor(message, code = "error", hint = "", status = 0) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.status = status;
  }

  /** Tell whether the server couldn't be reached at all. */
  get isOffline() {
    return this.code === "offline";
  }
}

export class Api {
  /** @param {() => void} onSignedOut Called where the server doesn't know this browser any more. */
  constructor(onSignedOut) {
    this.key = keep.load("key");
    this.vault = keep.load("vault");
    this.vaults = [];
    this.onSignedOut = onSignedOut;
    this.onReach = () => {};
  }

  get(path, query = {}) {
    return this.#call("GET", this.#asked(path, query));
  }

  delete(path) {
    return this.#call("DELETE", this.#asked(path, {}));
  }

  /** Name the vault, where there are several, as an address ends with it. */
  placing() {
    return this.#asked("", {});
  }

  /** Call a route that knows of no vaults. */
  bare(method, path) {
    return this.#call(method, path);
  }

  send(method, path, body = {}) {
    return this.#call(method, path, this.#placed(body));
  }

  post(path, body = {}) {
    return this.send("POST", path, body);
  }

  tool(name, given = {}) {
    return this.post(`/tools/${name}`, given);
  }

  /** Sign this browser in with a code that is good once. */
  async signIn(code) {
    const answer = await this.#call("POST", "/page/session", { code });
    this.key = answer.key;
    keep.save("key", this.key);
    this.#learn(answer);
  }

  /** Tell whether this browser is signed in. */
  async isSignedIn() {
    if (!this.key) return false;
    try {
      this.#learn(await this.#call("GET", "/page/session"));
      return true;
    } catch (error) {
      if (error.status === 401) return false;
      throw error;
    }
  }

  async signOut() {
    await this.#call("DELETE", "/page/session");
    this.forget();
  }

  forget() {
    this.key = "";
    keep.save("key", "");
  }

  choose(vault) {
    this.vault = vault;
    keep.save("vault", vault);
  }

  /** Ask for an answer that comes in pieces; gives the response, which was accepted. */
  async open(method, path, { body, headers = {}, signal } = {}) {
    const sent = { [KEY_HEADER]: this.key, accept: "text/event-stream", ...headers };
    return this.#fetch(path, this.#request(method, body && this.#placed(body), sent, signal));
  }

  async #call(method, path, body) {
    const response = await this.#fetch(path, this.#request(method, body, { [KEY_HEADER]: this.key }));
    return response.status === 204 ? {} : response.json();
  }

  #request(method, body, headers, signal) {
    const own = { method, headers, signal, credentials: "same-origin", cache: "no-store", redirect: "error" };
    if (body === undefined) return own;
    return { ...own, headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  }

  async #fetch(path, request) {
    const response = await fetch(path, request).catch((error) => {
      if (error.name === "AbortError") throw error;
      this.onReach(false);
      throw new Failure("the server can't be reached", "offline", "is `knap serve` running?");
    });
    this.onReach(true);
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    if (response.status === 401 && path !== "/page/session") this.onSignedOut();
    const message = said.error ?? `the server answered ${response.status}`;
    throw new Failure(message, said.code, said.hint, response.status);
  }

  #asked(path, query) {
    const named = Object.entries(this.#placed(query)).filter(([, value]) => value !== null);
    const said = new URLSearchParams(named.map(([name, value]) => [name, String(value)]));
    return said.size ? `${path}?${said}` : path;
  }

  /** Name the vault, where there are several to choose from. */
  #placed(given) {
    return this.vaults.length > 1 ? { ...given, vault: given.vault || this.vault } : given;
  }

  #learn(answer) {
    this.vaults = answer.vaults ?? [];
    this.version = answer.version ?? "";
    if (!this.vaults.includes(this.vault)) this.vault = this.vaults[0] ?? "";
  }
}

/** Give the address of a note. */
export function noteAddress(path) {
  return `/notes/${path.split("/").map(encodeURIComponent).join("/")}`;
}
