"""Entries of the program's own log in a note, with sanitized text and linked note names."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.jsontypes import replace_surrogates
from knapper.vault import markdown, pending, source
from knapper.vault.parser import parse_note
from knapper.vault.source import Span, SpanSet

_WORD: Final = re.compile(r"\w+")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNLINKABLE: Final = re.compile(r"[\[\]#^|\\\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One place where text mentions a note's name."""

    start: int
    stop: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionFinder:
    """Finder of note names in text, indexed by first word, so that the time depends on the text's length alone."""

    by_word: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Iterable[str]) -> "MentionFinder":
        """Build a finder; single characters, numbers, and names that no wikilink can hold are left out."""
        by_word: dict[str, list[str]] = {}
        for name in {unicodedata.normalize("NFC", name) for name in names}:
            word = _WORD.search(name)
            is_plain = len(name) > 1 and name == name.strip() and not _UNLINKABLE.search(name)
            if word is not None and is_plain and (_LETTER.search(name) or _DAY.fullmatch(name)):
                by_word.setdefault(word.group(), []).append(name)
        return cls(by_word={word: tuple(several) for word, several in by_word.items()})

    def find(self, text: str) -> list[Mention]:
        """Return exact names in NFC text at word boundaries; a longer name wins over those that it overlaps.

        Returns:
            In order, without overlap.
        """
        mentions: list[Mention] = []
        for word in _WORD.finditer(text):
            for name in self.by_word.get(word.group(), ()):
                start = word.start() - name.index(word.group())
                stop = start + len(name)
                if start < 0 or not text.startswith(name, start):
                    continue
                before, after = text[start - 1 : start], text[stop : stop + 1]
                if not (before and _WORD.match(before)) and not (after and _WORD.match(after)):
                    mentions.append(Mention(start=start, stop=stop, name=name))
        mentions.sort(key=lambda mention: (mention.start - mention.stop, mention.start))
        chosen: list[Mention] = []
        covered = bytearray(len(text))
        for mention in mentions:
            if not any(covered[mention.start : mention.stop]):
                covered[mention.start : mention.stop] = b"\1" * (mention.stop - mention.start)
                chosen.append(mention)
        return sorted(chosen, key=lambda mention: mention.start)


_Zone = Literal["plain", "quiet", "maths", "code", "fence", "link", "embed"]
"""``quiet``: comments and HTML, which are shown as text without links."""

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
_INLINE_SCRIPT: Final = re.compile(r"(?P<marks>(?<!`)`+[ \t]*)\$=")
_SAFE_LANGUAGES: Final = re.compile(
    "bash|bibtex|c|clojure|cpp|cs|css|csv|diff|dockerfile|elixir|fortran|go|graphql|haskell|html|ini|java|javascript|js|"
    "json|jsx|julia|kotlin|latex|lisp|lua|make|markdown|matlab|md|nix|ocaml|perl|php|powershell|python|py|r|ruby|rust|"
    "scala|sh|shell|sql|swift|text|toml|ts|tsx|txt|typescript|xml|yaml|yml|zig|"
)
"""Languages that are only highlighted; others might be run by a plugin, and are replaced by ``text``."""


def sanitize_text(text: str, names: MentionFinder) -> str:
    """Return *text* made safe for an entry, with note names linked outside of code.

    An open fence is closed.

    Args:
        text: Any text; Markdown keeps its meaning.
        names: What to link.
    """
    # Tabs are expanded, because a tab is narrower after a quote's ``>``.
    plain = _INVISIBLE.sub("", _BREAK.sub("\n", text)).expandtabs(4)
    clean = unicodedata.normalize("NFC", replace_surrogates(plain))
    data = clean.encode()
    return "".join(_sanitize_zone(zone, data[start:stop].decode(), names) for zone, start, stop in _zones(data))


def sanitize_line(text: str, names: MentionFinder) -> str:
    """Sanitize text like `sanitize_text`, for a place after other text in a line, where it opens no block."""
    return sanitize_text(f"{_LINE_PREFIX} {text}", names).removeprefix(f"{_LINE_PREFIX} ")


