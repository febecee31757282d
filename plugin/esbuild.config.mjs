/**
 * Build main.js, styles.css and manifest.json into the package; `--watch` builds at each change, `--out FOLDER` elsewhere, and
 * `--sizes` says how many bytes of main.js come from where.
 */
import { build, context, transform } from "esbuild";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dropFields, layout } from "./layout.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv.indexOf("--out");
const TARGET = out > 0 ? process.argv[out + 1] : join(HERE, "../src/knapper/data/plugin");
const MAX_BYTES = 430_000;
/** What Obsidian itself gives a plugin. */
const EXTERNAL = ["electron", "@lezer/*"];
const GIVEN = /^(?:obsidian|@codemirror\/[\w-]+)$/;
/** The styles of the shared parts that the plugin draws, in their order. */
const SHEETS = ["style/parts.css", "style/prose.css", "chat/chat.css", "review/review.css", "review/changes.css", "search/search.css", "runs/runs.css"];
const KEYFRAMES = /@keyframes [\w-]+ \{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g;
const BANNER = "/* Knapper for Obsidian (MIT). Built from plugin/ and ui/ of its repository by esbuild, not minified. */";

/**
 * The plugin's own styles, behind those of the shared parts. Obsidian styles every button and field with more weight than
 * one class has, so each rule of the parts holds below `.knapper-view`, which has one more.
 */
async function styles() {
  const read = async (path) => (await readFile(join(HERE, path), "utf8")).replaceAll("\r\n", "\n");
  const parts = await Promise.all(SHEETS.map((name) => read(`../ui/parts/${name}`)));
  const frames = parts.join("\n").match(KEYFRAMES) ?? [];
  // A sidebar is narrow in a wide window: what depends on the width looks at the view's own.
  const within = (sheet) =>
    sheet.replaceAll(KEYFRAMES, "").replaceAll(/(^|[\s,])\.knapper(?![\w-])/g, "$1&").replaceAll(/@media \((m\w\w-width:[^)]*)\)/g, "@container ($1)");
  const nested = `${[...new Set(frames)].join("\n")}\n.knapper-view {\n${parts.map(within).join("\n")}\n}`;
  const { code } = await transform(nested, { loader: "css", target: ["chrome108", "ios16"], charset: "utf8" });
  const tokens = [await read("../ui/parts/style/tokens.css"), await read("../ui/parts/style/tokens.obsidian.css")];
  return [...tokens, await read("reset.css"), code, await read("styles.css")].join("\n");
}

/** Modules that Obsidian makes needless: it has icons and draws Markdown, and code's colours aren't worth their size. */
const INSTEAD = [
  [/parts[\\/]icons\.data\.ts$/, "icons.ts"],
  [/parts[\\/]markdown[\\/]code\.tsx$/, "code.tsx"],
  [/parts[\\/]markdown[\\/]markdown\.tsx$/, "markdown.tsx"],
  [/parts[\\/]markdown[\\/]citing\.tsx$/, "citing.ts"],
];
const PURE = /\/\* @__PURE__ \*\/ ?/g;
const OWN_DOCUMENT = /(?<![\w.$])document(?=\.(?:activeElement|getElementById|getSelection|querySelector|body|hidden)\b)/g;
/** Asks for each of Obsidian's modules once, and for no more of it than is used, by the names that the sources have. */
const given = {
  name: "given",
  setup(options) {
    options.onResolve({ filter: GIVEN }, ({ path, kind }) => (kind === "require-call" ? { path, external: true } : { path, namespace: "given" }));
    options.onLoad({ filter: GIVEN, namespace: "given" }, async ({ path }) => {
      const sources = await Promise.all((await readdir(join(HERE, "src"), { recursive: true })).filter((name) => /\.tsx?$/.test(name)).map((name) => readFile(join(HERE, "src", name), "utf8")));
      const lists = sources.flatMap((text) => [...text.matchAll(/^import \{([^}]*)\} from "([^"]+)";$/gm)]).filter(([, , from]) => from === path);
      const names = lists.flatMap(([, list]) => list.split(",").map((name) => name.trim())).filter((name) => name && !name.startsWith("type "));
      return { contents: `export const { ${[...new Set(names)].sort().join(", ")} } = require("${path}");` };
    });
  },
};
const instead = {
  name: "instead",
  setup(options) {
    // Preact can set HTML where a part asks for it; none does, and here it would be set as text.
    options.onLoad({ filter: /preact[\\/]dist[\\/]preact\.(module\.js|mjs)$/ }, async ({ path }) => ({ contents: (await readFile(path, "utf8")).replaceAll(/\binnerHTML\b/g, "textContent") }));
    for (const [filter, file] of INSTEAD) {
      const path = join(HERE, "src/instead", file);
      options.onLoad({ filter }, async () => ({ contents: await readFile(path, "utf8"), loader: file.endsWith("x") ? "tsx" : "ts", resolveDir: join(HERE, "src/instead") }));
    }
    // The page has one window; here a view may be in a popout, whose document is another.
    options.onLoad({ filter: /ui[\\/]parts[\\/].*\.tsx?$/ }, async ({ path }) => ({ contents: (await readFile(path, "utf8")).replaceAll(OWN_DOCUMENT, "activeDocument"), loader: path.endsWith("x") ? "tsx" : "ts" }));
  },
};

