/** Addresses of the page, such as `/app/notes/Plans/Rain.md?line=3`, and the views that they lead to. */

import { computed, signal, type ReadonlySignal } from "@preact/signals";

/** The API has `/notes`, `/runs` and so on already, so the page's own addresses begin with this. */
export const BASE = "/app";

export interface Route {
  /** The view's id. */
  view: string;
  /** What the pattern's names stand for, decoded. */
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  /** What stands after `#`, decoded. */
  hash: string;
  /** The whole address, such as `/app/notes/Rain.md`. */
  href: string;
}

/** What the router needs of the browser; tests have one of their own. */
export interface Addresses {
  current(): string;
  push(href: string): void;
  replace(href: string): void;
  listen(changed: () => void): () => void;
}

export const browserAddresses: Addresses = {
  current: () => location.pathname + location.search + location.hash,
  push: (href) => history.pushState(null, "", href),
  replace: (href) => history.replaceState(null, "", href),
  listen: (changed) => {
    addEventListener("popstate", changed);
    return () => removeEventListener("popstate", changed);
  },
};

/**
 * Fit a path to a pattern: `notes`, `runs/:id`, `notes/*path` (the rest, with its slashes). Gives the values of its names.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  const values: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith("*")) {
      const rest = given.slice(index).map(decode).join("/");
      return rest ? { ...values, [part.slice(1)]: rest } : null;
    }
    const found = given[index];
    if (found === undefined) return null;
    if (part.startsWith(":")) {
      if (!found) return null;
      values[part.slice(1)] = decode(found);
    } else if (part !== found) return null;
  }
  return given.length === wanted.length ? values : null;
}

/** Write an address of the page: `href("notes/Plans/Rain.md", {line: "3"}, "Sun")`. Give a path's parts as they are. */
export function href(path: string, query: Readonly<Record<string, string | number | undefined>> = {}, hash = ""): string {
  const rows = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const asked = rows.length ? `?${new URLSearchParams(rows.map(([name, value]) => [name, String(value)]))}` : "";
  return `${BASE}/${path.split("/").map(encodeURIComponent).join("/")}${asked}${hash ? `#${encodeURIComponent(hash)}` : ""}`;
}

interface Routed {
  id: string;
  routes: readonly string[];
}

export class Router {
  private readonly address = signal("");
  readonly route: ReadonlySignal<Route>;

  /**
   * @param views The first one's first route is what `/` shows; an address that fits none shows it too.
   */
  constructor(
    private readonly views: readonly Routed[],
    private readonly addresses: Addresses = browserAddresses,
  ) {
    this.address.value = addresses.current();
    this.route = computed(() => this.read(this.address.value));
    addresses.listen(() => (this.address.value = addresses.current()));
  }

  /** Go to an address of the page. */
  go(to: string, { replace = false }: { replace?: boolean } = {}): void {
    if (to === this.addresses.current()) return;
    if (replace) this.addresses.replace(to);
    else this.addresses.push(to);
    this.address.value = to;
  }

  /** Take a click on a link of the page's own; others are the browser's. */
  take(event: MouseEvent): void {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const to = link?.getAttribute("href") ?? "";
    if (!link || link.getAttribute("target") || !(to === "/" || to.startsWith(`${BASE}/`))) return;
    event.preventDefault();
    this.go(to);
  }

  read(address: string): Route {
    const url = new URL(address || "/", "http://page");
    const path = url.pathname === BASE || !url.pathname.startsWith(`${BASE}/`) ? "" : url.pathname.slice(BASE.length + 1).replace(/\/$/, "");
    const query = Object.fromEntries(url.searchParams);
    const rest = { query, hash: decode(url.hash.slice(1)), href: address };
    for (const view of this.views) {
      for (const pattern of view.routes) {
        const params = matchPath(pattern, path);
        if (params) return { view: view.id, params, ...rest };
      }
    }
    return { view: this.views[0]?.id ?? "", params: {}, ...rest };
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
