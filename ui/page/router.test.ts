import { describe, expect, it } from "vitest";
import { href, matchPath, Router, type Addresses } from "./router";
import { VIEWS } from "./views";

function addresses(first: string): Addresses & { all: string[]; back: () => void } {
  let changed = () => undefined as void;
  const all = [first];
  return {
    all,
    current: () => all.at(-1) ?? "/",
    push: (to) => void all.push(to),
    replace: (to) => void (all[all.length - 1] = to),
    listen: (told) => {
      changed = told;
      return () => undefined;
    },
    back: () => {
      all.pop();
      changed();
    },
  };
}

describe("patterns", () => {
  it.each([
    ["notes", "notes", {}],
    ["notes/*path", "notes/a/b%20c.md", { path: "a/b c.md" }],
    ["notes/*path", "notes", null],
    ["runs/:id", "runs/r%2F1", { id: "r/1" }],
    ["runs/:id", "runs/", null],
    ["runs/:id", "runs/a/b", null],
    ["runs/:id", "runs/%E0%A4%A", { id: "%E0%A4%A" }],
    ["journal", "journals", null],
  ])("%s and %s", (pattern, path, expected) => {
    expect(matchPath(pattern, path)).toEqual(expected);
  });
});

describe("addresses", () => {
  it.each(["Plans/Rain.md", "100 % & more?.md", "#tag/ä 😀.md", "a+b.md", "..hidden/x.md"])("of the note %s lead back to it", (path) => {
    const router = new Router(VIEWS, addresses(href(`notes/${path}`, { lines: "3-4" }, "Sun & rain")));

    expect(router.route.value).toMatchObject({ view: "notes", params: { path }, query: { lines: "3-4" }, hash: "Sun & rain" });
  });

  it.each(["/", "/app", "/app/", "/app/nothing", "/elsewhere", "//evil.example/app/notes", "/app/%", "/app/notes/%"])("%s shows a view", (address) => {
    expect(VIEWS.map((view) => view.id)).toContain(new Router(VIEWS, addresses(address)).route.value.view);
  });

  it("go forth and back", () => {
    const own = addresses("/");
    const router = new Router(VIEWS, own);

    router.go(href("search", { q: "rain" }));
    router.go(href("search", { q: "rains" }), { replace: true });
    expect(router.route.value.query).toEqual({ q: "rains" });
    own.back();

    expect(router.route.value.query).toEqual({});
    expect(own.all).toEqual(["/"]);
  });

  it("are taken from links of the page alone", () => {
    const router = new Router(VIEWS, addresses("/"));
    const click = (to: string, more: object = {}, target = "") => {
      const link = document.createElement("a");
      link.setAttribute("href", to);
      if (target) link.target = target;
      document.body.append(link);
      const event = new MouseEvent("click", { cancelable: true, bubbles: true, ...more });
      link.addEventListener("click", (found) => router.take(found));
      link.dispatchEvent(event);
      link.addEventListener("click", (found) => found.preventDefault());
      return event.defaultPrevented;
    };

    expect(click("/app/notes/Rain.md")).toBe(true);
    expect(router.route.value.params).toEqual({ path: "Rain.md" });
    expect(click("/app/runs", { ctrlKey: true })).toBe(false);
    expect(click("/app/runs", {}, "_blank")).toBe(false);
    expect(click("/apple")).toBe(false);
  });
});
