/** Hold ui/ to its rules: types, stale generated files, a lock file without addresses,
 * style classes, unit tests. Goes on after a failure. */
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

const failed = [];
for (const [name, code, text] of await Promise.all([lock(), classes(), ...Object.entries(steps).map(([name, words]) => run(name, words))])) {
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

/** All style sheets become one, so a class belongs to one part: the same name in two would draw over each other. */
async function classes() {
  const owners = new Map();
  for (const folder of ["parts", "page"])
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (!name.endsWith(".css") || name.endsWith(".lazy.css") || name.endsWith("offline.css")) continue;
      const path = join(folder, name);
      const rules = (await readFile(join(root, path), "utf8")).replace(/\/\*[\s\S]*?\*\//g, "").matchAll(/([^{}]+)\{/g);
      for (const [, selectors] of rules)
        for (const selector of selectors.split(",")) {
          const found = /^\.(k-[\w-]+)$/.exec(selector.trim())?.[1];
          if (found) owners.set(found, (owners.get(found) ?? new Set()).add(dirname(path)));
        }
    }
  const problems = [...owners].flatMap(([name, folders]) => (folders.size > 1 ? [`.${name} is styled in ${[...folders].join(" and ")}`] : []));
  if (!owners.size) problems.push("no style sheet was found");
  return ["each style class in one part", problems.length, problems.join("\n")];
}
