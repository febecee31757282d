"""Edits of a note's properties and tags that touch no other line of the frontmatter."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from knapper.changes.text import splices, yaml_values
from knapper.changes.text.splices import Snapshot, Splice
from knapper.changes.text.yaml_values import PropertyEntry, YamlLines, YamlNode, YamlQuote, YamlStyle
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.vault import frontmatter, parser, source
from knapper.vault.source import Tag

_COLON_PATTERN: Final = re.compile(rb"[ \t]*:")
_BLANK_PATTERN: Final = re.compile(rb"[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertySpan:
    """Spans of a property's parts, in bytes of the file."""

    start: int
    """Of the key's line."""
    indent: str
    inline_start: int
    """After the colon."""
    value_start: int
    inline_stop: int
    """After the part of the value beside the key; both equal *inline_start* if there is none."""
    below_start: int
    """The next line, where a list's items begin."""
    stop: int
    """After the value's last line."""


def locate_property(snapshot: Snapshot, entry: PropertyEntry) -> PropertySpan:
    """Return the spans of a property's parts.

    Raises:
        BadInput: The key doesn't begin its line, or an anchor or a tag precedes a list of lines.
    """
    raw, table, value = snapshot.raw, snapshot.lines, entry.value
    start = max(table.line_start(entry.key.start), snapshot.text_start)
    colon = _COLON_PATTERN.match(raw, entry.key.stop)
    lead = raw[start : entry.key.start]
    if colon is None or lead.strip():
        raise unsafe_property(entry.name, "its key doesn't stand alone at a line's start")
    after = colon.end()
    same_line = value.start < table.line_stop(after - 1) or value.start == value.stop
    beside = same_line and not is_block_collection(value)
    if same_line and is_block_collection(value):
        raise unsafe_property(entry.name, "an anchor or a tag stands beside its key")
    inline_stop = max(value.stop, after) if beside else after
    last = max(value.stop, after)
    return PropertySpan(
        start=start,
        indent=lead.decode(),
        inline_start=after,
        value_start=max(value.start, after) if beside else after,
        inline_stop=inline_stop,
        below_start=table.line_stop(inline_stop - 1),
        stop=table.line_stop(last - 1),
    )


def is_block_collection(node: YamlNode) -> bool:
    """Return whether a value is a list or a map with one line per item."""
    return node.kind in {"list", "map"} and not node.flow


def unsafe_property(name: str, why: str) -> BadInput:
    """Build the error for a property that can't be changed by its own lines alone."""
    hint = "change the frontmatter as text, line by line"
    return BadInput(f"the property {name!r} is left alone: {why}", hint=hint, code="unsafe_yaml")


def infer_style(snapshot: Snapshot, entries: Sequence[PropertyEntry], entry: PropertyEntry | None = None) -> YamlStyle:
    """Return the style in which to write a value: that of the property itself, else that of the note's other lists.

    Args:
        snapshot: The note.
        entries: All its properties.
        entry: The property; None for a new one.
    """
    own = entry.value if entry else None
    quoted = common_quote(own) if own else ""
    if own is not None and own.kind in {"list", "map"} and own.items:
        return YamlStyle(flow=own.flow, indent=_item_indent(snapshot, own, entry), quote=quoted)
    others = [(other, other.value) for other in entries if other.value.kind == "list" and other.value.items]
    in_flow = sum(value.flow for _, value in others)
    rows = [(other, value) for other, value in others if not value.flow]
    indent = _item_indent(snapshot, rows[0][1], rows[0][0]) if rows else "  "
    return YamlStyle(flow=in_flow > len(rows), indent=indent, quote=quoted)


def common_quote(node: YamlNode) -> YamlQuote:
    """Return the quotes around a text, or around every text of a list; empty for none or for different ones."""
    scalars = node.items if node.kind == "list" else (node,)
    styles = {scalar.style for scalar in scalars}
    for sign in ("'", '"'):
        if styles == {sign}:
            return sign
    return ""


