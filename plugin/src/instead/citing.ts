/** In the place of `ui/parts/markdown/citing.tsx`, whose rules are of another renderer: says that links to notes are citations. */

import type { MarkdownFeature } from "../../../ui/parts/markdown/markdown";

export const CITATIONS: readonly MarkdownFeature[] = [{ name: "citations" }];
