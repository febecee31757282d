/** A message with what goes with it: files and selections stand after its text, each in a fence that they can't leave. */

export interface Attachment {
  kind: "file" | "selection";
  /** A file's name, or where a selection is from: a link to its note. */
  name: string;
  text: string;
}

/** The server takes 200,000 characters in one message. */
export const MAX_MESSAGE_CHARS = 190_000;
const MAX_FILE_BYTES = 400_000;
const HEADS = { file: "Attached", selection: "Selected" } as const;

/** Write a message as it is sent. */
export function joinMessage(text: string, attachments: readonly Attachment[]): string {
  const parts = attachments.map(({ kind, name, text: content }) => {
    const longest = Math.max(0, ...[...content.matchAll(/`+/g)].map((run) => run[0].length));
    const fence = "`".repeat(Math.max(3, longest + 1));
    return `${HEADS[kind]}: ${oneLine(name)}\n${fence}\n${content.replace(/\r\n?/g, "\n")}\n${fence}`;
  });
  return [text.trim(), ...parts].filter(Boolean).join("\n\n");
}

/** Read a message back: what was written, and what goes with it. */
export function splitMessage(message: string): { text: string; attachments: Attachment[] } {
  const attachments: Attachment[] = [];
  let rest = message;
  for (;;) {
    const found = /(?:^|\n\n)(Attached|Selected): ([^\n]*)\n(`{3,})\n([\s\S]*)\n\3$/.exec(rest);
    if (!found) break;
    // The greedy text may hold several: the last one is what stands after the last head whose fence closes at the end.
    const own = lastPart(rest, found);
    attachments.unshift({ kind: own.head === "Attached" ? "file" : "selection", name: own.name, text: own.text });
    rest = rest.slice(0, own.start);
  }
  return { text: rest, attachments };
}

interface Part {
  head: string;
  name: string;
  text: string;
  start: number;
}

function lastPart(message: string, found: RegExpExecArray): Part {
  const heads = [...message.matchAll(/(?:^|\n\n)(Attached|Selected): ([^\n]*)\n(`{3,})\n/g)];
  for (const head of heads.reverse()) {
    const fence = head[3] ?? "```";
    const from = head.index + head[0].length;
    const isClosed = message.endsWith(`\n${fence}`) && message.length - fence.length - 1 >= from;
    const text = message.slice(from, message.length - fence.length - 1);
    const isWhole = isClosed && !text.split("\n").some((line) => line === fence) && !longerRun(text, fence.length);
    if (isWhole) return { head: head[1] ?? "", name: head[2] ?? "", text, start: head.index };
  }
  return { head: found[1] ?? "", name: found[2] ?? "", text: found[4] ?? "", start: found.index };
}

function longerRun(text: string, length: number): boolean {
  return [...text.matchAll(/`+/g)].some((run) => run[0].length >= length);
}

function oneLine(name: string): string {
  return name.replace(/[\r\n]+/g, " ").trim();
}

/** Read a file that goes with a message; throws what to tell the person where it can't. */
export async function readFile(file: File): Promise<Attachment> {
  if (file.size > MAX_FILE_BYTES) throw new Error(`${file.name} is too large: a message can have ${MAX_MESSAGE_CHARS.toLocaleString("en")} characters`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw new TypeError("not a text");
    return { kind: "file", name: file.name, text: text.replace(/\n$/, "") };
  } catch {
    throw new Error(`${file.name} isn't a text file; only text can be attached`);
  }
}

/** A message that sets an agent with a task of its own to work, such as `/weekly-review`; it needs no Scout, Web or Task. */
export const AGENT_NAME = /^\/[a-z][a-z-]*$/;

export type Trigger = { kind: "note" | "command"; query: string; from: number; to: number };

/** What is being written at the caret that can be completed: a note after `[[`, or a command after a slash at the beginning. */
export function triggerAt(text: string, caret: number): Trigger | null {
  const before = text.slice(0, caret);
  const link = /(?:^|[^[])\[\[([^[\]\n]{0,80})$/.exec(before);
  if (link) {
    const query = link[1] ?? "";
    const closes = text.slice(caret).startsWith("]]") ? 2 : 0;
    return { kind: "note", query, from: caret - query.length - 2, to: caret + closes };
  }
  const command = /^\/([^\n/]{0,60})$/.exec(before);
  return command && caret === text.length ? { kind: "command", query: command[1] ?? "", from: 0, to: caret } : null;
}

/** A link to a note, as it is written into a message. */
export function noteLink(path: string): string {
  return `[[${path.replace(/\.md$/i, "")}]]`;
}

/** The notes that were dropped: from lists of the page, from Obsidian, or as links in a text. */
export function droppedNotes(data: { getData(type: string): string }): string[] {
  const own = data.getData("text/x-knapper-note");
  if (own) return own.split("\n").filter(Boolean);
  const text = data.getData("text/plain").trim();
  if (/^obsidian:\/\/open\?/.test(text)) {
    const file = new URLSearchParams(text.slice(text.indexOf("?") + 1)).get("file");
    return file ? [file.endsWith(".md") ? file : `${file}.md`] : [];
  }
  return /^[^\n]{1,300}\.md$/i.test(text) && !text.includes("://") ? [text] : [];
}
