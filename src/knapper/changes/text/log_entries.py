"""Entries of the program's own log in a note, with text made harmless and note names linked."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.vault import markdown, pending, source
from knapper.vault.parser import parse_note
from knapper.vault.source import Span, SpanSet

_WORD: Final = re.compile(r"\w+")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNLINKABLE: Final = re.compile(r"[\[\]#^|\\\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One place where text says a note's name."""

    start: int
    stop: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionFinder:
    """Names of notes by the first word of each, so that a text's length alone decides how long a look takes."""

    by_word: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Iterable[str]) -> "MentionFinder":
        """Sort names; single characters, numbers, and what no wikilink can hold are left out."""
        by_word: dict[str, list[str]] = {}
        for name in {unicodedata.normalize("NFC", name) for name in names}:
            word = _WORD.search(name)
            if word is not None and _is_linkable(name):
                by_word.setdefault(word.group(), []).append(name)
        return cls(by_word={word: tuple(several) for word, several in by_word.items()})

    def find(self, text: str) -> list[Mention]:
        """Find names in NFC text, spelled as they are, at word boundaries; a longer name wins over what it overlaps.

        Returns:
            In order, without overlap.
        """
        mentions = [mention for word in _WORD.finditer(text) for mention in self._at(text, word.start(), word.group())]
        mentions.sort(key=lambda mention: (mention.start - mention.stop, mention.start))
        chosen: list[Mention] = []
        covered = bytearray(len(text))
        for mention in mentions:
            if not any(covered[mention.start : mention.stop]):
                covered[mention.start : mention.stop] = b"\1" * (mention.stop - mention.start)
                chosen.append(mention)
        return sorted(chosen, key=lambda mention: mention.start)

    def _at(self, text: str, at: int, word: str) -> Iterable[Mention]:
        for name in self.by_word.get(word, ()):
            start = at - name.index(word)
            if start >= 0 and text.startswith(name, start) and _stands_alone(text, start, start + len(name)):
                yield Mention(start=start, stop=start + len(name), name=name)


def _is_linkable(name: str) -> bool:
    if len(name) < 2 or _UNLINKABLE.search(name) or name != name.strip():
        return False
    return bool(_LETTER.search(name) or _DAY.fullmatch(name))


def _stands_alone(text: str, start: int, stop: int) -> bool:
    before, after = text[start - 1 : start], text[stop : stop + 1]
    return not (before and _WORD.match(before)) and not (after and _WORD.match(after))


_Zone = Literal["plain", "quiet", "maths", "code", "fence", "link", "embed"]
"""``quiet``: comments and HTML, which are shown as text, and not linked."""

