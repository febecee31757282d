/** A Mermaid diagram in a note, as an image. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useHost } from "../host";
import { CodeBlock, type MarkdownFeature } from "../markdown";

function Diagram({ text }: { text: string }): JSX.Element {
  const host = useHost();
  const isDark = useDark();
  const [drawn, setDrawn] = useState<{ address: string } | { problem: string } | null>(null);
  useEffect(() => {
    let isOver = false;
    let address = "";
    if (!host.diagram) return undefined;
    host
      .diagram(text, isDark)
      .then((svg) => {
        if (isOver) return;
        address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
        setDrawn({ address });
      })
      .catch((error: unknown) => !isOver && setDrawn({ problem: error instanceof Error ? error.message : String(error) }));
    return () => {
      isOver = true;
      if (address) URL.revokeObjectURL(address);
    };
  }, [text, isDark]);
  if (drawn && "address" in drawn) {
    return (
      <figure class="k-diagram" tabIndex={0} aria-label="Diagram">
        <img src={drawn.address} alt={`Diagram: ${text.slice(0, 300)}`} onError={() => setDrawn({ problem: "the drawing can't be shown" })} />
      </figure>
    );
  }
  return (
    <>
      <CodeBlock text={text} language="mermaid" />
      {drawn && <p class="k-small k-quiet">This diagram can't be drawn: {drawn.problem.split("\n")[0]}</p>}
    </>
  );
}

const DARK = "(prefers-color-scheme: dark)";

function useDark(): boolean {
  const theme = () => document.documentElement.dataset["theme"];
  const dark = () => theme() === "dark" || (theme() !== "light" && (globalThis.matchMedia?.(DARK).matches ?? false));
  const [isDark, setDark] = useState(dark);
  useEffect(() => {
    const look = () => setDark(dark());
    const scheme = globalThis.matchMedia?.(DARK);
    const observer = new MutationObserver(look);
    scheme?.addEventListener("change", look);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      scheme?.removeEventListener("change", look);
      observer.disconnect();
    };
  }, []);
  return isDark;
}

/** Mermaid for the reader's Markdown. */
export const MERMAID: MarkdownFeature = { name: "mermaid", code: { mermaid: (text) => <Diagram text={text} /> } };
