/**
 * Read what stands inside a line of Markdown: text in, plain objects out.
 *
 * `parse("see [[Garden#Water]] (lines 3-9)")` gives a text and a wikilink with its lines. Every step looks at a character
 * a bounded number of times, whatever the text holds.
 */

const ESCAPED = /[!-/:-@[-`{-~]/;
const WIKILINK = /(!?)\[\[([^[\]\n|]+)(?:\\?\|([^[\]\n]*))?\]\]/y;
const LINK =
  /(!?)\[((?:[^[\]\\]|\\.)*)\]\(\s*(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
const PICTURE_LINK = /\[(!\[(?:[^[\]\\]|\\.)*\]\([^\s()<>]*\))\]\(([^\s()<>]*)\)/y;
const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const BARE = /https?:\/\/[^\s<>"'`[\]]+[^\s<>"'`[\].,;:!?)]/y;
const LINES = /\s*[([,:]?\s*(?:lines?|L)\.?\s*(\d{1,7})(?:\s*(?:-|–|to)\s*L?(\d{1,7}))?\s*[)\]]?/iy;
const ALIAS_LINES = /^(?:lines?|L)\.?\s*(\d{1,7})(?:\s*[-–]\s*L?(\d{1,7}))?$/i;
const ENTITY = /&(?:(lt|gt|amp|quot|apos|nbsp)|#(\d{1,7})|#x([0-9a-f]{1,6}));/iy;
const NAMED = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", nbsp: "\u00a0" };
const MARKS = { "**": "strong", __: "strong", "~~": "del", "==": "mark", "*": "em", _: "em" };
const DEEPEST = 8;
const LONGEST = 20_000;

/** @returns {Array<object>} Nodes: text, code, break, strong, em, del, mark, link, image, wikilink. */
export function parse(text, depth = 0) {
  if (depth > DEEPEST || text.length > LONGEST) return [{ kind: "text", text }];
  return new Scan(text, depth).run();
}

class Scan {
  constructor(text, depth) {
    this.text = text;
    this.depth = depth;
    this.at = 0;
    this.plain = "";
    this.nodes = [];
    this.unclosed = new Set(); // marks that close nowhere from here on: no need to look again
  }

  run() {
    while (this.at < this.text.length) {
      if (!this.special()) this.plain += this.text[this.at++];
    }
    this.flush();
    return this.nodes;
  }

  special() {
    switch (this.text[this.at]) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "!":
      case "[":
        return this.wikilink() || this.pictureLink() || this.link();
      case "<":
        return this.address(ANGLED, 1);
      case "h":
        return !/\w/.test(this.text[this.at - 1] ?? " ") && this.address(BARE, 0);
      case "&":
        return this.entity();
      case "\n":
        return this.lineEnd();
      case "*":
      case "_":
      case "~":
      case "=":
        return this.marked();
      default:
        return false;
    }
  }

  escape() {
    const next = this.text[this.at + 1] ?? "";
    if (!ESCAPED.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  /** Take a character that is spelled out for the character: it is text all the same. */
  entity() {
    const found = this.match(ENTITY);
    if (!found) return false;
    const code = found[2] ? Number(found[2]) : Number.parseInt(found[3], 16);
    const isOne = code > 0 && code <= 0x10ffff;
    this.plain += found[1] ? NAMED[found[1].toLowerCase()] : isOne ? String.fromCodePoint(code) : "\ufffd";
    this.at += found[0].length;
    return true;
  }

  code() {
    const ticks = /`+/y;
    ticks.lastIndex = this.at;
    const [run] = ticks.exec(this.text);
    const begin = this.at + run.length;
    const stop = this.unclosed.has(run) ? -1 : this.closingTicks(run, begin);
    if (stop < 0) {
      this.unclosed.add(run);
      this.plain += run;
      this.at = begin;
      return true;
    }
    const inner = this.text.slice(begin, stop).replaceAll("\n", " ");
    const isPadded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim();
    this.push({ kind: "code", text: isPadded ? inner.slice(1, -1) : inner }, stop + run.length);
    return true;
  }

  closingTicks(run, from) {
    for (let at = this.text.indexOf(run, from); at >= 0; at = this.text.indexOf(run, at)) {
      let stop = at;
      while (this.text[stop] === "`") stop++;
      if (stop - at === run.length) return at;
      at = stop;
    }
    return -1;
  }

  wikilink() {
    const found = this.match(WIKILINK);
    if (!found) return false;
    const [whole, embed, target, alias = ""] = found;
    const lines = ALIAS_LINES.exec(alias.trim());
    this.push(
      { kind: "wikilink", target: target.trim(), alias: lines ? "" : alias.trim(), embed: Boolean(embed) },
      this.at + whole.length,
    );
    const told = lines ?? this.match(LINES);
    if (told) {
      this.nodes.at(-1).first = Number(told[1]);
      this.nodes.at(-1).last = Number(told[2] ?? told[1]);
      if (!lines) this.at += told[0].length;
    }
    return true;
  }

  pictureLink() {
    const found = this.match(PICTURE_LINK);
    if (!found) return false;
    this.push({ kind: "link", href: found[2], children: parse(found[1], this.depth + 1) }, this.at + found[0].length);
    return true;
  }

  link() {
    const found = this.match(LINK);
    if (!found) return false;
    const [whole, picture, label, target] = found;
    const href = target.replace(/^<|>$/g, "");
    const node = picture
      ? { kind: "image", href, alt: label }
      : { kind: "link", href, children: parse(label, this.depth + 1) };
    this.push(node, this.at + whole.length);
    return true;
  }

  address(pattern, group) {
    const found = this.match(pattern);
    if (!found) return false;
    const href = found[group];
    this.push({ kind: "link", href, children: [{ kind: "text", text: href }] }, this.at + found[0].length);
    return true;
  }

  lineEnd() {
    const isHard = / {2,}$/.test(this.plain.slice(-8)) || this.plain.endsWith("\\");
    this.plain = this.plain.replace(/(?: {1,}|\\)$/, "");
    if (isHard) this.push({ kind: "break" }, this.at + 1);
    else {
      this.plain += "\n";
      this.at += 1;
    }
    return true;
  }

  marked() {
    const one = this.text[this.at];
    const mark = this.text[this.at + 1] === one ? one + one : one;
    if (!MARKS[mark] || this.unclosed.has(mark) || !this.opens(mark)) {
      this.plain += mark;
      this.at += mark.length;
      return true;
    }
    const stop = this.closing(mark, this.at + mark.length + 1);
    if (stop < 0) {
      this.unclosed.add(mark);
      return this.marked();
    }
    const inner = this.text.slice(this.at + mark.length, stop);
    this.push({ kind: MARKS[mark], children: parse(inner, this.depth + 1) }, stop + mark.length);
    return true;
  }

  opens(mark) {
    const next = this.text[this.at + mark.length] ?? " ";
    const isInWord = mark.startsWith("_") && /\w/.test(this.text[this.at - 1] ?? " ");
    return !/\s/.test(next) && !isInWord;
  }

  closing(mark, from) {
    for (let at = this.text.indexOf(mark, from); at >= 0; at = this.text.indexOf(mark, at + mark.length)) {
      const after = this.text[at + mark.length] ?? " ";
      const isDouble = mark.length === 1 && (after === mark || this.text[at - 1] === mark);
      const isInWord = mark.startsWith("_") && /\w/.test(after);
      if (!/\s/.test(this.text[at - 1]) && !isDouble && !isInWord) return at;
    }
    return -1;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text);
  }

  push(node, at) {
    this.flush();
    this.nodes.push(node);
    this.at = at;
  }

  flush() {
    if (this.plain) this.nodes.push({ kind: "text", text: this.plain });
    this.plain = "";
  }
}
