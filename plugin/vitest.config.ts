import { defineConfig } from "vitest/config";

const own = (name: string) => new URL(`src/instead/${name}`, import.meta.url).pathname;

export default defineConfig({
  resolve: {
    // As the build has it: its own Markdown in the place of markdown-it, and each package once.
    alias: [
      { find: "obsidian", replacement: "obsidian-test-mocks/obsidian" },
      { find: /^markdown-it$/, replacement: own("markdown-it.ts") },
      { find: /^markdown-it-footnote$/, replacement: own("nothing.ts") },
    ],
    dedupe: ["preact", "@preact/signals"],
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { environment: "node", include: ["test/*.test.{ts,mjs}"], testTimeout: 60_000 },
});
