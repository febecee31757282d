"""Find tags in a note's text and properties."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import yaml

from knapper.vault import yaml_nodes
from knapper.vault.covers import Cover
from knapper.vault.frontmatter import Properties
from knapper.vault.lines import Lines
from knapper.vault.outline import Tag

_CANDIDATE: Final = re.compile(rb"#[^\s'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\0]+")
_NAME: Final = re.compile(r"[^\s\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\0]+")
_KEYS: Final = frozenset({"tag", "tags"})
_WORD: Final = re.compile(rb"[^\s,\[\]\"']+")
_BLOCK_SIGNS: Final = frozenset({"|", "|-", "|+", ">", ">-", ">+"})


def name_at_start(text: str) -> str:
    """Read the tag's name that *text* begins with, ``#`` already taken off; empty where it is none.

    A name holds letters of any script, digits, emoji, ``_``, ``-`` and ``/``, and at least one that is no digit.
    """
    match = _NAME.match(text)
    name = match.group() if match else ""
    return "" if not name.strip("/") or name.isdecimal() else name


def in_text(data: bytes, body_start: int, covers: Cover, openings: Mapping[int, int], lines: Lines) -> Iterator[Tag]:
    """Find ``#tag`` outside code, comments, HTML, maths and addresses.

    Obsidian takes one at a line's start, after white space of any script, where text begins anew (``**#tag**``, a
    table's cell), after ``_`` and directly after another tag; any other punctuation before it makes it text.

    Args:
        data: The file.
        body_start: Where its text begins.
        covers: Where nothing is a tag.
        openings: Where text that begins with ``#`` begins anew, and where that text stops.
        lines: The file's lines.
    """
    last = -1
    for match in _CANDIDATE.finditer(data, body_start):
        start = match.start()
        if data[start - 1 : start] == b"\\":  # escaped, which is no tag even where text begins anew
            continue
        limit = openings.get(start)
        if limit is None and start != last and not _follows_space(data, start, body_start):
            continue
        if covers.holds(start):
            continue
        name = name_at_start(data[start + 1 : limit or match.end()].decode(errors="ignore"))
        if name:
            last = start + 1 + len(name.encode())
            name = name.rstrip("/")
            stop = start + 1 + len(name.encode())
            yield Tag(name=name, start=start, stop=stop, line=lines.number(start), origin="text")


def _follows_space(data: bytes, start: int, body_start: int) -> bool:
    if start == body_start:
        return True
    if data[start - 1] < 0x80:
        return data[start - 1 : start].isspace() or data[start - 1] == ord("_")
    return data[max(body_start, start - 3) : start].decode(errors="ignore")[-1:].isspace()


def in_properties(data: bytes, properties: Properties, lines: Lines) -> Iterator[Tag]:
    """Find the entries of ``tags`` and ``tag``: a list, or words between commas and spaces; ``#`` may lead each."""
    if properties.root is None:
        return
    for key, value in yaml_nodes.pairs(properties.root):
        if isinstance(key, yaml.ScalarNode) and str(key.value).casefold() in _KEYS:
            for node in yaml_nodes.children(value) or [value]:
                if isinstance(node, yaml.ScalarNode):
                    yield from _in_scalar(data, properties, node, lines)


def _in_scalar(data: bytes, properties: Properties, node: yaml.ScalarNode, lines: Lines) -> Iterator[Tag]:
    if node.value in {"", "~", "null"}:
        return
    span = (properties.offsets[node.start_mark.index], properties.offsets[node.end_mark.index])
    for match in _WORD.finditer(data, *span):
        name = match.group().removeprefix(b"#").decode()
        if name and name not in _BLOCK_SIGNS and not name.startswith(("&", "!")):
            line = lines.number(match.start())
            yield Tag(name=name, start=match.start(), stop=match.end(), line=line, origin="property")
