"""Say which names that a filter holds no note has: where one is mistyped, nothing is found."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from knapper.index.filters import Filter, PropertyOp, PropertyTest
from knapper.index.stretches import Stretch
from knapper.tools.context import Context

_HAVING: Final[frozenset[PropertyOp]] = frozenset({"contains", "equals", "exists", "is"})
_NOTES: Final = ("note",)
_MOST: Final = 10
"""Names of a kind that are looked for."""


def names(context: Context, where: Filter) -> Iterator[str]:
    """Tell each tag and property that must be there, and that no note has which the client may see."""
    for tag in where.tags[:_MOST]:
        if not _is_there(context, Filter(tags=(tag,))):
            yield f"no note has the tag #{tag.removeprefix('#')}: list_tags, or `knap tags`, lists them"
    for test in where.properties[:_MOST]:
        if test.op in _HAVING and not has_property(context, test.name):
            yield f"no note has the property '{test.name}'"


def has_property(context: Context, name: str) -> bool:
    """Tell whether some note has a property."""
    return _is_there(context, Filter(properties=(PropertyTest(name=name),)))


def _is_there(context: Context, where: Filter) -> bool:
    wanted = context.restrict(replace(where, kinds=_NOTES))
    return bool(context.index.catalog.find(Stretch(where=wanted, limit=1)).entries)
