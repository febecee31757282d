/**
 * In the place of `ui/parts/markdown/markdown.tsx`: Markdown as Obsidian's own renderer draws it. What that would load or run
 * is veiled before, and links do what the shared parts have them do.
 */

import { Component, MarkdownRenderer } from "obsidian";
import { type JSX, render } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { HostContext, useHost } from "../../../ui/parts/host";
import { decoded, kindOfAddress, whereOf } from "../../../ui/parts/markdown/address";
import { type Citation, CitationsContext, CitedChip, takeLines } from "../../../ui/parts/markdown/cited";
import { CodeBlock } from "../../../ui/parts/markdown/code";
import type { MarkdownFeature } from "../../../ui/parts/markdown/markdown";
import { readWikilink } from "../../../ui/parts/markdown/syntax";
import type { AppHost } from "../host";
import { unveil, veil } from "../veil";

interface MarkdownProps {
  text: string;
  /** Path of the note that the text is of; empty for an answer. */
  path?: string;
  /** Whatever it has: links to notes are citations. */
  features?: readonly MarkdownFeature[];
  prefix?: string;
}

/** Draw Markdown, anew whenever its text grows; what is the same as before stays, with what is selected in it. */
export function Markdown({ text, path = "", features = [] }: MarkdownProps): JSX.Element {
  const host = useHost() as AppHost;
  const citations = useContext(CitationsContext);
  const root = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing>();
  const isCited = features.length > 0;
  useEffect(() => {
    const made = new Drawing(root.current!, host, path);
    drawing.current = made;
    return () => made.close();
  }, [host, path]);
  useEffect(() => drawing.current!.show({ text, citations: isCited ? citations : undefined }), [host, path, text, citations, isCited]);
  return <div ref={root} class="k-prose markdown-rendered" />;
}

interface Content {
  text: string;
  /** Undefined where links to notes are no citations. */
  citations: readonly Citation[] | undefined;
}

/** A block at the top of a text, as it is shown. */
interface Block {
  node: ChildNode;
  /** As the renderer made it, by which it is known to be the same. */
  made: Node;
  /** Has the other plugins' parts of it. */
  owner: Component;
  ends: (() => void)[];
}

/** What is drawn into an element: the renderer takes its time, and the text may have grown when it is done. */
class Drawing {
  private wanted: Content | undefined;
  private shown: Content | undefined;
  private isDrawing = false;
  private isClosed = false;
  private blocks: Block[] = [];

  constructor(
    private readonly root: HTMLElement,
    private readonly host: AppHost,
    private readonly path: string,
  ) {
    root.addEventListener("click", this.follow);
  }

  show(content: Content): void {
    this.wanted = content;
    if (!this.isDrawing) void this.draw();
  }

  close(): void {
    this.isClosed = true;
    this.root.removeEventListener("click", this.follow);
    this.replace([], new Component(), undefined);
  }

  private async draw(): Promise<void> {
    this.isDrawing = true;
    try {
      while (this.wanted && !this.isClosed) {
        const content = this.wanted;
        this.wanted = undefined;
        const owner = new Component();
        owner.load();
        const made = await this.make(content.text, owner);
        if (this.isClosed) owner.unload();
        else this.replace(made, owner, content);
      }
    } finally {
      this.isDrawing = false;
    }
  }

  private async make(text: string, owner: Component): Promise<ChildNode[]> {
    const into = createDiv();
    const veiled = veil(text);
    if (veiled) {
      await MarkdownRenderer.render(this.host.app, veiled.text, into, this.path, owner);
      unveil(into, veiled);
    } else into.createEl("p", { text });
    return [...into.childNodes].filter((node) => node.nodeType !== Node.TEXT_NODE || node.nodeValue?.trim());
  }

  /** Put the new blocks where the old ones are, from the first one that differs on. */
  private replace(made: readonly ChildNode[], owner: Component, content: Content | undefined): void {
    let same = 0;
    if (this.shown?.citations === content?.citations) while (same < made.length && this.blocks[same]?.made.isEqualNode(made[same]!)) same += 1;
    for (const { node, ends } of this.blocks.slice(same)) {
      for (const end of ends) end();
      node.remove();
    }
    const kept = this.blocks.slice(0, same);
    const gone = new Set(this.blocks.map((block) => block.owner));
    const added = made.slice(same).map((node): Block => ({ node, made: node.cloneNode(true), owner, ends: [] }));
    this.root.append(...added.map(({ node }) => node));
    for (const block of added) this.finish(block, content);
    this.blocks = [...kept, ...added];
    this.shown = content;
    if (!added.length) owner.unload();
    for (const block of this.blocks) gone.delete(block.owner);
    for (const one of gone) one.unload();
  }

