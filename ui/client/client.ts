/** Call the server's routes, with the types that its own OpenAPI document gives. */

import type { paths } from "./schema";
import { Failure, failureOfAnswer, type Answer, type Transport } from "./transport";
import { textOf } from "./values";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have a method. */
export type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: unknown } ? P : never }[keyof paths];

type Operation<M extends Method, P extends keyof paths> = paths[P] extends { [K in M]: infer O } ? O : never;
type Json<T> = T extends { content: { "application/json": infer B } } ? B : never;
type Good<R> = R extends { 200: infer A } ? A : R extends { 201: infer A } ? A : R extends { 202: infer A } ? A : never;

/** What a route answers, such as `Reply<"get", "/search">`. */
export type Reply<M extends Method, P extends PathOf<M>> = Operation<M, P> extends { responses: infer R } ? Json<Good<R>> : never;
/** What a route takes in its body. */
export type Body<M extends Method, P extends PathOf<M>> = Operation<M, P> extends { requestBody?: infer B } ? Json<NonNullable<B>> : never;
type Query<O> = O extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
type PathValues<O> = O extends { parameters: { path: infer V } } ? V : never;

/** What a call is given; `path` is wanted where the route's path has a name in braces. */
export type Given<M extends Method, P extends PathOf<M>> = {
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
} & ([Query<Operation<M, P>>] extends [never] ? unknown : { query?: Query<Operation<M, P>> }) &
  ([Body<M, P>] extends [never] ? unknown : { body?: Body<M, P> }) &
  ([PathValues<Operation<M, P>>] extends [never] ? unknown : { path: PathValues<Operation<M, P>> });

/** What calls without types are given. */
export interface RawGiven {
  query?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

export interface ClientOptions {
  transport: Transport;
  /** Sent with each request, such as the key of a signed-in browser or a token. */
  headers: () => Record<string, string>;
  /** The vault that calls are about; empty where the server has but one. */
  vault?: () => string;
  /** Told where the server doesn't know the caller any more. */
  onUnauthorized?: (failure: Failure) => void;
  /** Told after each request whether the server could be reached. */
  onReach?: (isReached: boolean) => void;
}

export class Client {
  constructor(readonly options: ClientOptions) {}

  get<P extends PathOf<"get">>(path: P, given?: Given<"get", P>): Promise<Reply<"get", P>> {
    return this.call("get", path, given);
  }

  post<P extends PathOf<"post">>(path: P, given?: Given<"post", P>): Promise<Reply<"post", P>> {
    return this.call("post", path, given);
  }

  put<P extends PathOf<"put">>(path: P, given?: Given<"put", P>): Promise<Reply<"put", P>> {
    return this.call("put", path, given);
  }

  patch<P extends PathOf<"patch">>(path: P, given?: Given<"patch", P>): Promise<Reply<"patch", P>> {
    return this.call("patch", path, given);
  }

  delete<P extends PathOf<"delete">>(path: P, given?: Given<"delete", P>): Promise<Reply<"delete", P>> {
    return this.call("delete", path, given);
  }

  /** Call a route that isn't in the document, such as signing in. */
  async raw<T>(method: string, path: string, given: RawGiven = {}): Promise<T> {
    const answer = await this.answer(method, path, given);
    const text = answer.status === 204 ? "" : await answer.text();
    return (text ? JSON.parse(text) : {}) as T;
  }

  /** Fetch what isn't JSON, such as an image of the vault; `URL.createObjectURL` shows it. */
  async blob(path: string, given: RawGiven = {}): Promise<Blob> {
    return (await this.answer("GET", path, given)).blob();
  }

  /** Send a request and return its answer, which is a good one. */
  async answer(method: string, path: string, given: RawGiven = {}): Promise<Answer> {
    const answer = await this.reached(() => this.options.transport.send(this.exchange(method, path, given)));
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw this.refused(failureOfAnswer(answer.status, await answer.text()));
  }

  /** Send a request whose answer comes in pieces. */
  async pieces(method: string, path: string, given: RawGiven = {}): Promise<AsyncIterable<string>> {
    const stream = this.options.transport.stream?.bind(this.options.transport);
    if (!stream) throw new Failure("streaming isn't available here", "no_streams");
    const headers = { accept: "text/event-stream", ...given.headers };
    const answer = await this.reached(() => stream(this.exchange(method, path, { ...given, headers })));
    if (answer.status === 200) return answer.pieces;
    throw this.refused(failureOfAnswer(answer.status, await answer.text()));
  }

  get canStream(): boolean {
    return this.options.transport.stream !== undefined;
  }

  private call<T>(method: Method, path: string, given: object = {}): Promise<T> {
    const { path: values, ...rest } = given as RawGiven & { path?: Record<string, unknown> };
    return this.raw<T>(method.toUpperCase(), fillPath(path, values ?? {}), rest);
  }

  private exchange(method: string, path: string, { query = {}, body, headers = {}, signal }: RawGiven) {
    const vault = this.options.vault?.() ?? "";
    const takesBody = ["POST", "PUT", "PATCH"].includes(method);
    const isOwn = path.startsWith("/page/") || path === "/health";
    const asked = vault && !takesBody && !isOwn ? { vault, ...query } : query;
    const told = vault && takesBody && !isOwn ? { vault, ...(body as object | undefined) } : (body ?? (takesBody ? {} : undefined));
    return {
      method,
      path: path + queryText(asked),
      headers: {
        ...this.options.headers(),
        ...(told === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(told === undefined ? {} : { body: JSON.stringify(told) }),
      signal,
    };
  }

  private async reached<T>(ask: () => Promise<T>): Promise<T> {
    try {
      const answer = await ask();
      this.options.onReach?.(true);
      return answer;
    } catch (error) {
      if (error instanceof Failure && error.isOffline) this.options.onReach?.(false);
      throw error;
    }
  }

  private refused(failure: Failure): Failure {
    if (failure.status === 401) this.options.onUnauthorized?.(failure);
    return failure;
  }
}

/** Put values into a path; those of `{path}` keep their slashes, as notes lie in folders. */
export function fillPath(path: string, values: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const text = textOf(values[name]);
    return name === "path" || name === "name" ? text.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(text);
  });
}

/** Write a query; what is undefined or null is left out, and lists and objects are JSON. */
export function queryText(query: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  if (!named.length) return "";
  const rows = named.map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : textOf(value)]);
  return `?${new URLSearchParams(rows)}`;
}
