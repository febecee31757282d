"""Parse a note's frontmatter: its YAML, its properties and the links in them."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, cast

import yaml

from knapper.jsontypes import JSONValue
from knapper.vault import links, markdown, source
from knapper.vault.source import Frontmatter, Lines, Link, Problem

if TYPE_CHECKING:
    from yaml import BaseLoader as _Loader
else:
    _Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


_PLAIN_TAG: Final = "plain"
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_LIST_TAG: Final = "tag:yaml.org,2002:seq"
_MAP_TAG: Final = "tag:yaml.org,2002:map"
_KNOWN_TAGS: Final = frozenset({_PLAIN_TAG, _TEXT_TAG, _LIST_TAG, _MAP_TAG, "!"})
_PLAIN_VALUE_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))
_MAX_NODES: Final = 50_000
_MAX_DEPTH: Final = 100
_MAX_CHARACTERS: Final = 1_000_000
_DEEP_INDENT: Final = re.compile(rf"^[ \t?:-]{{{_MAX_DEPTH}}}", re.MULTILINE)
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,300})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?:0|[1-9][0-9]*)(?:\.|\.?[eE][-+]?[0-9]+)"
)
_WORD_VALUES: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class InvalidYAMLError(Exception):
    """A text that isn't YAML as this program reads it, with the index of the character at fault."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.index: int = index


class _NodeLoader(_Loader):
    """A loader that marks scalars as plain or quoted, and doesn't derive other types from their text."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: object) -> str:
        del value
        if kind is yaml.ScalarNode:
            return _PLAIN_TAG if isinstance(implicit, tuple) and implicit[0] else _TEXT_TAG
        return _LIST_TAG if kind is yaml.SequenceNode else _MAP_TAG


_REASONS: Final[Mapping[str, str]] = {
    "mapping values are not allowed in this context": "a value that holds ': ' needs quotes",
    "did not find expected key": "text follows a value in quotes or brackets, or a line is indented differently",
    "did not find expected ',' or ']'": "a '[' isn't closed, or a comma is missing",
    "did not find expected ',' or '}'": "a '{' isn't closed, or a comma is missing",
    "found unexpected end of stream": "a quote isn't closed",
    "found a tab character that violates indentation": "a tab indents the line; YAML takes spaces only",
    "found undefined alias": "a value that begins with '*' needs quotes",
}
"""What people write wrong, by libyaml's words for it, which speak of tokens and mappings."""


def _describe_reason(reason: str, character: str) -> str:
    if reason != "found character that cannot start any token":
        return _REASONS.get(reason, reason)
    return (
        _REASONS["found a tab character that violates indentation"]
        if character == "\t"
        else f"a value that begins with '{character}' needs quotes"
    )


def compose_yaml(text: str) -> yaml.Node | None:
    """Parse one YAML document into nodes with marks that count characters.

    Returns:
        None for an empty document.

    Raises:
        InvalidYAMLError: It can't be parsed, is nested too deep or is too large.
    """
    if len(text) > _MAX_CHARACTERS:
        raise InvalidYAMLError(f"longer than {_MAX_CHARACTERS:,} characters", 0)
    try:
        # Before composing: libyaml overflows the C stack on deep nesting, which would end the process.
        _check_depth(text)
        loader = _NodeLoader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()  # pyright: ignore[reportUnknownMemberType]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "can't be read"
        position = getattr(mark, "index", None)
        if position is None:
            position = getattr(error, "position", 0)
        raise InvalidYAMLError(_describe_reason(str(reason), text[int(position) :][:1]), int(position)) from None
    except RecursionError:
        # Only the Python parser (used where libyaml is missing) raises it, and only when called with little stack left.
        raise InvalidYAMLError("nested too deep", 0) from None


def _check_depth(text: str) -> None:
    """Raise for text nested too deep for the composer: libyaml's recursion is bounded by the C stack alone."""
    if text.count("[") + text.count("{") < _MAX_DEPTH and not _DEEP_INDENT.search(text):
        return
    depth = 0
    for event in cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_NodeLoader)):  # pyright: ignore[reportUnknownMemberType]
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise InvalidYAMLError("nested too deep", event.start_mark.index)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class YamlReader:
    """Converts nodes to JSON values, and records duplicate keys."""

    def __init__(self) -> None:
        self.duplicates: list[tuple[str, int]] = []
        """Key, and the index of the character where it is repeated."""
        self._left: int = _MAX_NODES

    def read_mapping(self, node: yaml.Node | None) -> dict[str, JSONValue]:
        """Read the root of a note's properties.

        Raises:
            InvalidYAMLError: It isn't a mapping, grows too large through aliases, or holds a tag that isn't plain YAML.
        """
        if node is None:
            return {}
        value = self._value(node, 0)
        if isinstance(value, dict):
            return value
        if value is None:
            return {}
        raise InvalidYAMLError("not a list of properties", node.start_mark.index)

    def _value(self, node: yaml.Node, depth: int) -> JSONValue:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise InvalidYAMLError("its aliases make it too large", node.start_mark.index)
        if isinstance(node, yaml.ScalarNode):
            return read_scalar(node)
        if node.tag not in _KNOWN_TAGS:
            raise InvalidYAMLError(f"the tag {node.tag} isn't plain YAML", node.start_mark.index)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, depth + 1) for child in sequence_items(node)]
        values: dict[str, JSONValue] = {}
        for key, child in mapping_pairs(node):
            name = read_key(key)
            if name in values:
                self.duplicates.append((name, key.start_mark.index))
            values[name] = self._value(child, depth + 1)
        return values


