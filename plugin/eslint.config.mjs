import { defineConfig } from "eslint/config";
import obsidianmd from "eslint-plugin-obsidianmd";

export default defineConfig([
  { ignores: ["*.mjs", "test/**", "node_modules/**", "package-lock.json", "vitest.config.ts"] },
  ...obsidianmd.configs.recommended,
  { rules: { "obsidianmd/ui/sentence-case": ["error", { brands: ["Knapper"], ignoreRegex: ["^https?://", "^ABCD-EFGH$"] }] } },
  { languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["manifest.json", "package.json"] } } } },
]);
