/** Reach the server from inside Obsidian: by its own `requestUrl`, and by `fetch` where answers may come in pieces. */

import { requestUrl } from "obsidian";
import { Failure, fetchTransport, type Answer, type Exchange, type Transport } from "../../ui/client/transport";

const PROBE_MS = 2_500;

/**
 * Send requests with Obsidian's `requestUrl`, which no rule of the browser stops, and which can't stream.
 *
 * @param base Such as `http://127.0.0.1:25627`.
 * @param streams Whether `fetch` was seen to reach the server; see `canStream`.
 */
export function appTransport(base: string, streams: boolean): Transport {
  const transport: Transport = { send: (exchange) => unlessAborted(send(base, exchange), exchange.signal) };
  if (streams) {
    const direct = fetchTransport(base);
    transport.stream = (exchange) => direct.stream!(exchange);
  }
  return transport;
}

async function send(base: string, { method, path, headers, body }: Exchange): Promise<Answer> {
  let response;
  try {
    response = await requestUrl({ url: base + path, method, headers, throw: false, ...(body === undefined ? {} : { body }) });
  } catch {
    throw new Failure("the server can't be reached", "offline", "is it running? `knap service start` starts it");
  }
  const named = new Map(Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    status: response.status,
    header: (name) => named.get(name.toLowerCase()) ?? null,
    text: () => Promise.resolve(response.text),
    blob: () => Promise.resolve(new Blob([response.arrayBuffer])),
  };
}

/** `requestUrl` can't be taken back; what it brings after the signal is dropped. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(new DOMException("aborted", "AbortError"));
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Say whether `fetch` reaches the server from here; phones and newer versions of Electron may refuse it. */
export async function canStream(base: string): Promise<boolean> {
  const abort = new AbortController();
  const timer = window.setTimeout(() => abort.abort(), PROBE_MS);
  try {
    const answer = await fetchTransport(base).stream!({ method: "GET", path: "/health", headers: {}, signal: abort.signal });
    return answer.status === 200;
  } catch {
    return false;
  } finally {
    window.clearTimeout(timer);
  }
}

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/;
const SECURE = /^https:\/\/[A-Za-z0-9.-]+(:\d{1,5})?$/;

/**
 * Return a server's address as it is kept, or undefined where it isn't one that a token may be sent to.
 *
 * Plain HTTP goes to this computer alone: on its way to another, everybody could read the token and the notes.
 */
export function checkAddress(typed: string, isPhone: boolean): string | undefined {
  const address = typed.trim().replace(/\/+$/, "");
  if (SECURE.test(address)) return address;
  return !isPhone && LOOPBACK.test(address) ? address : undefined;
}
