/** Build main.js, styles.css and manifest.json into the package; `--watch` builds at each change, `--out FOLDER` elsewhere. */
import { build, context } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv.indexOf("--out");
const TARGET = out > 0 ? process.argv[out + 1] : join(HERE, "../src/knapper/data/plugin");
const MAX_BYTES = 250_000;
/** What Obsidian itself gives a plugin. */
const EXTERNAL = ["obsidian", "electron", "@codemirror/*", "@lezer/*"];
const BANNER = "/* Knapper for Obsidian (MIT). Built from plugin/ and ui/ of its repository by esbuild, not minified. */";

/** Write the files that aren't code, and hold main.js to its size. */
const finish = {
  name: "finish",
  setup(options) {
    options.onEnd(async (result) => {
      if (result.errors.length) return;
      const main = result.outputFiles[0].text;
      if (Buffer.byteLength(main) > MAX_BYTES) throw new Error(`main.js has ${Buffer.byteLength(main)} bytes; ${MAX_BYTES} at most`);
      await mkdir(TARGET, { recursive: true });
      await writeFile(join(TARGET, "main.js"), main);
      const sheets = await Promise.all(["styles.css"].map((name) => readFile(join(HERE, name), "utf8")));
      await writeFile(join(TARGET, "styles.css"), sheets.join("\n").replaceAll("\r\n", "\n"));
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
  legalComments: "inline",
  banner: { js: BANNER },
  external: EXTERNAL,
  // ui/ has packages of its own, for the page; here each comes once, in this lock file's version.
  alias: { preact: join(HERE, "node_modules/preact") },
  nodePaths: [join(HERE, "node_modules")],
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [finish],
  logLevel: "warning",
};

if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
