"""Hold a change of properties to what it promises: the one value is new, and all others are what they were."""

import json
from collections.abc import Iterable, Mapping, Sequence

from knapper.changes.text import property_layout, splices
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.jsontypes import JSONValue
from knapper.vault import frontmatter, source


def values(snapshot: Snapshot) -> Mapping[str, JSONValue]:
    """Read a note's properties; empty where it has none."""
    block = snapshot.outline.frontmatter
    return block.values if block else {}


def same(one: JSONValue, other: JSONValue) -> bool:
    """Compare values, and tell ``1`` from ``true`` and one order of keys from another."""
    return json.dumps(one) == json.dumps(other)


def first_sound(
    snapshot: Snapshot, candidates: Iterable[Sequence[Splice]], expected: Mapping[str, JSONValue], key: str
) -> tuple[Splice, ...]:
    """Take the first of several ways to make a change that leaves the properties as expected.

    Raises:
        BadInput: None does.
    """
    for made in candidates:
        if same(_read(splices.merge(snapshot.raw, made)), dict(expected)):
            return tuple(made)
    raise property_layout.unsafe(key, "its lines can't be changed without changing what other lines mean")


def _read(raw: bytes) -> JSONValue:
    """Read the properties of a changed note; None where they are invalid or a key stands twice."""
    found = frontmatter.read_properties(source.decode(raw).data)
    if found is None:
        return {}
    return None if found.problems or not found.frontmatter.valid else found.frontmatter.values
