/** Write parts/icons.data.ts from Lucide: only the icons that scripts/icons.txt names. */
import { readFile, writeFile } from "node:fs/promises";

const at = (path) => new URL(path, import.meta.url);
const nodes = JSON.parse(await readFile(at("../node_modules/lucide-static/icon-nodes.json"), "utf8"));
const names = [...new Set((await readFile(at("icons.txt"), "utf8")).split(/\s+/).filter(Boolean))].sort();
const unknown = names.filter((name) => !nodes[name]);
if (unknown.length) {
  console.error(`scripts/icons.txt: Lucide has no ${unknown.join(", ")}`);
  process.exit(1);
}
const rows = names.map((name) => `  "${name}": ${JSON.stringify(nodes[name].map(([tag, attributes]) => [tag, attributes]))},`);
const text = `/** Lucide's icons (ISC licence). \`npm run icons\` writes this file from scripts/icons.txt; change that. */

export type IconNode = readonly [tag: string, attributes: Readonly<Record<string, string>>];

export const ICONS = {
${rows.join("\n")}
} satisfies Record<string, readonly IconNode[]>;
`;
if (process.argv.includes("--check")) {
  if ((await readFile(at("../parts/icons.data.ts"), "utf8").catch(() => "")).replaceAll("\r\n", "\n") !== text) {
    console.error("parts/icons.data.ts is stale; scripts/page npm run icons writes it anew.");
    process.exit(1);
  }
} else {
  await writeFile(at("../parts/icons.data.ts"), text);
}