def _item_indent(snapshot: Snapshot, value: YamlNode, entry: PropertyEntry | None) -> str:
    """Return how far a list's items are indented under their key."""
    if value.flow or entry is None or value.kind != "list":
        return "  "
    first = snapshot.lines.line_start(value.start)
    lead = _BLANK_PATTERN.match(snapshot.raw, first)
    key_lead = _BLANK_PATTERN.match(snapshot.raw, max(snapshot.lines.line_start(entry.key.start), snapshot.text_start))
    width = len(lead[0]) if lead else 0
    return " " * max(0, width - (len(key_lead[0]) if key_lead else 0))


def split_list_lines(snapshot: Snapshot, spot: PropertySpan, items: Sequence[YamlNode]) -> list[bytes]:
    """Split the lines of a list into those of each item, comments above an item included."""
    pieces: list[bytes] = []
    start = spot.below_start
    for node in items:
        stop = snapshot.lines.line_stop(max(node.stop, node.start + 1, start + 1) - 1)
        pieces.append(snapshot.raw[start:stop])
        start = stop
    return pieces


def read_values(snapshot: Snapshot) -> Mapping[str, JSONValue]:
    """Read a note's properties; empty where it has none."""
    block = snapshot.outline.frontmatter
    return block.values if block else {}


def same_value(one: JSONValue, other: JSONValue) -> bool:
    """Return whether values are the same; ``1`` differs from ``true``, and one order of keys from another."""
    return json.dumps(one) == json.dumps(other)


def first_valid_edit(
    snapshot: Snapshot, candidates: Iterable[Sequence[Splice]], expected: Mapping[str, JSONValue], key: str
) -> tuple[Splice, ...]:
    """Return the first candidate that leaves the properties as expected when they are read again.

    Raises:
        BadInput: None does.
    """
    for candidate in candidates:
        if same_value(_read_changed_values(splices.merge(snapshot.raw, candidate)), dict(expected)):
            return tuple(candidate)
    raise unsafe_property(key, "its lines can't be changed without changing what other lines mean")


def _read_changed_values(raw: bytes) -> JSONValue:
    """Read the properties of a changed note; None if they are invalid or a key occurs twice."""
    parsed = frontmatter.read_properties(source.decode(raw).data)
    if parsed is None:
        return {}
    return None if parsed.problems or not parsed.frontmatter.valid else parsed.frontmatter.values


_LINE_ENDINGS: Final = frozenset({b"\n", b"\r\n", b"\r"})


def addition_candidates(
    snapshot: Snapshot, entries: Sequence[PropertyEntry], key: str, value: JSONValue
) -> list[list[Splice]]:
    """Return ways to add a property that the note doesn't have, best first.

    It goes below the others, above blank lines. In an empty frontmatter a blank line follows it, by which
    `removal_candidates` sees that the frontmatter was there before.
    """
    block = snapshot.outline.frontmatter
    style = infer_style(snapshot, entries)
    if block is None:
        rows = "\n".join(("---", *_property_rows(key, yaml_values.write_value(value, style), ""), "---", ""))
        at = snapshot.outline.body_start
        return [[Splice(start=at, stop=at, new=snapshot.encode(rows, at), rank=splices.RANK_FRONT)]]
    indent = locate_property(snapshot, entries[0]).indent if entries else ""
    rows = "\n".join((*_property_rows(key, yaml_values.write_value(value, style, indent=indent), indent), ""))
    yaml = snapshot.raw[block.yaml_start : block.yaml_stop]
    if not yaml:
        rows += "\n"
    places = [block.yaml_stop]
    if entries:
        last = snapshot.lines.line_number(block.yaml_start + len(yaml.rstrip()) - 1)
        places.insert(0, snapshot.line(last)[2])
    return [[Splice(start=at, stop=at, new=snapshot.encode(rows, at))] for at in places]


def _property_rows(key: str, written: YamlLines, indent: str) -> list[str]:
    return [f"{indent}{yaml_values.write_key(key)}:{' ' if written.inline else ''}{written.inline}", *written.below]