def _zones(data: bytes) -> Iterator[tuple[_Zone, int, int]]:
    """Yield the zones of text, each of one kind, in order."""
    # The spans that aren't plain text; one may contain another.
    masked = markdown.parse_body(data, 0)
    kinds: dict[Span, _Zone] = dict.fromkeys((*masked.math, *masked.events.math), "maths")
    kinds |= dict.fromkeys((*masked.comments, *masked.events.html), "quiet")
    kinds |= {address.span(): "link" for address in _ADDRESS.finditer(data)}
    kinds |= {(one.start, one.stop): "embed" if one.image else "link" for one in masked.events.links}
    # Comments and HTML have no code zones: everything in them becomes text.
    quiet_cover = SpanSet((*masked.comments, *masked.events.html))
    for code_span in masked.events.code:
        if not quiet_cover.contains(code_span[0]):
            lead = data[data.rfind(b"\n", 0, code_span[0]) + 1 : code_span[0]]
            kinds[code_span] = "fence" if _BLOCK_LEAD.fullmatch(lead) else "code"
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


def _sanitize_zone(zone: _Zone, text: str, names: MentionFinder) -> str:
    match zone:
        case "code":
            return _sanitize_code(text)
        case "fence":
            return _sanitize_fence(text)
        case "embed" | "link":
            # Nothing inside a link's text may embed, hide or run.
            inner = text[1:].replace("![", "\\![").replace("%%", "%\u200b%").replace("<%", "<\\%")
            return "\\" * (zone == "embed") + text[:1] + inner
        case "quiet":
            return _escape_text(text)
        case "maths":
            return text.replace("%%", "\\%\\%").replace("<%", "<\\%")
        case "plain":
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


def _sanitize_code(text: str) -> str:
    return _INLINE_SCRIPT.sub("\\g<marks>\u200b$=", text.replace("<%", "< %"))


def _sanitize_fence(text: str) -> str:
    """Return a fence that is closed, and has no language that a plugin might run."""
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
    """Log of one interaction; empty parts aren't written."""

    time: str
    """Such as ``14:05``."""
    task: str
    query: str = ""
    summary: str = ""
    response: str = ""
    files: Sequence[str] = ()
    """Links or names, as they are to be written."""


def compose_entry(entry: LogEntry, names: MentionFinder) -> str:
    r"""Return an entry as Markdown: a folded callout of its own kind, each line of which begins with ``>``.

    ``> [!knap-log]- 14:05 · Plan the week`` is a first line. No text in the entry can end it: a heading, a fence or
    another entry's mark is part of the quote like everything else.

    Args:
        entry: What to write.
        names: The notes whose names become links.
    """
    title = sanitize_line(_SPACES.sub(" ", entry.task).strip(), names)
    lines = [f"{pending.LOG_MARK}- {entry.time} · {title}"]
    for label, text in (("Query", entry.query), ("Summary", entry.summary), ("Response", entry.response)):
        part = text.strip("\r\n")
        if not part.strip():
            continue
        if "\n" in part or "\r" in part:
            lines += ["", f"**{label}:**", "", sanitize_text(part, names)]
        else:
            lines += ["", f"**{label}:** {sanitize_line(part.strip(), names)}"]
    if entry.files:
        lines += ["", f"**Files:** {', '.join(entry.files)}"]
    return "".join(f"> {line}".rstrip() + "\n" for line in "\n".join(lines).split("\n"))


def is_entry(before: bytes, after: bytes) -> bool:
    """Return whether a change of a note only adds one whole entry at its end, separate from the text before.

    Text that wouldn't be an entry there, because it is inside an open fence, comment or quote, doesn't count.
    """
    if not after.startswith(before):
        return False
    added = after[len(before) :].lstrip(_ENDINGS)
    if not added.startswith(_ENTRY_OPENING) or not _QUOTED_LINES.fullmatch(added):
        return False
    data = source.decode(after).data
    return (len(after) - len(added), len(after)) in pending.find_log_entries(data, parse_note(after))
