"""Find, list and describe notes, tags and folders, and report the state of the index."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Unpack

from knapper.changes.drafts import RenameTag
from knapper.changes.text import positions
from knapper.errors import BadInput
from knapper.index import database
from knapper.index.catalog import CatalogEntry, Listing, ListingQuery, SortKey, SortOrder
from knapper.index.documents import Filter
from knapper.index.search import Hit, SearchMode, SearchRequest, SearchResult
from knapper.index.status import WatchFailure, find_watch_failure
from knapper.jsontypes import JSONValue
from knapper.tools import answers, reading, search
from knapper.tools.context import (
    Context,
    NoteFilters,
    build_filter,
    check_name,
    check_text,
    has_property,
    missing_exclusions,
    missing_names,
    resolve_folder,
)
from knapper.tools.shapes.read import (
    FolderHead,
    FolderPage,
    FolderRow,
    FoundNotePage,
    NamedNote,
    NamedNotePage,
    Nearest,
    NoteIndexFields,
    NoteInfo,
    NoteLinks,
    NotePreview,
    NotePreviewPage,
    OutgoingLinkRow,
    SkippedFileRow,
    TagPage,
    TagRow,
    VaultStatus,
)
from knapper.tools.shapes.write import WriteResult
from knapper.vault import paths, walk
from knapper.vault.paths import NotePath

MAX_RANKED: Final = 200
"""Most notes that a query ranks."""
SORT_KEYS: Final[tuple[SortKey, ...]] = ("path", "title", "created", "modified", "size")
NOTE_FIELDS: Final = (
    "title",
    "folder",
    "created",
    "modified",
    "size",
    "hash",
    "aliases",
    "tags",
    "properties",
    "preview",
)
_DEFAULT_FIELDS: Final = ("title", "modified")
_TEXT_FIELDS: Final = frozenset({"aliases", "tags", "properties", "preview"})
_MOST_FIELDS: Final = 30


class FindNotesParameters(NoteFilters, total=False):
    """Optional parameters of `find_notes`."""

    sort: str
    fields: Sequence[str]


def find_notes(
    context: Context,
    query: str = "",
    folder: str = "",
    limit: int = 50,
    offset: int = 0,
    **more: Unpack[FindNotesParameters],
) -> FoundNotePage:
    """Find notes by folder, tags, properties, dates and words, all at once; returns the fields you ask for.

    Args:
        context: The vault, as the client sees it.
        query: Words, ranked as in search_vault; with ``sort``, only notes that hold one of them; empty for all notes
            that pass the filters.
        folder: Only notes below this folder; empty for the whole vault.
        limit: How many at most.
        offset: How many to skip at the beginning.
        tags: Only notes with all of these, or tags nested below them.
        properties: Tests that must all hold: ``status=open``, ``status!=open``, ``title~part``, ``title!~part``,
            ``due`` (is there), ``!due`` (is missing).
        exclude_folders: No notes below these folders.
        exclude_tags: No notes with any of these.
        modified_from: Saved on this day (2026-01-31) or later.
        modified_to: Saved on this day or before.
        created_from: Created on this day or later, by the property Date where there is one.
        created_to: Created on this day or before.
        sort: path, title, created, modified, size, or a property's name; descending with ``-`` before it. By
            default the best match first where there is a query, else by path.
        fields: What to return besides the path: title, folder, created, modified, size, hash, aliases, tags,
            properties, preview, or names of properties.

    Returns:
        ``results``: path and fields of each note; ``total`` counts all that pass. ``nearest``: where none matches the
        query, the notes nearest in meaning, which may have nothing to do with it.

    Raises:
        NotFound: There is no such folder.
        BadInput: An argument can't be used.
    """
    answers.check_page(limit, offset)
    fields = more.get("fields", _DEFAULT_FIELDS)
    if len(fields) > _MOST_FIELDS:
        raise BadInput(f"fields has {len(fields)} items", hint=f"give at most {_MOST_FIELDS}")
    fields = [name for name in dict.fromkeys(check_name("fields", each) for each in fields) if name != "path"]
    order = _parse_order(more.get("sort", ""))
    where = context.restrict(build_filter(more, kinds=search.NOTE_KINDS))
    freshness = context.freshen(meaning=bool(query.strip()))
    folder_path = resolve_folder(context, folder)
    if folder_path:
        where = replace(where, folders=(folder_path,))
    remarks: tuple[str, ...] = ()
    nearest: list[dict[str, object]] = []
    if query.strip():
        search.check_query(query, 1)
        # What is only near in meaning is at the end of a ranking, and would be anywhere in another order.
        mode: SearchMode = "hybrid" if order is None else "keyword"
        ranking = context.index.search(SearchRequest(text=query, mode=mode, limit=MAX_RANKED, per_note=1, where=where))
        listing, remarks = _ranked_entries(context, ranking, where, order, limit, offset)
        nearest = _note_rows(context, _hit_entries(context, ranking.nearest), fields)
    else:
        listing_query = ListingQuery(where=where, order=order or SortOrder(), limit=limit, offset=offset)
        listing = context.index.catalog.find(listing_query)
    rows = _note_rows(context, listing.entries, fields)
    absent_names = () if listing.total else missing_names(context, where)
    remarks = (*remarks, *missing_exclusions(context, where), *absent_names)
    if "fields" in more:
        absent = [name for name in fields if name not in NOTE_FIELDS and not has_property(context, name)]
        remarks = (*remarks, *(f"no note has the property '{name}' to show" for name in absent))
    # A mistyped name doesn't change the order.
    if order is not None and order.by == "property" and not has_property(context, order.name):
        names = ", ".join(SORT_KEYS)
        remarks = (*remarks, f"no note has the property '{order.name}' to sort by; what every note has: {names}")
    return {
        **answers.page_of(rows, listing.total, limit, offset),
        **_nearest_fields(nearest),
        **search.freshness_fields(freshness, remarks),
    }


def _nearest_fields(rows: list[dict[str, object]]) -> Nearest[dict[str, object]]:
    return {"nearest": rows} if rows else {}


def saved_time(entry: CatalogEntry) -> str:
    """Return when a file was saved, in local time, to the second."""
    # A file system can hold times that datetime or the platform's C library can't express.
    try:
        moment = datetime.fromtimestamp(entry.mtime_ns // 1_000_000_000, tz=UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return entry.modified
    return moment.isoformat(timespec="seconds")


def _ranked_entries(
    context: Context, ranking: SearchResult, where: Filter, order: SortOrder | None, limit: int, offset: int
) -> tuple[Listing, tuple[str, ...]]:
    ids = [database.file_of(hit.row.id) for hit in ranking.hits]
    limit_remark = (
        (f"only the {MAX_RANKED} best matches are listed: narrow the query",) if len(ids) >= MAX_RANKED else ()
    )
    remarks = (*ranking.remarks, *limit_remark)
    if order is not None:
        listing_query = ListingQuery(where=where, order=order, among=ids, limit=limit, offset=offset)
        return context.index.catalog.find(listing_query), remarks
    entries = _hit_entries(context, ranking.hits[offset : offset + limit])
    return Listing(entries=entries, total=len(ids)), remarks


def _hit_entries(context: Context, hits: Sequence[Hit]) -> tuple[CatalogEntry, ...]:
    """Return the entries of the notes of hits, in their order."""
    paths_of = {database.file_of(hit.row.id): hit.row.note for hit in hits}
    entries = context.index.catalog.by_ids(list(paths_of))
    # A rebuilt index counts ids from 1 again, so that an id may belong to another note by now.
    return tuple(entry for entry in entries if entry.path == paths_of[entry.id])


def _parse_order(sort: str) -> SortOrder | None:
    name = check_text("sort", sort).strip()
    descending = name.startswith("-")
    name = name.removeprefix("-").removeprefix("+").strip()
    if not name:
        return None
    for by in SORT_KEYS:
        if by == name.lower():
            return SortOrder(by=by, descending=descending)
    return SortOrder(by="property", descending=descending, name=name)


def _note_rows(context: Context, entries: Sequence[CatalogEntry], fields: Sequence[str]) -> list[dict[str, object]]:
    ids = [entry.id for entry in entries]
    catalog = context.index.catalog
    aliases = catalog.aliases(ids) if "aliases" in fields else {}
    tags = catalog.tags(ids) if "tags" in fields else {}
    first_texts = catalog.first_texts(ids) if "preview" in fields else {}
    shows_text = any(name in _TEXT_FIELDS or name not in NOTE_FIELDS for name in fields)
    foreign_paths = answers.mark_foreign_paths(context, [entry.path for entry in entries if shows_text])
    rows: list[dict[str, object]] = []
    for entry in entries:
        texts = {
            "aliases": [*aliases.get(entry.id, ())],
            "tags": [*tags.get(entry.id, ())],
            "preview": search.preview(first_texts.get(entry.id, "")),
        }
        row: dict[str, object] = {"path": entry.path}
        row |= {name: texts[name] if name in texts else _entry_field(entry, name) for name in fields}
        rows.append(row | ({"foreign": True} if entry.path in foreign_paths else {}))
    return rows


def _entry_field(entry: CatalogEntry, name: str) -> JSONValue:
    match name:
        case "title" | "size" | "hash" | "created":
            return getattr(entry, name)
        case "modified":
            return saved_time(entry)
        case "folder":
            return paths.parent_folder(entry.path)
        case "properties":
            return dict(entry.properties)
        case _:
            wanted_key = paths.name_key(name)
            return next((value for key, value in entry.properties.items() if paths.name_key(key) == wanted_key), None)


_DESCRIPTION_KEYS: Final = ("description", "summary", "abstract")
_MAX_DESCRIPTION: Final = 300


def list_notes(context: Context, folder: str = "", limit: int = 50, offset: int = 0) -> NotePreviewPage:
    """List the notes of a folder and its subfolders, each with its beginning.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for all.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results`` with path, title, modified and preview, by path; notes that others wrote have no preview.

    Raises:
        NotFound: There is no such folder.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    where = _folder_filter(context, resolve_folder(context, folder))
    listing = context.index.catalog.find(ListingQuery(where=where, limit=limit, offset=offset))
    first_texts = context.index.catalog.first_texts([entry.id for entry in listing.entries])
    rows: list[NotePreview] = []
    for entry in listing.entries:
        row: NotePreview = {"path": entry.path, "title": entry.title, "modified": saved_time(entry)}
        # Without a preview the list shows nothing that others wrote, so that listing doesn't taint the client.
        if answers.is_foreign_entry(context, entry):
            row["foreign"] = True
        else:
            row["preview"] = search.preview(first_texts.get(entry.id, ""))
        rows.append(row)
    return {**answers.page_of(rows, listing.total, limit, offset), **search.freshness_fields(freshness)}


