/** What the reader adds to Markdown: embeds, images, tags, ids of blocks, and buttons that edit a section. */

import { createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { Icon, IconButton } from "../basic";
import { noteName } from "../format";
import { useHost } from "../host";
import { decoded, drawImage, idOf, kindOfAddress, Markdown, NoteLink, placeOf, slugOf, textOf, type DrawContext, type MarkdownFeature, type TokenNode, type Wikilink } from "../markdown";
import { MERMAID } from "../mermaid/diagram";
import { MATH } from "./math";
import { Media, mediaKindOf, widthOf } from "./media";
import type { EmbedContent } from "./model";

/** The note that a text is of, for what is drawn within it. */
export interface NoteScope {
  embeds: readonly EmbedContent[];
  /** Edits the section that begins at a line; missing where nothing is edited. */
  onEditSection?: ((line: number) => void) | undefined;
  onTag?: ((tag: string) => void) | undefined;
  /** How deep it is embedded; what is embedded in an embed is a link. */
  depth: number;
}

export const NoteScopeContext = createContext<NoteScope>({ embeds: [], depth: 0 });

const MEDIA_OR_NOTE = /\.(md|markdown)$/i;

function Embed({ link, context }: { link: Wikilink; context: DrawContext }): JSX.Element {
  const scope = useContext(NoteScopeContext);
  const path = context.host.resolveLink?.(link.target, context.path);
  if (mediaKindOf(link.target)) {
    const width = widthOf(link.shown);
    return <Media path={path} name={link.target} text={width === undefined ? link.shown : ""} width={width} />;
  }
  const wanted = `![[${link.target}${link.fragment ? `#${link.fragment}` : ""}`.toLowerCase();
  const found = scope.embeds.find((embed) => embed.embed.toLowerCase().startsWith(wanted));
  const isNote = !/\.\w{1,5}$/.test(link.target) || MEDIA_OR_NOTE.test(link.target);
  if (!isNote || scope.depth > 0 || !found?.path || found.content === undefined) return <EmbedLink link={link} context={context} problem={found?.error} />;
  return <EmbeddedNote found={found} link={link} context={context} />;
}

function EmbedLink({ link, context, problem }: { link: Wikilink; context: DrawContext; problem?: string | undefined }): JSX.Element {
  return (
    <span class="k-embed" title={problem}>
      <Icon name="link" />
      <NoteLink link={link} context={context} />
    </span>
  );
}

function EmbeddedNote({ found, link, context }: { found: EmbedContent; link: Wikilink; context: DrawContext }): JSX.Element {
  const host = useHost();
  const path = found.path ?? "";
  const target = { kind: "note" as const, path, ...(link.fragment ? { fragment: link.fragment } : {}) };
  const title = [noteName(path), link.fragment.replace(/#/g, " › ")].filter(Boolean).join(" › ");
  return (
    <section class="k-embedded" aria-label={`From ${title}`}>
      <header>
        <NoteLink link={{ target: link.target, fragment: link.fragment, shown: title }} context={context} />
        <IconButton icon="panel-right" size="small" label={`Open ${title} to the side`} onClick={() => host.open(target, "pane")} />
      </header>
      <NoteScopeContext.Provider value={{ embeds: [], depth: 1 }}>
        <Markdown text={found.content ?? ""} path={path} features={FEATURES} prefix={`${context.prefix}e${found.line}-`} class="k-prose-small" />
      </NoteScopeContext.Provider>
      {found.truncated && <p class="k-small k-quiet">Open the note to read the rest.</p>}
    </section>
  );
}

function Heading({ node, context }: { node: TokenNode; context: DrawContext }): JSX.Element {
  const { onEditSection, depth } = useContext(NoteScopeContext);
  const level = /^h[1-6]$/.test(node.token.tag) ? node.token.tag : "h6";
  const Tag = level as "h2";
  const text = textOf(node).trim();
  const line = (node.token.map?.[0] ?? 0) + 1;
  return (
    <Tag id={idOf(slugOf(node), node, context)} class="k-heading" aria-label={text || undefined} {...placeOf(node.token)}>
      {context.inside(node)}
      {onEditSection && depth === 0 && <IconButton icon="pencil" size="small" label={`Edit the section ${text}`} onClick={() => onEditSection(line)} />}
    </Tag>
  );
}

function Tag({ name }: { name: string }): JSX.Element {
  const { onTag } = useContext(NoteScopeContext);
  if (!onTag) return <span class="k-tag">#{name}</span>;
  return (
    <button type="button" class="k-tag" onClick={() => onTag(name)}>
      #{name}
    </button>
  );
}

/** A paragraph of nothing but embeds isn't one: what it shows are blocks. */
function drawParagraph(node: TokenNode, context: DrawContext): JSX.Element | JSX.Element[] {
  if (node.token.hidden) return <>{context.inside(node)}</>;
  const inline = node.children[0]?.children ?? [];
  const isBlock = inline.length > 0 && inline.every(({ token }) => token.type === "embed" || token.type === "softbreak" || (token.type === "text" && !token.content.trim()));
  if (isBlock) {
    return (
      <div class="k-embeds" {...placeOf(node.token)}>
        {context.inside(node)}
      </div>
    );
  }
  return <p {...placeOf(node.token)}>{context.inside(node)}</p>;
}

const OBSIDIAN: MarkdownFeature = {
  name: "obsidian",
  setup: (md) => {
    md.core.ruler.after("inline", "block_ids", (state) => {
      for (const token of state.tokens) {
        const last = token.type === "inline" ? token.children?.at(-1) : undefined;
        if (last?.type !== "text") continue;
        const found = /(?:^|\s)\^([A-Za-z0-9-]{1,80})\s*$/.exec(last.content);
        if (!found) continue;
        last.content = last.content.slice(0, found.index);
        token.attrSet("block", found[1] ?? "");
      }
    });
    md.inline.ruler.push("tag", (state, isSilent) => {
      if (state.src[state.pos] !== "#" || /[^\s([{,;>*_~"'“]/.test(state.src[state.pos - 1] ?? " ")) return false;
      const found = /^#([\p{L}\p{N}\p{Emoji_Presentation}_/-]{1,100})/u.exec(state.src.slice(state.pos, state.pos + 110));
      if (!found || /^[\d/]+$/.test(found[1] ?? "")) return false;
      if (!isSilent) {
        const token = state.push("tag", "", 0);
        token.content = found[1] ?? "";
      }
      state.pos += found[0].length;
      return true;
    });
  },
  draw: {
    embed: ({ token }, context) => <Embed link={token.meta as Wikilink} context={context} />,
    heading_open: (node, context) => <Heading node={node} context={context} />,
    paragraph_open: (node, context) => drawParagraph(node, context),
    tag: ({ token }) => <Tag name={token.content} />,
    inline: (node, context) => {
      const block = node.token.attrGet("block");
      const inside = node.children.length ? context.inside(node) : null;
      return block ? <span id={idOf(`^${block}`, node, context)}>{inside}</span> : <>{inside}</>;
    },
    image: (node, context) => {
      const address = node.token.attrGet("src") ?? "";
      if (kindOfAddress(address) !== "note") return drawImage(node, context);
      const name = decoded(address).split("#", 1)[0] ?? "";
      const [text = "", size = ""] = (textOf(node) || node.token.content).split("|");
      return <Media path={context.host.resolveLink?.(name, context.path)} name={name} text={text} width={widthOf(size)} />;
    },
  },
};

/** All that the reader draws. */
export const FEATURES: readonly MarkdownFeature[] = [MATH, MERMAID, OBSIDIAN];
