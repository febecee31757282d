/**
 * Take out of a Markdown text what Obsidian's renderer would load or run: images, embeds, HTML, formulas, comments, and what
 * other plugins make of code. The signs that begin those are replaced wherever they stand, also in code, so that nothing
 * depends on how the text is parsed. Once it is drawn, `unveil` puts them back as text.
 */

/** Replaced where they begin something: HTML, an image or an embed, a formula, a comment, an expression of a plugin. */
const VEILED = ["<", "!", "$", "%", "="] as const;
/** Signs of punctuation that hardly any text has; the parser takes them as it takes those that they stand for. */
const RARE = Array.from({ length: 0x2e4f - 0x2e30 }, (_, index) => String.fromCharCode(0x2e30 + index)).filter((sign) => /\p{Po}/u.test(sign));
/** What a fence has before it, such as a list's dash, and what follows: its language. */
const FENCE = /^([ \t>*+\-\d.)]*(?:`{3,}|~{3,})[ \t]*)(.*)$/;
const FRONT_MATTER = /^---[ \t]*\n([\s\S]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/;

/** A text without what would be loaded or run, and the signs that stand for what was replaced. */
export interface Veiled {
  text: string;
  /** Stands before what is code, so that it is no plugin's. */
  mark: string;
  /** By the rare sign, what it stands for. */
  signs: ReadonlyMap<string, string>;
}

/** Veil a text; undefined where it has nearly all rare signs, so that it can only be shown as it is. */
export function veil(source: string): Veiled | undefined {
  const text = source.replace(/^\ufeff/, "").replaceAll(/\r\n?/g, "\n");
  const [mark, ...free] = RARE.filter((sign) => !text.includes(sign));
  if (!mark || free.length < VEILED.length) return undefined;
  const signs = new Map(VEILED.map((sign, index) => [free[index]!, sign]));
  const [html, image, formula, comment, expression] = free as [string, string, string, string, string];
  const lines = asCode(text).split("\n").map((line) => {
    const [, fence, language = ""] = FENCE.exec(line) ?? [];
    const rest = (fence === undefined ? line : language).replaceAll(/`+/g, `$&${mark}`);
    return fence === undefined ? rest : fence + (language && mark) + rest;
  });
  const veiled = lines
    .join("\n")
    .replaceAll("<", html)
    .replaceAll(/!(?=\[)/g, image)
    .replaceAll("$", () => formula)
    .replaceAll("%%", comment + comment)
    .replaceAll(/^([ \t>]*)=(?!=)/gm, `$1${expression}`);
  return { text: veiled, mark, signs };
}

/** Front matter is drawn as code; Obsidian would leave it out. */
function asCode(text: string): string {
  return text.replace(FRONT_MATTER, (_, yaml: string) => {
    const longest = Math.max(2, ...(yaml.match(/`+/g) ?? []).map((ticks) => ticks.length));
    const fence = "`".repeat(longest + 1);
    return `${fence}yaml\n${yaml}\n${fence}\n`;
  });
}

/** Put back what was veiled in all that was drawn, as text. */
export function unveil(root: HTMLElement, { mark, signs }: Veiled): void {
  const rare = `[${[...signs.keys()].join("")}]`;
  const inText = new RegExp(`\\\\?(${rare})|${mark}`, "g");
  const elsewhere = new RegExp(`(${rare})|${mark}`, "g");
  const encoded = [...signs].map(([sign, meant]) => [encodeURIComponent(sign), encodeURI(meant)] as const);
  for (const element of [root, ...root.querySelectorAll("*")]) {
    for (const { name, value } of [...element.attributes]) {
      let plain = value.replaceAll(elsewhere, (_, sign?: string) => (sign === undefined ? "" : signs.get(sign)!));
      for (const [sign, meant] of encoded) plain = plain.replaceAll(sign, () => meant);
      if (plain !== value) element.setAttribute(name, plain);
    }
    const pattern = element.closest("code, pre") ? elsewhere : inText;
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.nodeValue) continue;
      // The sign before a link that would have been an image isn't shown.
      const isImage = node.nextSibling?.nodeName === "A" && signs.get(node.nodeValue.at(-1)!) === "!" && node.nodeValue.at(-2) !== "\\";
      const text = isImage ? node.nodeValue.slice(0, -1) : node.nodeValue;
      node.nodeValue = text.replaceAll(pattern, (_, sign?: string) => (sign === undefined ? "" : signs.get(sign)!));
    }
  }
}
