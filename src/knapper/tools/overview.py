"""Look around in a vault: its notes by folder, by name, by tag."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from knapper.index.catalog import CatalogEntry, ListingQuery
from knapper.index.filters import Filter
from knapper.jsontypes import JSONValue
from knapper.tools import answers, checks, criteria, foreign, notes, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.noted import Explored, Names, Previews

_DESCRIPTIONS: Final = ("description", "summary", "abstract")
_LONGEST: Final = 300


def list_notes(context: Context, folder: str = "", limit: int = 50, offset: int = 0) -> Annotated[Answer, Previews]:
    """List the notes of a folder and of those below it, each with how it begins.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for all.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results`` with path, title, modified and preview, by path; what others wrote is named only.

    Raises:
        NotFound: There is no such folder.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    where = _below(context, checks.folder(context, folder))
    found = context.index.catalog.find(ListingQuery(where=where, limit=limit, offset=offset))
    firsts = context.index.catalog.firsts([entry.id for entry in found.entries])
    rows: list[JSONValue] = []
    for entry in found.entries:
        row: dict[str, JSONValue] = {"path": entry.path, "title": entry.title, "modified": notes.saved(entry)}
        if foreign.wrote(context, entry):
            row["foreign"] = True
        else:
            row["preview"] = notes.beginning(firsts.get(entry.id, ""))
        rows.append(row)
    return {**answers.stretch(rows, found.total, limit, offset), **search.missing(freshness)}


def view_all_notes(context: Context, limit: int = 200, offset: int = 0) -> Annotated[Answer, Names]:
    """List all notes by name, with their aliases and what they say they are about.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results`` with path, title, aliases and description where there are some, by path.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    where = _below(context, "")
    found = context.index.catalog.find(ListingQuery(where=where, limit=limit, offset=offset))
    rows: list[JSONValue] = [*_named(context, found.entries)]
    return {**answers.stretch(rows, found.total, limit, offset), **search.missing(freshness)}


def explore_vault(
    context: Context, folder: str = "", tag: str = "", limit: int = 100, offset: int = 0
) -> Annotated[Answer, Explored]:
    """Show what a folder holds: its notes, and its subfolders with how many notes are in them; or find notes by tag.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for the vault's own.
        tag: Only notes with this tag or one nested below it, then at any depth of the folder.
        limit: How many notes at most.
        offset: How many are left out at the beginning.

    Returns:
        ``folders`` with path and notes; ``results`` with path, title, aliases and description, by path.

    Raises:
        NotFound: There is no such folder.
    """
    answers.check_page(limit, offset)
    wanted = checks.text("tag", tag).strip()
    freshness = context.freshen(meaning=False)
    inside = checks.folder(context, folder)
    where = _below(context, inside)
    if wanted:
        where = replace(where, tags=(wanted,))
    here = where if wanted else replace(where, folders=(), directly_in=(inside,))
    found = context.index.catalog.find(ListingQuery(where=here, limit=limit, offset=offset))
    rows: list[JSONValue] = [*_named(context, found.entries)]
    folders: list[JSONValue] = [
        {"path": each.path, "notes": each.files} for each in context.index.catalog.folders(where, inside)
    ]
    shown: dict[str, JSONValue] = {"folder": inside, "tag": wanted} if wanted else {"folder": inside}
    page = answers.stretch(rows, found.total, limit, offset)
    return {**shown, "folders": folders, **page, **search.missing(freshness)}


def _below(context: Context, folder: str) -> Filter:
    folders = (folder,) if folder else ()
    return context.restrict(Filter(folders=folders, kinds=criteria.NOTES))


def _named(context: Context, entries: Sequence[CatalogEntry]) -> list[dict[str, JSONValue]]:
    """Give notes' names, aliases and descriptions; of what others wrote, names only."""
    aliases = context.index.catalog.aliases([entry.id for entry in entries])
    rows: list[dict[str, JSONValue]] = []
    for entry in entries:
        row: dict[str, JSONValue] = {"path": entry.path, "title": entry.title}
        if foreign.wrote(context, entry):
            row["foreign"] = True
        else:
            others: list[JSONValue] = [*aliases.get(entry.id, ())]
            about = _description(entry)
            row |= {name: value for name, value in (("aliases", others), ("description", about)) if value}
        rows.append(row)
    return rows


def _description(entry: CatalogEntry) -> str:
    said = {name.casefold(): value for name, value in entry.properties.items()}
    values = (said.get(name) for name in _DESCRIPTIONS)
    return next((notes.beginning(value, _LONGEST) for value in values if isinstance(value, str) and value), "")
