/** Build the page into the package: `node build.mjs`, or `node build.mjs --watch` beside `knap serve`. */
import { createHash } from "node:crypto";
import { watch } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import esbuild from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = join(HERE, "..", "src", "knapper", "data", "page");
const ADDRESS = "/page/";
const isWatching = process.argv.includes("--watch");
/** Sources in this order; all others follow by name. */
const STYLES = ["parts/style/tokens.css", "parts/style/parts.css", "parts/style/prose.css", "page/shell.css"];

/** Sent as they are. */
const PLAIN = ["icon.svg", "icon-192.png", "icon-512.png", "icon-maskable-512.png", "knapper.webmanifest"];
/** What is shown where the server can't be reached, and the worker that shows it. */
const OFFLINE = ["offline.html", "offline.css", "offline.js", "worker.js"];

const common = {
  absWorkingDir: HERE,
  bundle: true,
  minify: !isWatching,
  sourcemap: isWatching ? "inline" : false,
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
  outdir: TARGET,
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  assetNames: "assets/[name]-[hash]",
  publicPath: ADDRESS,
  loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
  logLevel: "warning",
};
const scripts = {
  ...common,
  entryPoints: ["page/main.tsx"],
  format: "esm",
  splitting: true,
  // What parts/index.ts exports is one chunk for the shell and all views, instead of one for each set of them.
  treeShaking: false,
  // Lowlight's own entry names every grammar there is, and so nothing of them would be left out.
  alias: { lowlight: "./node_modules/lowlight/lib/index.js" },
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
};
// Mermaid's frame: one classic script, which stands in its document.
const frames = {
  ...common,
  sourcemap: false,
  entryPoints: ["parts/mermaid/frame.ts"],
  format: "iife",
  define: scripts.define,
};

async function build() {
  const all = await styleFiles();
  const own = all.filter((path) => !path.endsWith(".lazy.css") && !path.endsWith(".obsidian.css"));
  const order = [...STYLES, ...own.filter((path) => !STYLES.includes(path))];
  const contents = order.map((path) => `@import "./${path}";`).join("\n");
  const lazy = all.filter((path) => path.endsWith(".lazy.css"));
  const [code, frame, style, lazyStyle] = await Promise.all([
    esbuild.build(scripts),
    esbuild.build(frames),
    esbuild.build({ ...common, stdin: { contents, loader: "css", resolveDir: HERE, sourcefile: "page.css" }, entryNames: "assets/page-[hash]" }),
    lazy.length ? esbuild.build({ ...common, entryPoints: lazy }) : { outputFiles: [], metafile: { outputs: {} } },
  ]);
  const files = new Map();
  for (const file of [...code.outputFiles, ...style.outputFiles, ...lazyStyle.outputFiles]) {
    files.set(relative(TARGET, file.path).replaceAll("\\", "/"), Buffer.from(file.contents));
  }
  const helpers = leaveOutHelpers(files, code.metafile);
  const main = nameOfEntry(code.metafile, "page/main.tsx");
  const css = [...files.keys()].find((name) => /^assets\/page-.*\.css$/.test(name));
  const tags = [
    `<link rel="stylesheet" href="${ADDRESS}${css}" />`,
    ...staticImports(code.metafile, main).filter((name) => files.has(name) && !helpers.includes(name)).map((name) => `<link rel="modulepreload" href="${ADDRESS}${name}" />`),
    ...lazy.map((path) => `<meta name="k-style-${basename(path, ".lazy.css")}" content="${ADDRESS}${nameOfEntry(lazyStyle.metafile, path)}" />`),
    `<script type="module" src="${ADDRESS}${main}"></script>`,
  ];
  const index = await readFile(join(HERE, "page", "index.html"), "utf8");
  files.set("index.html", Buffer.from(index.replace("<!-- files -->", tags.join("\n    "))));
  const policies = new Map([["diagrams.html", await addFrame(files, frame.outputFiles[0].text)]]);
  for (const name of PLAIN) files.set(name, await readFile(join(HERE, "page", name)));
  await addOffline(files);
  await write(files, policies);
  if (process.env.KNAPPER_META) await writeFile(process.env.KNAPPER_META, JSON.stringify(code.metafile));
  return files;
}

/**
 * Take away the imports of chunks that hold nothing, or but esbuild's helpers, wherever none of them is used: each would be
 * a request for nothing. Gives the names of these chunks.
 */