def removal_candidates(snapshot: Snapshot, entry: PropertyEntry) -> list[list[Splice]]:
    """Return ways to remove a property, best first.

    If the frontmatter has nothing else, it is removed too. If only one blank line is below the property, that line is
    removed and the frontmatter stays, empty as it was before the property was added; see `addition_candidates`.
    """
    spot = locate_property(snapshot, entry)
    candidates = [[Splice(start=spot.start, stop=spot.stop, new=b"")]]
    block = snapshot.outline.frontmatter
    if block is None or spot.start != block.yaml_start:
        return candidates
    below = snapshot.raw[spot.stop : block.yaml_stop]
    if not below:
        candidates.insert(0, [Splice(start=block.start, stop=block.stop, new=b"")])
    elif below in _LINE_ENDINGS:
        candidates.insert(0, [Splice(start=spot.start, stop=block.yaml_stop, new=b"")])
    return candidates


def replace_value_lines(
    snapshot: Snapshot, entries: Sequence[PropertyEntry], entry: PropertyEntry, value: JSONValue
) -> list[Splice]:
    """Replace a property's value; comments beside it and the lines of kept items stay."""
    spot = locate_property(snapshot, entry)
    style = infer_style(snapshot, entries, entry)
    if isinstance(value, list) and value and entry.value.kind == "list" and not entry.value.flow:
        # An item that is already in the list keeps its lines, with the comments above and beside it.
        block = snapshot.outline.frontmatter
        old = block.values[entry.name] if block else None
        chunks = split_list_lines(snapshot, spot, entry.value.items)
        kept_chunks: dict[str, list[bytes]] = {}
        for old_value, chunk in zip(old if isinstance(old, list) else [], chunks, strict=False):
            kept_chunks.setdefault(json.dumps(old_value), []).append(chunk)
        pieces: list[bytes] = []
        for item in value:
            same = kept_chunks.get(json.dumps(item))
            if same:
                pieces.append(same.pop(0))
            else:
                rows = yaml_values.write_item(item, style, spot.indent + style.indent)
                pieces.append(snapshot.encode("\n".join((*rows, "")), spot.below_start))
        return [Splice(start=spot.below_start, stop=spot.stop, new=b"".join(pieces))]
    yaml_lines = yaml_values.write_value(value, style, indent=spot.indent)
    below = "".join(f"{row}\n" for row in yaml_lines.below)
    edit_splices = [Splice(start=spot.below_start, stop=spot.stop, new=snapshot.encode(below, spot.below_start))]
    inline = snapshot.encode(yaml_lines.inline, spot.inline_start)
    if spot.inline_start == spot.inline_stop:
        new = b" " + inline if inline else b""
        edit_splices.append(Splice(start=spot.inline_start, stop=spot.inline_stop, new=new))
    else:
        start = spot.value_start if inline else spot.inline_start
        edit_splices.append(Splice(start=start, stop=spot.inline_stop, new=inline))
    return [one for one in edit_splices if one.start < one.stop or one.new]


def extend_list(
    snapshot: Snapshot, entries: Sequence[PropertyEntry], entry: PropertyEntry, fresh: Sequence[JSONValue]
) -> list[Splice]:
    """Return the splice that adds items to the end of a list."""
    node = entry.value
    style = infer_style(snapshot, entries, entry)
    if node.flow:
        text = ", ".join(yaml_values.write_flow(item, style.quote) for item in fresh)
        at = node.items[-1].stop if node.items else snapshot.raw.index(b"[", node.start) + 1
        return [Splice(start=at, stop=at, new=snapshot.encode(f", {text}" if node.items else text, at))]
    spot = locate_property(snapshot, entry)
    rows = [row for item in fresh for row in yaml_values.write_item(item, style, spot.indent + style.indent)]
    return [Splice(start=spot.stop, stop=spot.stop, new=snapshot.encode("\n".join((*rows, "")), spot.stop))]