/** The comments that esbuild leaves, which are those of members of classes: the sources have all. */
const COMMENT = /^[ ]*\/\*\*(?:[^*]|\*(?!\/))*\*\/\n/gm;
/** Lay main.js out to be read, without marks for other bundlers, or throw where it would mean something else. */
async function write(code) {
  const plain = dropFields(code.replaceAll(PURE, "").replaceAll(COMMENT, ""));
  const laidOut = layout(plain);
  const [before, after] = await Promise.all([plain, laidOut].map((text) => transform(text, { minifyWhitespace: true, legalComments: "none", charset: "utf8" })));
  if (before.code !== after.code) throw new Error("main.js means something else when it is laid out");
  return laidOut;
}

/** Throw where the plugin draws what a sheet of the parts has styles for, and hasn't taken the sheet. */
async function checkStyles(main, sheet) {
  const classes = (text) => new Set(text.match(/\bk-[a-z][\w-]*/g));
  const [used, had] = [classes(main), classes(sheet)];
  const parts = join(HERE, "../ui/parts");
  for (const name of await readdir(parts, { recursive: true })) {
    if (!name.endsWith(".css") || name.endsWith(".lazy.css")) continue;
    const styled = [...(await readFile(join(parts, name), "utf8")).matchAll(/\.(k-[a-z][\w-]*)/g)].map(([, found]) => found);
    const lacking = styled.find((found) => used.has(found) && !had.has(found));
    if (lacking) throw new Error(`${lacking} is drawn without its styles: put ${name} among SHEETS`);
  }
}

/** Print how many bytes each package and folder has in the output, the largest first; before it is laid out. */
function printSizes({ outputs }) {
  const [{ inputs, bytes }] = Object.values(outputs);
  const sums = new Map();
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path.replace(/^(?:\.\.\/)+/, "").replace(/\/[^/]+$/, "");
    sums.set(name, (sums.get(name) ?? 0) + bytesInOutput);
  }
  for (const [name, sum] of [...sums].sort((one, other) => other[1] - one[1])) if (sum) console.log(`${String(sum).padStart(7)}  ${name}`);
  console.log(`${String(bytes).padStart(7)}  all`);
}

/** Write the files that aren't code, and hold main.js to its size. */
const finish = {
  name: "finish",
  setup(options) {
    options.onEnd(async (result) => {
      if (result.errors.length) return;
      if (process.argv.includes("--sizes")) printSizes(result.metafile);
      const main = await write(result.outputFiles[0].text);
      if (Buffer.byteLength(main) > MAX_BYTES) throw new Error(`main.js has ${Buffer.byteLength(main)} bytes; ${MAX_BYTES} at most`);
      await mkdir(TARGET, { recursive: true });
      await writeFile(join(TARGET, "main.js"), main);
      const sheet = await styles();
      await checkStyles(main, sheet);
      await writeFile(join(TARGET, "styles.css"), sheet);
      await writeFile(join(TARGET, "manifest.json"), (await readFile(join(HERE, "manifest.json"), "utf8")).replaceAll("\r\n", "\n"));
    });
  },
};

const options = {
  absWorkingDir: HERE,
  entryPoints: ["src/main.ts"],
  bundle: true,
  format: "cjs",
  target: "es2022",
  platform: "browser",
  charset: "utf8",
  minify: false,
  write: false,
  metafile: true,
  legalComments: "inline",
  banner: { js: BANNER },
  external: EXTERNAL,
  // ui/ has packages of its own, for the page; here each comes once, in this lock file's version.
  alias: Object.fromEntries(["preact", "@preact/signals"].map((name) => [name, join(HERE, "node_modules", name)])),
  nodePaths: [join(HERE, "node_modules")],
  jsxFactory: "jsxElement",
  jsxFragment: "jsxFragment",
  // Names that no module has for something else.
  inject: [join(HERE, "src/instead/element.ts")],
  tsconfigRaw: { compilerOptions: { target: "es2022", jsx: "react" } },
  jsxSideEffects: true, // without a comment before each element
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [given, instead, finish],
  logLevel: "warning",
};

if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
