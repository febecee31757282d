"""Make text fit for a log entry: nothing in it runs, loads, hides, tags or reaches out of the entry; names are linked.

What readers see stays what was said, but for embeds, which become links, and code languages that plugins run.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

from knapper.changes.text.mentions import Names
from knapper.vault import markdown
from knapper.vault.source import Span, SpanSet

_Zone = Literal["plain", "quiet", "maths", "code", "fence", "link", "embed"]
"""``quiet``: comments and HTML, which are shown as text, and not linked."""

_SIGN: Final = "\N{MIDDLE DOT}"
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BREAK: Final = re.compile(r"\r\n?")
_ADDRESS: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>]+")
_SIGNS: Final = re.compile(
    r"""(?P<comment>%%)
    | (?P<maths>\$\$)
    | (?P<script><%)
    | (?P<markup><(?=[A-Za-z/!?]))
    | (?P<image>!(?=\[))
    | (?P<tag>(?<![^\W_])\#+)
    | (?P<id>(?<!\S)\^(?=[A-Za-z0-9-]+[ \t]*(?:\n|\Z)))
    | (?P<definition>^(?:[ \t>]|[-*+][ \t]|\d+[.)][ \t])*\[(?=[^\]\n]*\]:))
    | (?P<task>^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)+\[(?=.\]))""",
    re.VERBOSE | re.MULTILINE,
)
_FENCE: Final = re.compile(r"(?P<marks>`{3,}(?=[^\n`]*(?:\n|\Z))|~{3,})[ \t]*(?P<language>[^\s`]*)[^\n]*")
_LEAD: Final = re.compile(rb"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_INLINE_SCRIPT: Final = re.compile(r"(?P<marks>`+[ \t]*)\$=")
_LANGUAGES: Final = re.compile(
    "bash|bibtex|c|clojure|cpp|cs|css|csv|diff|dockerfile|elixir|fortran|go|graphql|haskell|html|ini|java|javascript|js|"
    "json|jsx|julia|kotlin|latex|lisp|lua|make|markdown|matlab|md|nix|ocaml|perl|php|powershell|python|py|r|ruby|rust|"
    "scala|sh|shell|sql|swift|text|toml|ts|tsx|txt|typescript|xml|yaml|yml|zig|"
)
"""Languages that only colour code; others may be run by a plugin, and become ``text``."""


def harmless(text: str, names: Names) -> str:
    """Give *text* as it may stand in an entry, with the names of notes linked where that is text and not code.

    A fence that it leaves open is closed.

    Args:
        text: Anything; Markdown is shown as it would be elsewhere.
        names: What to link.
    """
    plain = _UNSEEN.sub("", _BREAK.sub("\n", text)).expandtabs(4)  # a tab is narrower in a quote
    clean = unicodedata.normalize("NFC", plain.encode(errors="replace").decode())
    data = clean.encode()
    return "".join(_shown(zone, data[start:stop].decode(), names) for zone, start, stop in _zones(data))


def harmless_line(text: str, names: Names) -> str:
    """Do as `harmless` for text that comes after other text in a line, where it opens no block."""
    return harmless(f"{_SIGN} {text}", names).removeprefix(f"{_SIGN} ")


def _zones(data: bytes) -> Iterator[tuple[_Zone, int, int]]:
    """Cut text into stretches of one kind each, in order."""
    kinds = _kinds(data)
    at = 0
    for start, stop in sorted(kinds, key=lambda span: (span[0], -span[1])):
        if start < at:
            continue
        if at < start:
            yield "plain", at, start
        yield kinds[start, stop], start, stop
        at = stop
    if at < len(data):
        yield "plain", at, len(data)


def _kinds(data: bytes) -> dict[Span, _Zone]:
    """Find what isn't plain text; a span may lie in another."""
    masked = markdown.parse_body(data, 0)
    kinds: dict[Span, _Zone] = dict.fromkeys((*masked.math, *masked.events.math), "maths")
    kinds |= dict.fromkeys((*masked.comments, *masked.events.html), "quiet")
    kinds |= {address.span(): "link" for address in _ADDRESS.finditer(data)}
    kinds |= {(one.start, one.stop): "embed" if one.image else "link" for one in masked.events.anchors}
    shown = SpanSet((*masked.comments, *masked.events.html))  # these hold no code: all in them becomes text
    for span in masked.events.code:
        if not shown.holds(span[0]):
            lead = data[data.rfind(b"\n", 0, span[0]) + 1 : span[0]]
            kinds[span] = "fence" if _LEAD.fullmatch(lead) else "code"
    return kinds


def _shown(zone: _Zone, text: str, names: Names) -> str:
    match zone:
        case "code":
            return _code(text)
        case "fence":
            return _fence(text)
        case "embed" | "link":
            return "\\" * (zone == "embed") + _link(text)
        case "quiet":
            return _escaped(text)
        case "maths":
            return text.replace("%%", "\\%\\%").replace("<%", "<\\%")
        case "plain":
            return _linked(text, names)


def _linked(text: str, names: Names) -> str:
    pieces: list[str] = []
    at = 0
    for mention in names.find(text):
        pieces += (_escaped(text[at : mention.start]), f"[[{mention.name}]]")
        at = mention.stop
    return "".join((*pieces, _escaped(text[at:])))


def _escaped(text: str) -> str:
    return _SIGNS.sub(_escape, text)


def _escape(sign: re.Match[str]) -> str:
    found = sign.group()
    match sign.lastgroup:
        case "comment" | "maths":
            return "".join(f"\\{one}" for one in found)
        case "script":
            return "<\\%"
        case "definition" | "task":
            return f"{found[:-1]}\\["
        case _:
            return f"\\{found}"


def _link(text: str) -> str:
    """Keep a link as it is, but for what would embed, hide or run inside its text."""
    inner = text[1:].replace("![", "\\![").replace("%%", "%\u200b%").replace("<%", "<\\%")
    return text[:1] + inner


def _code(text: str) -> str:
    return _INLINE_SCRIPT.sub("\\g<marks>\u200b$=", text.replace("<%", "< %"))


def _fence(text: str) -> str:
    """Take languages that run away from a fence, and close it where it isn't."""
    found = _FENCE.match(text)
    if found is None:
        return _code(text)
    marks, language, body = found["marks"], found["language"].lower(), text[found.end() :]
    last = body.rstrip().rpartition("\n")[2].strip("> \t")
    closing = "" if last.startswith(marks) else f"\n{marks}"
    kept = language if _LANGUAGES.fullmatch(language) else "text"
    return f"{marks}{kept}{body.replace('<%', '< %')}{closing}"
