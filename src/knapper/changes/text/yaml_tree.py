"""Read where each part of a note's properties stands, to the byte."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

import yaml

from knapper.changes.text.snapshots import Snapshot
from knapper.errors import BadInput
from knapper.vault import frontmatter, source

if TYPE_CHECKING:
    from yaml import BaseLoader as Loader
else:
    Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

NodeKind = Literal["scalar", "list", "map", "alias"]

_BLOCK_STYLES: Final = frozenset({"|", ">"})
_BLANK: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Hold one YAML value with its span in the file; an anchor or tag before it is part of it."""

    kind: NodeKind
    start: int
    stop: int
    """After its last character that isn't blank."""
    flow: bool = False
    style: str = ""
    """Of a scalar: empty where it is plain, else ``'``, ``"``, ``|`` or ``>``."""
    text: str = ""
    """Of a scalar: its value."""
    items: "tuple[Node, ...]" = ()
    """Of a list: its items. Of a map: keys and values in turn."""

    @property
    def entries(self) -> "tuple[tuple[Node, Node], ...]":
        """Pair the keys and values of a map."""
        return tuple(zip(self.items[::2], self.items[1::2], strict=True)) if self.kind == "map" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Hold one property: its key and its value."""

    name: str
    key: Node
    value: Node


def entries(snapshot: Snapshot) -> tuple[Entry, ...]:
    """List a note's properties in order; none where it has no frontmatter or an empty one.

    Raises:
        BadInput: The YAML is invalid, a key stands twice, or all is written in braces or otherwise not a line a key.
    """
    block = snapshot.outline.frontmatter
    if block is None:
        return ()
    for problem in snapshot.outline.problems:
        if problem.code in {"invalid_yaml", "duplicate_key"}:
            hint = "Mend the frontmatter by hand or by line numbers first."
            message = f"The properties are left alone: {problem.message}"
            raise BadInput(message, hint=hint, code=problem.code, details={"line": problem.line})
    root = _root(snapshot, block.yaml_start, block.yaml_stop)
    if root is None:
        return ()
    if root.kind != "map" or root.flow:
        hint = "Change the frontmatter as text."
        raise BadInput("The properties aren't written one key a line.", hint=hint, code="unsafe_yaml")
    return tuple(Entry(name=key.text, key=key, value=value) for key, value in root.entries)


def _root(snapshot: Snapshot, start: int, stop: int) -> Node | None:
    data = source.decode(snapshot.raw[: stop + len(b"---")]).data
    text = data[start:stop].decode()
    found = frontmatter.read_properties(data)
    if found is None or found.root is None:
        return None
    reader = _Reader(snapshot.raw, list(found.offsets))
    every = cast("Iterator[yaml.Event]", yaml.parse(text, Loader=Loader))  # pyright: ignore[reportUnknownMemberType]
    stream = (event for event in every if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent))
    return reader.node(next(stream), stream)


class _Reader:
    """Build nodes from the parser's events."""

    def __init__(self, raw: bytes, offsets: list[int]) -> None:
        self._raw: bytes = raw
        self._offsets: list[int] = offsets

    def _at(self, mark: yaml.Mark) -> int:
        return self._offsets[int(mark.index)]

    def node(self, event: yaml.Event, stream: Iterator[yaml.Event]) -> Node:
        """Read the node that *event* begins."""
        start = self._at(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            return self._collection(event, start, stream)
        stop = self._at(event.end_mark)
        if isinstance(event, yaml.AliasEvent):
            return Node(kind="alias", start=start, stop=stop)
        style, text = "", ""
        if isinstance(event, yaml.ScalarEvent):
            style, text = str(event.style or ""), str(event.value)
        if style in _BLOCK_STYLES:
            stop = start + len(self._raw[start:stop].rstrip(_BLANK))
        return Node(kind="scalar", start=start, stop=stop, style=style, text=text)

    def _collection(self, event: yaml.CollectionStartEvent, start: int, stream: Iterator[yaml.Event]) -> Node:
        items: list[Node] = []
        after = next(stream)
        while not isinstance(after, yaml.CollectionEndEvent):
            items.append(self.node(after, stream))
            after = next(stream)
        flow = bool(event.flow_style)
        last = items[-1].stop if items else start
        stop = max(last, self._at(after.end_mark)) if flow else last
        kind: NodeKind = "list" if isinstance(event, yaml.SequenceStartEvent) else "map"
        return Node(kind=kind, start=start, stop=stop, flow=flow, items=tuple(items))
