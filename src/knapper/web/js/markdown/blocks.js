/**
 * Read Markdown's blocks: text in, plain objects out, each with the lines (from 1) where it stands.
 *
 * HTML is no block of its own: it stays the text that it is.
 */

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const CALLOUT = /^\[!([\w-]{1,30})\][+-]?\s*(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|\s*)$/;
const TASK = /^\[(.)\]\s+/;
const UNDERLINE = /^ {0,3}(=+|-+)\s*$/;
const CELLS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;

/**
 * @param {string} text
 * @param {number} line The number of its first line; a text that begins further down has no properties.
 * @returns {Array<object>} Blocks: heading, paragraph, code, quote, list, table, rule, properties.
 */
export function parse(text, line = 1) {
  const rows = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/);
  if (line > 1) return new Reader(rows, line, 0).run();
  const begin = rows[0]?.trimEnd() === "---" ? rows.findIndex((row, at) => at && /^(---|\.\.\.)\s*$/.test(row)) : -1;
  if (begin < 1) return new Reader(rows, 1, 0).run();
  const properties = { kind: "properties", text: rows.slice(1, begin).join("\n"), first: 1, last: begin + 1 };
  return [properties, ...new Reader(rows.slice(begin + 1), begin + 2, 0).run()];
}

class Reader {
  constructor(rows, line, depth) {
    this.rows = rows;
    this.line = line;
    this.depth = depth;
    this.at = 0;
    this.blocks = [];
  }

  run() {
    while (this.at < this.rows.length) {
      const row = this.rows[this.at];
      if (!row.trim()) this.at++;
      else if (!(
        this.fence(row) ||
        this.heading(row) ||
        this.rule(row) ||
        this.nested(row) ||
        this.table(row) ||
        this.indented(row)
      ))
        this.paragraph();
    }
    return this.blocks;
  }

  nested(row) {
    return this.depth < DEEPEST && (this.quote(row) || this.list(row));
  }

  fence(row) {
    const found = FENCE.exec(row);
    if (!found) return false;
    const [, indent, mark, language] = found;
    const close = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
    let stop = this.at + 1;
    while (stop < this.rows.length && !close.test(this.rows[stop])) stop++;
    const inner = this.rows
      .slice(this.at + 1, stop)
      .map((one) => (one.startsWith(indent) ? one.slice(indent.length) : one));
    return this.push({ kind: "code", language: language.trim(), text: inner.join("\n") }, stop + 1);
  }

  indented(row) {
    if (!/^(?: {4}|\t)/.test(row)) return false;
    let stop = this.at;
    while (stop < this.rows.length && (/^(?: {4}|\t)/.test(this.rows[stop]) || !this.rows[stop].trim())) stop++;
    const inner = this.rows.slice(this.at, stop).map((one) => one.replace(/^(?: {4}|\t)/, ""));
    return this.push({ kind: "code", language: "", text: inner.join("\n").trimEnd() }, stop);
  }

  heading(row) {
    const found = HEADING.exec(row);
    return Boolean(found) && this.push({ kind: "heading", level: found[1].length, text: found[2] ?? "" }, this.at + 1);
  }

  rule(row) {
    return RULE.test(row) && this.push({ kind: "rule" }, this.at + 1);
  }

  quote(row) {
    if (!QUOTE.test(row)) return false;
    let stop = this.at;
    while (stop < this.rows.length && (QUOTE.test(this.rows[stop]) || (stop > this.at && this.goesOn(stop)))) stop++;
    const inner = this.rows.slice(this.at, stop).map((one) => one.replace(QUOTE, ""));
    const callout = CALLOUT.exec(inner[0]);
    if (callout) inner[0] = "";
    const blocks = new Reader(inner, this.line + this.at, this.depth + 1).run();
    const title = callout ? callout[2] || callout[1] : "";
    return this.push({ kind: "quote", callout: callout?.[1].toLowerCase() ?? "", title, blocks }, stop);
  }

  list(row) {
    const found = ITEM.exec(row);
    if (!found || found[1].length > 3) return false;
    const isOrdered = /\d/.test(found[2]);
    const begin = this.at;
    const items = [];
    let at = this.at;
    while (at < this.rows.length) {
      const one = ITEM.exec(this.rows[at]);
      if (!one || one[1].length > 3 || /\d/.test(one[2]) !== isOrdered || RULE.test(this.rows[at])) break;
      const stop = this.itemEnd(at, one);
      items.push(this.item(at, stop, one));
      at = stop;
    }
    this.at = begin;
    return this.push({ kind: "list", ordered: isOrdered, start: Number.parseInt(found[2], 10) || 1, items }, at);
  }

  /** Find where a list item ends: what is indented under it, and the lines that go on from it, belong to it. */
  itemEnd(at, found) {
    const least = found[1].length + 2;
    let stop = at + 1;
    while (stop < this.rows.length) {
      const row = this.rows[stop];
      const indent = row.length - row.trimStart().length;
      if (!row.trim()) {
        let after = stop;
        while (after < this.rows.length - 1 && !this.rows[after].trim()) after++;
        const next = this.rows[after];
        if (next.length - next.trimStart().length < least && !ITEM.test(next)) break;
        stop = after - 1;
      } else if (indent < least && (ITEM.test(row) || !this.goesOn(stop))) break;
      stop++;
    }
    return stop;
  }

  item(at, stop, found) {
    const width = found[1].length + found[2].length + 1;
    const rows = this.rows
      .slice(at + 1, stop)
      .map((row) => row.slice(Math.min(width, row.length - row.trimStart().length)));
    const task = TASK.exec(found[3] ?? "");
    const head = task ? found[3].slice(task[0].length) : (found[3] ?? "");
    const blocks = new Reader([head, ...rows], this.line + at, this.depth + 1).run();
    return { blocks, task: task ? task[1] : "", first: this.line + at, last: this.line + stop - 1 };
  }

  table(row) {
    const under = this.rows[this.at + 1] ?? "";
    if (!row.includes("|") || !under.includes("-") || !CELLS.test(under)) return false;
    let stop = this.at + 2;
    while (stop < this.rows.length && this.rows[stop].includes("|") && this.rows[stop].trim()) stop++;
    const head = cells(row);
    const align = cells(under).map((one) => (one.endsWith(":") ? (one.startsWith(":") ? "center" : "end") : "start"));
    if (head.length !== align.length) return false;
    const rows = this.rows.slice(this.at + 2, stop).map(cells);
    return this.push({ kind: "table", head, align, rows }, stop);
  }

  paragraph() {
    let stop = this.at + 1;
    while (stop < this.rows.length && this.goesOn(stop)) stop++;
    const text = this.rows
      .slice(this.at, stop)
      .map((row) => row.trimStart())
      .join("\n")
      .trimEnd();
    const under = stop < this.rows.length ? UNDERLINE.exec(this.rows[stop]) : null;
    if (under) return this.push({ kind: "heading", level: under[1][0] === "=" ? 1 : 2, text }, stop + 1);
    return this.push({ kind: "paragraph", text }, stop);
  }

  /** Tell whether a line goes on from the paragraph above it. */
  goesOn(at) {
    const row = this.rows[at];
    return row.trim() !== "" && ![FENCE, HEADING, RULE, QUOTE, UNDERLINE, ITEM].some((pattern) => pattern.test(row));
  }

  push(block, stop) {
    const last = this.line + Math.min(stop, this.rows.length) - 1; // a fence may be open at the end
    this.blocks.push({ ...block, first: this.line + this.at, last });
    this.at = stop;
    return true;
  }
}

function cells(row) {
  const inner = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((one) => one.trim().replaceAll("\\|", "|"));
}
