"""Make the splices that change a property's lines; what they do is checked elsewhere."""

import json
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final

from knapper.changes.text import property_layout, splices, yaml_text
from knapper.changes.text.property_layout import Place
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.changes.text.yaml_text import Style, Written
from knapper.changes.text.yaml_tree import Entry
from knapper.jsontypes import JSONValue

_ENDINGS: Final = frozenset({b"\n", b"\r\n", b"\r"})


def added(snapshot: Snapshot, entries: Sequence[Entry], key: str, value: JSONValue) -> list[list[Splice]]:
    """List ways to add a property that the note doesn't have, best first.

    It goes below the others, above blank lines. In a frontmatter of no bytes a blank line follows it, by which
    `removed` knows that the frontmatter was there before.
    """
    block = snapshot.outline.frontmatter
    style = property_layout.style(snapshot, entries)
    if block is None:
        rows = "\n".join(("---", *_rows(key, yaml_text.write(value, style), ""), "---", ""))
        at = snapshot.outline.body_start
        return [[Splice(start=at, stop=at, new=snapshot.encode(rows, at), rank=splices.FRONT)]]
    indent = property_layout.place(snapshot, entries[0]).indent if entries else ""
    rows = "\n".join((*_rows(key, yaml_text.write(value, style, indent=indent), indent), ""))
    yaml = snapshot.raw[block.yaml_start : block.yaml_stop]
    if not yaml:
        rows += "\n"
    places = [block.yaml_stop]
    if entries:
        last = snapshot.lines.number(block.yaml_start + len(yaml.rstrip()) - 1)
        places.insert(0, snapshot.line(last)[2])
    return [[Splice(start=at, stop=at, new=snapshot.encode(rows, at))] for at in places]


def _rows(key: str, written: Written, indent: str) -> list[str]:
    return [f"{indent}{yaml_text.key(key)}:{' ' if written.inline else ''}{written.inline}", *written.below]


def removed(snapshot: Snapshot, entry: Entry) -> list[list[Splice]]:
    """List ways to remove a property, best first.

    Where nothing else stands between the frontmatter's two lines, they go too. Where only one blank line stands below
    it, that line goes and the frontmatter stays, empty as it was before `added`.
    """
    spot = property_layout.place(snapshot, entry)
    ways = [[Splice(start=spot.start, stop=spot.stop, new=b"")]]
    block = snapshot.outline.frontmatter
    if block is None or spot.start != block.yaml_start:
        return ways
    below = snapshot.raw[spot.stop : block.yaml_stop]
    if not below:
        ways.insert(0, [Splice(start=block.start, stop=block.stop, new=b"")])
    elif below in _ENDINGS:
        ways.insert(0, [Splice(start=spot.start, stop=block.yaml_stop, new=b"")])
    return ways


def replaced(snapshot: Snapshot, entries: Sequence[Entry], entry: Entry, value: JSONValue) -> list[Splice]:
    """Put a new value in the place of a property's value; comments beside it and the lines of kept items stay."""
    spot = property_layout.place(snapshot, entry)
    style = property_layout.style(snapshot, entries, entry)
    if isinstance(value, list) and value and entry.value.kind == "list" and not entry.value.flow:
        return [Splice(start=spot.below_start, stop=spot.stop, new=_items(snapshot, entry, spot, value, style))]
    written = yaml_text.write(value, style, indent=spot.indent)
    below = "".join(f"{row}\n" for row in written.below)
    made = [Splice(start=spot.below_start, stop=spot.stop, new=snapshot.encode(below, spot.below_start))]
    inline = snapshot.encode(written.inline, spot.inline_start)
    if spot.inline_start == spot.inline_stop:
        new = b" " + inline if inline else b""
        made.append(Splice(start=spot.inline_start, stop=spot.inline_stop, new=new))
    else:
        start = spot.value_start if inline else spot.inline_start
        made.append(Splice(start=start, stop=spot.inline_stop, new=inline))
    return [one for one in made if one.start < one.stop or one.new]


def _items(snapshot: Snapshot, entry: Entry, spot: Place, value: Sequence[JSONValue], style: Style) -> bytes:
    """Write a list's lines; an item that it held already keeps its lines, with the comments above and beside it."""
    block = snapshot.outline.frontmatter
    old = block.values[entry.name] if block else None
    chunks = property_layout.chunks(snapshot, spot, entry.value.items)
    kept: dict[str, list[bytes]] = {}
    for there, chunk in zip(old if isinstance(old, list) else [], chunks, strict=False):
        kept.setdefault(json.dumps(there), []).append(chunk)
    pieces: list[bytes] = []
    for item in value:
        same = kept.get(json.dumps(item))
        if same:
            pieces.append(same.pop(0))
        else:
            rows = yaml_text.item(item, style, spot.indent + style.indent)
            pieces.append(snapshot.encode("\n".join((*rows, "")), spot.below_start))
    return b"".join(pieces)


def extended(snapshot: Snapshot, entries: Sequence[Entry], entry: Entry, fresh: Sequence[JSONValue]) -> list[Splice]:
    """Add items to the end of a list, and leave the others as they are."""
    node = entry.value
    style = property_layout.style(snapshot, entries, entry)
    if node.flow:
        text = ", ".join(yaml_text.flow(item, style.quote) for item in fresh)
        at = node.items[-1].stop if node.items else snapshot.raw.index(b"[", node.start) + 1
        return [Splice(start=at, stop=at, new=snapshot.encode(f", {text}" if node.items else text, at))]
    spot = property_layout.place(snapshot, entry)
    rows = [row for item in fresh for row in yaml_text.item(item, style, spot.indent + style.indent)]
    return [Splice(start=spot.stop, stop=spot.stop, new=snapshot.encode("\n".join((*rows, "")), spot.stop))]


def without(snapshot: Snapshot, entry: Entry, dropped: Collection[int]) -> list[Splice]:
    """Take items out of a list, by their places from 0; the others keep their lines and commas."""
    items = entry.value.items
    if entry.value.flow or not dropped:
        return cut([(item.start, item.stop) for item in items], dropped)
    spot = property_layout.place(snapshot, entry)
    stops = [*accumulate(map(len, property_layout.chunks(snapshot, spot, items)), initial=spot.below_start)]
    return [Splice(start=stops[place], stop=stops[place + 1], new=b"") for place in dropped]


def cut(spans: Sequence[tuple[int, int]], dropped: Collection[int]) -> list[Splice]:
    """Take items out of a row, each with what stands between it and one that stays."""
    made: list[Splice] = []
    stays = False
    for place, (start, stop) in enumerate(spans):
        if place not in dropped:
            stays = True
        elif stays:
            made.append(Splice(start=spans[place - 1][1], stop=stop, new=b""))
        else:
            made.append(Splice(start=start, stop=spans[place + 1][0] if place + 1 < len(spans) else stop, new=b""))
    return made
