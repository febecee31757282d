import { defineConfig } from "vitest/config";

const own = (name: string) => new URL(`src/instead/${name}`, import.meta.url).pathname;

export default defineConfig({
  resolve: {
    // markdown-it whole, where the build leaves out what isn't drawn.
    alias: [
      { find: "obsidian", replacement: "obsidian-test-mocks/obsidian" },
      { find: /^markdown-it$/, replacement: new URL("node_modules/markdown-it/index.mjs", import.meta.url).pathname },
      { find: /^markdown-it-footnote$/, replacement: own("nothing.ts") },
    ],
    dedupe: ["preact", "@preact/signals"],
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { environment: "node", include: ["test/*.test.{ts,mjs}"], testTimeout: 60_000 },
});