def remove_list_items(snapshot: Snapshot, entry: PropertyEntry, dropped: Collection[int]) -> list[Splice]:
    """Return the splices that remove items from a list, by index; the others keep their lines and commas."""
    items = entry.value.items
    if entry.value.flow or not dropped:
        return remove_from_row([(item.start, item.stop) for item in items], dropped)
    spot = locate_property(snapshot, entry)
    stops = [*accumulate(map(len, split_list_lines(snapshot, spot, items)), initial=spot.below_start)]
    return [Splice(start=stops[place], stop=stops[place + 1], new=b"") for place in dropped]


def remove_from_row(spans: Sequence[tuple[int, int]], dropped: Collection[int]) -> list[Splice]:
    """Return the splices that remove items from a row, each with the separator to one that stays."""
    edit_splices: list[Splice] = []
    stays = False
    for place, (start, stop) in enumerate(spans):
        if place not in dropped:
            stays = True
        elif stays:
            edit_splices.append(Splice(start=spans[place - 1][1], stop=stop, new=b""))
        else:
            edit_splices.append(
                Splice(start=start, stop=spans[place + 1][0] if place + 1 < len(spans) else stop, new=b"")
            )
    return edit_splices


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyEdit:
    """Change of a property."""

    key: str
    """As written in the note, which may differ in case from the requested key."""
    splices: tuple[Splice, ...]
    """Empty if a list has the value already."""
    before: JSONValue
    """None if the note didn't have the property, or had it without a value."""
    after: JSONValue


def set_property(snapshot: Snapshot, key: str, value: JSONValue) -> PropertyEdit:
    """Set a property, in the style in which it or the note's other properties are written.

    A note without frontmatter gets one, and `remove_property` of its only property removes it again.

    Args:
        snapshot: The note.
        key: The property; case matters only if two keys differ in it.
        value: Its new value; text from a person goes through `yaml_values.interpret_value` first.

    Raises:
        BadInput: The frontmatter is invalid, nothing would change, or the property can't be changed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_values.read_entries(snapshot)
    entry = find_property(entries, key)
    values = read_values(snapshot)
    name = entry.name if entry else key
    if entry is not None and same_value(values[name], value):
        raise BadInput(
            f"nothing would change: {name!r} has this value", hint="nothing has to be done", code="no_change"
        )
    if entry is None:
        candidates = addition_candidates(snapshot, entries, name, value)
    else:
        candidates = [replace_value_lines(snapshot, entries, entry, value)]
    edit_splices = first_valid_edit(snapshot, candidates, {**values, name: value}, name)
    return PropertyEdit(key=name, splices=edit_splices, before=values.get(name), after=value)


def remove_property(snapshot: Snapshot, key: str) -> PropertyEdit:
    """Remove a property with its lines, and the frontmatter if nothing is left in it.

    Raises:
        NotFound: The note doesn't have it; the hint names the nearest.
        BadInput: The frontmatter is invalid, or the property can't be removed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_values.read_entries(snapshot)
    entry = _get_property(entries, key)
    values = read_values(snapshot)
    remaining = {name: value for name, value in values.items() if name != entry.name}
    edit_splices = first_valid_edit(snapshot, removal_candidates(snapshot, entry), remaining, entry.name)
    return PropertyEdit(key=entry.name, splices=edit_splices, before=values[entry.name], after=None)


