/**
 * Draws Mermaid diagrams in a frame of its own, which has no origin, no network and no way to the page.
 *
 * Mermaid writes HTML and styles into the document, which the page's content policy refuses. So it runs here, in a
 * sandboxed frame, and what leaves it is the text of an SVG; the page shows that as an image, in which nothing runs.
 */

import mermaid from "mermaid";

interface Asked {
  id: number;
  text: string;
  isDark: boolean;
}

const MAX_EDGES = 500;
const MAX_TEXT = 50_000;
/** What a diagram's own directive can't set: what decides of markup, and styles that would load something. */
const SECURE = [
  "secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "htmlLabels", "dompurifyConfig",
  "themeCSS", "fontFamily", "altFontFamily",
];
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

addEventListener("message", (event: MessageEvent<Asked>) => {
  if (event.source !== parent || typeof event.data?.text !== "string") return;
  void draw(event.data).then((answer) => parent.postMessage({ id: event.data.id, ...answer }, "*"));
});
parent.postMessage({ isReady: true }, "*");

async function draw({ id, text, isDark }: Asked): Promise<{ svg: string } | { problem: string }> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: isDark ? "dark" : "neutral",
    fontFamily: FONT,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    maxTextSize: MAX_TEXT,
    maxEdges: MAX_EDGES,
    suppressErrorRendering: true,
    secure: SECURE,
  });
  try {
    const { svg } = await mermaid.render(`diagram-${id}`, text);
    return { svg: imageOf(svg) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** An SVG as an image needs it: well formed, and of a size of its own. */
function imageOf(svg: string): string {
  const root = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  if (!root) throw new Error("nothing was drawn");
  const [, , width, height] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  if (width && height) {
    root.setAttribute("width", String(Math.ceil(width)));
    root.setAttribute("height", String(Math.ceil(height)));
  }
  for (const node of root.querySelectorAll("script, foreignObject a, image")) node.remove();
  return new XMLSerializer().serializeToString(root);
}
