"""Find and read the properties at the head of a note."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import yaml

from knapper.jsontypes import JSONValue
from knapper.vault import lines, yaml_nodes
from knapper.vault.outline import Frontmatter, Problem

_OPENING: Final = re.compile(rb"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING: Final = re.compile(rb"(?<=[\r\n])---[ \t]*(?:\r\n|\n|\r|\Z)")
_MAX_DUPLICATES: Final = 20
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Hold frontmatter with what its text was made of."""

    frontmatter: Frontmatter
    problems: tuple[Problem, ...]
    root: yaml.Node | None
    """None where the YAML is empty or invalid."""
    offsets: Sequence[int]
    """Byte offset in the file of each character of the YAML, and of its end; empty where *root* is None."""


def start(data: bytes) -> int:
    """Tell where text can begin: after a byte-order mark."""
    return len(_BOM) if data.startswith(_BOM) else 0


def find(data: bytes) -> tuple[int, int, int, int] | None:
    """Find the block between ``---`` lines at a file's start.

    Returns:
        Start, start of the YAML, its stop, and the byte after the closing line; None where there is no such block.
    """
    first = start(data)
    opening = _OPENING.match(data, first)
    if opening is None:
        return None
    closing = _CLOSING.search(data, opening.end())
    return None if closing is None else (first, opening.end(), closing.start(), closing.end())


def read(data: bytes) -> Properties | None:
    r"""Read a note's properties.

    ``b"---\\nno: no\\n---\\n"`` has the values ``{"no": "no"}``.

    Args:
        data: The whole file as UTF-8.
    """
    found = find(data)
    if found is None:
        return None
    first, yaml_start, yaml_stop, stop = found
    text = data[yaml_start:yaml_stop].decode()
    root: yaml.Node | None = None
    values: dict[str, JSONValue] = {}
    valid = True
    problems: tuple[Problem, ...] = ()
    offsets: Sequence[int] = ()
    try:
        root = yaml_nodes.compose(text)
        reader = yaml_nodes.Reader()
        values = reader.mapping(root)
        problems = tuple(_duplicate(data, yaml_start, text, *twice) for twice in reader.duplicates[:_MAX_DUPLICATES])
        offsets = byte_offsets(text, yaml_start)
    except yaml_nodes.InvalidYAMLError as error:
        line = lines.count(data, yaml_start + len(text.rstrip()[: error.index].encode()))
        message = f"The properties in line {line} can't be read: {error.reason}."
        problems = (Problem(code="invalid_yaml", message=message, line=line),)
        root, valid = None, False
    block = Frontmatter(
        start=first,
        yaml_start=yaml_start,
        yaml_stop=yaml_stop,
        stop=stop,
        values=values,
        end_line=lines.count(data, stop - 1),
        valid=valid,
    )
    return Properties(frontmatter=block, problems=problems, root=root, offsets=offsets)


def _duplicate(data: bytes, yaml_start: int, text: str, key: str, index: int) -> Problem:
    line = lines.count(data, yaml_start + len(text[:index].encode()))
    message = f"The property {key!r} stands again in line {line}; the last one counts."
    return Problem(code="duplicate_key", message=message, line=line)


def byte_offsets(text: str, first: int) -> Sequence[int]:
    """Give the byte offset of each character of the YAML, and of its end: the parser's marks count characters.

    Args:
        text: The YAML.
        first: Byte offset of its first character.
    """
    if text.isascii():
        return range(first, first + len(text) + 1)
    return tuple(accumulate((len(character.encode()) for character in text), initial=first))
