/** How links to notes and front matter are drawn in an answer. */

import type MarkdownIt from "markdown-it";
import { CitedChip, takeLines, type CitedLink } from "./cited";
import { CodeBlock } from "./code";
import type { MarkdownFeature } from "./markdown";
import type { Wikilink } from "./syntax";

function citedLines(md: MarkdownIt): void {
  md.core.ruler.after("inline", "cited_lines", (state) => {
    for (const token of state.tokens) {
      const children = token.children ?? [];
      children.forEach((child, index) => {
        if (child.type !== "wikilink") return;
        const next = children[index + 1]?.type === "text" ? children[index + 1] : undefined;
        const { link, behind } = takeLines(child.meta as Wikilink, next?.content ?? "");
        child.meta = link;
        if (next) next.content = behind;
      });
    }
  });
}

/** Draws the links of an answer as what they cite. */
export const CITATIONS: readonly MarkdownFeature[] = [
  {
    name: "citations",
    setup: (md) => {
      citedLines(md);
      md.inline.ruler.disable("comment"); // an answer has no comments: 5%% and 6%% are what was said
    },
    draw: {
      wikilink: ({ token }) => <CitedChip link={token.meta as CitedLink} />,
      front_matter: ({ token }) => (
        <details>
          <summary>Properties</summary>
          <CodeBlock text={token.content.replace(/\n$/, "")} language="yaml" />
        </details>
      ),
    },
  },
];
