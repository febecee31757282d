/**
 * In the place of markdown-it, for what the shared parts draw of its tokens: CommonMark without HTML, with tables, struck text
 * and bare addresses. It is a seventh of markdown-it's size; `test/markdown.test.ts` holds the two against each other.
 */

import { blocksOf } from "./blocks";
import { InlineState, type Reference } from "./inline";
import { Token } from "./token";

/** What the parts' own rules see of the whole text. */
interface CoreState {
  src: string;
  md: MarkdownIt;
  tokens: Token[];
}

/** What a rule for blocks sees; it is asked at the first line alone, where front matter stands. */
interface BlockState {
  src: string;
  bMarks: number[];
  eMarks: number[];
  blkIndent: number;
  line: number;
  push(type: string, tag: string, nesting: -1 | 0 | 1): Token;
  getLines(from: number, to: number): string;
}

type InlineRule = (state: InlineState, isSilent: boolean) => boolean;
type BlockRule = (state: BlockState, start: number, end: number, isSilent: boolean) => boolean;
type CoreRule = (state: CoreState) => void;

/** Rules by their names, each before or after all that stand here already. */
class Ruler<Rule> {
  readonly early: [name: string, rule: Rule][] = [];
  readonly late: [name: string, rule: Rule][] = [];

  before(_: string, name: string, rule: Rule): void {
    this.early.push([name, rule]);
  }

  after(_: string, name: string, rule: Rule): void {
    this.late.push([name, rule]);
  }

  disable(name: string): void {
    for (const list of [this.early, this.late]) list.splice(0, list.length, ...list.filter(([own]) => own !== name));
  }
}

export default class MarkdownIt {
  readonly core = { ruler: new Ruler<CoreRule>() };
  readonly block = { ruler: new Ruler<BlockRule>() };
  readonly inline = { ruler: new Ruler<InlineRule>(), tokenize: (state: InlineState): void => state.tokenize() };
  readonly linkify = { set: (): void => undefined };

  use(plugin: (md: MarkdownIt) => void): this {
    plugin(this);
    return this;
  }

  parse(text: string, _: object): Token[] {
    const src = text.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd");
    const lines = src.replace(/\n$/, "").split("\n");
    const tokens: Token[] = [];
    const references = new Map<string, Reference>();
    blocksOf(lines, this.first(src, lines, tokens), tokens, references);
    return this.finish({ src, md: this, tokens }, references);
  }

  parseInline(text: string, _: object): Token[] {
    const token = new Token("inline", "", 0);
    token.content = text;
    return this.finish({ src: text, md: this, tokens: [token] }, new Map());
  }

  private finish(state: CoreState, references: ReadonlyMap<string, Reference>): Token[] {
    for (const [, rule] of this.core.ruler.early) rule(state);
    for (const token of state.tokens) if (token.type === "inline") token.children = new InlineState(token.content, this, references).parse();
    for (const [, rule] of this.core.ruler.late) rule(state);
    return state.tokens;
  }

  /** Ask the rules for blocks about the first line; returns the line to begin at. */
  private first(src: string, lines: readonly string[], tokens: Token[]): number {
    const bMarks: number[] = [];
    const eMarks: number[] = [];
    let at = 0;
    for (const line of lines) {
      bMarks.push(at);
      eMarks.push(at + line.length);
      at += line.length + 1;
    }
    const push: BlockState["push"] = (type, tag, nesting) => {
      const token = new Token(type, tag, nesting);
      tokens.push(token);
      return token;
    };
    const getLines: BlockState["getLines"] = (from, to) => lines.slice(from, to).join("\n");
    const state: BlockState = { src, bMarks, eMarks, blkIndent: 0, line: 0, push, getLines };
    return this.block.ruler.early.some(([, rule]) => rule(state, 0, lines.length, false)) ? state.line : 0;
  }
}
