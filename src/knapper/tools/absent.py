"""Say which names that a filter holds no note has: where one is mistyped, nothing is found."""

from collections.abc import Iterator
from typing import Final

from knapper.index.catalog import ListingQuery
from knapper.index.filters import Filter, PropertyOp
from knapper.tools.context import Context

_HAVING: Final[frozenset[PropertyOp]] = frozenset({"contains", "equals", "exists", "is"})
_NOTES: Final = ("note",)
_MOST: Final = 10
"""Names of a kind that are looked for."""


def names(context: Context, where: Filter) -> Iterator[str]:
    """Tell each tag and property that must be there, and that no note has which the client may see."""
    for tag in where.tags[:_MOST]:
        if not _has_tag(context, tag):
            yield f"no note has the tag #{tag.removeprefix('#')}: list_tags, or `knap tags`, lists them"
    for test in where.properties[:_MOST]:
        if test.op in _HAVING and not has_property(context, test.name):
            yield f"no note has the property '{test.name}'"


def has_property(context: Context, name: str) -> bool:
    """Tell whether some note has a property."""
    return context.index.catalog.is_set(name, context.restrict(Filter(kinds=_NOTES)))


def _has_tag(context: Context, tag: str) -> bool:
    wanted = context.restrict(Filter(tags=(tag,), kinds=_NOTES))
    return bool(context.index.catalog.find(ListingQuery(where=wanted, limit=1)).entries)
