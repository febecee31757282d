"""Find notes by all that is known of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Final, Unpack

from knapper.errors import BadInput
from knapper.index import database
from knapper.index.catalog import CatalogEntry, Listing, ListingQuery, SortKey, SortOrder
from knapper.index.filters import Filter
from knapper.index.search import SearchMode, SearchRequest
from knapper.jsontypes import JSONValue
from knapper.tools import absent, answers, checks, criteria, filters, foreign, search
from knapper.tools.context import Context
from knapper.tools.filters import Tests
from knapper.tools.shapes import Answer
from knapper.tools.shapes.noted import Found
from knapper.vault import paths

RANKED: Final = 200
"""Notes that a query ranks at most."""
SORTS: Final[tuple[SortKey, ...]] = ("path", "title", "created", "modified", "size")
FIELDS: Final = ("title", "folder", "created", "modified", "size", "hash", "aliases", "tags", "properties", "preview")
_SHOWN: Final = ("title", "modified")
_TEXTS: Final = frozenset({"aliases", "tags", "properties", "preview"})
_MOST_FIELDS: Final = 30
_PREVIEW: Final = 200


class More(Tests, total=False):
    """Hold what notes are filtered by, and how they are shown."""

    sort: str
    fields: Sequence[str]


def find_notes(
    context: Context, query: str = "", folder: str = "", limit: int = 50, offset: int = 0, **more: Unpack[More]
) -> Annotated[Answer, Found]:
    """Find notes by folder, tags, properties, dates and words, all at once; gives the fields you ask for.

    Args:
        context: The vault, as the client sees it.
        query: Words, ranked as search does, and with ``sort`` only those that hold one; empty for all notes that the
            filters leave.
        folder: Only below it; empty for the whole vault.
        limit: How many at most.
        offset: How many are left out at the beginning.
        tags: Only notes with all of these, or tags nested below them.
        properties: Tests that must all hold: ``status=open``, ``status!=open``, ``title~part``, ``title!~part``,
            ``due`` (is there), ``!due`` (is missing).
        exclude_folders: Nothing below these.
        exclude_tags: No notes with any of these.
        modified_from: Saved on this day (2026-01-31) or later.
        modified_to: Saved on this day or before.
        created_from: Made on this day or later, by the property Date where there is one.
        created_to: Made on this day or before.
        sort: path, title, created, modified, size, or a property's name; with ``-`` before it the other way round. By
            default the best match first where there is a query, else by path.
        fields: What to show beside the path: title, folder, created, modified, size, hash, aliases, tags, properties,
            preview, or names of properties.

    Returns:
        ``results``: path and fields of each note; ``total`` counts all that pass.

    Raises:
        NotFound: There is no such folder.
        BadInput: An argument can't be used.
    """
    answers.check_page(limit, offset)
    fields = _fields(more.get("fields", _SHOWN))
    order = _order(more.get("sort", ""))
    where = context.restrict(filters.read(more, kinds=criteria.NOTES))
    freshness = context.freshen(meaning=bool(query.strip()))
    inside = checks.folder(context, folder)
    if inside:
        where = replace(where, folders=(inside,))
    remarks: tuple[str, ...] = ()
    if query.strip():
        found, remarks = _ranked(context, query, where, order, limit, offset)
    else:
        stretch = ListingQuery(where=where, order=order or SortOrder(), limit=limit, offset=offset)
        found = context.index.catalog.find(stretch)
    rows: list[JSONValue] = [*_rows(context, found.entries, fields)]
    lost = () if found.total else absent.names(context, where)
    remarks = (*remarks, *lost, *_unsorted(context, order))
    return {**answers.stretch(rows, found.total, limit, offset), **search.missing(freshness, remarks)}


def saved(entry: CatalogEntry) -> str:
    """Tell when a file was saved, by the clock on the wall here, to the second."""
    try:
        moment = datetime.fromtimestamp(entry.mtime_ns // 1_000_000_000, tz=UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return entry.modified
    return moment.isoformat(timespec="seconds")


def beginning(text: str, length: int = _PREVIEW) -> str:
    """Give how a text begins, in a line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[:length].rstrip()}…"


