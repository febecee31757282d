/** Obsidian's own syntax for markdown-it: front matter, wikilinks, embeds, callouts, tasks, marks, comments. */

import type MarkdownIt from "markdown-it";
import type Token from "markdown-it/lib/token.mjs";

/** Hold YAML front matter back from the text: a token `front_matter`, whose content is the YAML. */
export function frontMatter(md: MarkdownIt): void {
  md.block.ruler.before("hr", "front_matter", (state, start, end, isSilent) => {
    const line = (index: number) => state.src.slice(state.bMarks[index], state.eMarks[index]).trimEnd();
    if (start !== 0 || state.blkIndent || line(0) !== "---") return false;
    let stop = 1;
    while (stop < end && line(stop) !== "---" && line(stop) !== "...") stop += 1;
    if (stop >= end) return false;
    if (isSilent) return true;
    const token = state.push("front_matter", "", 0);
    token.content = state.getLines(1, stop, 0, false);
    token.map = [0, stop + 1];
    state.line = stop + 1;
    return true;
  });
}

export interface Wikilink {
  /** A note's name or path; empty for the same note. */
  target: string;
  /** What stands after `#`; empty where there is none. */
  fragment: string;
  /** What is shown; empty where it isn't said. */
  shown: string;
}

/** Read the inside of `[[…]]`. */
export function readWikilink(inside: string): Wikilink {
  const bar = inside.indexOf("|");
  const place = (bar < 0 ? inside : inside.slice(0, bar)).replace(/\\$/, "").trim();
  const hash = place.indexOf("#");
  return {
    target: hash < 0 ? place : place.slice(0, hash).trim(),
    fragment: hash < 0 ? "" : place.slice(hash + 1).trim(),
    shown: bar < 0 ? "" : inside.slice(bar + 1).trim(),
  };
}

/** Tokens `wikilink` and `embed`, whose meta is a `Wikilink`. */
export function wikilinks(md: MarkdownIt): void {
  md.inline.ruler.before("link", "wikilink", (state, isSilent) => {
    const isEmbed = state.src.startsWith("![[", state.pos);
    if (!isEmbed && !state.src.startsWith("[[", state.pos)) return false;
    const from = state.pos + (isEmbed ? 3 : 2);
    const to = state.src.indexOf("]]", from);
    if (to < 0 || to > state.posMax) return false;
    const inside = state.src.slice(from, to);
    if (!inside.trim() || /[\n[\]]/.test(inside)) return false;
    if (!isSilent) {
      const token = state.push(isEmbed ? "embed" : "wikilink", "", 0);
      token.meta = readWikilink(inside);
      token.content = inside;
    }
    state.pos = to + 2;
    return true;
  });
}

/** `==marked==` becomes `mark_open`, `mark_close`; `%%comments%%` are left out. */
export function marks(md: MarkdownIt): void {
  md.inline.ruler.before("emphasis", "mark", (state, isSilent) => {
    if (!state.src.startsWith("==", state.pos)) return false;
    const from = state.pos + 2;
    const to = state.src.indexOf("==", from);
    if (to <= from || to > state.posMax || /^\s|\s$/.test(state.src.slice(from, to))) return false;
    if (!isSilent) {
      const { posMax } = state;
      state.push("mark_open", "mark", 1);
      [state.pos, state.posMax] = [from, to];
      state.md.inline.tokenize(state);
      state.posMax = posMax;
      state.push("mark_close", "mark", -1);
    }
    state.pos = to + 2;
    return true;
  });
  md.inline.ruler.before("emphasis", "comment", (state) => {
    if (!state.src.startsWith("%%", state.pos)) return false;
    const to = state.src.indexOf("%%", state.pos + 2);
    if (to < 0 || to > state.posMax) return false;
    state.pos = to + 2;
    return true;
  });
}

export interface Callout {
  /** Such as `note` or `warning`, in small letters. */
  kind: string;
  /** `+` and `-` fold: open, and closed. */
  fold: "" | "+" | "-";
}

/** A quote that begins with `[!kind]` gets a meta of `Callout`; its title is the paragraph `callout_title`. */
export function callouts(md: MarkdownIt): void {
  md.core.ruler.before("inline", "callouts", (state) => {
    state.tokens.forEach((token, index) => {
      const [opening, inline] = [state.tokens[index + 1], state.tokens[index + 2]];
      if (token.type !== "blockquote_open" || opening?.type !== "paragraph_open" || inline?.type !== "inline") return;
      const [first = "", ...rest] = inline.content.split("\n");
      const found = /^\[!([\w-]+)(?:\|[^\]]*)?\]([+-]?)[ \t]*(.*)$/.exec(first);
      if (!found) return;
      const kind = (found[1] ?? "note").toLowerCase();
      token.meta = { kind, fold: (found[2] ?? "") as Callout["fold"], title: found[3] ?? "" };
      inline.content = rest.join("\n");
      if (inline.map) inline.map = [inline.map[0] + 1, inline.map[1]];
      if (!inline.content) for (const hidden of state.tokens.slice(index + 1, index + 4)) hidden.hidden = true;
    });
  });
}

/** List items that begin with `[ ]` or `[x]` get a meta of `{task, line}`. */
export function tasks(md: MarkdownIt): void {
  md.core.ruler.after("inline", "tasks", (state) => {
    state.tokens.forEach((token, index) => {
      const inline = state.tokens[index + 2];
      const first = inline?.children?.[0];
      if (token.type !== "list_item_open" || inline?.type !== "inline" || first?.type !== "text") return;
      const found = /^\[(.)\](?:\s+|$)/u.exec(first.content);
      if (!found) return;
      token.meta = { task: found[1], line: (token.map?.[0] ?? 0) + 1 };
      first.content = first.content.slice(found[0].length);
    });
  });
}

/** Tokens as a tree: those between an opening and its closing one are its children. */
export interface TokenNode {
  token: Token;
  children: TokenNode[];
}

export function nest(tokens: readonly Token[]): TokenNode[] {
  const root: TokenNode[] = [];
  const open: TokenNode[][] = [root];
  for (const token of tokens) {
    const level = open.at(-1) ?? root;
    if (token.nesting < 0) {
      if (open.length > 1) open.pop();
      continue;
    }
    const node: TokenNode = { token, children: token.children ? nest(token.children) : [] };
    level.push(node);
    if (token.nesting > 0) open.push(node.children);
  }
  return root;
}
