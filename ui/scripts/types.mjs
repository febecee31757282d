/** Write client/schema.d.ts from the server's own OpenAPI document; with --check, only say whether it is current. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const TARGET = new URL("../client/schema.d.ts", import.meta.url);
const HEAD = "/** The server's routes. `npm run types` writes this file from its OpenAPI document; change it there. */\n\n";

const own = ["bin/python", "Scripts/python.exe"].map((name) => fileURLToPath(new URL(`../../.venv/${name}`, import.meta.url)));
const python = process.env.PYTHON ?? own.find((path) => existsSync(path)) ?? "python3";
const text = execFileSync(python, ["-m", "scripts.openapi"], {
  cwd: new URL("../..", import.meta.url),
  env: { ...process.env, PYTHONPATH: `src${process.platform === "win32" ? ";" : ":"}.` },
  encoding: "utf8",
  maxBuffer: 1 << 28,
});
const types =
  HEAD +
  astToString(await openapiTS(bare(JSON.parse(text)), { alphabetize: true, defaultNonNullable: false })).replace(
    /^ +\w+\?: never;\n/gm,
    "", // what there isn't, which is most of it
  );
if (process.argv.includes("--check")) {
  const found = await readFile(TARGET, "utf8").catch(() => "");
  if (found.replaceAll("\r\n", "\n") !== types) {
    console.error("client/schema.d.ts is stale: the server's routes changed. scripts/page npm run types writes it anew.");
    process.exit(1);
  }
} else {
  await writeFile(TARGET, types);
}

/** Leave out what no type needs: texts would be 90 % of the file, and error replies all have one shape. */
function bare(value, name = "") {
  if (Array.isArray(value)) return value.map((item) => bare(item));
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key, item]) => {
    if (["description", "summary", "title", "examples"].includes(key) && typeof item === "string") return false;
    if (name === "responses") return key.startsWith("2");
    return true;
  });
  return Object.fromEntries(kept.map(([key, item]) => [key, bare(item, key)]));
}
