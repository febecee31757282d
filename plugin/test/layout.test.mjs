/** How main.js is laid out: what it means stays, and it is broken where somebody would break it. */
import { transform } from "esbuild";
import { expect, it } from "vitest";
import { dropFields, layout } from "../layout.mjs";

const LONG = "a text that is long enough to need the line for itself, as its words go on and on, and nobody knows where they are to end after all of that";

it("has no padding in braces, no parentheses around a single parameter, and tabs", () => {
  const code = "const { a, b: { c } } = x;\nconst f = (one) => {\n  return { a, c };\n};\nconst g = async (one, { two }) => one;\nconst h = ({ a: b }) => ({});\nconst i = (...all) => all;\nconst j = (a2 = 1) => a2;\n";

  expect(layout(code)).toBe("const {a, b: {c}} = x;\nconst f = one => {\n\treturn {a, c};\n};\nconst g = async (one, {two}) => one;\nconst h = ({a: b}) => ({});\nconst i = (...all) => all;\nconst j = (a2 = 1) => a2;\n");
});

it("puts an element on one line where it has room, and else a line for each child", () => {
  const code = `k("section", null);\nfunction Part({ a }) {\n  return k(\n    "p",\n    {\n      class: "k-small",\n      id: a\n    },\n    k("b", null, "one"),\n    k("i", null, ${JSON.stringify(LONG)})\n  );\n}\nk(\n  "p",\n  { a },\n  "one"\n);\n`;

  expect(layout(code)).toBe(`k("section", null);\nfunction Part({a}) {\n\treturn k("p", {class: "k-small", id: a},\n\t\tk("b", null, "one"),\n\t\tk("i", null, ${JSON.stringify(LONG)}));\n}\nk("p", {a}, "one");\n`);
});

it("lets the last part of a list go on over other lines, and moves what is in it along", () => {
  const code = 'k("section", null);\nk(\n  "ul",\n  null,\n  rows.map((row) => {\n    if (!row) return `a\n  b ${row}`;\n    return k("li", { key: row }, row);\n  })\n);\n';

  expect(layout(code)).toBe('k("section", null);\nk("ul", null, rows.map(row => {\n\tif (!row) return `a\n  b ${row}`;\n\treturn k("li", {key: row}, row);\n}));\n');
});

it("leaves tables of the sources as they are, and changes nothing of what the code means", async () => {
  const code = 'k("section", null);\nvar TABLE = {\n  one: { a: 1 },\n  two: [\n    "x",\n    "y"\n  ]\n};\nlabel: for (const { a } of [/[{]/g, "}", `{ ${"`"} }`]) if (a) continue label;\nx?.(  (y) => y ?? { ...z }  );\nclass A extends B {\n  #own = { a: 1 };\n  static async *all(one) {\n    yield* one;\n  }\n}\n';
  const laidOut = layout(code);
  const [before, after] = await Promise.all([code, laidOut].map((text) => transform(text, { minifyWhitespace: true })));

  expect(laidOut).toContain("var TABLE = {\n\tone: {a: 1},\n\ttwo: [\n\t\t\"x\",\n\t\t\"y\"\n\t]\n};\n");
  expect(after.code).toBe(before.code);
});

it("drops fields that the constructor sets, and no others", () => {
  const code = "class A extends B {\n  constructor(one) {\n    super();\n    this.one = one;\n  }\n  one;\n  two;\n  three = 3;\n  static one;\n}\n";

  expect(dropFields(code)).toBe("class A extends B {\n  constructor(one) {\n    super();\n    this.one = one;\n  }\n  two;\n  three = 3;\n  static one;\n}\n");
});