def view_all_notes(context: Context, limit: int = 200, offset: int = 0) -> NamedNotePage:
    """List all notes by name, with their aliases and descriptions.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results`` with path, title, aliases and description where there are some, by path.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    where = _folder_filter(context, "")
    listing = context.index.catalog.find(ListingQuery(where=where, limit=limit, offset=offset))
    rows = _named_notes(context, listing.entries)
    return {**answers.page_of(rows, listing.total, limit, offset), **search.freshness_fields(freshness)}


def explore_vault(context: Context, folder: str = "", tag: str = "", limit: int = 100, offset: int = 0) -> FolderPage:
    """Show a folder's notes, and its subfolders with the number of notes in each; or find notes by tag.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for the vault's root.
        tag: Only notes with this tag or one nested below it, then at any depth of the folder.
        limit: How many notes at most.
        offset: How many to skip at the beginning.

    Returns:
        ``folders`` with path and notes; ``results`` with path, title, aliases and description, by path.

    Raises:
        NotFound: There is no such folder.
    """
    answers.check_page(limit, offset)
    wanted_tag = check_text("tag", tag).strip()
    freshness = context.freshen(meaning=False)
    folder_path = resolve_folder(context, folder)
    where = _folder_filter(context, folder_path)
    if wanted_tag:
        where = replace(where, tags=(wanted_tag,))
    note_filter = where if wanted_tag else replace(where, folders=(), directly_in=(folder_path,))
    listing = context.index.catalog.find(ListingQuery(where=note_filter, limit=limit, offset=offset))
    rows = _named_notes(context, listing.entries)
    folders: list[FolderRow] = [
        {"path": subfolder.path, "notes": subfolder.files}
        for subfolder in context.index.catalog.folders(where, folder_path)
    ]
    head: FolderHead = {"folder": folder_path, "tag": wanted_tag} if wanted_tag else {"folder": folder_path}
    page = answers.page_of(rows, listing.total, limit, offset)
    return {**head, "folders": folders, **page, **search.freshness_fields(freshness)}


def _folder_filter(context: Context, folder: str) -> Filter:
    folders = (folder,) if folder else ()
    return context.restrict(Filter(folders=folders, kinds=search.NOTE_KINDS))


def _named_notes(context: Context, entries: Sequence[CatalogEntry]) -> list[NamedNote]:
    """Return the names, aliases and descriptions of notes; only the names of notes that others wrote."""
    aliases = context.index.catalog.aliases([entry.id for entry in entries])
    rows: list[NamedNote] = []
    for entry in entries:
        row: NamedNote = {"path": entry.path, "title": entry.title}
        if answers.is_foreign_entry(context, entry):
            row["foreign"] = True
        else:
            if names := aliases.get(entry.id):
                row["aliases"] = list(names)
            properties = {name.casefold(): value for name, value in entry.properties.items()}
            values = (properties.get(name) for name in _DESCRIPTION_KEYS)
            written = next((value for value in values if isinstance(value, str) and value), "")
            if description := search.preview(written, _MAX_DESCRIPTION):  # empty where it is spaces alone
                row["description"] = description
        rows.append(row)
    return rows


def list_tags(context: Context, prefix: str = "", limit: int = 100, offset: int = 0) -> TagPage:
    """List the vault's tags with the number of notes that have each, the most used first.

    Args:
        context: The vault, as the client sees it.
        prefix: Only tags that begin with it, such as ``project/``; empty for all.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results`` with tag and notes.
    """
    answers.check_page(limit, offset)
    prefix_key = paths.name_key(check_text("prefix", prefix)).removeprefix("#")
    freshness = context.freshen(meaning=False)
    where = context.restrict(Filter())
    counts = context.index.catalog.tag_counts(where, prefix=prefix_key, limit=limit, offset=offset)
    rows: list[TagRow] = [{"tag": tag_count.name, "notes": tag_count.notes} for tag_count in counts.tags]
    return {**answers.page_of(rows, counts.total, limit, offset), **search.freshness_fields(freshness)}


def rename_tag(context: Context, old: str, new: str, paths: Sequence[str] = ()) -> WriteResult:
    """Rename a tag, and those nested below it, in text and properties.

    Without paths it is always a proposal.

    Args:
        context: The vault, as the client sees it.
        old: The tag as it is, with ``#`` or without.
        new: The new name, with ``#`` or without.
        paths: Paths of the notes to change; empty for all that have the tag.

    Raises:
        NotFound: No note has the tag.
        BadInput: The new name can't be a tag's, or nothing would change.
    """
    context.freshen(meaning=False)
    return answers.submit_several(context, [RenameTag(old=old, new=new, paths=tuple(paths))])


def notes_with_tag(context: Context, tag: str) -> list[NotePath]:
    """Return the notes that have a tag, or one nested below it, and that the client sees; by path."""
    context.freshen(meaning=False)
    return [path for path in context.index.graph.tagged(tag) if context.sees(path)]


_MAX_HEADINGS: Final = 200
_MAX_LISTED: Final = 50
"""Most tasks, and links in each direction, that are shown."""


def note_info(context: Context, path: str) -> NoteInfo:
    """Return a note's outline, properties, tags, tasks, links in and out, size, hash and dates.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.

    Returns:
        ``outline`` with lines, ``properties``, ``aliases``, ``tags``, ``tasks``, ``links_out``, ``links_in``, ``size``,
        ``hash``, ``created`` and ``modified``; long lists show their beginning and their total.

    Raises:
        NotFound: No such note is visible.
        BadInput: The path isn't valid, or the file isn't text.
        RefusedError: The path leads outside the vault.
    """
    freshness = context.freshen(meaning=False)
    note = reading.read_note(context, path)
    block, tasks = note.outline.frontmatter, note.outline.tasks
    # Each tag once, as it is written first.
    tags = {paths.name_key(tag.name): tag.name for tag in reversed(note.outline.tags)}
    headed = [section for section in note.outline.sections if section.level]
    answer: NoteInfo = {
        "success": True,
        "path": note.path,
        "title": paths.stem(note.path) if walk.kind_of(note.path) == "note" else paths.base_name(note.path),
        "kind": walk.kind_of(note.path),
        "hash": note.hash,
        "size": len(note.raw),
        "lines": len(note.outline.line_starts) if note.raw else 0,
        **_index_fields(context, note.path),
        "properties": dict(block.values) if block else {},
        "tags": [*reversed(tags.values())],
        "headings": len(headed),
        "outline": [
            {"heading": positions.heading_label(section), "line": section.line, "end_line": section.end_line}
            for section in headed[:_MAX_HEADINGS]
        ],
        "tasks": {
            "total": len(tasks),
            "open": sum(not task.state.strip() for task in tasks),
            "results": [{"state": task.state, "text": task.text, "line": task.line} for task in tasks[:_MAX_LISTED]],
        },
        **_link_counts(context, note.path),
        "foreign": answers.mark_if_foreign(context, note),
        "waiting_edits": reading.pending_rows(note),
        "problems": reading.problem_rows(note),
        **search.freshness_fields(freshness),
    }
    for name in ("foreign", "waiting_edits", "problems"):
        if not answer.get(name):
            del answer[name]
    return answer


def _index_fields(context: Context, path: NotePath) -> NoteIndexFields:
    """Return the fields that come from the index; a note that isn't in it yet has no dates."""
    entry = context.index.catalog.entries([path]).get(path)
    if entry is None:
        return {"aliases": []}
    aliases = [*context.index.catalog.aliases([entry.id]).get(entry.id, ())]
    return {"created": entry.created, "modified": saved_time(entry), "aliases": aliases}


