import { defineConfig } from "vitest/config";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { environment: "jsdom", pool: "threads", include: ["{client,parts,page}/**/*.test.{ts,tsx}"], restoreMocks: true },
} as never);
