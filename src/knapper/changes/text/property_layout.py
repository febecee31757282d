"""Tell how a note's properties are laid out: which lines are whose, and in which style lists are written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.yaml_text import Quote, Style
from knapper.changes.text.yaml_tree import Entry, Node
from knapper.errors import BadInput

_COLON: Final = re.compile(rb"[ \t]*:")
_BLANKS: Final = re.compile(rb"[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Hold where a property's parts lie, in bytes of the file."""

    start: int
    """Of the key's line."""
    indent: str
    inline_start: int
    """After the colon."""
    value_start: int
    inline_stop: int
    """After what stands of the value beside the key; both equal *inline_start* where that is nothing."""
    below_start: int
    """The line after, where a list's items stand."""
    stop: int
    """After the value's last line."""


def place(snapshot: Snapshot, entry: Entry) -> Place:
    """Find where a property's parts lie.

    Raises:
        BadInput: The key doesn't begin its line, or an anchor or a tag stands before a list of lines.
    """
    raw, table, value = snapshot.raw, snapshot.lines, entry.value
    start = max(table.start(entry.key.start), snapshot.text_start)
    colon = _COLON.match(raw, entry.key.stop)
    lead = raw[start : entry.key.start]
    if colon is None or lead.strip():
        raise unsafe(entry.name, "its key doesn't stand alone at a line's start")
    after = colon.end()
    same_line = value.start < table.stop(after - 1) or value.start == value.stop
    beside = same_line and not is_lines(value)
    if same_line and is_lines(value):
        raise unsafe(entry.name, "an anchor or a tag stands beside its key")
    inline_stop = max(value.stop, after) if beside else after
    last = max(value.stop, after)
    return Place(
        start=start,
        indent=lead.decode(),
        inline_start=after,
        value_start=max(value.start, after) if beside else after,
        inline_stop=inline_stop,
        below_start=table.stop(inline_stop - 1),
        stop=table.stop(last - 1),
    )


def is_lines(node: Node) -> bool:
    """Tell whether a value is a list or a map with a line an item."""
    return node.kind in {"list", "map"} and not node.flow


def unsafe(name: str, why: str) -> BadInput:
    """Refuse a property that can't be changed by its own lines alone."""
    hint = "Change the frontmatter as text, by line numbers."
    return BadInput(f"The property {name!r} is left alone: {why}.", hint=hint, code="unsafe_yaml")


def style(snapshot: Snapshot, entries: Sequence[Entry], entry: Entry | None = None) -> Style:
    """Tell in which style a value is written: that of the property itself, else that of the note's other lists.

    Args:
        snapshot: The note.
        entries: All its properties.
        entry: The property; None for a new one.
    """
    own = entry.value if entry else None
    quoted = quote(own) if own else ""
    if own is not None and own.kind in {"list", "map"} and own.items:
        return Style(flow=own.flow, indent=_indent(snapshot, own, entry), quote=quoted)
    others = [(other, other.value) for other in entries if other.value.kind == "list" and other.value.items]
    in_flow = sum(value.flow for _, value in others)
    rows = [(other, value) for other, value in others if not value.flow]
    indent = _indent(snapshot, rows[0][1], rows[0][0]) if rows else "  "
    return Style(flow=in_flow > len(rows), indent=indent, quote=quoted)


def quote(node: Node) -> Quote:
    """Tell which quotes a text, or every text of a list, stands in; empty for none or for different ones."""
    scalars = node.items if node.kind == "list" else (node,)
    styles = {scalar.style for scalar in scalars}
    for sign in ("'", '"'):
        if styles == {sign}:
            return sign
    return ""


def _indent(snapshot: Snapshot, value: Node, entry: Entry | None) -> str:
    """Tell how far a list's items are indented under their key."""
    if value.flow or entry is None or value.kind != "list":
        return "  "
    first = snapshot.lines.start(value.start)
    lead = _BLANKS.match(snapshot.raw, first)
    key_lead = _BLANKS.match(snapshot.raw, max(snapshot.lines.start(entry.key.start), snapshot.text_start))
    width = len(lead[0]) if lead else 0
    return " " * max(0, width - (len(key_lead[0]) if key_lead else 0))


def chunks(snapshot: Snapshot, spot: Place, items: Sequence[Node]) -> list[bytes]:
    """Cut the lines of a list into those of each item, comments above an item included."""
    found: list[bytes] = []
    start = spot.below_start
    for node in items:
        stop = snapshot.lines.stop(max(node.stop, node.start + 1, start + 1) - 1)
        found.append(snapshot.raw[start:stop])
        start = stop
    return found
