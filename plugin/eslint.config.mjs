/** Obsidian's rules for all that main.js is made of, also of `ui/`; `npm run lint` runs it from the repository's root. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { defineConfig } from "eslint/config";
import obsidianmd from "eslint-plugin-obsidianmd";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const { metafile } = await build({ absWorkingDir: ROOT, entryPoints: ["plugin/src/main.ts"], bundle: true, write: false, metafile: true, packages: "external", outdir: "out" });
const SHARED = Object.keys(metafile.inputs).filter((path) => path.startsWith("ui/"));

export default defineConfig([
  { ignores: ["**/*.mjs", "**/*.js", "plugin/test/**", "**/node_modules/**", "**/package-lock.json", "**/vitest.config.ts", "ui/**/*.{ts,tsx,json}", ...SHARED.map((path) => `!${path}`)] },
  ...obsidianmd.configs.recommended,
  { rules: { "obsidianmd/ui/sentence-case": ["error", { brands: ["Knapper"], ignoreRegex: ["^https?://", "^ABCD-EFGH$"] }] } },
  // The one place that calls fetch: requestUrl can't stream, and plugin/src/transport.ts takes that where streams aren't possible.
  { files: ["ui/client/transport.ts"], rules: { "no-restricted-globals": "off" } },
  // Which keys a person has is asked in the page too, where there is no Platform.
  { files: ["ui/parts/basic.tsx"], rules: { "obsidianmd/platform": "off" } },
  { languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["plugin/manifest.json", "plugin/package.json"] } } } },
]);