  /** Draw code and links as the other parts have them. */
  private finish(block: Block, content: Content | undefined): void {
    const { node } = block;
    if (!(node.nodeType === Node.ELEMENT_NODE)) return;
    const all = <K extends keyof HTMLElementTagNameMap>(tag: K) => [...(node.nodeName.toLowerCase() === tag ? [node as HTMLElementTagNameMap[K]] : []), ...(node as Element).querySelectorAll(tag)];
    for (const pre of all("pre")) {
      const code = pre.querySelector("code");
      const language = /(?:^| )language-(\S+)/.exec(code?.className ?? "")?.[1] ?? "";
      const holder = this.put(block, pre, <CodeBlock text={(code ?? pre).textContent.replace(/\n$/, "")} language={language} />);
      if (pre === node) block.node = holder;
    }
    for (const link of all("a")) this.finishLink(block, link, content?.citations);
    for (const box of all("input")) box.disabled = true;
    for (const table of all("table")) table.tabIndex = 0;
  }

  private finishLink(block: Block, link: HTMLAnchorElement, citations: readonly Citation[] | undefined): void {
    const address = link.dataset["href"] ?? link.getAttribute("href") ?? "";
    const kind = kindOfAddress(address);
    if (kind === "none") link.replaceWith(...link.childNodes);
    else if (kind === "web") {
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      link.title = address;
      const where = whereOf(address, link.textContent);
      if (where) link.createEl("bdi", { cls: "k-where", text: ` (${where})` });
    } else if (kind === "note" && citations) this.cite(block, link, decoded(address), citations);
    else if (kind === "note") link.dataset["note"] = this.pathOf(decoded(address));
  }

  /** Put a citation's chip in the place of a link, with the lines that stand behind it. */
  private cite(block: Block, link: HTMLAnchorElement, address: string, citations: readonly Citation[]): void {
    const named = readWikilink(address);
    const text = link.textContent;
    const isPlain = [address, address.replaceAll("#", " > "), named.fragment].includes(text) || text === address.replace(/#\^?/, " > ^");
    const next = link.nextSibling?.nodeType === Node.TEXT_NODE ? link.nextSibling : null;
    const { link: cited, behind } = takeLines({ ...named, shown: isPlain ? "" : text }, next?.nodeValue ?? "");
    if (next) next.nodeValue = behind;
    this.put(
      block,
      link,
      <CitationsContext.Provider value={citations}>
        <CitedChip link={cited} />
      </CitationsContext.Provider>,
    );
  }

  /** Put what a part draws in the place of an element. */
  private put(block: Block, before: HTMLElement, drawn: JSX.Element): HTMLElement {
    const holder = createEl(before.matches("pre") ? "div" : "span");
    before.replaceWith(holder);
    render(<HostContext.Provider value={this.host}>{drawn}</HostContext.Provider>, holder);
    block.ends.push(() => render(null, holder));
    return holder;
  }

  private pathOf(address: string): string {
    const { target } = readWikilink(address);
    return target ? (this.host.resolveLink(target, this.path) ?? target) : this.path;
  }

  /** Follow a link to a note, or to a place in this text such as a footnote. */
  private readonly follow = (event: MouseEvent): void => {
    const link = (event.target as Partial<Element> | null)?.closest?.("a");
    if (!link || event.defaultPrevented || event.button) return;
    const address = link.dataset["href"] ?? link.getAttribute("href") ?? "";
    const kind = kindOfAddress(address);
    if (kind === "web") return;
    event.preventDefault();
    const { fragment } = readWikilink(decoded(address));
    if (link.hasClass("tag")) this.host.open({ kind: "search", query: address });
    else if (kind === "place") this.root.querySelector(`[id="${CSS.escape(fragment)}"]`)?.scrollIntoView({ block: "center" });
    else if (kind === "note") this.host.open({ kind: "note", path: this.pathOf(decoded(address)), ...(fragment ? { fragment } : {}) });
  };
}
