/** A block of code: its language's colours come when they are loaded, and the text is there at once. */

import type { ElementContent, Root } from "hast";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { IconButton } from "../basic";
import { useHost } from "../host";

const LANGUAGES: Readonly<Record<string, () => Promise<{ default: unknown }>>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  latex: () => import("highlight.js/lib/languages/latex"),
  lua: () => import("highlight.js/lib/languages/lua"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};
const ALIASES: Readonly<Record<string, string>> = {
  "c++": "cpp", cs: "csharp", html: "xml", js: "javascript", jsx: "javascript", kt: "kotlin", md: "markdown", patch: "diff",
  py: "python", python3: "python", rb: "ruby", rs: "rust", sh: "bash", shell: "bash", svg: "xml", tex: "latex", toml: "ini",
  ts: "typescript", tsx: "typescript", yml: "yaml", zsh: "bash", dataview: "sql", dataviewjs: "javascript", golang: "go",
};
/** Longer code isn't coloured: that would take longer than reading its first page. */
const MAX_CHARACTERS = 50_000;

interface Highlighter {
  register(name: string, grammar: never): void;
  registered(name: string): boolean;
  highlight(name: string, text: string): Root;
}

let loading: Promise<Highlighter> | undefined;

async function highlight(language: string, text: string): Promise<Root | null> {
  const grammar = LANGUAGES[language];
  if (!grammar || text.length > MAX_CHARACTERS) return null;
  loading ??= import("lowlight").then(({ createLowlight }) => createLowlight() as unknown as Highlighter);
  const highlighter = await loading;
  if (!highlighter.registered(language)) highlighter.register(language, (await grammar()).default as never);
  return highlighter.highlight(language, text);
}

/** A block of code with its language, its colours, and a button that copies it. */
export function CodeBlock({ text, language }: { text: string; language: string }): JSX.Element {
  const host = useHost();
  const known = ALIASES[language] ?? language;
  const [tree, setTree] = useState<{ of: string; root: Root } | null>(null);
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    let isOver = false;
    highlight(known, text)
      .then((root) => !isOver && root && setTree({ of: text, root }))
      .catch(() => undefined); // without colours, such as when the server has gone, it is as readable
    return () => {
      isOver = true;
    };
  }, [known, text]);

  const copy = (): void => {
    void host.copy(text).then(() => {
      setCopied(true);
      window.setTimeout(() => setCopied(false), 1_500);
    });
  };

  return (
    <figure class="k-code">
      <div class="k-code-head">
        <span>{language || "text"}</span>
        <IconButton icon={isCopied ? "check" : "copy"} size="small" label={isCopied ? "Copied" : "Copy code"} onClick={copy} />
      </div>
      <pre tabIndex={0}>
        <code>{tree && tree.of === text ? tree.root.children.map((node) => draw(node as ElementContent)) : text}</code>
      </pre>
    </figure>
  );
}

function draw(node: ElementContent): JSX.Element | string | null {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return null;
  const names = node.properties["className"];
  return <span class={Array.isArray(names) ? names.join(" ") : undefined}>{node.children.map(draw)}</span>;
}
