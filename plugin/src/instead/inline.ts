/** Markdown within a line: escapes, code, emphasis, links and addresses, as tokens whose text is never HTML. */

import { decodeHTML } from "./entities";
import { Token } from "./token";

export interface Reference {
  label: string;
  address: string;
}

/** Characters that stand between stars or underscores and may open or close what is emphasized. */
interface Run {
  marker: string;
  count: number;
  /** How many there were. */
  size: number;
  canOpen: boolean;
  canClose: boolean;
  opens: string[];
  closes: string[];
}

interface FoundLink {
  /** Where its text begins and ends, and where all of it ends. */
  from: number;
  to: number;
  end: number;
  address: string;
}

/** What the parser asks the whole for. */
interface Rules {
  inline: { ruler: { early: readonly [string, (state: InlineState, isSilent: boolean) => boolean][] }; tokenize(state: InlineState): void };
}

const MAX_LEVEL = 40;
const REFUSED = /^(?:vbscript|javascript|file|data):/i;
/** An address up to what can't belong to it; signs that end a sentence stay outside. */
const BARE = /https?:\/\/[^\s<>"'`\u201c\u201d]*[^\s<>"'`\u201c\u201d.,:;!?)\]}*_~]/iy;
const BRACED = /<([a-z][a-z0-9+.-]{1,31}:[^<>\s]*)>|<([\w.+-]{1,64}@[a-z0-9.-]{1,255})>/iy;
const ENTITY = /&(?:#x[0-9a-f]{1,6}|#\d{1,7}|[a-z][a-z0-9]{1,31});/iy;
const PLAIN = /[^\\`*_~[\]!<&=%\nh]+/iy;
const ESCAPED = /[!-/:-@[-`{-~]/;
const TAGS: Readonly<Record<string, readonly [string, string]>> = { "*": ["em", "strong"], _: ["em", "strong"], "~": ["s", "s"] };

/** One text within a block, while it is read. */
export class InlineState {
  pos = 0;
  posMax: number;
  private tokens: Token[] = [];
  private runs: Run[] = [];
  private readonly outer: Run[][] = [];
  private readonly runOf = new Map<Token, Run>();
  private readonly links: ReadonlyMap<number, FoundLink>;
  private linkLevel = 0;

  constructor(
    readonly src: string,
    readonly md: Rules,
    private readonly references: ReadonlyMap<string, Reference>,
    private readonly level = 0,
  ) {
    this.posMax = src.length;
    this.links = findLinks(src, references);
  }

  parse(): Token[] {
    this.tokenize();
    match(this.runs);
    return this.written();
  }

  /** Add a token; what is emphasized within an opening one and its closing one stays there. */
  push(type: string, tag: string, nesting: -1 | 0 | 1): Token {
    const token = new Token(type, tag, nesting);
    if (nesting < 0) {
      match(this.runs);
      this.runs = this.outer.pop() ?? [];
    }
    this.tokens.push(token);
    if (nesting > 0) {
      this.outer.push(this.runs);
      this.runs = [];
    }
    return token;
  }

  /** Read from `pos` to `posMax`. */
  tokenize(): void {
    while (this.pos < this.posMax) {
      PLAIN.lastIndex = this.pos;
      const plain = PLAIN.exec(this.src)?.[0];
      if (plain) this.add(plain);
      else if (!this.md.inline.ruler.early.some(([, rule]) => rule(this, false))) this.sign(this.src[this.pos]!);
    }
  }

  /** Add text, and go on behind what stands for it. */
  private add(text: string, size = text.length): void {
    const isOver = this.pos + size > this.posMax;
    this.push("text", "", 0).content = isOver ? text.slice(0, this.posMax - this.pos) : text;
    this.pos = Math.min(this.pos + size, this.posMax);
  }

  private sign(sign: string): void {
    if (sign === "\n") this.lineEnd();
    else if (sign === "\\") this.escaped();
    else if (sign === "`") this.code();
    else if (sign in TAGS) this.run(sign);
    else if (sign === "[" || (sign === "!" && this.src[this.pos + 1] === "[")) this.link(sign === "!");
    else if (sign === "<" || sign === "h" || sign === "H") this.address(sign);
    else if (sign === "&") {
      const [entity] = at(ENTITY, this.src, this.pos) ?? [sign];
      this.add(entity === sign ? sign : decodeHTML(entity), entity.length);
    } else this.add(sign);
  }

  private lineEnd(): void {
    const before = this.tokens.at(-1);
    const text = before?.type === "text" ? before.content : "";
    if (before && text) before.content = text.trimEnd();
    this.push(text.endsWith("  ") ? "hardbreak" : "softbreak", "br", 0);
    this.pos++;
    while (this.pos < this.posMax && /[ \t]/.test(this.src[this.pos]!)) this.pos++;
  }

  private escaped(): void {
    const next = this.pos + 1 < this.posMax ? this.src[this.pos + 1]! : "";
    if (next === "\n") {
      this.push("hardbreak", "br", 0);
      this.pos += 2;
      while (this.pos < this.posMax && /[ \t]/.test(this.src[this.pos]!)) this.pos++;
    } else if (ESCAPED.test(next)) this.add(next, 2);
    else this.add("\\");
  }

  private code(): void {
    const mark = countOf(this.src, this.pos);
    const end = codeEnd(this.src, this.pos, mark);
    if (end === undefined || end > this.posMax) return this.add("`".repeat(mark));
    const inside = this.src.slice(this.pos + mark, end - mark).replaceAll("\n", " ");
    const isPadded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
    this.push("code_inline", "code", 0).content = isPadded ? inside.slice(1, -1) : inside;
    this.pos = end;
  }

  private run(marker: string): void {
    const size = Math.min(countOf(this.src, this.pos), this.posMax - this.pos);
    const token = this.push("text", "", 0);
    token.content = marker.repeat(size);
    const [before, after] = [signBefore(this.src, this.pos), signAt(this.src, this.pos + size)];
    this.pos += size;
    if (marker === "~" && size < 2) return;
    const [isSpaceBefore, isSpaceAfter] = [/^\s?$/u.test(before), /^\s?$/u.test(after)];
    const [isSignBefore, isSignAfter] = [/[\p{P}\p{S}]/u.test(before), /[\p{P}\p{S}]/u.test(after)];
    const isLeft = !isSpaceAfter && (!isSignAfter || isSpaceBefore || isSignBefore);
    const isRight = !isSpaceBefore && (!isSignBefore || isSpaceAfter || isSignAfter);
    const canOpen = isLeft && (marker !== "_" || !isRight || isSignBefore);
    const canClose = isRight && (marker !== "_" || !isLeft || isSignAfter);
    const run: Run = { marker, count: size, size, canOpen, canClose, opens: [], closes: [] };
    this.runs.push(run);
    this.runOf.set(token, run);
  }

  private link(isImage: boolean): void {
    const found = this.links.get(this.pos + (isImage ? 1 : 0));
    if (!found || found.end > this.posMax || this.level > MAX_LEVEL || (this.linkLevel && !isImage)) return this.add(isImage ? "!" : "[");
    if (isImage) {
      const token = this.push("image", "img", 0).attrSet("src", found.address);
      token.content = this.src.slice(found.from, found.to);
      token.children = new InlineState(token.content, this.md, this.references, this.level + 1).parse();
    } else {
      const { posMax } = this;
      this.push("link_open", "a", 1).attrSet("href", found.address);
      this.linkLevel++;
      [this.pos, this.posMax] = [found.from, found.to];
      this.md.inline.tokenize(this);
      this.posMax = posMax;
      this.linkLevel--;
      this.push("link_close", "a", -1);
    }
    this.pos = found.end;
  }

  /** An address in angle brackets, or one that stands in the text as it is. */
  private address(sign: string): void {
    const found = at(sign === "<" ? BRACED : BARE, this.src, this.pos);
    const isWithin = sign !== "<" && /[a-z0-9]/i.test(signBefore(this.src, this.pos));
    let text = found?.[2] ?? found?.[1] ?? found?.[0] ?? "";
    const end = this.pos + (found?.[0].length ?? 0);
    // A bracket that was opened within an address is closed within it.
    const isOpen = sign !== "<" && this.src[end] === ")" && text.split("(").length > text.split(")").length;
    if (isOpen) text += ")";
    const address = safe(found?.[2] ? `mailto:${text}` : text);
    if (!found || address === undefined || isWithin || this.linkLevel || end + Number(isOpen) > this.posMax) return this.add(sign);
    this.push("link_open", "a", 1).attrSet("href", address);
    this.push("text", "", 0).content = text;
    this.push("link_close", "a", -1);
    this.pos = end + Number(isOpen);
  }

  /** The tokens with what is emphasized, and text that stands together as one. */
  private written(): Token[] {
    const found: Token[] = [];
    const write = (token: Token) => {
      const last = found.at(-1);
      if (token.type === "text" && last?.type === "text") last.content += token.content;
      else if (token.type !== "text" || token.content) found.push(token);
    };
    for (const token of this.tokens) {
      const run = this.runOf.get(token);
      for (const tag of run?.closes ?? []) write(new Token(`${tag}_close`, tag, -1));
      if (run) token.content = run.marker.repeat(run.count);
      write(token);
      for (const tag of run?.opens ?? []) write(new Token(`${tag}_open`, tag, 1));
    }
    return found;
  }
}

/** Match what opens with what closes, by CommonMark's rules; in one pass, as nothing is looked at twice for one kind of closing. */
function match(runs: readonly Run[]): void {
  const open: Run[] = [];
  const bottoms = new Map<string, number>();
  for (const closing of runs) {
    while (closing.canClose && closing.count) {
      const kind = `${closing.marker}${closing.canOpen ? 1 : 0}${closing.size % 3}`;
      const bottom = Math.min(bottoms.get(kind) ?? 0, open.length);
      let index = open.length - 1;
      while (index >= bottom && !fits(open[index]!, closing)) index--;
      if (index < bottom) {
        bottoms.set(kind, open.length);
        break;
      }
      const opening = open[index]!;
      const size = closing.marker === "~" || (opening.count > 1 && closing.count > 1) ? 2 : 1;
      const tag = TAGS[closing.marker]![size - 1]!;
      opening.opens.unshift(tag);
      closing.closes.push(tag);
      opening.count -= size;
      closing.count -= size;
      open.length = opening.count ? index + 1 : index;
    }
    if (closing.canOpen && closing.count) open.push(closing);
  }
}

function fits(opening: Run, closing: Run): boolean {
  if (opening.marker !== closing.marker) return false;
  if (opening.marker === "~") return opening.count > 1 && closing.count > 1;
  const isEither = opening.canClose || closing.canOpen;
  return !isEither || (opening.size + closing.size) % 3 !== 0 || (opening.size % 3 === 0 && closing.size % 3 === 0);
}

/** Where links and images stand, by their opening bracket; one within another is the link, as no link is in a link. */
function findLinks(src: string, references: ReadonlyMap<string, Reference>): ReadonlyMap<number, FoundLink> {
  const found = new Map<number, FoundLink>();
  if (!src.includes("]")) return found;
  const open: number[] = [];
  let lastLink = -1;
  for (let pos = 0; pos < src.length; pos++) {
    const sign = src[pos];
    if (sign === "\\") pos++;
    else if (sign === "`") {
      const mark = countOf(src, pos);
      pos = (codeEnd(src, pos, mark) ?? pos + mark) - 1;
    } else if (sign === "[") open.push(pos);
    else if (sign === "]" && open.length) {
      const begin = open.pop()!;
      const isImage = src[begin - 1] === "!";
      const link = isImage || lastLink < begin ? targetAt(src, begin + 1, pos, references) : undefined;
      if (!link) continue;
      found.set(begin, link);
      if (!isImage) lastLink = begin;
      pos = link.end - 1;
    }
  }
  return found;
}

/** Read what stands behind a link's text: its address, or the name of one. */
function targetAt(src: string, from: number, to: number, references: ReadonlyMap<string, Reference>): FoundLink | undefined {
  if (src[to + 1] === "(") {
    const read = readTarget(src, to + 2);
    if (read) return { from, to, ...read };
  }
  const named = /\[([^[\]]{0,999})\]/y;
  named.lastIndex = to + 1;
  const behind = references.size ? named.exec(src) : null;
  const label = references.size && to - from < 1_000 ? labelOf(behind?.[1] || src.slice(from, to)) : "";
  const address = references.get(label)?.address;
  return address === undefined ? undefined : { from, to, end: to + 1 + (behind?.[0].length ?? 0), address };
}

/** Read `address "title")`; the title isn't drawn. */
function readTarget(src: string, begin: number): { address: string; end: number } | undefined {
  let pos = skipSpace(src, begin);
  const from = pos;
  let address: string;
  if (src[pos] === "<") {
    const found = at(/<((?:\\.|[^<>\n\\])*)>/y, src, pos);
    if (!found) return undefined;
    address = found[1]!;
    pos += found[0].length;
  } else {
    let depth = 0;
    for (; pos < src.length && src[pos]! > " "; pos++) {
      if (src[pos] === "\\") pos++;
      else if (src[pos] === "(" && ++depth > 32) return undefined;
      else if (src[pos] === ")" && --depth < 0) break;
    }
    address = src.slice(from, pos);
  }
  const gap = skipSpace(src, pos);
  const title = gap > pos ? at(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)/sy, src, gap) : null;
  const end = skipSpace(src, gap + (title?.[0].length ?? 0));
  const clean = safe(address.replace(/\\([!-/:-@[-`{-~])/g, "$1"));
  return src[end] === ")" && clean !== undefined ? { address: clean, end: end + 1 } : undefined;
}

/** Read a line that gives an address a name; undefined where it isn't one. */
export function readReference(line: string): Reference | undefined {
  const found = /^\[((?:\\.|[^[\]\\]){1,999})\]:[ \t]*(?:<([^<>]*)>|(\S+))(?:[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*$/.exec(line);
  const address = safe(found?.[2] ?? found?.[3] ?? "");
  const label = labelOf(found?.[1] ?? "");
  return found && label && address !== undefined && !label.startsWith("^") ? { label, address } : undefined;
}

function labelOf(text: string): string {
  return text.trim().replace(/\s+/g, " ").toLowerCase();
}

/** An address as it is linked; undefined for one that would do something rather than lead somewhere. */
function safe(address: string): string | undefined {
  const decoded = decodeHTML(address);
  if (REFUSED.test(decoded.trim())) return undefined;
  try {
    return encodeURI(decodeURI(decoded));
  } catch {
    return decoded;
  }
}

function skipSpace(src: string, pos: number): number {
  let end = pos;
  while (end < src.length && /\s/.test(src[end]!)) end++;
  return end;
}

function at(pattern: RegExp, text: string, pos: number): RegExpExecArray | null {
  pattern.lastIndex = pos;
  return pattern.exec(text);
}

/** How often a sign stands there in a row. */
function countOf(src: string, pos: number): number {
  let end = pos + 1;
  while (src[end] === src[pos]) end++;
  return end - pos;
}

/** Where code ends that begins with so many backticks. */
function codeEnd(src: string, pos: number, mark: number): number | undefined {
  for (let next = src.indexOf("`", pos + mark); next >= 0; ) {
    const size = countOf(src, next);
    if (size === mark) return next + size;
    next = src.indexOf("`", next + size);
  }
  return undefined;
}

function signBefore(src: string, pos: number): string {
  const before = src.slice(Math.max(0, pos - 2), pos);
  return [...before].at(-1) ?? "";
}

function signAt(src: string, pos: number): string {
  return String.fromCodePoint(src.codePointAt(pos) ?? 32);
}