def append_to_property(snapshot: Snapshot, key: str, value: JSONValue) -> PropertyEdit:
    """Add a value, or each value of a list, to a list property; values that it has already are skipped.

    A missing or empty property becomes a list, and so does one with a single value.

    Raises:
        BadInput: The frontmatter is invalid, the property holds a map, or it can't be changed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_values.read_entries(snapshot)
    entry = find_property(entries, key)
    values = read_values(snapshot)
    name = entry.name if entry else key
    before = values.get(name)
    if isinstance(before, dict):
        raise BadInput(
            f"{name!r} holds further properties, so nothing can be appended to it", hint="set it to a new value instead"
        )
    present_items = yaml_values.as_list(name, before)
    fresh = yaml_values.missing_items(name, present_items, value if isinstance(value, list) else [value])
    after: list[JSONValue] = [*present_items, *fresh]
    if not fresh:
        return PropertyEdit(key=name, splices=(), before=before, after=before)
    if entry is None:
        candidates = addition_candidates(snapshot, entries, name, after)
    elif entry.value.kind == "list":
        candidates = [extend_list(snapshot, entries, entry, fresh)]
    else:
        candidates = [replace_value_lines(snapshot, entries, entry, after)]
    edit_splices = first_valid_edit(snapshot, candidates, {**values, name: after}, name)
    return PropertyEdit(key=name, splices=edit_splices, before=before, after=after)


def rename_property(snapshot: Snapshot, key: str, new: str) -> PropertyEdit:
    """Rename a property, which keeps its place and its value as written.

    Raises:
        NotFound: The note doesn't have it.
        BadInput: It has one of the new name already, or as for `set_property`.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_values.read_entries(snapshot)
    entry = _get_property(entries, key)
    other = find_property([one for one in entries if one is not entry], new)
    if other is not None:
        hint = "remove one of the two, or append one's value to the other"
        raise BadInput(f"the note has a property {other.name!r} already", hint=hint, code="exists")
    if new == entry.name:
        raise BadInput(
            f"nothing would change: the property is named {new!r}", hint="nothing has to be done", code="no_change"
        )
    values = read_values(snapshot)
    renamed = {new if name == entry.name else name: value for name, value in values.items()}
    start, stop = entry.key.start, entry.key.stop
    candidate = [Splice(start=start, stop=stop, new=snapshot.encode(yaml_values.write_key(new), start))]
    edit_splices = first_valid_edit(snapshot, [candidate], renamed, entry.name)
    return PropertyEdit(key=new, splices=edit_splices, before=values[entry.name], after=values[entry.name])


def find_property(entries: Sequence[PropertyEntry], key: str) -> PropertyEntry | None:
    """Find a property by its exact name, else by its name in another case.

    Raises:
        Ambiguous: Several keys differ from *key* in case only.
    """
    exact = [entry for entry in entries if entry.name == key]
    matches = exact or [entry for entry in entries if entry.name.casefold() == key.casefold()]
    if len(matches) > 1:
        names = ", ".join(repr(entry.name) for entry in matches)
        raise Ambiguous(f"several properties fit {key!r}: {names}", hint="write it as one of them is written")
    return matches[0] if matches else None


def _get_property(entries: Sequence[PropertyEntry], key: str) -> PropertyEntry:
    entry = find_property(entries, key)
    if entry is not None:
        return entry
    names = [other.name for other in entries]
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 30 ms that only a mistyped property should cost

    near = [name for name, _, _ in process.extract(key, names, scorer=fuzz.ratio, processor=str.casefold, limit=3)]
    rest = len(names) - len(near)
    hint = f"it has {', '.join(near)}{f' and {rest} more' if rest else ''}" if near else "it has no properties"
    raise NotFound(f"the note has no property {key!r}", hint=hint, code="property_not_found", details={"nearest": near})


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRename:
    """What renaming a tag changes in one note."""

    splices: tuple[Splice, ...]
    lines: tuple[int, ...]
    """Line of each tag that changed."""


