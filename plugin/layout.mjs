/**
 * How main.js is laid out for whoever reads it: as esbuild prints it, but with tabs, without padding in braces, without parentheses
 * around a single parameter, and elements and calls on one line where they have room there, else with a line for each child.
 */
import ts from "typescript";

const MAX_LINE = 160;
/** How esbuild indents, and how wide a tab is taken for. */
const INDENT = 2;

const parse = (code) => ts.createSourceFile("main.js", code, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS);

/** Give the code without the fields that say nothing but their name, where the constructor sets them: esbuild writes them for its parameters. */
export function dropFields(code) {
  const file = parse(code);
  let [text, end] = ["", 0];
  const visit = (node) => {
    if (ts.isClassLike(node)) {
      const set = new Set(node.members.find(ts.isConstructorDeclaration)?.body.statements.map((statement) => /^this\.(\w+) = /.exec(statement.getText(file))?.[1]));
      for (const member of node.members) {
        if (!ts.isPropertyDeclaration(member) || member.initializer || member.modifiers || !set.has(member.name.text)) continue;
        text += code.slice(end, member.pos);
        ({ end } = member);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return text + code.slice(end);
}

/** Give the code with its new layout; what it means stays. */
export function layout(code) {
  const file = parse(code);
  return new Printer(file, code).printParts(file, 0, 0);
}

/** Prints nodes, each at the level of the line that it begins in, from a column of that line on. */
class Printer {
  constructor(file, code) {
    this.file = file;
    this.code = code;
    /** The function that makes an element, by its short name. */
    this.element = /\b(\w+)\("section"/.exec(code)?.[1];
    this.levels = file.getLineStarts().map((start) => /^ */.exec(code.slice(start, start + 80))[0].length / INDENT);
    this.flats = new Map();
  }

  startOf(node) {
    return node === this.file ? 0 : node.getStart(this.file);
  }

  levelAt(position) {
    return this.levels[this.file.getLineAndCharacterOfPosition(position).line];
  }

  /** On one line; undefined where that can't be, as there are statements in it. */
  flat(node) {
    if (!this.flats.has(node)) {
      const text = this.print(node, 0, -Infinity);
      this.flats.set(node, text.includes("\n") ? undefined : text);
    }
    return this.flats.get(node);
  }

  print(node, level, column) {
    if (ts.isCallExpression(node) && node.arguments.length) return this.printCall(node, level, column);
    if (ts.isObjectLiteralExpression(node) || ts.isObjectBindingPattern(node)) return this.printBraces(node, level, column);
    if (ts.isArrowFunction(node) && isBare(node)) {
      const head = `${node.modifiers ? "async " : ""}${node.parameters[0].name.text} => `;
      return head + this.print(node.body, level, column + head.length);
    }
    // A line break in a template is part of its text.
    if (ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.getText(this.file);
    return this.printParts(node, level, column);
  }

  /** Print a node's children, and what stands between them as it is. */
  printParts(node, level, column) {
    let end = this.startOf(node);
    const shift = level - this.levelAt(end);
    const moved = (text) => text.replaceAll(/\n( *)/g, (_, spaces) => `\n${"\t".repeat(spaces.length / INDENT + shift)}`);
    let text = "";
    ts.forEachChild(node, (child) => {
      const from = child.getStart(this.file);
      text += moved(this.code.slice(end, from));
      text += this.print(child, this.levelAt(from) + shift, columnAfter(text, column));
      ({ end } = child);
    });
    return text + moved(this.code.slice(end, node.end));
  }

  printCall(node, level, column) {
    const { arguments: given, expression, questionDotToken } = node;
    const isElement = expression.text === this.element;
    const isBroken = this.code.slice(expression.end, this.startOf(given[0])).includes("\n");
    if (!isElement && !isBroken) return this.printParts(node, level, column);
    const head = `${this.print(expression, level, column)}${questionDotToken ? "?." : ""}(`;
    return this.printList(given, { head, tail: ")", kept: isElement ? 2 : 0 }, level, column);
  }

  printBraces(node, level, column) {
    const parts = node.properties ?? node.elements;
    if (!parts.length) return "{}";
    const isBroken = this.code.slice(this.startOf(node), this.startOf(parts[0])).includes("\n");
    const isProps = ts.isCallExpression(node.parent) && node.parent.expression.text === this.element;
    // A table of the sources stays one.
    if (isBroken && !isProps) return this.printParts(node, level, column);
    return this.printList(parts, { head: "{", tail: "}", kept: 0 }, level, column);
  }

  /** Print a list on one line where it has room, or where only its last part goes on; else a line for each, but for those that are kept beside its head. */
  printList(parts, { head, tail, kept }, level, column) {
    const flats = parts.map((part) => this.flat(part));
    const before = flats.slice(0, -1);
    if (!before.includes(undefined)) {
      const line = head + before.map((text) => `${text}, `).join("");
      const whole = line + (flats.at(-1) ?? this.print(parts.at(-1), level, columnAfter(line, column))) + tail;
      if (columnAfter(head, column) + whole.slice(head.length).split("\n")[0].length <= MAX_LINE) return whole;
    }
    let text = head;
    for (const [at, part] of parts.entries()) {
      if (at) text += at < kept ? ", " : ",";
      if (at >= kept) text += `\n${"\t".repeat(level + 1)}`;
      text += at < kept ? this.print(part, level, columnAfter(text, column)) : this.print(part, level + 1, INDENT * (level + 1));
    }
    return kept && parts.length > kept ? text + tail : `${text}${kept ? "" : `\n${"\t".repeat(level)}`}${tail}`;
  }
}

const isBare = ({ parameters: [only, ...others] }) => only !== undefined && !others.length && ts.isIdentifier(only.name) && !only.initializer && !only.dotDotDotToken;

/** The column behind a text that begins at one. */
function columnAfter(text, column) {
  const at = text.lastIndexOf("\n");
  if (at < 0) return column + text.length;
  return text.length - at - 1 + (INDENT - 1) * /^\t*/.exec(text.slice(at + 1))[0].length;
}