def mapping_pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """List a mapping's keys and values in order; empty for any other node."""
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value) if isinstance(node, yaml.MappingNode) else []


def sequence_items(node: yaml.Node) -> list[yaml.Node]:
    """List a sequence's entries in order; empty for any other node."""
    return cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else []


def read_key(node: yaml.Node) -> str:
    """Read a key as written: ``2024`` is the key ``"2024"``.

    Raises:
        InvalidYAMLError: The key is a list or a mapping, as in a template's ``{{date}}``.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise InvalidYAMLError("a key has to be a word", node.start_mark.index)
    return str(node.value)


def read_scalar(node: yaml.ScalarNode) -> JSONValue:
    """Read one scalar: a number, ``true``, ``false`` or ``null``, and text in all other cases.

    ``007``, ``no``, ``1_000``, ``0x1F``, ``2024-01-01``, ``.nan`` and ``"1"`` stay text.

    Raises:
        InvalidYAMLError: Its tag isn't plain YAML.
    """
    text = str(node.value)
    if node.tag == _TEXT_TAG:
        return text
    if node.tag == _PLAIN_TAG or node.tag in _PLAIN_VALUE_TAGS:
        if text in _WORD_VALUES:
            return _WORD_VALUES[text]
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if math.isfinite(number) else text
        return text
    raise InvalidYAMLError(f"the tag {node.tag} isn't plain YAML", node.start_mark.index)


_OPENING: Final = re.compile(rb"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING: Final = re.compile(rb"(?<=[\r\n])---[ \t]*(?:\r\n|\n|\r|\Z)")
_MAX_DUPLICATES: Final = 20
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Frontmatter with its YAML nodes and their offsets."""

    frontmatter: Frontmatter
    problems: tuple[Problem, ...]
    root: yaml.Node | None
    """None where the YAML is empty or invalid."""
    offsets: Sequence[int]
    """Byte offset in the file of each character of the YAML, and of its end; empty where *root* is None."""


def find_text_start(data: bytes) -> int:
    """Return the offset where text begins: after a byte-order mark, else 0."""
    return len(_BOM) if data.startswith(_BOM) else 0


def find_frontmatter(data: bytes) -> tuple[int, int, int, int] | None:
    """Find the block between ``---`` lines at the start of a file.

    Returns:
        Start, start of the YAML, its stop, and the byte after the closing line; None where there is no such block.
    """
    first = find_text_start(data)
    opening = _OPENING.match(data, first)
    if opening is None:
        return None
    closing = _CLOSING.search(data, opening.end())
    return None if closing is None else (first, opening.end(), closing.start(), closing.end())


def read_properties(data: bytes) -> Properties | None:
    r"""Read a note's properties.

    ``b"---\\nno: no\\n---\\n"`` has the values ``{"no": "no"}``.

    Args:
        data: The whole file as UTF-8.
    """
    span = find_frontmatter(data)
    if span is None:
        return None
    block_start, yaml_start, yaml_stop, stop = span
    text = data[yaml_start:yaml_stop].decode()
    root: yaml.Node | None = None
    values: dict[str, JSONValue] = {}
    valid = True
    problems: list[Problem] = []
    offsets: Sequence[int] = ()
    try:
        root = compose_yaml(text)
        reader = YamlReader()
        values = reader.read_mapping(root)
        for key, index in reader.duplicates[:_MAX_DUPLICATES]:
            line = source.line_number_at(data, yaml_start + len(text[:index].encode()))
            message = f"the property {key!r} is repeated in line {line}; the last one counts"
            problems.append(Problem(code="duplicate_key", message=message, line=line))
        offsets = list_byte_offsets(text, yaml_start)
    except InvalidYAMLError as error:
        line = source.line_number_at(data, yaml_start + len(text.rstrip()[: error.index].encode()))
        message = f"the properties in line {line} can't be read: {error.reason}"
        problems = [Problem(code="invalid_yaml", message=message, line=line)]
        root, valid = None, False
    block = Frontmatter(
        start=block_start,
        yaml_start=yaml_start,
        yaml_stop=yaml_stop,
        stop=stop,
        values=values,
        end_line=source.line_number_at(data, stop - 1),
        valid=valid,
    )
    return Properties(frontmatter=block, problems=tuple(problems), root=root, offsets=offsets)