def _ranked(
    context: Context, query: str, where: Filter, order: SortOrder | None, limit: int, offset: int
) -> tuple[Listing, tuple[str, ...]]:
    search.check(query, 1)
    # What is only near in meaning is at the end of a ranking, and would be anywhere in another order.
    mode: SearchMode = "hybrid" if order is None else "keyword"
    found = context.index.search(SearchRequest(text=query, mode=mode, limit=RANKED, per_note=1, where=where))
    paths_of = {database.file_of(hit.row.id): hit.row.note for hit in found.hits}
    ids = list(paths_of)
    full = (f"only the {RANKED} best matches are listed: narrow the query",) if len(ids) >= RANKED else ()
    remarks = (*found.remarks, *full)
    if order is not None:
        stretch = ListingQuery(where=where, order=order, among=ids, limit=limit, offset=offset)
        return context.index.catalog.find(stretch), remarks
    entries = context.index.catalog.by_ids(ids[offset : offset + limit])
    entries = [entry for entry in entries if entry.path == paths_of[entry.id]]  # an index made anew counts from 1 again
    return Listing(entries=tuple(entries), total=len(ids)), remarks


def _fields(asked: Sequence[str]) -> list[str]:
    if len(asked) > _MOST_FIELDS:
        raise BadInput(f"fields has {len(asked)} items", hint=f"give at most {_MOST_FIELDS}")
    return [name for name in dict.fromkeys(checks.named("fields", each) for each in asked) if name != "path"]


def _order(sort: str) -> SortOrder | None:
    name = checks.text("sort", sort).strip()
    descending = name.startswith("-")
    name = name.removeprefix("-").removeprefix("+").strip()
    if not name:
        return None
    for by in SORTS:
        if by == name.lower():
            return SortOrder(by=by, descending=descending)
    return SortOrder(by="property", descending=descending, name=name)


def _unsorted(context: Context, order: SortOrder | None) -> Iterator[str]:
    """Say so where no note has the property to sort by: a mistyped name leaves the order as it is."""
    if order is not None and order.by == "property" and not absent.has_property(context, order.name):
        yield f"no note has the property '{order.name}' to sort by; what every note has: {', '.join(SORTS)}"


def _rows(context: Context, entries: Sequence[CatalogEntry], fields: Sequence[str]) -> list[dict[str, JSONValue]]:
    ids = [entry.id for entry in entries]
    catalog = context.index.catalog
    aliases = catalog.aliases(ids) if "aliases" in fields else {}
    tags = catalog.tags(ids) if "tags" in fields else {}
    firsts = catalog.firsts(ids) if "preview" in fields else {}
    said = any(name in _TEXTS or name not in FIELDS for name in fields)
    others = foreign.found(context, [entry.path for entry in entries if said])
    rows: list[dict[str, JSONValue]] = []
    for entry in entries:
        texts: dict[str, JSONValue] = {
            "aliases": [*aliases.get(entry.id, ())],
            "tags": [*tags.get(entry.id, ())],
            "preview": beginning(firsts.get(entry.id, "")),
        }
        row: dict[str, JSONValue] = {"path": entry.path}
        row |= {name: texts[name] if name in texts else _field(entry, name) for name in fields}
        rows.append(row | ({"foreign": True} if entry.path in others else {}))
    return rows


def _field(entry: CatalogEntry, name: str) -> JSONValue:
    match name:
        case "title" | "size" | "hash" | "created":
            return getattr(entry, name)
        case "modified":
            return saved(entry)
        case "folder":
            return paths.parent_folder(entry.path)
        case "properties":
            return dict(entry.properties)
        case _:
            wanted = paths.name_key(name)
            return next((value for key, value in entry.properties.items() if paths.name_key(key) == wanted), None)
