/** The built main.js where nothing of Node is, as on a phone. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "knapper-plugin-"));
let code = "";

beforeAll(() => {
  execFileSync(process.execPath, ["esbuild.config.mjs", "--out", folder], { cwd: ROOT });
  code = readFileSync(join(folder, "main.js"), "utf8");
});
afterAll(() => rmSync(folder, { recursive: true }));

it("loads without Node's modules and globals, and asks for what Obsidian gives alone", () => {
  const asked = new Set();
  const require = (name) => {
    asked.add(name);
    if (name !== "obsidian" && !/^@(codemirror|lezer)\/[\w-]+$/.test(name)) throw new Error(`${name} isn't there, as on a phone`);
    const some = class {};
    return new Proxy({}, { get: (_, key) => (key === "StateEffect" || key === "StateField" || key === "Decoration" ? { define: () => some, line: () => some, mark: () => some, none: some } : some) });
  };
  const module = { exports: {} };
  const window = { navigator: { userAgent: "" } };
  const phone = createContext({ window, module, exports: module.exports, require, setTimeout, clearTimeout, URL, AbortController, TextDecoder, TextEncoder });
  runInContext(code, phone);

  expect(typeof module.exports.default).toBe("function");
  expect([...asked].sort()).toEqual(["@codemirror/commands", "@codemirror/state", "@codemirror/view", "obsidian"]);
  expect(code).not.toMatch(/(?<![.\w])(?:process|Buffer|__dirname|__filename)\b[.[(]/);
});

it("can be read: lines are short, and names are those of the sources", () => {
  const lines = code.split("\n");

  expect(lines.length).toBeGreaterThan(10_000);
  expect(code).toContain("Decisions = class");
  expect(code).toContain("acceptInEditor(view, disk, hunks)");
  expect(code.length / lines.length).toBeLessThan(60);
});
