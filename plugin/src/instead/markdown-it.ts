/**
 * In the place of markdown-it's own entry: its parser without what the shared parts don't use, which is HTML, typography,
 * the renderer, presets, and the library that finds addresses without a scheme.
 */

import * as helpers from "markdown-it/lib/helpers/index.mjs";
import ParserBlock from "markdown-it/lib/parser_block.mjs";
import ParserCore from "markdown-it/lib/parser_core.mjs";
import ParserInline from "markdown-it/lib/parser_inline.mjs";
import type Token from "markdown-it/lib/token.mjs";

interface State {
  tokens: Token[];
  inlineMode: boolean;
}

const REFUSED = /^(?:vbscript|javascript|file|data):/i;
/** An address up to what can't belong to it; signs that end a sentence stay outside. */
const ADDRESS = /^https?:\/\/[^\s<>"'`\u201c\u201d]*[^\s<>"'`\u201c\u201d.,:;!?)\]}*_~]/i;

export default class MarkdownIt {
  readonly inline = new ParserInline();
  readonly block = new ParserBlock();
  readonly core = new ParserCore();
  readonly helpers = helpers;
  readonly options = { html: false, xhtmlOut: false, breaks: false, linkify: true, typographer: false, quotes: "“”‘’", highlight: null, langPrefix: "", maxNesting: 100 };
  readonly linkify = {
    set: (): void => undefined,
    matchAtStart: (text: string): { url: string } | null => {
      const [url] = ADDRESS.exec(text) ?? [];
      return url ? { url } : null;
    },
  };

  validateLink(address: string): boolean {
    return !REFUSED.test(address.trim());
  }

  normalizeLink(address: string): string {
    try {
      return encodeURI(decodeURI(address));
    } catch {
      return address;
    }
  }

  normalizeLinkText(address: string): string {
    return address;
  }

  use(plugin: (md: MarkdownIt) => void): this {
    plugin(this);
    return this;
  }

  parse(text: string, env: object): Token[] {
    return this.tokens(text, env, false);
  }

  parseInline(text: string, env: object): Token[] {
    return this.tokens(text, env, true);
  }

  private tokens(text: string, env: object, inlineMode: boolean): Token[] {
    const { State: Made } = this.core as unknown as { State: new (text: string, md: MarkdownIt, env: object) => State };
    const state = new Made(text, this, env);
    state.inlineMode = inlineMode;
    this.core.process(state as never);
    return state.tokens;
  }
}
