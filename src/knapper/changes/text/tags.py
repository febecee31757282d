"""Rename tags, with those below them, in a note's text and properties."""

from collections.abc import Sequence
from dataclasses import dataclass

from knapper.changes.text import property_checks, property_lines, property_values, yaml_tree
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from knapper.vault.outline import Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """Hold what renaming a tag changes in one note."""

    splices: tuple[Splice, ...]
    lines: tuple[int, ...]
    """Where each tag stands that changed."""


def rename(snapshot: Snapshot, old: str, new: str) -> Renamed:
    """Rename a tag, whose case doesn't matter, and all below it.

    ``a`` to ``x`` makes ``#a/b`` to ``#x/b`` and leaves ``#ab``. Properties that hold the new tag already lose the old
    one, so that no tag stands there twice.

    Args:
        snapshot: The note.
        old: The tag, with or without ``#``.
        new: Its new name.

    Raises:
        BadInput: *new* can't be a tag, or is the same.
        NotFound: The note doesn't have the tag.
    """
    old, new = old.strip().removeprefix("#").rstrip("/"), new.strip().removeprefix("#").rstrip("/")
    check(new)
    if old == new:
        raise BadInput(
            f"Nothing would change: old and new tag are #{new}.", hint="Give another name.", code="no_change"
        )
    found = [tag for tag in snapshot.outline.tags if _is_or_below(tag.name, old)]
    touched = [tag for tag in found if _renamed(tag.name, old, new) != tag.name]
    if not touched:
        raise NotFound(f"The note has no tag #{old}.", hint="List the note's tags.", code="tag_not_found")
    dropped, cuts = _doubles(snapshot, old, new)
    made = [_splice(snapshot, tag, old, new) for tag in touched if tag not in dropped]
    return Renamed(splices=(*made, *cuts), lines=tuple(tag.line for tag in touched))


def check(name: str) -> None:
    """Refuse what Obsidian doesn't take for a tag.

    Raises:
        BadInput: It is empty, only digits, or holds spaces or punctuation.
    """
    if parser.read_tag_name(name) != name or "//" in name or name.startswith("/") or not name:
        hint = "A tag holds letters, digits, _, - and /, and at least one that is no digit."
        raise BadInput(f"{name!r} can't be a tag.", hint=hint, code="invalid_tag")


def _is_or_below(name: str, old: str) -> bool:
    folded, wanted = name.casefold(), old.casefold()
    return folded == wanted or folded.startswith(f"{wanted}/")


def _renamed(name: str, old: str, new: str) -> str:
    """Put the new name in the place of as many parts of a tag as the old name has."""
    rest = name.split("/")[old.count("/") + 1 :]
    return "/".join((new, *rest))


def _splice(snapshot: Snapshot, tag: Tag, old: str, new: str) -> Splice:
    start = tag.start + (1 if snapshot.raw[tag.start : tag.start + 1] == b"#" else 0)
    new_name = _renamed(tag.name, old, new)
    return Splice(start=start, stop=tag.stop, new=snapshot.encode(new_name, start))


def _doubles(snapshot: Snapshot, old: str, new: str) -> tuple[list[Tag], list[Splice]]:
    """Find the items of tag lists that would repeat another one, and the splices that take them out."""
    gone: list[Tag] = []
    cuts: list[Splice] = []
    if not any(tag.origin == "property" for tag in snapshot.outline.tags):
        return gone, cuts
    values = property_checks.values(snapshot)
    for entry in yaml_tree.entries(snapshot):
        if entry.name.casefold() not in {"tags", "tag"}:
            continue
        there = values.get(entry.name)
        within = [tag for tag in snapshot.outline.tags if entry.value.start <= tag.start < entry.value.stop]
        if entry.value.kind == "list" and isinstance(there, list):
            repeated = _repeated(there, old, new)
            cuts += property_lines.without(snapshot, entry, repeated)
            spans = [(entry.value.items[place].start, entry.value.items[place].stop) for place in repeated]
            gone += [tag for tag in within if any(start <= tag.start < stop for start, stop in spans)]
        elif entry.value.kind == "scalar":
            repeated = _repeated([tag.name for tag in within], old, new)
            cuts += property_lines.cut([(tag.start, tag.stop) for tag in within], repeated)
            gone += [within[place] for place in repeated]
    return gone, cuts


def _repeated(items: Sequence[JSONValue], old: str, new: str) -> list[int]:
    """Find the items that a rename makes equal to another: of two, the one that is renamed goes."""
    names = [item.removeprefix("#") if isinstance(item, str) else "" for item in items]
    after = [_renamed(name, old, new) if _is_or_below(name, old) else name for name in names]
    found: list[int] = []
    for place, name in enumerate(names):
        others = [other for index, other in enumerate(after) if index != place and index not in found]
        changed = after[place] != name
        if changed and any(property_values.same("tags", after[place], other) for other in others):
            found.append(place)
    return found
