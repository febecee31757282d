/** How requests reach the server: by `fetch` in a browser, by something else where an app must use its own. */

export interface Exchange {
  method: string;
  /** Begins with a slash; the transport knows the host. */
  path: string;
  headers: Record<string, string>;
  body?: string;
  signal?: AbortSignal | undefined;
}

export interface Answer {
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  blob(): Promise<Blob>;
}

export interface Transport {
  /** Send a request, and wait for the whole answer. Throws a `Failure` of code `offline` where nothing answers. */
  send(exchange: Exchange): Promise<Answer>;
  /** The same, with the answer's text in pieces as they come; missing where that can't be done, such as on a phone. */
  stream?(exchange: Exchange): Promise<{ status: number; pieces: AsyncIterable<string>; text(): Promise<string> }>;
}

/** What went wrong, as the server says it: a message, a stable code, and a next step. */
export class Failure extends Error {
  constructor(
    message: string,
    /** For programs; `offline` where the server can't be reached. */
    readonly code: string = "error",
    /** The next step; may be empty. */
    readonly hint: string = "",
    /** Of HTTP; 0 where there was no answer. */
    readonly status: number = 0,
    /** Whatever else the answer told, such as the hash of a note that changed meanwhile. */
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = "Failure";
  }

  get isOffline(): boolean {
    return this.code === "offline";
  }

  /** Whether the same request may do later: nothing answered, too many asked, or the server was about to stop. */
  get isPassing(): boolean {
    return this.isOffline || this.status === 429 || this.status === 503;
  }
}

/** Turn whatever was thrown into a `Failure`. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(error instanceof Error ? error.message : String(error), "unexpected");
}

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** What the server says to programs, which the page or plugin does for a person. */
const FOR_PERSONS: Readonly<Record<string, string>> = {
  "it may have been deleted; list the runs": "it may have been deleted",
  "list the proposals for their ids": "it may have been deleted, or is another vault's",
  "list the sessions": "it may have been deleted, or is another vault's",
  "/openapi.json lists what there is": "the server may be of another version",
  "send it as 'Authorization: Bearer TOKEN'; `knap token` tells where it lies": "sign in again, or connect this device anew",
};

/** Return a hint of the server as it is shown to a person. */
export function hintForPerson(hint: string): string {
  return Object.hasOwn(FOR_PERSONS, hint) ? (FOR_PERSONS[hint] ?? hint) : hint;
}

/** Read the failure out of an answer that isn't a good one. */
export function failureOfAnswer(status: number, text: string): Failure {
  let told: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed !== null && typeof parsed === "object") told = parsed as Record<string, unknown>;
  } catch {
    // Not of the server's own making, such as a proxy's page: its status says enough.
  }
  const { error, code, hint, ...details } = told;
  const word = (value: unknown, otherwise: string) => (typeof value === "string" && value ? value : otherwise);
  return new Failure(word(error, `the server returned ${status}`), word(code, "error"), hintForPerson(word(hint, "")), status, details);
}

const OFFLINE_HINT = "is `knap serve` running?";

/**
 * Send requests with the browser's own `fetch`.
 *
 * @param base Such as `http://127.0.0.1:8000`; empty for the page's own server.
 */
export function fetchTransport(base = ""): Transport {
  const ask = async ({ method, path, headers, body, signal }: Exchange): Promise<Response> => {
    try {
      return await fetch(base + path, {
        method,
        headers,
        credentials: base ? "omit" : "same-origin",
        cache: "no-store",
        redirect: "error",
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new Failure("the server can't be reached", "offline", OFFLINE_HINT);
    }
  };
  return {
    async send(exchange) {
      const response = await ask(exchange);
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        text: () => response.text(),
        blob: () => response.blob(),
      };
    },
    async stream(exchange) {
      const response = await ask(exchange);
      return { status: response.status, pieces: decode(response), text: () => response.text() };
    },
  };
}

async function* decode(response: Response): AsyncGenerator<string> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Failure("the connection was lost", "offline", OFFLINE_HINT);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
