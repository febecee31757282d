import { defineConfig } from "vitest/config";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: {
    environment: "jsdom",
    pool: "threads",
    include: ["{client,parts,page}/**/*.test.{ts,tsx}"],
    setupFiles: ["scripts/patience.mjs"],
    restoreMocks: true,
    testTimeout: 120_000,
  },
} as never);