def rename_tag(snapshot: Snapshot, old: str, new: str) -> TagRename:
    """Rename a tag, whose case doesn't matter, and all below it.

    ``a`` to ``x`` turns ``#a/b`` into ``#x/b`` and leaves ``#ab``. Properties that have the new tag already lose the
    old one, so that no tag is listed twice.

    Args:
        snapshot: The note.
        old: The tag, with or without ``#``.
        new: Its new name.

    Raises:
        BadInput: *new* can't be a tag, or is the same.
        NotFound: The note doesn't have the tag.
    """
    old, new = old.strip().removeprefix("#").rstrip("/"), new.strip().removeprefix("#").rstrip("/")
    check_tag(new)
    if old == new:
        raise BadInput(f"nothing would change: old and new tag are #{new}", hint="give another name", code="no_change")
    matching_tags = [tag for tag in snapshot.outline.tags if _is_or_below(tag.name, old)]
    touched = [tag for tag in matching_tags if _renamed_tag(tag.name, old, new) != tag.name]
    if not touched:
        raise NotFound(f"the note has no tag #{old}", hint="list the note's tags", code="tag_not_found")
    dropped, removals = _find_duplicates(snapshot, old, new)
    tag_splices: list[Splice] = []
    for tag in (tag for tag in touched if tag not in dropped):
        start = tag.start + (1 if snapshot.raw[tag.start : tag.start + 1] == b"#" else 0)
        new_name = snapshot.encode(_renamed_tag(tag.name, old, new), start)
        tag_splices.append(Splice(start=start, stop=tag.stop, new=new_name))
    return TagRename(splices=(*tag_splices, *removals), lines=tuple(tag.line for tag in touched))


def check_tag(name: str) -> None:
    """Check that Obsidian would read a name as a tag.

    Raises:
        BadInput: It is empty, only digits, or holds spaces or punctuation.
    """
    if parser.read_tag_name(name) != name or "//" in name or name.startswith("/") or not name:
        hint = "a tag holds letters, digits, _, - and /, and at least one that is no digit"
        raise BadInput(f"{name!r} can't be a tag", hint=hint, code="invalid_tag")


def _is_or_below(name: str, old: str) -> bool:
    folded, folded_old = name.casefold(), old.casefold()
    return folded == folded_old or folded.startswith(f"{folded_old}/")


def _renamed_tag(name: str, old: str, new: str) -> str:
    """Return a tag in which the new name replaces as many parts as the old name has."""
    remaining_parts = name.split("/")[old.count("/") + 1 :]
    return "/".join((new, *remaining_parts))


def _find_duplicates(snapshot: Snapshot, old: str, new: str) -> tuple[list[Tag], list[Splice]]:
    """Return the items of tag lists that would repeat another one, and the splices that remove them."""
    dropped_tags: list[Tag] = []
    removals: list[Splice] = []
    if not any(tag.origin == "property" for tag in snapshot.outline.tags):
        return dropped_tags, removals
    values = read_values(snapshot)
    for entry in yaml_values.read_entries(snapshot):
        if entry.name.casefold() not in {"tags", "tag"}:
            continue
        value = values.get(entry.name)
        within = [tag for tag in snapshot.outline.tags if entry.value.start <= tag.start < entry.value.stop]
        if entry.value.kind == "list" and isinstance(value, list):
            repeated = _repeated_items(value, old, new)
            removals += remove_list_items(snapshot, entry, repeated)
            spans = [(entry.value.items[place].start, entry.value.items[place].stop) for place in repeated]
            dropped_tags += [tag for tag in within if any(start <= tag.start < stop for start, stop in spans)]
        elif entry.value.kind == "scalar":
            repeated = _repeated_items([tag.name for tag in within], old, new)
            removals += remove_from_row([(tag.start, tag.stop) for tag in within], repeated)
            dropped_tags += [within[place] for place in repeated]
    return dropped_tags, removals


def _repeated_items(items: Sequence[JSONValue], old: str, new: str) -> list[int]:
    """Return the indexes of items that a rename makes equal to another: of two, the renamed one is removed."""
    names = [item.removeprefix("#") if isinstance(item, str) else "" for item in items]
    after = [_renamed_tag(name, old, new) if _is_or_below(name, old) else name for name in names]
    places: list[int] = []
    for place, name in enumerate(names):
        others = [other for index, other in enumerate(after) if index != place and index not in places]
        changed = after[place] != name
        if changed and any(yaml_values.same_item("tags", after[place], other) for other in others):
            places.append(place)
    return places
