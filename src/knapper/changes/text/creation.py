"""Compose a new note from its text and its properties."""

from collections.abc import Mapping

from knapper.changes.text import properties, property_checks, snapshots, splices
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue


def compose(content: str, values: Mapping[str, JSONValue] | None = None) -> bytes:
    r"""Write a new note; the text stays as it is.

    ``("# A\n", {"tags": ["x"]})`` gives ``---``, ``tags:``, ``  - x``, ``---`` and ``# A``, a line each.

    Args:
        content: The text; it may begin with frontmatter of its own, to which the properties are added.
        values: The properties, in the order in which they are to stand.

    Raises:
        BadInput: The text holds half a character, its own frontmatter is invalid, or a name can't be a property's.
    """
    try:
        raw = content.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The text holds half a character at position {error.start}.") from None
    for key, value in (values or {}).items():
        note = snapshots.take(raw)
        there = property_checks.values(note)
        if key not in there or not property_checks.same(there[key], value):
            raw = splices.merge(raw, properties.assign(note, key, value).splices)
    return raw