function leaveOutHelpers(files, metafile) {
  const helpers = Object.entries(metafile.outputs)
    .filter(([path, output]) => path.endsWith(".js") && !Object.keys(output.inputs).length)
    .map(([path]) => relative(TARGET, join(HERE, path)).replaceAll("\\", "/"));
  for (const name of helpers) {
    const bare = new RegExp(`import\\s*["'][^"']*${basename(name).replaceAll(".", "\\.")}["'];?`, "g");
    for (const [other, content] of files) {
      if (other.endsWith(".js") && content.includes(basename(name))) files.set(other, Buffer.from(content.toString().replace(bare, "")));
    }
    if (files.has(name) && !files.get(name).toString().trim()) files.delete(name);
  }
  return helpers;
}

/** Add the frame's document with its script inside: a document without an origin can load none. Gives the script's hash. */
async function addFrame(files, script) {
  const text = script.replaceAll("<!--", "\\x3C!--").trim();
  if (/<\/script/i.test(text)) throw new Error("the script of the frame would end its element");
  const html = await readFile(join(HERE, "parts", "mermaid", "frame.html"), "utf8");
  const [before, after] = html.split("<!-- files -->");
  files.set("diagrams.html", Buffer.from(`${before}<script>${text}</script>${after}`));
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** Add what is shown offline; the worker's name for it changes with it, so that browsers take the new one. */
async function addOffline(files) {
  const hash = createHash("sha256");
  for (const name of OFFLINE) {
    const content = await readFile(join(HERE, "page", "offline", name));
    hash.update(content);
    files.set(name, content);
  }
  hash.update(files.get("icon.svg"));
  const worker = files.get("worker.js").toString().replace("VERSION", hash.digest("hex").slice(0, 12));
  files.set("worker.js", Buffer.from(worker));
}

function nameOfEntry(metafile, entry) {
  const found = Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === entry);
  return relative(TARGET, join(HERE, found[0])).replaceAll("\\", "/");
}

/** What a script imports before it runs, and what that imports. */
function staticImports(metafile, main) {
  const named = new Map(Object.entries(metafile.outputs).map(([path, output]) => [relative(TARGET, join(HERE, path)).replaceAll("\\", "/"), output]));
  const found = new Set();
  const add = (name) => {
    for (const { path, kind } of named.get(name)?.imports ?? []) {
      const next = relative(TARGET, join(HERE, path)).replaceAll("\\", "/");
      if (kind !== "import-statement" || found.has(next) || !named.has(next)) continue;
      found.add(next);
      add(next);
    }
  };
  add(main);
  return [...found];
}

async function styleFiles() {
  const found = [];
  for (const folder of ["parts", "page"]) {
    for (const entry of await readdir(join(HERE, folder), { recursive: true, withFileTypes: true })) {
      if (entry.isFile() && entry.name.endsWith(".css") && entry.name !== "offline.css") found.push(relative(HERE, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
    }
  }
  return found.sort();
}

/** Up to this, a file lies as it is; a larger one lies only compressed, as nearly all browsers want it. */
const PLAIN_BYTES = 4_096;

/** Write the new files, then the manifest that names them, then take the old ones away: a server beside it never lacks one. */
async function write(files, policies) {
  const rows = {};
  for (const [name, content] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const path = join(TARGET, name);
    await mkdir(dirname(path), { recursive: true });
    const packed = gzipSync(content, { level: 9 });
    const gzip = content.length > PLAIN_BYTES && packed.length < content.length * 0.9;
    await writeFile(gzip ? `${path}.gz` : path, gzip ? packed : content);
    rows[name] = { sha256: createHash("sha256").update(content).digest("hex"), bytes: content.length, gzip, sent: gzip ? packed.length : content.length, ...(policies.has(name) ? { script: policies.get(name) } : {}) };
  }
  const manifest = join(TARGET, "manifest.json");
  await writeFile(`${manifest}.part`, `${JSON.stringify({ files: rows }, null, 1)}\n`);
  await rename(`${manifest}.part`, manifest);
  await rm(join(TARGET, "sources.stamp"), { force: true });
  const kept = new Set(["manifest.json", ...Object.entries(rows).map(([name, { gzip }]) => (gzip ? `${name}.gz` : name))]);
  for (const entry of await readdir(TARGET, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !kept.has(relative(TARGET, path).replaceAll("\\", "/"))) await rm(path);
  }
}

const again = () =>
  build().then(
    () => console.log("page: built"),
    (error) => console.error(`page: ${error.message}`),
  );

if (isWatching) {
  await again();
  let timer;
  for (const folder of ["client", "parts", "page"]) {
    watch(join(HERE, folder), { recursive: true }, () => {
      clearTimeout(timer);
      timer = setTimeout(again, 80); // an editor's save is several events
    });
  }
} else {
  await build();
}
