"""Remember who has read text that others wrote, whichever tool showed it."""

import contextlib
from collections.abc import Iterable, Mapping

from knapper.errors import KnapError
from knapper.index.catalog import CatalogEntry
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath


def heard(context: Context, note: Note) -> bool:
    """Tell whether others wrote a note; if so, its reader only proposes changes from now on, unless it is a person."""
    block = note.outline.frontmatter
    return _is_foreign(context, note.path, block.values if block else {})


def is_others(context: Context, note: Note) -> bool:
    """Tell whether others wrote a note; nobody has read it by that."""
    block = note.outline.frontmatter
    return context.view.policy.is_foreign(note.path, block.values if block else {})


def found(context: Context, paths: Iterable[NotePath]) -> frozenset[NotePath]:
    """Tell which of some notes others wrote, as the index knows them; see `heard`."""
    asked = list(dict.fromkeys(paths))
    properties = context.index.store.properties_of(asked)
    return frozenset(path for path in asked if _is_foreign(context, path, properties.get(path, {})))


def wrote(context: Context, entry: CatalogEntry) -> bool:
    """Tell whether others wrote a note, or what it leads to if it is a link; nobody has read it by that."""
    policy = context.view.policy
    ends = (entry.path, entry.target) if entry.target else (entry.path,)
    return any(policy.is_foreign(end, entry.properties) for end in ends)


def shown(context: Context, paths: Iterable[str]) -> None:
    """Look at notes of which an answer, or an error, shows text; see `heard`."""
    if context.writer.grants.is_person:
        return
    for path in dict.fromkeys(paths):
        with contextlib.suppress(KnapError):  # nothing can be shown of what can't be read
            _ = heard(context, context.view.read_head(path))


def mark(context: Context, source: str) -> None:
    """Remember that the client has read text that others wrote, unless it is a person.

    Args:
        context: On whose behalf.
        source: The note or address.
    """
    writer = context.writer
    if not writer.grants.is_person:
        run = context.asked.run if context.asked else ""
        _ = writer.taints.mark(writer.grants.client, run, source)


def _is_foreign(context: Context, path: NotePath, properties: Mapping[str, JSONValue]) -> bool:
    foreign = context.view.policy.is_foreign(path, properties)
    if foreign:
        mark(context, path)
    return foreign
