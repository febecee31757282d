"""List notes by one criterion: a property, a day, a folder."""

from typing import Annotated, Final, Literal

from knapper.errors import BadInput
from knapper.index.catalog import ListingQuery
from knapper.index.filters import Filter, PropertyOp, PropertyTest
from knapper.jsontypes import JSONValue
from knapper.tools import answers, checks, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.found import Paths

_OPS: Final[dict[str, PropertyOp]] = {"contains": "contains", "equals": "is"}
_DATES: Final = ("modified", "created")
NOTES: Final = ("note",)


def list_files_by_frontmatter(
    context: Context,
    field: str,
    value: str,
    match_type: Literal["contains", "equals"] = "contains",
    limit: int = 100,
    offset: int = 0,
) -> Annotated[Answer, Paths]:
    """List the notes whose property has a value.

    Args:
        context: The vault, as the client sees it.
        field: The property's name, such as ``status`` or ``tags``.
        value: What it holds; case doesn't matter.
        match_type: ``contains``: an element of a list, or a part of a text. ``equals``: the whole value.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their paths, sorted.
    """
    if match_type not in _OPS:
        raise BadInput(f"there is no match_type '{match_type}'", hint="give contains or equals")
    test = PropertyTest(name=checks.named("field", field), op=_OPS[match_type], value=checks.text("value", value))
    return _listed(context, Filter(properties=(test,), kinds=NOTES), limit, offset)


def search_by_date_range(
    context: Context,
    start_date: str,
    end_date: str,
    date_type: Literal["modified", "created"] = "modified",
    limit: int = 100,
    offset: int = 0,
) -> Annotated[Answer, Paths]:
    """List the notes saved or made between two days, both included.

    Args:
        context: The vault, as the client sees it.
        start_date: The first day, such as ``2026-01-31``.
        end_date: The last day, such as ``2026-02-28``.
        date_type: ``modified``: when the file was saved. ``created``: the property Date or created, else when the file
            was made.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their paths, sorted.
    """
    first = checks.day("start_date", start_date, needed=True)
    last = checks.day("end_date", end_date, needed=True)
    if date_type not in _DATES:
        raise BadInput(f"there is no date_type '{date_type}'", hint="give modified or created")
    if last < first:
        raise BadInput(f"end_date {last} lies before start_date {first}", hint="exchange them", code="invalid_date")
    if date_type == "created":
        where = Filter(created_from=first, created_to=last, kinds=NOTES)
    else:
        where = Filter(modified_from=first, modified_to=last, kinds=NOTES)
    return _listed(context, where, limit, offset)


def search_by_folder(
    context: Context,
    folder: str,
    recursive: bool = False,  # noqa: FBT001, FBT002 - arguments of tools come by name
    limit: int = 100,
    offset: int = 0,
) -> Annotated[Answer, Paths]:
    """List the notes of a folder.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for the vault's own.
        recursive: Those in its subfolders, too.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their paths, sorted.

    Raises:
        NotFound: There is no such folder.
        BadInput: The text can be no path, or the stretch can't be one.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    inside = checks.folder(context, folder)
    where = Filter(folders=(inside,), kinds=NOTES) if recursive else Filter(directly_in=(inside,), kinds=NOTES)
    return {**_page(context, where, limit, offset), **search.missing(freshness)}


def _listed(context: Context, where: Filter, limit: int, offset: int) -> dict[str, JSONValue]:
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    return {**_page(context, where, limit, offset), **search.missing(freshness)}


def _page(context: Context, where: Filter, limit: int, offset: int) -> dict[str, JSONValue]:
    found = context.index.catalog.find(ListingQuery(where=context.restrict(where), limit=limit, offset=offset))
    return answers.stretch([entry.path for entry in found.entries], found.total, limit, offset)
