/**
 * Show Markdown as elements. Nothing in a text becomes markup, an address to load, or a script: elements are made here, one by
 * one, pictures are named and not loaded, and links lead to the web only where they say so.
 */

import { el } from "../dom.js";
import { parse as parseBlocks } from "./blocks.js";
import { parse as parseInline } from "./inline.js";

const WEB = new Set(["http:", "https:", "mailto:"]);
const HAS_SCHEME = /^[\s\u0000-\u0020]*[a-z][a-z0-9+.\s-]*:/i;

/**
 * @param {string} text
 * @param {(link: {target: string, first?: number, last?: number}, number: number) => void} onOpen Opens a link into the
 *   vault; the number counts the text's wikilinks from 0.
 * @param {number} line The number of the text's first line, in the note that it is of.
 * @returns {Array<HTMLElement>} Blocks; each has `data-first` and `data-last`, its lines.
 */
export function render(text, onOpen, line = 1) {
  const view = new View(onOpen);
  return parseBlocks(text, line).map((block) => view.block(block));
}

/** Take an address apart, if it is one of the web's; null for any other, such as a script's. */
export function webAddress(href) {
  try {
    const found = new URL(href.trim());
    return WEB.has(found.protocol) ? found : null;
  } catch {
    return null;
  }
}

class View {
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.links = 0;
  }

  block(block) {
    const node = this.made(block);
    node.dataset.first = block.first;
    node.dataset.last = block.last;
    return node;
  }

  made(block) {
    switch (block.kind) {
      case "heading":
        return el(`h${Math.min(6, block.level + 1)}`, { class: `level-${block.level}` }, this.inline(block.text));
      case "code":
        return el("pre", { tabindex: "0" }, el("code", {}, block.text));
      case "properties":
        return el(
          "details",
          { class: "properties" },
          el("summary", {}, "Properties"),
          el("pre", {}, el("code", {}, block.text)),
        );
      case "quote":
        return this.quote(block);
      case "list":
        return el(
          block.ordered ? "ol" : "ul",
          { start: block.ordered && block.start !== 1 ? block.start : null },
          block.items.map((item) => this.item(item)),
        );
      case "table":
        return this.table(block);
      case "rule":
        return el("hr");
      default:
        return el("p", {}, this.inline(block.text));
    }
  }

  quote(block) {
    const title = block.title ? el("p", { class: "callout-title" }, this.inline(block.title)) : null;
    return el(
      "blockquote",
      { class: block.callout ? "callout" : null },
      title,
      block.blocks.map((one) => this.block(one)),
    );
  }

  item(item) {
    const box = item.task
      ? el("input", {
          type: "checkbox",
          disabled: true,
          checked: item.task !== " ",
          "aria-label": item.task === " " ? "open" : "done",
        })
      : null;
    const [head, ...rest] = item.blocks;
    const isTight = head?.kind === "paragraph";
    const first = isTight ? this.inline(head.text) : item.blocks.slice(0, 1).map((one) => this.block(one));
    const node = el(
      "li",
      { class: item.task ? "task" : null },
      box,
      first,
      rest.map((one) => this.block(one)),
    );
    node.dataset.first = item.first;
    node.dataset.last = item.last;
    return node;
  }

  table(block) {
    const cell = (tag) => (text, at) =>
      el(tag, { class: `align-${block.align[at] ?? "start"}`, scope: tag === "th" ? "col" : null }, this.inline(text));
    const head = el("thead", {}, el("tr", {}, block.head.map(cell("th"))));
    const body = el(
      "tbody",
      {},
      block.rows.map((row) => el("tr", {}, row.map(cell("td")))),
    );
    return el(
      "div",
      { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Table" },
      el("table", {}, head, body),
    );
  }

  inline(text) {
    return parseInline(text).map((node) => this.span(node));
  }

  span(node) {
    switch (node.kind) {
      case "text":
        return document.createTextNode(node.text);
      case "code":
        return el("code", {}, node.text);
      case "break":
        return el("br");
      case "wikilink":
        return this.wikilink(node);
      case "link":
        return this.link(node);
      case "image":
        return this.picture(node);
      default:
        return el(
          node.kind,
          {},
          node.children.map((one) => this.span(one)),
        );
    }
  }

  wikilink(node) {
    const number = this.links++;
    const [note, ...headings] = node.target.split("#");
    const name = node.alias || [note.split("/").at(-1).replace(/\.md$/, ""), ...headings].filter(Boolean).join(" › ");
    const lines = node.first
      ? el(
          "span",
          { class: "lines" },
          node.last > node.first ? `lines ${node.first}–${node.last}` : `line ${node.first}`,
        )
      : null;
    const own = { type: "button", class: "cite", title: node.target, onclick: () => this.onOpen(node, number) };
    return el("button", own, node.embed ? "embedded: " : null, name, lines ? " " : null, lines);
  }

  link(node) {
    const label = node.children.map((one) => this.span(one));
    const address = webAddress(node.href);
    if (address) return linked(address, label, plain(node.children));
    if (node.href && !HAS_SCHEME.test(node.href) && !node.href.startsWith("//")) {
      const target = decoded(node.href);
      return el(
        "button",
        { type: "button", class: "cite", title: target, onclick: () => this.onOpen({ target }, -1) },
        label,
      );
    }
    return el("span", { class: "dead", title: "this link isn't followed" }, label, ` (${node.href.slice(0, 60)})`);
  }

  picture(node) {
    const address = webAddress(node.href);
    const said = `picture not loaded: ${node.alt || "without a name"}`;
    return address ? linked(address, [said], said, "picture") : el("span", { class: "dead picture" }, said);
  }
}

/** Make a link out of the page that shows where it leads. */
export function linked(address, label, text, kind = "") {
  const where = address.hostname || address.pathname;
  const own = {
    href: address.href,
    rel: "noopener noreferrer nofollow",
    target: "_blank",
    referrerpolicy: "no-referrer",
    title: address.href,
  };
  const isTold = [address.href, decoded(address.href), where].includes(text) || `${text}/` === address.href;
  return el(
    "a",
    { ...own, class: `outside ${kind}`.trim() },
    label,
    isTold ? null : el("span", { class: "where" }, ` (${where})`),
  );
}

function plain(nodes) {
  return nodes.map((node) => node.text ?? plain(node.children ?? [])).join("");
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
