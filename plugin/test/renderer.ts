/**
 * Stands in for Obsidian's `MarkdownRenderer`: it draws HTML, loads images of any host, embeds, typesets formulas, and has
 * plugins run what stands in code, as the app does. What it ran is in `ran`.
 */
import MarkdownIt from "markdown-it";

/** What plugins were given to run: a block's language, or an expression in a line. */
export const ran: string[] = [];

const md = new MarkdownIt({ html: true, linkify: true });
md.inline.ruler.before("link", "wikilink", (state, isSilent) => {
  const found = /^!?\[\[([^\n[\]|]+)(?:\|([^\n[\]]+))?\]\]/.exec(state.src.slice(state.pos));
  if (!found) return false;
  const [all, target = "", shown] = found;
  if (!isSilent) {
    const name = md.utils.escapeHtml(target);
    const text = md.utils.escapeHtml(shown ?? target.replaceAll("#", " > "));
    const token = state.push("html_inline", "", 0);
    token.content = all.startsWith("!") ? `<img class="internal-embed" src="${name}">` : `<a class="internal-link" data-href="${name}" href="${name}">${text}</a>`;
  }
  state.pos += all.length;
  return true;
});
md.inline.ruler.before("escape", "formula", (state, isSilent) => {
  const found = /^\$[^$\n]+\$/.exec(state.src.slice(state.pos));
  if (!found) return false;
  if (!isSilent) state.push("html_inline", "", 0).content = `<span class="math">${md.utils.escapeHtml(found[0])}</span>`;
  state.pos += found[0].length;
  return true;
});

/** The blocks at the top of a text, with their lines from 0, the last one included; of code its language. */
export function sections(text: string): { lineStart: number; lineEnd: number; language: string; source: string }[] {
  const tokens = md.parse(text, {}).filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map);
  return tokens.map(({ map, info, content }) => ({ lineStart: map![0], lineEnd: map![1] - 1, language: info.trim(), source: content.replace(/\n$/, "") }));
}

const render = async (_: unknown, text: string, into: HTMLElement): Promise<void> => {
  const shown = text.replace(/^---\n[\s\S]*?\n---\n/, "").replaceAll(/%%[\s\S]*?%%/g, "");
  const root = document.createElement("div");
  root.innerHTML = md.render(shown);
  for (const code of root.querySelectorAll("code")) {
    const [language] = /(?<=language-)[\w-]+$/.exec(code.className) ?? [];
    if (language) ran.push(language);
    else if (!code.closest("pre") && /^\s*\$?=/.test(code.textContent)) ran.push(code.textContent);
  }
  for (const link of root.querySelectorAll("a:not([data-href])")) {
    const address = link.getAttribute("href") ?? "";
    if (/^[\w./%-]+$/.test(address)) Object.assign(link, { className: "internal-link" }).setAttribute("data-href", decodeURI(address));
  }
  await Promise.resolve();
  into.append(...root.childNodes);
};
export const MarkdownRenderer = { render };