def _link_counts(context: Context, path: NotePath) -> NoteLinks:
    graph = context.index.graph
    lookup = graph.cached_lookup()
    outgoing = [edge for edge in graph.outgoing(path, lookup) if edge.kind != "external" and edge.target]
    sources = sorted({edge.source for edge in graph.incoming(path, lookup) if edge.target})
    visible_sources: list[str] = [source for source in sources if context.sees(source)]
    outgoing_rows: list[OutgoingLinkRow] = [
        {
            "target": edge.target,
            "line": edge.line,
            "leads_to": edge.path if edge.path is not None and context.sees(edge.path) else None,
        }
        for edge in outgoing[:_MAX_LISTED]
    ]
    return {
        "links_out": {"total": len(outgoing), "results": outgoing_rows},
        "links_in": {"total": len(visible_sources), "results": visible_sources[:_MAX_LISTED]},
    }


def vault_status(context: Context) -> VaultStatus:
    """Return what the index of the vault holds, what it lacks, and why.

    Returns:
        ``stale``: changed files that aren't in the index yet, of those that could be checked in the time of a search;
        ``unchecked``: whether there are others. ``remarks``: what to do about it.
    """
    status = context.index.status(context.restrict(Filter()))
    is_indexing = context.index.is_being_written
    freshness = replace(context.index.check_freshness(context.view.policy), filling=is_indexing)
    # Also while it is tried again, which goes on for long where an embedding server is away.
    failure = find_watch_failure(context.index.folder)
    remarks = [*context.notices, *_watch_remarks(failure), *search.freshness_notes(freshness)]
    skipped: list[SkippedFileRow] = [
        {"path": row.path, "code": row.code, "problem": row.message, "line": row.line} for row in status.skipped
    ]
    answer: VaultStatus = {
        "success": True,
        "vault": context.vault,
        "notes": status.notes,
        "files": status.files,
        "chunks": status.chunks,
        "embedded": status.embedded,
        "pending": status.pending,
        "problems": status.problems,
        "skipped": skipped,
        "model": status.model,
        "replaced_model": status.replaced_model,
        "size_bytes": status.size_bytes,
        "index_incomplete": not status.complete,
        "stale": freshness.stale,
        "unchecked": freshness.unchecked,
        "indexing": is_indexing,
        "embedding": context.index.is_deriving and failure is None,
        "built": status.built,
    }
    if failure is not None:
        answer["watch_failed"] = failure.since.isoformat(timespec="seconds")
    if remarks:
        answer["remarks"] = remarks
    return answer


def _watch_remarks(failure: WatchFailure | None) -> Iterator[str]:
    """Say that a server or `knap watch` fails to follow the vault, since when, and what to do."""
    if failure is not None:
        yield (
            f"the watch has failed since {failure.since:%Y-%m-%d %H:%M} ({failure.reason}) and is tried again by"
            " itself; until then the page and vectors are late; `knap index` takes changes in, or says what is wrong"
        )
