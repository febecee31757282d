/** Markdown's blocks, line by line: each container's lines are read as a text of their own. */

import { readReference, type Reference } from "./inline";
import { Token } from "./token";

interface Line {
  /** Without tabs before its text. */
  text: string;
  /** In the whole text, from 0. */
  at: number;
}

/** What a container has to know of what stood in it. */
interface Content {
  /** Whether an empty line parts two of its blocks. */
  isLoose: boolean;
  /** The tokens of its own paragraphs, which aren't drawn as such in a tight list. */
  paragraphs: Token[];
}

const MAX_DEPTH = 40;
const MAX_CELLS = 65_536;
const FENCE = /^(`{3,}|~{3,})(.*)$/;
const RULE = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const HEADING = /^(#{1,6})(?=[ \t]|$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const MARKER = /^(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)/;

/** Read the blocks of a text from a line on; definitions of links go into `references`. */
export function blocksOf(lines: readonly string[], from: number, tokens: Token[], references: Map<string, Reference>): void {
  const read = lines.slice(from).map((text, index): Line => ({ text: detab(text), at: from + index }));
  new Blocks(tokens, references).read(read, 0);
}

/** Replace the tabs before a text by the spaces up to the next stop. */
function detab(text: string): string {
  if (!/^ *\t/.test(text)) return text;
  let width = 0;
  let at = 0;
  for (; text[at] === " " || text[at] === "\t"; at++) width = text[at] === "\t" ? width + 4 - (width % 4) : width + 1;
  return " ".repeat(width) + text.slice(at);
}

function indentOf(text: string): number {
  let at = 0;
  while (text[at] === " ") at++;
  return at;
}

function isBlank(text: string): boolean {
  return !text.trim();
}

function fenceOf(rest: string): RegExpExecArray | null {
  const found = FENCE.exec(rest);
  return found?.[1]?.startsWith("`") && found[2]?.includes("`") ? null : found;
}

class Blocks {
  constructor(
    private readonly tokens: Token[],
    private readonly references: Map<string, Reference>,
  ) {}

  read(lines: readonly Line[], depth: number): Content {
    const content: Content = { isLoose: false, paragraphs: [] };
    let isAfterBlank = false;
    for (let at = 0; at < lines.length; ) {
      if (isBlank(lines[at]!.text)) {
        isAfterBlank = at > 0;
        at++;
        continue;
      }
      if (isAfterBlank) content.isLoose = true;
      isAfterBlank = false;
      at = this.block(lines, at, depth, content);
    }
    return content;
  }

  /** Read the block that begins at a line; returns the line behind it. */
  private block(lines: readonly Line[], at: number, depth: number, content: Content): number {
    const { text } = lines[at]!;
    const indent = indentOf(text);
    if (indent >= 4) return this.indented(lines, at);
    const rest = text.slice(indent);
    const fence = fenceOf(rest);
    if (fence) return this.fence(lines, at, indent, fence);
    const heading = HEADING.exec(rest);
    if (heading) return this.heading(lines, at, heading[1]!.length, rest);
    if (RULE.test(rest)) {
      this.push("hr", "hr", 0, lines[at]!.at, lines[at]!.at + 1);
      return at + 1;
    }
    if (depth < MAX_DEPTH && rest.startsWith(">")) return this.quote(lines, at, depth);
    if (depth < MAX_DEPTH && MARKER.test(rest)) return this.list(lines, at, depth);
    const columns = tableAt(lines, at);
    return columns ? this.table(lines, at, columns) : this.paragraph(lines, at, content);
  }

  private push(type: string, tag: string, nesting: -1 | 0 | 1, from?: number, to?: number): Token {
    const token = new Token(type, tag, nesting);
    if (from !== undefined && to !== undefined) token.map = [from, to];
    this.tokens.push(token);
    return token;
  }

  private inline(content: string, from: number, to: number): void {
    this.push("inline", "", 0, from, to).content = content;
  }

  private indented(lines: readonly Line[], from: number): number {
    let end = from + 1;
    for (let at = end; at < lines.length; at++) {
      if (isBlank(lines[at]!.text)) continue;
      if (indentOf(lines[at]!.text) < 4) break;
      end = at + 1;
    }
    const text = lines.slice(from, end).map((line) => `${line.text.slice(4)}\n`);
    this.push("code_block", "code", 0, lines[from]!.at, lines[end - 1]!.at + 1).content = text.join("");
    return end;
  }

  private fence(lines: readonly Line[], from: number, indent: number, [, mark = "", info = ""]: RegExpExecArray): number {
    let end = from + 1;
    let isClosed = false;
    const text: string[] = [];
    for (; end < lines.length && !isClosed; end++) {
      const line = lines[end]!.text;
      const own = indentOf(line);
      const rest = line.slice(own).trimEnd();
      if (own < 4 && rest.length >= mark.length && rest === mark[0]!.repeat(rest.length)) isClosed = true;
      else text.push(`${line.slice(Math.min(indent, own))}\n`);
    }
    const token = this.push("fence", "code", 0, lines[from]!.at, lines[end - 1]!.at + 1);
    token.info = info;
    token.content = text.join("");
    return end;
  }

  private heading(lines: readonly Line[], from: number, level: number, rest: string): number {
    const { at } = lines[from]!;
    let text = rest.slice(level).trim();
    let end = text.length;
    while (text[end - 1] === "#") end--;
    if (end === 0 || text[end - 1] === " " || text[end - 1] === "\t") text = text.slice(0, end).trimEnd();
    this.push("heading_open", `h${level}`, 1, at, at + 1);
    this.inline(text, at, at + 1);
    this.push("heading_close", `h${level}`, -1);
    return from + 1;
  }

  private quote(lines: readonly Line[], from: number, depth: number): number {
    const inner: Line[] = [];
    let end = from;
    let fence = "";
    let isText = false;
    for (; end < lines.length; end++) {
      const { text, at } = lines[end]!;
      const indent = indentOf(text);
      if (indent < 4 && text[indent] === ">") {
        const rest = detab(text.slice(indent + 1)).replace(/^ /, "");
        inner.push({ text: rest, at });
        const mark = fenceOf(rest.trimStart())?.[1] ?? "";
        if (mark && !fence) fence = mark;
        else if (mark.startsWith(fence)) fence = "";
        isText = !fence && !mark && endsInText(rest);
      } else if (isText && !isBlank(text) && !interrupts(lines, end) && !kindOf(text)) inner.push(lines[end]!);
      else break;
    }
    const open = this.push("blockquote_open", "blockquote", 1, lines[from]!.at, lines[end - 1]!.at + 1);
    open.meta = null;
    this.read(inner, depth + 1);
    this.push("blockquote_close", "blockquote", -1);
    return end;
  }

  private list(lines: readonly Line[], from: number, depth: number): number {
    const kind = kindOf(lines[from]!.text)!;
    const tag = kind.start === undefined ? "ul" : "ol";
    const name = tag === "ul" ? "bullet_list" : "ordered_list";
    const open = this.push(`${name}_open`, tag, 1);
    if (kind.start !== undefined && kind.start !== 1) open.attrSet("start", String(kind.start));
    const paragraphs: Token[] = [];
    let isLoose = false;
    let end = from;
    while (end < lines.length) {
      const own = kindOf(lines[end]!.text);
      if (own?.sign !== kind.sign || RULE.test(lines[end]!.text.trimStart())) break;
      const item = itemAt(lines, end, own.width);
      const first = lines[end]!.at;
      end += item.lines.length;
      this.push("list_item_open", "li", 1, first, lines[end - 1]!.at + 1);
      const content = this.read(item.lines, depth + 1);
      this.push("list_item_close", "li", -1);
      paragraphs.push(...content.paragraphs);
      const next = lines[end + item.blanks];
      const goesOn = next !== undefined && kindOf(next.text)?.sign === kind.sign && !RULE.test(next.text.trimStart());
      isLoose ||= content.isLoose || (goesOn && item.blanks > 0);
      if (!goesOn) break;
      end += item.blanks;
    }
    open.map = [lines[from]!.at, lines[end - 1]!.at + 1];
    this.push(`${name}_close`, tag, -1);
    if (!isLoose) for (const token of paragraphs) token.hidden = true;
    return end;
  }

  private table(lines: readonly Line[], from: number, columns: readonly string[]): number {
    let end = from + 2;
    let cells = columns.length;
    while (end < lines.length && cells < MAX_CELLS && !isBlank(lines[end]!.text) && indentOf(lines[end]!.text) < 4 && !interrupts(lines, end, false)) {
      cells += columns.length;
      end++;
    }
    this.push("table_open", "table", 1, lines[from]!.at, lines[end - 1]!.at + 1);
    this.push("thead_open", "thead", 1);
    this.row(lines[from]!, "th", columns);
    this.push("thead_close", "thead", -1);
    if (end > from + 2) {
      this.push("tbody_open", "tbody", 1);
      for (const line of lines.slice(from + 2, end)) this.row(line, "td", columns);
      this.push("tbody_close", "tbody", -1);
    }
    this.push("table_close", "table", -1);
    return end;
  }

  private row(line: Line, tag: "th" | "td", columns: readonly string[]): void {
    const cells = cellsOf(line.text);
    this.push("tr_open", "tr", 1, line.at, line.at + 1);
    columns.forEach((align, at) => {
      const cell = this.push(`${tag}_open`, tag, 1);
      if (align) cell.attrSet("style", `text-align:${align}`);
      this.inline(cells[at] ?? "", line.at, line.at + 1);
      this.push(`${tag}_close`, tag, -1);
    });
    this.push("tr_close", "tr", -1);
  }

  private paragraph(lines: readonly Line[], from: number, content: Content): number {
    let end = from + 1;
    let level = 0;
    for (; end < lines.length && !isBlank(lines[end]!.text); end++) {
      const line = UNDERLINE.exec(lines[end]!.text);
      if (line) level = line[1]!.startsWith("=") ? 1 : 2;
      if (level || interrupts(lines, end)) break;
    }
    const text = lines.slice(from, end).map((line) => line.text.trimStart());
    let begin = 0;
    while (begin < text.length) {
      const read = readReference(text[begin]!);
      if (!read) break;
      if (!this.references.has(read.label)) this.references.set(read.label, read);
      begin++;
    }
    if (begin === text.length) return end; // an underline of nothing is read as what it is by itself
    const [first, last] = [lines[from + begin]!.at, lines[end - 1]!.at + 1];
    const tag = level ? `h${level}` : "p";
    const name = level ? "heading" : "paragraph";
    const open = this.push(`${name}_open`, tag, 1, first, level ? last + 1 : last);
    this.inline(text.slice(begin).join("\n").trimEnd(), first, last);
    const close = this.push(`${name}_close`, tag, -1);
    if (!level) content.paragraphs.push(open, close);
    return level ? end + 1 : end;
  }
}

interface ListKind {
  /** What items of one list have in common. */
  sign: string;
  start: number | undefined;
  /** Where the item's text begins. */
  width: number;
  isEmpty: boolean;
}

function kindOf(text: string): ListKind | undefined {
  const indent = indentOf(text);
  const mark = indent < 4 ? MARKER.exec(text.slice(indent))?.[0] : undefined;
  if (mark === undefined) return undefined;
  const behind = detab(" ".repeat(indent + mark.length) + text.slice(indent + mark.length));
  const isEmpty = isBlank(behind);
  const spaces = indentOf(behind) - indent - mark.length;
  const width = indent + mark.length + (isEmpty || spaces > 4 ? 1 : spaces);
  return { sign: mark.slice(-1), start: mark.length > 1 ? Number(mark.slice(0, -1)) : undefined, width, isEmpty };
}

/** The lines of a list's item, without its marker and the empty lines behind it, which are counted. */
function itemAt(lines: readonly Line[], from: number, width: number): { lines: Line[]; blanks: number } {
  const first = lines[from]!;
  const indent = indentOf(first.text);
  const mark = MARKER.exec(first.text.slice(indent))?.[0].length ?? 1;
  const text = detab(" ".repeat(indent + mark) + first.text.slice(indent + mark));
  const item: Line[] = [{ text: text.slice(width), at: first.at }];
  let blanks = 0;
  let fence = "";
  let last = item[0]!.text;
  for (let at = from + 1; at < lines.length; at++) {
    const line = lines[at]!;
    const mark = fenceOf(last.trimStart())?.[1] ?? "";
    if (mark && !fence) fence = mark;
    else if (fence && mark.startsWith(fence)) fence = "";
    if (isBlank(line.text)) {
      if (item.length === 1 && isBlank(last)) break; // an item begins with one empty line at most
      item.push({ text: "", at: line.at });
      last = "";
      blanks++;
      continue;
    }
    if (indentOf(line.text) >= width) last = line.text.slice(width);
    else if (!fence && !mark && endsInText(last) && !interrupts(lines, at) && !kindOf(line.text)) last = line.text.trimStart();
    else break;
    item.push({ text: last, at: line.at });
    blanks = 0;
  }
  if (blanks) item.length -= blanks;
  return { lines: item, blanks };
}

/** Whether a line, in whatever containers, is of a paragraph, which a line without their signs continues. */
function endsInText(line: string): boolean {
  const text = line.replace(/^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)))+/, "").trim();
  return text !== "" && !HEADING.test(text) && !RULE.test(text) && !fenceOf(text);
}

/** Whether a line ends the paragraph before it. */
function interrupts(lines: readonly Line[], at: number, withTables = true): boolean {
  const { text } = lines[at]!;
  const indent = indentOf(text);
  if (indent >= 4) return false;
  const rest = text.slice(indent);
  if (rest.startsWith(">") || HEADING.test(rest) || RULE.test(rest) || fenceOf(rest)) return true;
  const kind = kindOf(text);
  if (kind) return !kind.isEmpty && (kind.start ?? 1) === 1;
  return withTables && tableAt(lines, at) !== undefined;
}

/** How the columns of the table that begins at a line are set; undefined where none does. */
function tableAt(lines: readonly Line[], at: number): string[] | undefined {
  const [head, line] = [lines[at]!.text, lines[at + 1]?.text];
  if (!line || !head.includes("|") || !/^[ \t|:-]+$/.test(line) || !/[|:]/.test(line) || indentOf(line) >= 4 || /^ *- /.test(line)) return undefined;
  const cells = cellsOf(line);
  if (!cells.every((cell) => /^:?-+:?$/.test(cell))) return undefined;
  const columns = cells.map((cell) => {
    const [isLeft, isRight] = [cell.startsWith(":"), cell.endsWith(":")];
    return isLeft && isRight ? "center" : isRight ? "right" : isLeft ? "left" : "";
  });
  return cellsOf(head).length === columns.length ? columns : undefined;
}

/** Split a table's row; a bar behind a backslash is text. */
function cellsOf(line: string): string[] {
  const text = line.trim();
  const cells: string[] = [];
  let cell = "";
  for (let at = text.startsWith("|") ? 1 : 0; at < text.length; at++) {
    if (text[at] === "\\" && text[at + 1] === "|") cell += text[++at];
    else if (text[at] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else cell += text[at];
  }
  if (cell.trim() || !text.endsWith("|")) cells.push(cell.trim());
  return cells;
}
