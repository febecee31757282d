"""Property values in YAML: writing them, locating them to the byte, and reading what a person typed."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

import yaml

from knapper.changes.text.splices import Snapshot
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue, loads
from knapper.vault import frontmatter, source

YamlQuote = Literal["", "'", '"']

_AMBIGUOUS_WORDS: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "=", "---", "..."}
)
_NUMBERISH: Final = re.compile(r"[-+]?\.?[0-9][-+0-9_.,:eExXoObBa-fA-F]*|[-+]?\.(?:inf|nan)", re.IGNORECASE)
_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_PLAIN_PATTERN: Final = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s\-]))(?:.*[^\s:])?")
_FLOW_SIGNS: Final = re.compile(r"[,\[\]{}:]")
_ESCAPES: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_UNSAFE_LINE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_MAX_KEY: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlStyle:
    """Style in which values are written."""

    flow: bool = False
    """Lists in brackets instead of one line per item."""
    indent: str = "  "
    """Of a list's items under their key."""
    quote: YamlQuote = ""
    """Quotes around text that needs none; empty for no quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlLines:
    """A value as written after its key: the rest of the key's line, and the lines below."""

    inline: str
    below: tuple[str, ...] = ()


def write_value(value: JSONValue, style: YamlStyle, *, indent: str = "") -> YamlLines:
    """Return a value as YAML.

    ``["a", "b"]`` gives the lines ``- a`` and ``- b`` below its key, or ``[a, b]`` beside it in flow style.

    Args:
        value: What to write.
        style: How.
        indent: Of the key.
    """
    match value:
        case None:
            return YamlLines(inline="")
        case list() | dict() if not value or style.flow:
            return YamlLines(inline=write_flow(value, style.quote))
        case list():
            return YamlLines(inline="", below=tuple(_item_lines(value, style, indent + style.indent)))
        case dict():
            return YamlLines(inline="", below=tuple(_pair_lines(value, style, indent + "  ")))
        case str() if "\n" in value and not style.quote:
            return _write_literal(value, style, indent + "  ")
        case _:
            return YamlLines(inline=write_flow(value, style.quote, alone=True))


def _write_literal(text: str, style: YamlStyle, indent: str) -> YamlLines:
    rows = text.split("\n")
    content_rows = rows[:-1] if text.endswith("\n") else rows
    if (
        _UNSAFE_LINE.search(text)
        or not content_rows[-1].strip()
        or content_rows[0][:1] in {" ", "\t", ""}
        or "\r" in text
    ):
        return YamlLines(inline=write_scalar(text, style.quote or '"'))
    sign = "|" if text.endswith("\n") else "|-"
    return YamlLines(inline=sign, below=tuple(indent + row if row else "" for row in content_rows))


def _item_lines(values: Sequence[JSONValue], style: YamlStyle, indent: str) -> list[str]:
    return [row for value in values for row in write_item(value, style, indent)]


def write_item(value: JSONValue, style: YamlStyle, indent: str) -> list[str]:
    """Return the lines of one list item; *indent* is that of the ``-``."""
    inner = YamlStyle(quote=style.quote)
    if isinstance(value, list | dict) and value:
        deep = indent + "  "
        rows = _item_lines(value, inner, deep) if isinstance(value, list) else _pair_lines(value, inner, deep)
        return [f"{indent}- {rows[0].removeprefix(deep)}", *rows[1:]]
    if value is None:
        return [f"{indent}- null"]
    yaml_lines = write_value(value, inner, indent=indent)
    return [f"{indent}- {yaml_lines.inline}", *yaml_lines.below]


def _pair_lines(values: Mapping[str, JSONValue], style: YamlStyle, indent: str) -> list[str]:
    rows: list[str] = []
    inner = YamlStyle(quote=style.quote)
    for name, value in values.items():
        yaml_lines = write_value(value, inner, indent=indent)
        rows += [f"{indent}{write_key(name)}:{' ' if yaml_lines.inline else ''}{yaml_lines.inline}", *yaml_lines.below]
    return rows


