/** Markdown as Preact nodes, made from markdown-it's tokens: text never becomes HTML. */

import MarkdownIt from "markdown-it";
import footnotes from "markdown-it-footnote";
import type Token from "markdown-it/lib/token.mjs";
import { Fragment, type ComponentChild, type ComponentChildren, type JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Icon, type IconName } from "../basic";
import { noteName } from "../format";
import { useHost, type Host } from "../host";
import { decoded, kindOfAddress, whereOf } from "./address";
import { CodeBlock } from "./code";
import { callouts, frontMatter, marks, nest, tasks, wikilinks, type Callout, type TokenNode, type Wikilink } from "./syntax";

export interface DrawContext {
  host: Host;
  /** Path of the note that the text is of; empty for an answer. */
  path: string;
  /** Draws what a token holds. */
  inside: (node: TokenNode) => ComponentChildren;
  /** Whether this is inside a link, where no other may be. */
  inLink?: boolean;
  /** Before each id, so that two texts in one document don't share any. */
  prefix: string;
  /** The ids that were given: the first of two headings of the same text has it. */
  taken: Map<string, TokenNode>;
  /** Sets a task's box; boxes can't be set where it is missing. */
  onTask?: ((line: number, isDone: boolean) => void) | undefined;
  features: readonly MarkdownFeature[];
}

export type Draw = (node: TokenNode, context: DrawContext) => ComponentChild;

/** What a view adds: rules of markdown-it, how their tokens are drawn, and how code of a language is. */
export interface MarkdownFeature {
  name: string;
  setup?: (md: MarkdownIt) => void;
  /** By the token's type; wins over what is drawn otherwise. */
  draw?: Readonly<Record<string, Draw>>;
  /** By the language of a code block, such as `mermaid`. */
  code?: Readonly<Record<string, (text: string, context: DrawContext) => ComponentChild>>;
}

interface MarkdownProps {
  text: string;
  path?: string;
  /** Keep the list itself the same (a constant of the module): a parser is made for each. */
  features?: readonly MarkdownFeature[];
  onTask?: (line: number, isDone: boolean) => void;
  prefix?: string;
  class?: string;
}

const NONE: readonly MarkdownFeature[] = [];

/** Draw Markdown. Blocks carry `data-line` and `data-line-end`, from 1, by which a citation's lines are found. */
export function Markdown({ text, path = "", features = NONE, onTask, prefix = "", class: name = "" }: MarkdownProps): JSX.Element {
  const host = useHost();
  const nodes = useMemo(() => nest(parserOf(features).parse(text.replace(/^\ufeff/, ""), {})), [text, features]);
  const context: DrawContext = { host, path, prefix, onTask, features, taken: new Map(), inside: () => null };
  context.inside = (node) => drawAll(node.children, context);
  return <div class={`k-prose ${name}`}>{drawAll(nodes, context)}</div>;
}

const parsers = new WeakMap<readonly MarkdownFeature[], MarkdownIt>();

/** The parser for a list of features; made once. */
export function parserOf(features: readonly MarkdownFeature[] = NONE): MarkdownIt {
  let md = parsers.get(features);
  if (!md) {
    md = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
    md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
    for (const use of [frontMatter, marks, wikilinks, callouts, tasks]) md.use(use);
    md.use(footnotes as unknown as (md: MarkdownIt) => void); // its types are of the CommonJS build
    for (const feature of features) feature.setup?.(md);
    parsers.set(features, md);
  }
  return md;
}

function drawAll(nodes: readonly TokenNode[], context: DrawContext): ComponentChildren {
  return nodes.map((node, index) => <Fragment key={index}>{draw(node, context)}</Fragment>);
}

