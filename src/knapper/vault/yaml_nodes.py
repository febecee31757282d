"""Read YAML as people write it in notes: every value keeps its place, and only what is plainly a number becomes one."""

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import yaml

from knapper.jsontypes import JSONValue

if TYPE_CHECKING:
    from yaml import BaseLoader as _Loader
else:
    _Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

_PLAIN: Final = "plain"
_TEXT: Final = "tag:yaml.org,2002:str"
_LIST: Final = "tag:yaml.org,2002:seq"
_MAP: Final = "tag:yaml.org,2002:map"
_KNOWN_TAGS: Final = frozenset({_PLAIN, _TEXT, _LIST, _MAP, "!"})
_PLAIN_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null"))
_MAX_NODES: Final = 50_000
_MAX_DEPTH: Final = 100
_MAX_CHARACTERS: Final = 1_000_000
_WIDE: Final = re.compile(rf"^[ \t?:-]{{{_MAX_DEPTH}}}", re.MULTILINE)
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,300})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?:0|[1-9][0-9]*)(?:\.|\.?[eE][-+]?[0-9]+)"
)
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class InvalidYAMLError(Exception):
    """Say that a text isn't YAML that this program reads, and at which character."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.index: int = index


class _NodeLoader(_Loader):
    """Compose nodes, telling plain scalars from quoted ones, and nothing from their looks."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: object) -> str:
        del value
        if kind is yaml.ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else _TEXT
        return _LIST if kind is yaml.SequenceNode else _MAP


def compose(text: str) -> yaml.Node | None:
    """Parse one YAML document into nodes with marks that count characters.

    Returns:
        None for an empty document.

    Raises:
        InvalidYAMLError: It can't be parsed, is nested too deep or is too large.
    """
    if len(text) > _MAX_CHARACTERS:
        raise InvalidYAMLError(f"longer than {_MAX_CHARACTERS:,} characters", 0)
    try:
        _check_depth(text)
        loader = _NodeLoader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()  # pyright: ignore[reportUnknownMemberType]
    except yaml.YAMLError as error:
        raise _described(error) from None
    except RecursionError:  # the parser in Python, where libyaml is missing, called from deep inside
        raise InvalidYAMLError("nested too deep", 0) from None


def _check_depth(text: str) -> None:
    """Refuse what the composer would recurse into too deep: in C it is bounded by the stack alone."""
    if text.count("[") + text.count("{") < _MAX_DEPTH and not _WIDE.search(text):
        return
    depth = 0
    for event in cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_NodeLoader)):  # pyright: ignore[reportUnknownMemberType]
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise InvalidYAMLError("nested too deep", event.start_mark.index)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _described(error: yaml.YAMLError) -> InvalidYAMLError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "can't be read"
    position = getattr(mark, "index", None)
    if position is None:
        position = getattr(error, "position", 0)
    return InvalidYAMLError(str(reason), int(position))


class Reader:
    """Turn nodes into JSON values, and remember keys that stand twice."""

    def __init__(self) -> None:
        self.duplicates: list[tuple[str, int]] = []
        """Key and the character where it stands again."""
        self._left: int = _MAX_NODES

    def mapping(self, node: yaml.Node | None) -> dict[str, JSONValue]:
        """Read the root of a note's properties.

        Raises:
            InvalidYAMLError: It is no mapping, grows too large through aliases, or holds a tag that isn't plain YAML.
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
            return scalar(node)
        if node.tag not in _KNOWN_TAGS:
            raise InvalidYAMLError(f"the tag {node.tag} isn't plain YAML", node.start_mark.index)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, depth + 1) for child in children(node)]
        found: dict[str, JSONValue] = {}
        for key, child in pairs(node):
            name = key_name(key)
            if name in found:
                self.duplicates.append((name, key.start_mark.index))
            found[name] = self._value(child, depth + 1)
        return found


def pairs(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """List a mapping's keys and values in order; empty where the node is none."""
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value) if isinstance(node, yaml.MappingNode) else []


def children(node: yaml.Node) -> list[yaml.Node]:
    """List a sequence's entries in order; empty where the node is none."""
    return cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else []


def key_name(node: yaml.Node) -> str:
    """Read a key as written: ``2024`` is the key ``"2024"``.

    Raises:
        InvalidYAMLError: The key is a list or a mapping, as in a template's ``{{date}}``.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise InvalidYAMLError("a key has to be a word", node.start_mark.index)
    return str(node.value)


def scalar(node: yaml.ScalarNode) -> JSONValue:
    """Read one scalar: numbers, ``true``, ``false`` and ``null`` are those, and all else is text.

    ``007``, ``no``, ``1_000``, ``0x1F``, ``2024-01-01``, ``.nan`` and ``"1"`` stay text.

    Raises:
        InvalidYAMLError: Its tag isn't plain YAML.
    """
    text = str(node.value)
    if node.tag == _TEXT:
        return text
    if node.tag == _PLAIN or node.tag in _PLAIN_TAGS:
        return _plain(text)
    raise InvalidYAMLError(f"the tag {node.tag} isn't plain YAML", node.start_mark.index)


def _plain(text: str) -> JSONValue:
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