def write_flow(value: JSONValue, quote: YamlQuote = "", *, alone: bool = False) -> str:
    """Return a value in one line.

    Args:
        value: What to write.
        quote: Quotes around text that needs none.
        alone: True for a value after a key, False for one between brackets, where more has to be quoted.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return write_number(value)
        case str():
            return write_scalar(value, quote, alone=alone)
        case list():
            return f"[{', '.join(write_flow(entry, quote) for entry in value)}]"
        case dict():
            return f"{{{', '.join(f'{write_key(name)}: {write_flow(entry, quote)}' for name, entry in value.items())}}}"


def write_number(value: float) -> str:
    """Return a number as YAML 1.1 and 1.2 both read it.

    Raises:
        BadInput: It is infinite or not a number.
    """
    if not math.isfinite(value):
        raise BadInput("a property can't be an infinite number or none", hint="give it as text")
    text = repr(value)
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if sign else text


def write_scalar(text: str, quote: YamlQuote = "", *, alone: bool = False) -> str:
    """Return text, in quotes if it could be read as something else or as syntax.

    ``no``, ``007`` and ``[[Note]]`` are quoted; ``2024-01-01`` isn't, as Obsidian writes dates.
    """
    if not quote and is_plain(text, alone=alone):
        return text
    breaks = _UNSAFE_LINE.search(text) or "\n" in text or "\t" in text
    if breaks or (quote != "'" and not ('"' in text and "'" not in text)):
        try:
            _ = text.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"the value holds half a character at position {error.start}") from None
        return _ESCAPES.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
    if quote == '"' and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def is_plain(text: str, *, alone: bool = True) -> bool:
    """Return whether text is read as the same text without quotes."""
    if text.casefold() in _AMBIGUOUS_WORDS or _UNSAFE_LINE.search(text) or not _PLAIN_PATTERN.fullmatch(text):
        return False
    if ": " in text or " #" in text or "\t" in text or "\n" in text:
        return False
    if _FLOW_SIGNS.search(text) and not alone:
        return False
    return bool(_DATE.fullmatch(text)) or not _NUMBERISH.fullmatch(text)


def write_key(name: str) -> str:
    """Return a property's name as YAML.

    Raises:
        BadInput: It is empty, has several lines or is too long.
    """
    if not name.strip() or "\n" in name or "\r" in name or len(name) > _MAX_KEY:
        raise BadInput(f"{name!r} can't name a property", hint="a name is one line of text")
    return write_scalar(name)


if TYPE_CHECKING:
    from yaml import BaseLoader as Loader
else:
    Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

YamlNodeKind = Literal["scalar", "list", "map", "alias"]

_BLOCK_STYLES: Final = frozenset({"|", ">"})
_BLANK_BYTES: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlNode:
    """One YAML value with its span in the file; an anchor or tag before it is part of it."""

    kind: YamlNodeKind
    start: int
    stop: int
    """After its last character that isn't blank."""
    flow: bool = False
    style: str = ""
    """Of a scalar: empty where it is plain, else ``'``, ``"``, ``|`` or ``>``."""
    text: str = ""
    """Of a scalar: its value."""
    items: "tuple[YamlNode, ...]" = ()
    """Of a list: its items. Of a map: keys and values in turn."""

    @property
    def entries(self) -> "tuple[tuple[YamlNode, YamlNode], ...]":
        """Pair the keys and values of a map."""
        return tuple(zip(self.items[::2], self.items[1::2], strict=True)) if self.kind == "map" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyEntry:
    """One property: its key and its value."""

    name: str
    key: YamlNode
    value: YamlNode


def read_entries(snapshot: Snapshot) -> tuple[PropertyEntry, ...]:
    """Return a note's properties in order; none if it has no frontmatter or an empty one.

    Raises:
        BadInput: The YAML is invalid, a key occurs twice, or the properties aren't written one key per line.
    """
    block = snapshot.outline.frontmatter
    if block is None:
        return ()
    for problem in snapshot.outline.problems:
        if problem.code in {"invalid_yaml", "duplicate_key"}:
            hint = "mend the frontmatter by hand, or line by line, first"
            message = f"the properties are left alone: {problem.message}"
            raise BadInput(message, hint=hint, code=problem.code, details={"line": problem.line})
    data = source.decode(snapshot.raw[: block.yaml_stop + len(b"---")]).data
    text = data[block.yaml_start : block.yaml_stop].decode()
    parsed = frontmatter.read_properties(data)
    if parsed is None or parsed.root is None:
        return ()
    reader = _NodeBuilder(snapshot.raw, list(parsed.offsets))
    every = cast("Iterator[yaml.Event]", yaml.parse(text, Loader=Loader))  # pyright: ignore[reportUnknownMemberType]
    stream = (event for event in every if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent))
    root = reader.node(next(stream), stream)
    if root.kind != "map" or root.flow:
        hint = "change the frontmatter as text"
        raise BadInput("the properties aren't written one key a line", hint=hint, code="unsafe_yaml")
    return tuple(PropertyEntry(name=key.text, key=key, value=value) for key, value in root.entries)