function draw(node: TokenNode, context: DrawContext): ComponentChild {
  const { token } = node;
  for (const feature of context.features) {
    const own = feature.draw?.[token.type];
    if (own) return own(node, context);
  }
  const known = DRAW[token.type];
  if (known) return known(node, context);
  if (token.hidden) return drawAll(node.children, context);
  if (token.nesting > 0 && PLAIN_TAGS.has(token.tag)) {
    const Tag = token.tag as "p";
    return (
      <Tag {...placeOf(token)} {...directionOf(token.tag)}>
        {drawAll(node.children, context)}
      </Tag>
    );
  }
  return node.children.length ? drawAll(node.children, context) : token.content;
}

/** Elements that are drawn just as markdown-it names them; nothing else of a token becomes an element. */
const PLAIN_TAGS: ReadonlySet<string> = new Set(["p", "ul", "strong", "em", "s", "mark", "thead", "tbody", "tr", "blockquote", "li"]);

/** Blocks whose sides follow the first letter in them, as Arabic and Hebrew begin at the right; lines do so by the style sheet. */
const SIDED: ReadonlySet<string> = new Set(["ul", "ol", "blockquote", "table"]);

function directionOf(tag: string): { dir?: "auto" } {
  return SIDED.has(tag) ? { dir: "auto" } : {};
}

/** Where a block stands in its text. */
export function placeOf(token: Token): { "data-line"?: number; "data-line-end"?: number } {
  return token.map ? { "data-line": token.map[0] + 1, "data-line-end": token.map[1] } : {};
}

const HEADINGS = new Set(["h1", "h2", "h3", "h4", "h5", "h6"]);

const DRAW: Readonly<Record<string, Draw>> = {
  inline: (node, context) => drawAll(node.children, context),
  text: ({ token }) => token.content,
  softbreak: () => "\n",
  hardbreak: () => <br />,
  hr: ({ token }) => <hr {...placeOf(token)} />,
  front_matter: () => null,
  code_inline: ({ token }) => <code>{token.content}</code>,
  code_block: ({ token }) => <CodeBlock text={token.content.replace(/\n$/, "")} language="" />,
  fence: ({ token }, context) => drawFence(token, context),
  heading_open: (node, context) => {
    const Tag = (HEADINGS.has(node.token.tag) ? node.token.tag : "h6") as "h1";
    return (
      <Tag id={idOf(slugOf(node), node, context)} {...placeOf(node.token)}>
        {context.inside(node)}
      </Tag>
    );
  },
  ordered_list_open: (node, context) => {
    const start = Number(node.token.attrGet("start") ?? 1);
    return (
      <ol start={Number.isSafeInteger(start) ? start : 1} {...placeOf(node.token)} {...directionOf("ol")}>
        {context.inside(node)}
      </ol>
    );
  },
  list_item_open: (node, context) => drawItem(node, context),
  blockquote_open: (node, context) => drawQuote(node, context),
  table_open: (node, context) => (
    <div class="k-table" tabIndex={0} role="group" aria-label="Table">
      <table {...placeOf(node.token)} {...directionOf("table")}>{context.inside(node)}</table>
    </div>
  ),
  th_open: (node, context) => <th data-align={alignOf(node.token)}>{context.inside(node)}</th>,
  td_open: (node, context) => <td data-align={alignOf(node.token)}>{context.inside(node)}</td>,
  link_open: (node, context) => {
    const inner: DrawContext = { ...context, inLink: true, inside: (part) => drawAll(part.children, inner) };
    return (
      <Link address={node.token.attrGet("href") ?? ""} text={textOf(node)} context={context}>
        {inner.inside(node)}
      </Link>
    );
  },
  image: (node, context) => drawImage(node, context),
  wikilink: ({ token }, context) => <NoteLink link={token.meta as Wikilink} context={context} />,
  embed: ({ token }, context) => (
    <span class="k-embed">
      <Icon name="link" />
      <NoteLink link={token.meta as Wikilink} context={context} />
    </span>
  ),
  footnote_ref: ({ token }, { prefix }) => {
    const { id = 0, subId = 0 } = token.meta as { id?: number; subId?: number };
    return (
      <sup class="k-footnote-ref">
        <a id={`${prefix}fnref-${id}-${subId}`} href={`#${prefix}fn-${id}`} onClick={(event) => jump(event, `${prefix}fn-${id}`)}>
          {id + 1}
        </a>
      </sup>
    );
  },
  footnote_block_open: (node, context) => (
    <section class="k-footnotes" aria-label="Footnotes">
      <ol>{context.inside(node)}</ol>
    </section>
  ),
  footnote_open: (node, context) => {
    const { id = 0 } = node.token.meta as { id?: number };
    return <li id={`${context.prefix}fn-${id}`}>{context.inside(node)}</li>;
  },
  footnote_anchor: ({ token }, { prefix }) => {
    const { id = 0, subId = 0 } = token.meta as { id?: number; subId?: number };
    const back = `${prefix}fnref-${id}-${subId}`;
    return (
      <a class="k-footnote-back" href={`#${back}`} aria-label="Back to the text" onClick={(event) => jump(event, back)}>
        ↩︎
      </a>
    );
  },
};