_LINE_PREFIX: Final = "\N{MIDDLE DOT}"
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BREAK: Final = re.compile(r"\r\n?")
_ADDRESS: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>]+")
_ACTIVE_SYNTAX: Final = re.compile(
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
_BLOCK_LEAD: Final = re.compile(rb"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_INLINE_SCRIPT: Final = re.compile(r"(?P<marks>`+[ \t]*)\$=")
_SAFE_LANGUAGES: Final = re.compile(
    "bash|bibtex|c|clojure|cpp|cs|css|csv|diff|dockerfile|elixir|fortran|go|graphql|haskell|html|ini|java|javascript|js|"
    "json|jsx|julia|kotlin|latex|lisp|lua|make|markdown|matlab|md|nix|ocaml|perl|php|powershell|python|py|r|ruby|rust|"
    "scala|sh|shell|sql|swift|text|toml|ts|tsx|txt|typescript|xml|yaml|yml|zig|"
)
"""Languages that only colour code; others may be run by a plugin, and become ``text``."""


def sanitize_text(text: str, names: MentionFinder) -> str:
    """Return *text* as it may stand in an entry, with the names of notes linked where that is text and not code.

    A fence that it leaves open is closed.

    Args:
        text: Anything; Markdown is shown as it would be elsewhere.
        names: What to link.
    """
    plain = _INVISIBLE.sub("", _BREAK.sub("\n", text)).expandtabs(4)  # a tab is narrower in a quote
    clean = unicodedata.normalize("NFC", plain.encode(errors="replace").decode())
    data = clean.encode()
    return "".join(_sanitize_zone(zone, data[start:stop].decode(), names) for zone, start, stop in _zones(data))


def sanitize_line(text: str, names: MentionFinder) -> str:
    """Do as `harmless` for text that comes after other text in a line, where it opens no block."""
    return sanitize_text(f"{_LINE_PREFIX} {text}", names).removeprefix(f"{_LINE_PREFIX} ")


def _zones(data: bytes) -> Iterator[tuple[_Zone, int, int]]:
    """Cut text into stretches of one kind each, in order."""
    kinds = _zone_kinds(data)
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


def _zone_kinds(data: bytes) -> dict[Span, _Zone]:
    """Find what isn't plain text; a span may lie in another."""
    masked = markdown.parse_body(data, 0)
    kinds: dict[Span, _Zone] = dict.fromkeys((*masked.math, *masked.events.math), "maths")
    kinds |= dict.fromkeys((*masked.comments, *masked.events.html), "quiet")
    kinds |= {address.span(): "link" for address in _ADDRESS.finditer(data)}
    kinds |= {(one.start, one.stop): "embed" if one.image else "link" for one in masked.events.links}
    quiet_cover = SpanSet((*masked.comments, *masked.events.html))  # these hold no code: all in them becomes text
    for span in masked.events.code:
        if not quiet_cover.contains(span[0]):
            lead = data[data.rfind(b"\n", 0, span[0]) + 1 : span[0]]
            kinds[span] = "fence" if _BLOCK_LEAD.fullmatch(lead) else "code"
    return kinds


def _sanitize_zone(zone: _Zone, text: str, names: MentionFinder) -> str:
    match zone:
        case "code":
            return _sanitize_code(text)
        case "fence":
            return _sanitize_fence(text)
        case "embed" | "link":
            return "\\" * (zone == "embed") + _sanitize_link(text)
        case "quiet":
            return _escape_text(text)
        case "maths":
            return text.replace("%%", "\\%\\%").replace("<%", "<\\%")
        case "plain":
            return _link_mentions(text, names)


def _link_mentions(text: str, names: MentionFinder) -> str:
    pieces: list[str] = []
    at = 0
    for mention in names.find(text):
        pieces += (_escape_text(text[at : mention.start]), f"[[{mention.name}]]")
        at = mention.stop
    return "".join((*pieces, _escape_text(text[at:])))


def _escape_text(text: str) -> str:
    return _ACTIVE_SYNTAX.sub(_escape_sign, text)


def _escape_sign(sign: re.Match[str]) -> str:
    syntax = sign.group()
    match sign.lastgroup:
        case "comment" | "maths":
            return "".join(f"\\{one}" for one in syntax)
        case "script":
            return "<\\%"
        case "definition" | "task":
            return f"{syntax[:-1]}\\["
        case _:
            return f"\\{syntax}"


def _sanitize_link(text: str) -> str:
    """Keep a link as it is, but for what would embed, hide or run inside its text."""
    inner = text[1:].replace("![", "\\![").replace("%%", "%\u200b%").replace("<%", "<\\%")
    return text[:1] + inner


def _sanitize_code(text: str) -> str:
    return _INLINE_SCRIPT.sub("\\g<marks>\u200b$=", text.replace("<%", "< %"))


def _sanitize_fence(text: str) -> str:
    """Take languages that run away from a fence, and close it where it isn't."""
    match = _FENCE.match(text)
    if match is None:
        return _sanitize_code(text)
    marks, language, body = match["marks"], match["language"].lower(), text[match.end() :]
    last = body.rstrip().rpartition("\n")[2].strip("> \t")
    closing = "" if last.startswith(marks) else f"\n{marks}"
    safe_language = language if _SAFE_LANGUAGES.fullmatch(language) else "text"
    return f"{marks}{safe_language}{body.replace('<%', '< %')}{closing}"


_SPACES: Final = re.compile(r"\s+")
_QUOTED_LINES: Final = re.compile(rb"(?:>[^\r\n]*(?:\r\n|\r|\n|\Z))+\Z")
_ENTRY_OPENING: Final = f"> {pending.LOG_MARK}".encode()
_ENDINGS: Final = b"\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """What is logged of one interaction; empty parts aren't written."""

    time: str
    """Such as ``14:05``."""
    task: str
    query: str = ""
    summary: str = ""
    response: str = ""
    files: Sequence[str] = ()
    """Links, or names, as they are to stand there."""


def compose_entry(entry: LogEntry, names: MentionFinder) -> str:
    r"""Write an entry: a folded callout of its own kind, each line of which begins with ``>``.

    ``> [!knap-log]- 14:05 · Plan the week`` is a first line. No text in it can end it: a heading, a fence or another
    entry's mark stands in the quote as all else does.

    Args:
        entry: What to write.
        names: The notes whose names become links.
    """
    title = sanitize_line(_SPACES.sub(" ", entry.task).strip(), names)
    lines = [f"{pending.LOG_MARK}- {entry.time} · {title}"]
    for label, text in (("Query", entry.query), ("Summary", entry.summary), ("Response", entry.response)):
        if text.strip():
            lines += _entry_part(label, text.strip("\r\n"), names)
    if entry.files:
        lines += ["", f"**Files:** {', '.join(entry.files)}"]
    return "".join(f"> {line}".rstrip() + "\n" for line in "\n".join(lines).split("\n"))


def is_entry(before: bytes, after: bytes) -> bool:
    """Return whether all that was done to a note is that one whole entry was put at its end, apart from what was there.

    An entry that wouldn't be one there, since it lies in a fence, a comment or another quote that is open, isn't.
    """
    if not after.startswith(before):
        return False
    added = after[len(before) :].lstrip(_ENDINGS)
    if not added.startswith(_ENTRY_OPENING) or not _QUOTED_LINES.fullmatch(added):
        return False
    data = source.decode(after).data
    return (len(after) - len(added), len(after)) in pending.find_log_entries(data, parse_note(after))


def _entry_part(label: str, text: str, names: MentionFinder) -> list[str]:
    """Lay a part out: on the label's line where it is one line, below it otherwise."""
    if "\n" in text or "\r" in text:
        return ["", f"**{label}:**", "", sanitize_text(text, names)]
    return ["", f"**{label}:** {sanitize_line(text.strip(), names)}"]