def list_byte_offsets(text: str, first: int) -> Sequence[int]:
    """Return the byte offset of each character of the YAML, and of its end: the parser's marks count characters.

    Args:
        text: The YAML.
        first: Byte offset of its first character.
    """
    if text.isascii():
        return range(first, first + len(text) + 1)
    return tuple(accumulate((len(character.encode()) for character in text), initial=first))


_MARKDOWN_LINK: Final = re.compile(r"!?\[(?P<text>[^\[\]]*)\]\((?P<inner>[^\r\n]*)\)")


def find_property_links(data: bytes, properties: Properties, lines: Lines) -> Iterator[Link]:
    """Find ``[[links]]`` inside text values, and values that are one Markdown link.

    The kind is ``property`` and the key the property's name, with nested keys after dots. An unquoted
    ``[[Note]]`` is a list in YAML, not a link.
    """
    if properties.root is None:
        return
    block = properties.frontmatter
    if b"[[" not in data[block.yaml_start : block.yaml_stop] and b"](" not in data[block.yaml_start : block.yaml_stop]:
        return
    for key, node in list_scalars(properties.root):
        span = (properties.offsets[node.start_mark.index], properties.offsets[node.end_mark.index])
        yield from find_wikilinks(data, span, (key, node), lines)
        markdown_match = _MARKDOWN_LINK.fullmatch(str(node.value).strip())
        match_start = data.find(markdown_match.string.encode(), *span) if markdown_match else -1
        if markdown_match is None or match_start < 0:
            continue
        opening = match_start + len(markdown_match.string[: markdown_match.start("inner")].encode())
        stop = match_start + len(markdown_match.group().encode())
        destination_span = markdown.find_destination_span(data, opening, stop)
        destination = data[destination_span[0] : destination_span[1]].decode()
        if not destination:
            continue
        external = links.is_external(markdown.unescape_destination(destination))
        target = markdown.parse_markdown_target(destination, destination_span)
        yield Link(
            kind="external" if external else "property",
            target=markdown.unescape_destination(destination) if external else target.name,
            headings=() if external else target.headings,
            block="" if external else target.block,
            alias=markdown_match["text"],
            start=match_start,
            stop=stop,
            target_start=destination_span[0],
            target_stop=destination_span[1] if external else target.stop,
            line=lines.line_number(match_start),
            key=key,
        )


def list_scalars(root: yaml.Node) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """List all scalar values with their keys (nested ones joined by dots), each once even where aliases repeat it."""
    visited: set[int] = set()
    pending_nodes = [("", root)]
    while pending_nodes:
        key, node = pending_nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield key, node
        nested = [(key, child) for child in sequence_items(node)]
        nested += [(f"{key}.{name.value}".removeprefix("."), value) for name, value in mapping_pairs(node)]
        pending_nodes += reversed(nested)


def find_wikilinks(
    data: bytes, span: tuple[int, int], scalar: tuple[str, yaml.ScalarNode], lines: Lines
) -> Iterator[Link]:
    """Find the wikilinks in one scalar.

    Args:
        data: The file.
        span: The scalar's span in it.
        scalar: Its key and node.
        lines: The file's lines.
    """
    key, node = scalar
    style = str(node.style or "")
    for match in markdown.WIKILINK.finditer(data, *span):
        if not match[1].strip():
            continue
        target, alias = markdown.parse_wikilink_target(match[1], match.start(1))
        yield Link(
            kind="property",
            target=_unquote(target.name, style),
            headings=tuple(_unquote(heading, style) for heading in target.headings),
            block=target.block,
            alias=None if alias is None else _unquote(alias, style),
            start=match.start(),
            stop=match.end(),
            target_start=target.start,
            target_stop=target.stop,
            line=lines.line_number(match.start()),
            key=key,
        )


def _unquote(text: str, style: str) -> str:
    """Resolve the escapes in a piece of a quoted scalar's source."""
    if style == "'":
        return text.replace("''", "'")
    if style == '"' and "\\" in text:
        try:
            node = compose_yaml(f'"{text}"')
        except InvalidYAMLError:
            return text
        return text if node is None else str(node.value)
    return text
