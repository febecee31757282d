/** In the place of `ui/parts/markdown/code.tsx`: code with its button, without the libraries that colour it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { IconButton } from "../../../ui/parts/basic";
import { useHost } from "../../../ui/parts/host";

const COPIED_MS = 1_500;

/** A block of code with its language, and a button that copies it. */
export function CodeBlock({ text, language }: { text: string; language: string }): JSX.Element {
  const host = useHost();
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void host.copy(text).then(() => {
      setCopied(true);
      window.setTimeout(() => setCopied(false), COPIED_MS);
    });
  };
  return (
    <figure class="k-code">
      <div class="k-code-head">
        <span>{language || "text"}</span>
        <IconButton icon={isCopied ? "check" : "copy"} size="small" label={isCopied ? "Copied" : "Copy code"} onClick={copy} />
      </div>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}
