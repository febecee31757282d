/** Formulas: `$…$` in a line, `$$…$$` by themselves; KaTeX is loaded where a note has one. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { loadStyle } from "../lazy";
import { placeOf, type MarkdownFeature } from "../markdown";

interface FormulaProps {
  text: string;
  isBlock: boolean;
}

const MAX_CHARACTERS = 10_000;

/** A formula; its text stands there until it is drawn, and where it is wrong. */
export function Formula({ text, isBlock }: FormulaProps): JSX.Element {
  const node = useRef<HTMLSpanElement>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isOver = false;
    const draw = async () => {
      if (text.length > MAX_CHARACTERS) throw new Error("the formula is too long");
      const [{ default: katex }] = await Promise.all([import("katex"), loadStyle("katex")]);
      if (isOver || !node.current) return;
      // It builds elements and no HTML; without trust it makes no links, images or classes of the formula's own.
      const drawn = document.createElement("span");
      katex.render(text, drawn, { displayMode: isBlock, throwOnError: true, trust: false, strict: "ignore", maxExpand: 500, maxSize: 40, output: "htmlAndMathml" });
      node.current.replaceChildren(drawn);
      setProblem("");
    };
    draw().catch((error: unknown) => !isOver && setProblem(error instanceof Error ? error.message : "it can't be drawn"));
    return () => {
      isOver = true;
    };
  }, [text, isBlock]);
  if (problem) {
    return (
      <code class="k-formula-problem" title={problem}>
        {text}
      </code>
    );
  }
  return (
    <span class="k-formula" data-block={isBlock ? "" : undefined}>
      <span ref={node}>{text}</span>
    </span>
  );
}

/** Formulas for the reader's Markdown. */
export const MATH: MarkdownFeature = {
  name: "math",
  setup: (md) => {
    md.inline.ruler.before("escape", "formula", (state, isSilent) => {
      const { src, pos } = state;
      if (src[pos] !== "$" || src[pos - 1] === "\\") return false;
      const sign = src[pos + 1] === "$" ? "$$" : "$";
      const from = pos + sign.length;
      let to = src.indexOf(sign, from);
      while (to >= 0 && src[to - 1] === "\\") to = src.indexOf(sign, to + 1);
      if (to < 0 || to > state.posMax) return false;
      const inside = src.slice(from, to);
      // As Pandoc has it, so that prices stay prices: no space inside the signs, no digit behind the last.
      if (sign === "$" && (!inside.trim() || /^\s|\s$|\n\s*\n/.test(inside) || /\d/.test(src[to + 1] ?? ""))) return false;
      if (!inside.trim()) return false;
      if (!isSilent) {
        const token = state.push("formula", "", 0);
        token.content = inside.trim();
        token.meta = { isBlock: sign === "$$" };
      }
      state.pos = to + sign.length;
      return true;
    });
    md.block.ruler.before(
      "fence",
      "formula_block",
      (state, start, end, isSilent) => {
        const line = (index: number) => state.src.slice((state.bMarks[index] ?? 0) + (state.tShift[index] ?? 0), state.eMarks[index]);
        const first = line(start);
        if (!first.startsWith("$$")) return false;
        const rest = first.slice(2).trimEnd();
        let last = start;
        if (!(rest.length > 2 && rest.endsWith("$$"))) {
          for (last = start + 1; last < end && !line(last).trimEnd().endsWith("$$"); last += 1);
          if (last >= end) return false;
        }
        if (isSilent) return true;
        const token = state.push("formula_block", "", 0);
        const whole = last === start ? rest : [rest, ...Array.from({ length: last - start }, (_, index) => line(start + 1 + index))].join("\n");
        token.content = whole.trimEnd().replace(/\$\$$/, "").trim();
        token.map = [start, last + 1];
        state.line = last + 1;
        return true;
      },
      { alt: ["paragraph", "blockquote", "list"] },
    );
  },
  draw: {
    formula: ({ token }) => <Formula text={token.content} isBlock={(token.meta as { isBlock: boolean }).isBlock} />,
    formula_block: ({ token }) => (
      <div class="k-formula-block" tabIndex={0} role="group" aria-label="Formula" {...placeOf(token)}>
        <Formula text={token.content} isBlock />
      </div>
    ),
  },
};
