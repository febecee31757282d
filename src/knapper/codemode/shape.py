"""Describe a vault to who writes scripts over it: its size, folders, tags and properties, as the client sees them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from knapper.index.catalog import ListingQuery, SortOrder
from knapper.index.filters import Filter
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context

_FOLDERS: Final = 30
_BELOW: Final = 8
"""Folders whose own folders are named too."""
_TAGS: Final = 30
_PROPERTIES: Final = 15
_VALUES: Final = 5
"""Of a property, as examples; only those that several notes share."""
_LOOKED_AT: Final = 400
"""Notes whose properties are counted."""
_LATEST: Final = 5
_LONGEST: Final = 80
"""Characters of a name or value."""


def describe(context: Context) -> dict[str, JSONValue]:
    """Describe a vault.

    Returns:
        ``{"vault": …, "notes": 120, "characters": {"usual": 900, "longest": 52000}, "folders": {"Projects/": 40, …},
        "tags": {"#plan": 12, …}, "properties": {"status": {"notes": 30, "values": ["open", …]}, …}, "latest": […]}``;
        nothing of what the policy hides, no text of notes, and no properties of notes that others wrote.
    """
    where = context.restrict(Filter(kinds=("note",)))
    catalog = context.index.catalog
    sample = catalog.find(ListingQuery(where=where, order=SortOrder(by="modified", descending=True), limit=_LOOKED_AT))
    sizes = sorted(entry.size for entry in sample.entries)
    largest = catalog.find(ListingQuery(where=where, order=SortOrder(by="size", descending=True), limit=1)).entries
    folders: dict[str, JSONValue] = {}
    top = sorted(catalog.folders(where, ""), key=lambda one: (-one.files, one.path))[:_FOLDERS]
    for number, folder in enumerate(top):
        folders[_name(f"{folder.path}/")] = folder.files
        inner = catalog.folders(where, folder.path) if number < _BELOW else []
        for one in sorted(inner, key=lambda one: (-one.files, one.path))[:_BELOW]:
            folders[_name(f"{one.path}/")] = one.files
    tags: dict[str, JSONValue] = {
        _name(f"#{tag.name}"): tag.notes for tag in catalog.tag_counts(where, limit=_TAGS).tags
    }
    latest: list[JSONValue] = [_name(entry.path) for entry in sample.entries[:_LATEST]]
    return {
        "vault": context.vault,
        "notes": sample.total,
        "bytes": {"usual": sizes[len(sizes) // 2] if sizes else 0, "longest": largest[0].size if largest else 0},
        "folders": folders,
        "tags": tags,
        "properties": _properties([one.properties for one in sample.entries if not foreign.wrote(context, one)]),
        "latest": latest,
    }


def _properties(notes: Sequence[Mapping[str, JSONValue]]) -> dict[str, JSONValue]:
    """Count properties, and give as examples the values that several notes share."""
    names: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    for properties in notes:
        for name, value in properties.items():
            names[name] += 1
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str | int | float) and not isinstance(one, bool) and str(one).strip():
                    values.setdefault(name, Counter())[str(one)] += 1
    shown: dict[str, JSONValue] = {}
    for name, count in names.most_common(_PROPERTIES):
        shared: list[JSONValue] = [
            _name(value) for value, times in values.get(name, Counter()).most_common(_VALUES) if times > 1
        ]
        shown[_name(name)] = {"notes": count, "values": shared}
    return shown


def _name(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"
