/** Hold ui/ to its rules: types, stale generated files, a lock file without addresses,
 * style classes, tokens, unit tests. Goes on after a failure. */
import { spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const steps = {
  "types (tsc)": ["node_modules/typescript/bin/tsc", "-p", "."],
  "client/schema.d.ts against the server": ["scripts/types.mjs", "--check"],
  "parts/icons.data.ts against Lucide": ["scripts/icons.mjs", "--check"],
  "unit tests (vitest)": ["node_modules/vitest/vitest.mjs", "run", "--reporter=dot"],
};

const SPACE = /^(?:row-gap|column-gap|gap|padding|margin|inset|top|left|right|bottom|scroll-margin)(?:-\w+)*$/;

const failed = [];
for (const [name, code, text] of await Promise.all([lock(), classes(), tokens(), ...Object.entries(steps).map(([name, words]) => run(name, words))])) {
  console.log(`ui: ${name}: ${code ? "failed" : "good"}`);
  if (code) {
    failed.push(name);
    console.log(text.trim());
  }
}
process.exit(failed.length ? 1 : 0);

function run(name, words) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, words, { cwd: root });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (text += piece));
    child.on("close", (code) => resolve([name, code ?? 1, text]));
  });
}

/** The lock names packages by version and hash alone, so that any registry may serve them. */
async function lock() {
  const text = await readFile(new URL("../package-lock.json", import.meta.url), "utf8");
  const packages = Object.entries(JSON.parse(text).packages);
  const named = packages.filter(([, row]) => row.resolved).map(([name]) => name);
  const bare = packages.filter(([name, row]) => name && !row.integrity && !row.link).map(([name]) => name);
  const problems = [
    ...(named.length ? [`these have an address (resolved): ${named.join(", ")}; npm install with ui/.npmrc writes none`] : []),
    ...(bare.length ? [`these have no hash (integrity): ${bare.join(", ")}`] : []),
  ];
  return ["package-lock.json without addresses, with hashes", problems.length, problems.join("\n")];
}

/** Give each style sheet that the page and the plugin share: path, and its rules without comments. */
async function sheets() {
  const found = [];
  for (const folder of ["parts", "page"])
    for (const name of (await readdir(join(root, folder), { recursive: true })).sort()) {
      if (!name.endsWith(".css") || name.endsWith("offline.css")) continue;
      const text = await readFile(join(root, folder, name), "utf8");
      found.push({ path: join(folder, name), text: text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, "")) });
    }
  return found;
}

/** What a value has to be: one of the tokens for letters, corners and colours; in steps of 4 px for lines and space, and up to 2 px for hairlines. */
function offToken(property, value) {
  const sizes = [...value.matchAll(/(?<![\w.-])-?\d*\.?\d+(?=px)/g)].map(([size]) => Math.abs(Number(size)));
  if (!property.startsWith("mask") && /#[0-9a-f]{3,8}\b|\b(?:rgb|hsl)a?\(/i.test(value)) return "a colour of its own";
  if (property === "font-size" || property === "border-radius") return sizes.length > 0 && "no token";
  if (property === "font") return /\d+px\s*(?:\/|\S*$)/.test(value.split("/")[0]) ? "no token" : value.includes("/") && sizes.at(-1) % 4 > 0 && "not in steps of 4 px";
  if (property === "line-height") return sizes.some((size) => size % 4) && "not in steps of 4 px";
  return SPACE.test(property) && sizes.some((size) => size > 2 && size % 4) && "not in steps of 4 px";
}

/** One set of sizes, corners and colours, all in parts/style/tokens.css. */
async function tokens() {
  const all = await sheets();
  const named = all.filter(({ path }) => path.includes("tokens"));
  const known = new Set(named.flatMap(({ text }) => [...text.matchAll(/(--k-[\w-]+):/g)].map(([, name]) => name)));
  const problems = [];
  for (const { path, text } of all) {
    if (!path.includes("tokens"))
      text.split("\n").forEach((line, at) => {
        const [, property, value] = /^\s*([\w-]+):\s*([^;]*);/.exec(line) ?? [];
        const problem = property && offToken(property, value);
        if (problem) problems.push(`${path}:${at + 1}: ${property}: ${value} is ${problem}`);
      });
    const own = new Set([...text.matchAll(/(--k-[\w-]+):/g)].map(([, name]) => name));
    for (const [, name] of text.matchAll(/var\((--k-[\w-]+)\)/g)) if (!known.has(name) && !own.has(name)) problems.push(`${path}: there is no token ${name}`);
  }
  if (!known.size) problems.push("no token was found");
  return ["tokens of parts/style/tokens.css", problems.length, problems.join("\n")];
}

/** All style sheets become one, so a class belongs to one part: the same name in two would draw over each other. */
async function classes() {
  const owners = new Map();
  for (const { path, text } of await sheets()) {
    if (path.endsWith(".lazy.css")) continue;
    for (const [, selectors] of text.matchAll(/([^{}]+)\{/g))
      for (const selector of selectors.split(",")) {
        const found = /^\.(k-[\w-]+)$/.exec(selector.trim())?.[1];
        if (found) owners.set(found, (owners.get(found) ?? new Set()).add(dirname(path)));
      }
  }
  const problems = [...owners].flatMap(([name, folders]) => (folders.size > 1 ? [`.${name} is styled in ${[...folders].join(" and ")}`] : []));
  if (!owners.size) problems.push("no style sheet was found");
  return ["each style class in one part", problems.length, problems.join("\n")];
}
