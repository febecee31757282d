/** The notes that pass the filters of a search without words: those changed last come first, a page at a time. */

import { textOf, type Client, type Reply } from "../../client";
import { noteName } from "../format";
import type { SearchQuery } from "./query";
import type { Hit, SearchAnswer } from "./session";

type NotePage = Reply<"post", "/tools/find_notes">;

/** What is known of a list after some of its pages. */
export interface Listing {
  /** The notes as hits without a place, each once. */
  answer: SearchAnswer;
  /** How many there are. */
  total: number;
}

/** Reads the next page: what is known by then. */
export type NextPage = (signal: AbortSignal) => Promise<Listing>;

interface Part {
  folder: string;
  hits: Hit[];
  total: number;
}

const PAGE = 50;

/** Leave out folders that lie below another one of the list. */
export function outermost(folders: readonly string[]): string[] {
  const byKey = new Map(folders.map((folder) => [`${folder.replace(/\/+$/, "").toLowerCase()}/`, folder]));
  return [...byKey].filter(([key]) => ![...byKey.keys()].some((other) => other !== key && key.startsWith(other))).map(([, folder]) => folder);
}

/**
 * Read the list of a search's filters in pages.
 *
 * The server lists one folder at a time. With several, a page is read of each, and shown as far as all of them reach: a note
 * of the next page never comes before one that is shown.
 */
export function listBy(client: Client, search: SearchQuery, size = PAGE): NextPage {
  const parts = (search.folders.length ? outermost(search.folders) : [""]).map((folder): Part => ({ folder, hits: [], total: Infinity }));
  const isWhole = (part: Part) => part.hits.length >= part.total;
  return async (signal) => {
    const open = parts.filter((part) => !isWhole(part));
    const pages = await Promise.all(open.map((part) => client.post("/tools/find_notes", { body: pageOf(search, part, size), signal })));
    const [page] = pages;
    if (!page) throw new Error("the list has no further page");
    for (const [at, part] of open.entries()) {
      part.hits.push(...(pages[at]?.results ?? []).map(hitOf));
      part.total = pages[at]?.results.length ? pages[at].total : part.hits.length;
    }
    const reached = parts.filter((part) => !isWhole(part)).map((part) => timeOf(part.hits.at(-1)));
    const results = parts
      .flatMap((part) => part.hits)
      .filter((hit) => reached.every((time) => timeOf(hit) >= time))
      .sort((one, other) => timeOf(other) - timeOf(one));
    return { answer: answerOf(page, results), total: parts.reduce((sum, part) => sum + part.total, 0) };
  };
}

function pageOf({ tags, properties, from, to, dates }: SearchQuery, { folder, hits }: Part, size: number) {
  return {
    folder,
    sort: "-modified",
    fields: ["modified", "preview"],
    limit: size,
    offset: hits.length,
    ...(tags.length ? { tags: [...tags] } : {}),
    ...(properties.length ? { properties: [...properties] } : {}),
    ...(from ? { [`${dates}_from`]: from } : {}),
    ...(to ? { [`${dates}_to`]: to } : {}),
  };
}

function hitOf(row: Readonly<Record<string, unknown>>): Hit {
  const [path, preview] = [textOf(row["path"]), textOf(row["preview"])];
  const text = preview.replace(/^#+ /, "");
  const name = `${noteName(path)} `; // the title stands above the text already
  return {
    source: path,
    content: text.startsWith(name) ? text.slice(name.length) : preview,
    modified: textOf(row["modified"]),
    heading: "top-level",
    start_line: 0,
    end_line: 0,
    score: 0,
    hash: "",
    ...(row["foreign"] === true ? { foreign: true } : {}),
  };
}

function answerOf(page: NotePage, results: Hit[]): SearchAnswer {
  const { success, index_stale, as_of, index_incomplete, notes } = page;
  return { success, results, index_stale, as_of, index_incomplete, pending: 0, ...(notes ? { notes } : {}) };
}

function timeOf(hit: Hit | undefined): number {
  return Date.parse(hit?.modified ?? "") || 0;
}
