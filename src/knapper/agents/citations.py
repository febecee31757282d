"""Find what an answer cites, check each place against the files, and take out what doesn't hold.

A citation is ``[[Note#Heading]] (lines 3-9)``; heading and lines may be missing. One of another vault begins with that
vault's name, ``[[work:Note#Heading]]``: in Obsidian no note can have such a name, so that nothing else is meant by it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knapper.agents import passages
from knapper.agents.passages import Passage
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault import parser
from knapper.vault.outline import Link

_LINES: Final = re.compile(
    rb"\s*[(\[,:]?\s*(?:lines?|L)\.?\s*(\d{1,7})(?:\s*(?:-|\xe2\x80\x93|to)\s*L?(\d{1,7}))?\s*[)\]]?", re.IGNORECASE
)
_ALIAS: Final = re.compile(r"(?:lines?|L)\.?\s*(\d{1,7})(?:\s*[-\u2013]\s*L?(\d{1,7}))?", re.IGNORECASE)
_QUOTE: Final = re.compile(r'"([^"\n]{2,})"|\u201c([^\u201d\n]{2,})\u201d|\u201e([^\u201c\n]{2,})\u201c|«([^»\n]{2,})»')
_LEAST_WORDS: Final = 4
"""A shorter quotation may be a name or a manner of speaking."""
_LEAST_CHARS: Final = 20
_MAX_QUOTED: Final = 400
"""Characters of the cited lines that a citation carries with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """Hold a citation as it is written."""

    start: int
    """Span in the answer's UTF-8, the lines included."""
    stop: int
    target: str
    headings: tuple[str, ...]
    block: str
    first: int
    """0 where no lines are given."""
    last: int
    quotes: tuple[str, ...]
    """What is quoted just before."""
    shown: str
    """What a reader sees of the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Hold a citation that holds."""

    cited: Cited
    passage: Passage

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it.

        ``start`` and ``stop`` are bytes in the file, ``vault`` is empty for the vault that was asked.
        """
        passage = self.passage
        quotes: list[JSONValue] = [*self.cited.quotes]
        return {
            "vault": passage.vault,
            "path": passage.path,
            "heading": passage.heading,
            "start_line": passage.first,
            "end_line": passage.last,
            "start": passage.start,
            "stop": passage.stop,
            "hash": passage.hash,
            "text": passage.text[:_MAX_QUOTED],
            "quotes": quotes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Hold a citation that doesn't hold, and why."""

    cited: Cited
    written: str
    code: str
    reason: str
    hint: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {"citation": self.written, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Hold what checking an answer gave."""

    answer: str
    citations: tuple[Citation, ...]
    failures: tuple[Failure, ...]


def find(answer: str) -> list[Cited]:
    """List the citations of an answer in order; links in code aren't any."""
    data = answer.encode()
    links = [link for link in parser.parse_note(data).links if link.kind in {"wikilink", "embed"}]
    found: list[Cited] = []
    for link in links:
        before = data[found[-1].stop if found else 0 : link.start].decode(errors="replace")
        found.append(_cited(data, link, before.rpartition("\n\n")[2]))
    return found


def spelled(path: str, vault: str = "", first: int = 0, last: int = 0) -> str:
    """Write a citation: ``[[Note]] (lines 3-9)``, with the vault's name before another vault's note."""
    name = path.removesuffix(".md")
    link = f"[[{vault}:{name}]]" if vault else f"[[{name}]]"
    return f"{link} (lines {first}-{last})" if first else link


def check(context: Context, answer: str) -> Checked:
    """Check each citation against the files as they are now: note, heading, lines, and what is quoted.

    Args:
        context: The vault, as the agent sees it; others are opened for the same client.
        answer: Markdown.
    """
    citations: list[Citation] = []
    failures: list[Failure] = []
    data = answer.encode()
    for cited in find(answer):
        try:
            place = passages.Place(
                target=cited.target,
                headings=cited.headings,
                block=cited.block,
                first=cited.first,
                last=cited.last,
            )
            passage = passages.find(context, place)
            for quote in cited.quotes:
                passages.hold(passage, quote)
            citations.append(Citation(cited=cited, passage=passage))
        except KnapError as error:
            written = data[cited.start : cited.stop].decode(errors="replace")
            failures.append(
                Failure(cited=cited, written=written, code=error.code, reason=error.message, hint=error.hint)
            )
    return Checked(answer=answer, citations=tuple(citations), failures=tuple(failures))


def without(answer: str, failures: Sequence[Failure]) -> str:
    """Take citations out of an answer; a link that gives no lines leaves its name behind."""
    data = answer.encode()
    for failure in reversed(failures):
        cited = failure.cited
        kept = b"" if cited.first else cited.shown.encode()
        head = data[: cited.start] if kept else data[: cited.start].rstrip(b" \t")
        data = head + kept + data[cited.stop :]
    return data.decode(errors="replace")


def _cited(data: bytes, link: Link, before: str) -> Cited:
    told = _LINES.match(data, link.stop)
    alias = _ALIAS.fullmatch(link.alias.strip()) if link.alias else None
    numbers = [int(one) for one in (told or alias).groups() if one] if (told or alias) else []  # pyright: ignore[reportOptionalMemberAccess] - one of them is there
    name = link.alias if link.alias and alias is None else link.target or " > ".join(link.headings)
    return Cited(
        start=link.start,
        stop=told.end() if told else link.stop,
        target=link.target,
        headings=link.headings,
        block=link.block,
        first=numbers[0] if numbers else 0,
        last=max(numbers[-1], 1) if numbers else 0,
        quotes=_quotes(before),
        shown=name.rpartition("/")[2].removesuffix(".md"),
    )


def _quotes(before: str) -> tuple[str, ...]:
    """List what is quoted at length; a short one may be a name."""
    found = [next(part for part in match.groups() if part) for match in _QUOTE.finditer(before)]
    return tuple(one for one in found if len(one.split()) >= _LEAST_WORDS or len(one) >= _LEAST_CHARS)
