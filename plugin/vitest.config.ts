import { defineConfig } from "vitest/config";

export default defineConfig({ resolve: { alias: { obsidian: "obsidian-test-mocks/obsidian" } }, test: { environment: "node", include: ["test/*.test.ts"], testTimeout: 60_000 } });
