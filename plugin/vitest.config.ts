import { defineConfig } from "vitest/config";

const own = (name: string) => new URL(`src/instead/${name}`, import.meta.url).pathname;
/** As the build has it: Obsidian draws Markdown. */
const INSTEAD = [
  [/parts\/markdown\/markdown\.tsx$/, own("markdown.tsx")],
  [/parts\/markdown\/citing\.tsx$/, own("citing.ts")],
  [/parts\/markdown\/code\.tsx$/, own("code.tsx")],
] as const;

export default defineConfig({
  plugins: [
    {
      name: "instead",
      enforce: "pre",
      async resolveId(source, importer) {
        if (!source.startsWith(".")) return undefined;
        const found = await this.resolve(source, importer, { skipSelf: true });
        return INSTEAD.find(([filter]) => filter.test(found?.id.replaceAll("\\", "/") ?? ""))?.[1];
      },
    },
  ],
  resolve: {
    alias: [{ find: "obsidian", replacement: "obsidian-test-mocks/obsidian" }],
    dedupe: ["preact", "@preact/signals"],
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: {
    environment: "node",
    include: ["test/*.test.{ts,tsx,mjs}"],
    setupFiles: ["test/patience.mjs"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