/** Scroll within the document, without a new address: the shell owns that. */
function jump(event: MouseEvent, id: string): void {
  event.preventDefault();
  const node = document.getElementById(id);
  node?.scrollIntoView({ block: "center" });
  node?.focus({ preventScroll: true });
}

function drawFence(token: Token, context: DrawContext): ComponentChild {
  const language = (token.info.trim().split(/\s+/)[0] ?? "").toLowerCase();
  const text = token.content.replace(/\n$/, "");
  for (const feature of context.features) {
    const own = Object.hasOwn(feature.code ?? {}, language) ? feature.code?.[language] : undefined;
    if (own) return own(text, context);
  }
  return (
    <div {...placeOf(token)}>
      <CodeBlock text={text} language={language} />
    </div>
  );
}

function drawItem(node: TokenNode, context: DrawContext): ComponentChild {
  const meta = node.token.meta as { task?: string; line: number } | null;
  if (meta?.task === undefined) return <li {...placeOf(node.token)}>{context.inside(node)}</li>;
  const isDone = meta.task !== " ";
  const { onTask } = context;
  return (
    <li class="k-task" data-done={isDone ? "" : undefined} {...placeOf(node.token)}>
      <input
        type="checkbox"
        checked={isDone}
        disabled={!onTask}
        aria-label={isDone ? "Done" : "To do"}
        onClick={(event) => {
          event.preventDefault(); // the text says whether it is set, once it was written
          onTask?.(meta.line, !isDone);
        }}
      />
      <div>{context.inside(node)}</div>
    </li>
  );
}

const CALLOUT_ICONS: Readonly<Record<string, IconName>> = {
  note: "pencil", abstract: "clipboard-check", summary: "clipboard-check", info: "info", todo: "circle-check", tip: "flame", hint: "flame",
  important: "flame", success: "check", check: "check", done: "check", question: "circle-question-mark", help: "circle-question-mark",
  faq: "circle-question-mark", warning: "triangle-alert", caution: "triangle-alert", attention: "triangle-alert", failure: "x", fail: "x",
  missing: "x", danger: "zap", error: "zap", bug: "bug", example: "list", quote: "quote", cite: "quote",
};
const CALLOUT_TONES: Readonly<Record<string, string>> = {
  success: "added", check: "added", done: "added", warning: "warning", caution: "warning", attention: "warning", question: "warning",
  help: "warning", faq: "warning", failure: "removed", fail: "removed", missing: "removed", danger: "removed", error: "removed", bug: "removed",
  tip: "accent", hint: "accent", important: "accent", quote: "plain", cite: "plain",
};