class _NodeBuilder:
    """Builder of nodes from the parser's events."""

    def __init__(self, raw: bytes, offsets: list[int]) -> None:
        self._raw: bytes = raw
        self._offsets: list[int] = offsets

    def _at(self, mark: yaml.Mark) -> int:
        return self._offsets[int(mark.index)]

    def node(self, event: yaml.Event, stream: Iterator[yaml.Event]) -> YamlNode:
        """Build the node that *event* begins."""
        start = self._at(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            items: list[YamlNode] = []
            after = next(stream)
            while not isinstance(after, yaml.CollectionEndEvent):
                items.append(self.node(after, stream))
                after = next(stream)
            flow = bool(event.flow_style)
            last = items[-1].stop if items else start
            stop = max(last, self._at(after.end_mark)) if flow else last
            kind: YamlNodeKind = "list" if isinstance(event, yaml.SequenceStartEvent) else "map"
            return YamlNode(kind=kind, start=start, stop=stop, flow=flow, items=tuple(items))
        stop = self._at(event.end_mark)
        if isinstance(event, yaml.AliasEvent):
            return YamlNode(kind="alias", start=start, stop=stop)
        style, text = "", ""
        if isinstance(event, yaml.ScalarEvent):
            style, text = str(event.style or ""), str(event.value)
        if style in _BLOCK_STYLES:
            stop = start + len(self._raw[start:stop].rstrip(_BLANK_BYTES))
        return YamlNode(kind="scalar", start=start, stop=stop, style=style, text=text)


_WIKILINK: Final = re.compile(r"!?\[\[[^\[\]\",]+\]\]")
_TEXT_STARTS: Final = ("[[", "{{")
_MARKDOWN_LINK: Final = re.compile(r"\[[^\]]*\]\(.*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SHOWN: Final = 200
_BOOLEANS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def interpret_value(snapshot: Snapshot, key: str, text: str) -> JSONValue:
    """Parse the value that *text* means for a property.

    Text is JSON only if it begins with ``[``, ``{`` or ``"``. Otherwise it gets the type that the property has, or
    stays text, so that ``007`` and ``no`` are kept. ``[[Note]]``, ``[text](address)`` and ``{{date}}`` are text.

    Args:
        snapshot: The note.
        key: The property.
        text: As typed.

    Raises:
        BadInput: It begins like JSON and isn't, or the property has a map, which a word can't replace.
    """
    parsed = _parse_json(text)
    if parsed is not None:
        return parsed[0]
    return _read_as_type(current_value(snapshot, key), key, text)


def interpret_item(snapshot: Snapshot, key: str, text: str) -> JSONValue:
    """Parse the value that *text* means as an item of a list: by the type of the existing items.

    Raises:
        BadInput: It begins like JSON and isn't.
    """
    parsed = _parse_json(text)
    if parsed is not None:
        return parsed[0]
    present_value = current_value(snapshot, key)
    if (
        isinstance(present_value, list)
        and present_value
        and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present_value)
    ):
        return _read_as_type(present_value[0], key, text)
    return text


def current_value(snapshot: Snapshot, key: str) -> JSONValue:
    """Return a property's value; None if the note doesn't have it. Case matters only if two keys differ in it."""
    block = snapshot.outline.frontmatter
    values = block.values if block else {}
    if key in values:
        return values[key]
    same = [name for name in values if name.casefold() == key.casefold()]
    return values[same[0]] if len(same) == 1 else None


def _parse_json(text: str) -> tuple[JSONValue] | None:
    """Parse JSON; return None if the text isn't meant as such."""
    bare = text.strip()
    if not bare.startswith(("[", "{", '"')) or _WIKILINK.fullmatch(bare):
        return None
    try:
        return (json.loads(bare, parse_constant=_reject_constant),)
    except (ValueError, RecursionError) as error:
        if bare.startswith(_TEXT_STARTS) or _MARKDOWN_LINK.fullmatch(bare):
            return None
        quoted = json.dumps(bare[:_SHOWN], ensure_ascii=False)
        hint = f'write a list as ["a", "b"], and this very text as a JSON string: {quoted}'
        message = f"the value begins with {bare[0]} and isn't JSON: {error}"
        raise BadInput(message, hint=hint, code="invalid_json") from None


def _reject_constant(name: str) -> JSONValue:
    raise ValueError(f"{name} is no JSON")


def _read_as_type(present_value: JSONValue, key: str, text: str) -> JSONValue:
    match present_value:
        case bool():
            return _BOOLEANS.get(text.strip().casefold(), text)
        case int() | float():
            return loads(text) if _NUMBER.fullmatch(text.strip()) else text
        case list():
            return [text]
        case dict():
            hint = "give the whole value as JSON, or remove the property first"
            raise BadInput(f"the property {key!r} holds further properties, and {text!r} is one word", hint=hint)
        case _:
            return text


def as_list(key: str, value: JSONValue) -> list[JSONValue]:
    """Return a property as the list that Obsidian sees: ``tags: a, b`` has two items, an empty property none."""
    if value is None:
        return []
    if isinstance(value, list):
        return list(value)
    if isinstance(value, str):
        if key.casefold() in {"tags", "tag", "cssclasses", "cssclass"}:
            return [part for part in re.split(r"[,\s]+", value) if part]
        if key.casefold() in {"aliases", "alias"}:
            return [part.strip() for part in value.split(",") if part.strip()]
    return [value]


def same_item(key: str, one: JSONValue, other: JSONValue) -> bool:
    """Return whether two list items are the same; tags are compared without ``#`` and case."""
    if key.casefold() in {"tags", "tag"} and isinstance(one, str) and isinstance(other, str):
        return one.removeprefix("#").casefold() == other.removeprefix("#").casefold()
    return json.dumps(one) == json.dumps(other)


def missing_items(key: str, present_items: Sequence[JSONValue], values: Sequence[JSONValue]) -> list[JSONValue]:
    """Return the values that a list doesn't have yet, each once; tags without their ``#``."""
    missing: list[JSONValue] = []
    for value in values:
        tag = key.casefold() in {"tags", "tag"} and isinstance(value, str)
        bare = value.removeprefix("#") if tag and isinstance(value, str) else value
        if not any(same_item(key, bare, other) for other in (*present_items, *missing)):
            missing.append(bare)
    return missing