function drawQuote(node: TokenNode, context: DrawContext): ComponentChild {
  const callout = node.token.meta as (Callout & { title: string }) | null;
  if (!callout) {
    return (
      <blockquote {...placeOf(node.token)} {...directionOf("blockquote")}>
        {context.inside(node)}
      </blockquote>
    );
  }
  const own = (table: Readonly<Record<string, string>>, otherwise: string) =>
    (Object.hasOwn(table, callout.kind) ? table[callout.kind] : undefined) ?? otherwise;
  const title = callout.title || callout.kind.charAt(0).toUpperCase() + callout.kind.slice(1);
  const head = (
    <>
      <Icon name={own(CALLOUT_ICONS, "info") as IconName} />
      <span>{drawAll(nest(parserOf(context.features).parseInline(title, {})), context)}</span>
    </>
  );
  const shown = { class: "k-callout", dir: "auto" as const, "data-tone": own(CALLOUT_TONES, "info"), ...placeOf(node.token) };
  if (!callout.fold) {
    return (
      <div {...shown} role="note">
        <div class="k-callout-title">{head}</div>
        {context.inside(node)}
      </div>
    );
  }
  return (
    <details {...shown} open={callout.fold === "+"}>
      <summary class="k-callout-title">{head}</summary>
      {context.inside(node)}
    </details>
  );
}

function alignOf(token: Token): string | undefined {
  const found = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
  return found?.[1];
}

/** The id of a place by its name; undefined where one before has it. */
export function idOf(name: string, node: TokenNode, { prefix, taken }: DrawContext): string | undefined {
  const id = prefix + name;
  if (!taken.has(id)) taken.set(id, node);
  return taken.get(id) === node ? id : undefined;
}

/** A heading's id: its text, as links of notes name it. */
export function slugOf(node: TokenNode): string {
  return textOf(node).trim().replace(/\s+/g, "-").toLowerCase();
}

/** The plain text of what a token holds. */
export function textOf(node: TokenNode): string {
  return node.children.length ? node.children.map(textOf).join("") : node.token.content;
}

interface LinkProps {
  address: string;
  /** What it shows, as plain text. */
  text: string;
  context: DrawContext;
  children: ComponentChildren;
}

export function Link({ address, text, context, children }: LinkProps): JSX.Element {
  const kind = kindOfAddress(address);
  if (kind === "web") {
    const where = whereOf(address, text);
    return (
      <a class="k-web" href={address} target="_blank" rel="noopener noreferrer" title={address}>
        {children}
        {where && <bdi class="k-where"> ({where})</bdi>}
      </a>
    );
  }
  if (kind === "none") return <span title="This link can't be opened">{children}</span>;
  const [place = "", fragment = ""] = decoded(address).split("#", 2);
  return (
    <NoteLink link={{ target: place, fragment, shown: "" }} context={context}>
      {children}
    </NoteLink>
  );
}

interface NoteLinkProps {
  link: Wikilink;
  context: DrawContext;
  children?: ComponentChildren;
}

/** A link to a note, which the shell opens. */
export function NoteLink({ link, context, children }: NoteLinkProps): JSX.Element {
  const { host, path: from } = context;
  const found = link.target ? host.resolveLink?.(link.target, from) : from;
  const path = found ?? link.target;
  const target = { kind: "note" as const, path, ...(link.fragment ? { fragment: link.fragment } : {}) };
  const shown = children ?? (link.shown || [noteName(link.target), link.fragment].filter(Boolean).join(" › "));
  if (context.inLink) return <>{shown}</>;
  const isUnknown = host.resolveLink !== undefined && link.target !== "" && found === undefined;
  return (
    <a
      class="k-note-link"
      data-unknown={isUnknown ? "" : undefined}
      href={host.href(target) ?? "#"}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
        event.preventDefault();
        host.open(target);
      }}
    >
      {shown}
    </a>
  );
}

/** Images of other hosts are never loaded: they are links. Those of the vault are the note reader's. */
export function drawImage(node: TokenNode, context: DrawContext): ComponentChild {
  const address = node.token.attrGet("src") ?? "";
  const text = textOf(node) || node.token.content || "image";
  return (
    <span class="k-embed">
      <Icon name="image" />
      {context.inLink ? (
        text
      ) : (
        <Link address={address} text={text} context={context}>
          {text}
        </Link>
      )}
    </span>
  );
}
