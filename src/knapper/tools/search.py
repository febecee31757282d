"""Search notes by words, by meaning and for a task, and list them by property, date or folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar, Unpack

from knapper.errors import BadInput
from knapper.index import database
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter, PropertyOp, PropertyTest
from knapper.index.refresh import Freshness
from knapper.index.search import Hit, OpenNote, SearchMode, SearchRequest, SearchResult
from knapper.tools import answers
from knapper.tools.context import (
    Context,
    SearchFilters,
    build_filter,
    check_name,
    check_text,
    missing_exclusions,
    missing_names,
    parse_day,
    resolve_folder,
)
from knapper.tools.shapes import MAX_PASSAGES, SEARCH_MODES
from knapper.tools.shapes.read import (
    CopyLines,
    Found,
    IndexFields,
    NoteCopy,
    NoteHit,
    NoteHits,
    Page,
    PassageCopy,
    PassageHit,
    PassageHits,
    PathPage,
    SharedHitFields,
)
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from knapper.index.words.fulltext import MatchPlace
    from knapper.vault.parser import Note

MAX_QUERY_LENGTH = 100_000
_MIN_RANKED: Final = 50
"""Fewest notes that are ordered by where the words occur."""
_MATCH_PLACES: Final[tuple[MatchPlace, ...]] = ("title", "heading", "content")
_SNIPPET_LENGTH: Final = 400
_NOTHING: Final = "No matching notes found"
_WORD: Final = re.compile(r"\w+")
_MAX_WORDS: Final = 40
"""Most words that are searched of a task, and of the current note where it has no vectors."""
_PREVIEW_CHARS: Final = 200

RowT = TypeVar("RowT")
CopyT = TypeVar("CopyT", bound=CopyLines)


class SearchParameters(SearchFilters, total=False):
    """Optional parameters of `search_vault`."""

    per_note: int
    include_log: bool
    explain: bool


def search_vault(
    context: Context, query: str, n_results: int = 5, mode: SearchMode = "hybrid", **more: Unpack[SearchParameters]
) -> PassageHits:
    """Search the notes by words and by meaning; returns the best passages.

    Args:
        context: The vault, as the client sees it.
        query: Words, ``"phrases"``, ``-without``, ``begins*``.
        n_results: How many passages at most, 1 to 200.
        mode: Rank by words (keyword), by meaning (semantic) or by both (hybrid).
        folders: Only notes below any of these folders.
        exclude_folders: No notes below these folders.
        tags: Only notes with all of these, or tags nested below them.
        exclude_tags: No notes with any of these.
        properties: Tests that must all hold: ``status=open``, ``status!=open``, ``title~part``, ``title!~part``,
            ``due`` (is there), ``!due`` (is missing).
        modified_from: Only notes saved on this day (2026-01-31) or later.
        modified_to: Only notes saved on this day or before.
        created_from: Only notes created on this day or later.
        created_to: Only notes created on this day or before.
        per_note: Passages of one note at most; 2 if not given.
        include_log: Find what this program logged in daily notes, too.
        explain: Return the parts of each score, and in ``matches`` which characters of the content the query's words
            are; ``notes`` then tells which limits of the ranking were reached.

    Returns:
        ``results`` with source, content, heading, start_line, end_line, hash, score (relative to the best) and cosine
        (nearness in meaning, comparable between queries), best first; ``also``: where the same text stands, too.
        ``nearest``: where nothing matches, what is nearest in meaning, which may have nothing to do with the query.
        ``notes`` on what may be missing.

    Raises:
        NotFound: One of the folders isn't there.
        BadInput: An argument is out of its range, or the query holds no word.
    """
    per_note = more.get("per_note", 2)
    check_query(query, n_results, mode, per_note)
    where = build_filter(more, include_log=more.get("include_log", False))
    freshness = context.freshen(meaning=mode != "keyword")
    where = replace(where, folders=tuple(resolve_folder(context, folder) for folder in where.folders))
    ranking = context.index.search(
        SearchRequest(
            text=query,
            mode=mode,
            limit=n_results,
            per_note=per_note,
            where=context.restrict(where),
            merges_copies=True,
            reranks=True,
        )
    )
    foreign_paths = mark_foreign_hits(context, (*ranking.hits, *ranking.nearest))
    remarks = [*ranking.remarks]
    remarks += missing_exclusions(context, where)
    if not ranking.hits:
        remarks += missing_names(context, where)
    explain = more.get("explain", False)
    results = [hit_answer(hit, foreign_paths, explain=explain) for hit in ranking.hits]
    if explain:
        remarks += ranking.limits
        # Where the query's words stand in each content, in characters.
        spans = context.index.find_matches(ranking.query, [result["content"] for result in results])
        for result, found in zip(results, spans, strict=True):
            result["matches"] = [[start, stop] for start, stop in found]
    nearest = [hit_answer(hit, foreign_paths, explain=explain) for hit in ranking.nearest]
    return {
        **found_fields(results, nearest, nothing="No matching documents found"),
        **freshness_fields(freshness, remarks),
    }


def search_keyword(context: Context, query: str, limit: int = 10) -> NoteHits:
    """Find notes by words alone: those with the words in their title first, then in a heading, then in their text.

    Args:
        context: The vault, as the client sees it.
        query: Words, ``"phrases"``, ``-without``, ``begins*``.
        limit: How many notes at most.

    Returns:
        ``results`` with path, title, match (title, heading or content), the best passage and score, best first.

    Raises:
        BadInput: An argument is out of its range, or the query is empty.
    """
    check_query(query, limit, name="limit")
    freshness = context.freshen(meaning=False)
    # More than the limit: a note with the words in its title may score below one that only repeats them.
    ranking = _search_notes(context, query, "keyword", max(limit, _MIN_RANKED))
    places = context.index.catalog.match_places(query, [database.file_of(hit.row.id) for hit in ranking.hits])
    ranked = sorted(ranking.hits, key=lambda hit: _MATCH_PLACES.index(places[database.file_of(hit.row.id)]))[:limit]
    foreign_paths = mark_foreign_hits(context, ranked)
    results: list[NoteHit] = [
        {**_note_answer(hit, foreign_paths), "match": places[database.file_of(hit.row.id)]} for hit in ranked
    ]
    return {**found_fields(results, [], nothing=_NOTHING), **freshness_fields(freshness, ranking.remarks)}


def search_semantic(context: Context, query: str, limit: int = 10) -> NoteHits:
    """Find notes by meaning alone.

    Args:
        context: The vault, as the client sees it.
        query: What the notes are about, in your own words.
        limit: How many notes at most.

    Returns:
        ``results`` with path, title, the nearest passage, score (relative to the best) and cosine, best first.
        ``nearest``: where no note is near enough, those that are least far; they may have nothing to do with it.

    Raises:
        BadInput: An argument is out of its range, or the query is empty.
    """
    check_query(query, limit, name="limit")
    freshness = context.freshen()
    ranking = _search_notes(context, query, "semantic", limit)
    foreign_paths = mark_foreign_hits(context, (*ranking.hits, *ranking.nearest))
    results = [_note_answer(hit, foreign_paths) for hit in ranking.hits]
    nearest = [_note_answer(hit, foreign_paths) for hit in ranking.nearest]
    return {
        **found_fields(results, nearest, nothing=_NOTHING),
        **freshness_fields(freshness, ranking.remarks),
    }


def search_task_relevant(context: Context, task: str, current_note: str = "", limit: int = 10) -> NoteHits:
    """Find the notes that matter for a task, given the note that is open.

    Args:
        context: The vault, as the client sees it.
        task: What is to be done, in plain words.
        current_note: Path of the note that is open; empty for none. It isn't among the results.
        limit: How many notes at most.

    Returns:
        ``results`` with path, title, the best passage, score, cosine (nearness to the task in meaning) and why: found
        by the task, by what the current note says, or linked with it; best first. ``nearest``: where nothing matches,
        what is nearest in meaning.

    Raises:
        NotFound: There is no such note.
        BadInput: An argument is out of its range, or the task is empty.
    """
    if not task.strip():
        raise BadInput("the task is empty", hint="say what is to be done")
    check_query(task, limit, name="limit")
    freshness = context.freshen()
    from knapper.tools import reading  # noqa: PLC0415 - the parser's 60 ms, which no other search should cost

    source = reading.read_note_head(context, current_note) if current_note else None
    question = SearchRequest(text=_plain_words(task), limit=limit, where=context.restrict(Filter()))
    related = context.index.related(question, _current_note(context, source) if source else None)
    if source:
        _ = answers.mark_if_foreign(context, source)
    foreign_paths = mark_foreign_hits(context, (*(item.hit for item in related.related), *related.nearest))
    results: list[NoteHit] = [
        {**_note_answer(item.hit, foreign_paths), "score": round(item.score, 4), "why": [*item.why]}
        for item in related.related
    ]
    nearest = [_note_answer(hit, foreign_paths) for hit in related.nearest]
    return {
        **found_fields(results, nearest, nothing=_NOTHING),
        **freshness_fields(freshness, related.remarks),
    }


def _search_notes(context: Context, query: str, mode: SearchMode, limit: int) -> SearchResult:
    where = context.restrict(Filter())
    return context.index.search(
        SearchRequest(text=query, mode=mode, limit=limit, per_note=1, where=where, merges_copies=True, reranks=True)
    )


def _current_note(context: Context, note: Note) -> OpenNote:
    from knapper.vault import parser  # noqa: PLC0415 - as in `search_task_relevant`

    name = note.path.removesuffix(".md").replace("/", " ")

    def linked() -> set[NotePath]:
        graph = context.index.graph
        lookup = graph.cached_lookup()
        targets = {edge.path for edge in graph.outgoing(note.path, lookup) if edge.path is not None}
        return targets | {edge.source for edge in graph.incoming(note.path, lookup)}

    return OpenNote(
        path=note.path,
        linked=linked,
        words=lambda: _plain_words(f"{name} {parser.decode_text(note.raw)[:2_000]}"),
    )


def _note_answer(hit: Hit, foreign_paths: Collection[NotePath]) -> NoteHit:
    row = hit.row
    copies: list[NoteCopy] = [
        {"path": copy.note, "start_line": copy.start_line, "end_line": copy.end_line, "hash": copy.hash}
        for copy in hit.copies
    ]
    return {
        "path": row.note,
        "title": row.title,
        "content": preview(row.text, _SNIPPET_LENGTH),
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "score": round(hit.score, 4),
        "hash": row.hash,
        **shared_hit_fields(hit, foreign_paths, copies),
    }


def _plain_words(text: str) -> str:
    """Reduce a text to its words: what looks like an operator in a sentence isn't meant as one."""
    words = _WORD.findall(text)[:_MAX_WORDS]
    return " ".join(words) or text


def preview(text: str, length: int = _PREVIEW_CHARS) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[:length].rstrip()}…"


def found_fields(results: list[RowT], nearest: list[RowT], *, nothing: str) -> Found[RowT]:
    """Return what a search found; *nothing* is the message where that is nothing."""
    fields: Found[RowT] = {"success": True, "message": nothing, "results": results, "nearest": nearest}
    if results:
        del fields["message"]
    if not nearest:
        del fields["nearest"]
    return fields


def mark_foreign_hits(context: Context, hits: Iterable[Hit]) -> frozenset[NotePath]:
    """Return which notes of some hits, or of their copies, others wrote; taint the client if there are any."""
    return answers.mark_foreign_paths(context, (row.note for hit in hits for row in (hit.row, *hit.copies)))


def shared_hit_fields(hit: Hit, foreign_paths: Collection[NotePath], copies: Sequence[CopyT]) -> SharedHitFields[CopyT]:
    """Return the fields that a hit has only where there is something to tell."""
    fields: SharedHitFields[CopyT] = {}
    if hit.cosine is not None:
        fields["cosine"] = round(hit.cosine, 4)
    if copies:
        fields["also"] = list(copies)
    if any(row.note in foreign_paths for row in (hit.row, *hit.copies)):
        fields["foreign"] = True
    return fields


def hit_answer(hit: Hit, foreign_paths: Collection[NotePath], *, explain: bool) -> PassageHit:
    """Return a hit as every surface shows it."""
    row = hit.row
    copies: list[PassageCopy] = [
        {"source": copy.note, "start_line": copy.start_line, "end_line": copy.end_line, "hash": copy.hash}
        for copy in hit.copies
    ]
    result: PassageHit = {
        "source": row.note,
        "content": row.text,
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "score": round(hit.score, 4),
        "hash": row.hash,
        **shared_hit_fields(hit, foreign_paths, copies),
    }
    if explain:
        result["explain"] = {name: round(value, 4) for name, value in hit.parts.items()}
    return result


_REMEDY: Final = "run `knap index`, or keep `knap watch` running"


def freshness_fields(freshness: Freshness, remarks: Sequence[str] = ()) -> IndexFields:
    """Return whether the answer may be incomplete, and advice in ``notes``."""
    fields: IndexFields = {
        "index_stale": bool(freshness.stale) or freshness.unchecked,
        "as_of": freshness.as_of,
        "index_incomplete": freshness.incomplete,
        "pending": freshness.pending,
    }
    if notes := freshness_notes(freshness, remarks):
        fields["notes"] = notes
    return fields


def freshness_notes(freshness: Freshness, remarks: Sequence[str] = ()) -> list[str]:
    """Say what an index lacks, and the next step; empty where it lacks nothing."""
    notes = [*freshness.notices, *remarks]
    if freshness.damaged:
        notes.append("the index is damaged, and answers may be wrong: `knap index` rebuilds it")
    elif freshness.incomplete:
        remedy = "it is being filled right now; ask again later" if freshness.filling else "run `knap index`"
        notes.append(f"the index isn't complete yet: {remedy}")
    elif freshness.emptied:
        notes.append("the vault's folder is empty, so answers are of what was indexed last: is its disk mounted?")
    elif freshness.stale:
        remedy = "being indexed right now; ask again later" if freshness.filling else _REMEDY
        files = "1 changed file isn't" if freshness.stale == 1 else f"{freshness.stale:,} changed files aren't"
        notes.append(f"{files} in the index yet: {remedy}")
    elif freshness.unchecked and not freshness.is_published:  # else a notice says that the server doesn't answer
        notes.append(f"not every file could be checked for changes in the time of a search: {_REMEDY}")
    if freshness.pending:
        who, remedy = "", ""
        if freshness.is_published:
            who = ", which the machine with the files does"
        elif freshness.filling or freshness.deriving:
            who = ", which is being done"
        else:
            remedy = "; run `knap index`"
        notes.append(f"passages found by words only until they are embedded{who}: {freshness.pending:,}{remedy}")
    return notes


def check_query(query: str, limit: int, mode: str = "hybrid", per_note: int = 1, *, name: str = "n_results") -> None:
    """Check the query and the numbers of a search.

    Args:
        query: The query.
        limit: How many results.
        mode: What to rank by.
        per_note: How many of one note.
        name: Name of the limit's parameter, for the message.

    Raises:
        BadInput: An argument is out of its range, or the query is empty.
    """
    if not query.strip():
        raise BadInput("the query is empty", hint="give at least one word")
    if len(query) > MAX_QUERY_LENGTH:
        raise BadInput(f"the query is {len(query)} characters long", hint=f"give at most {MAX_QUERY_LENGTH}")
    if not 1 <= limit <= MAX_PASSAGES:
        raise BadInput(f"{name} is {limit}", hint=f"give 1 to {MAX_PASSAGES}")
    if per_note < 1:
        raise BadInput(f"per_note is {per_note}", hint="give 1 or more")
    if mode not in SEARCH_MODES:
        raise BadInput(f"there is no mode '{mode}'", hint=f"modes: {', '.join(SEARCH_MODES)}")


_MATCH_OPERATORS: Final[dict[str, PropertyOp]] = {"contains": "contains", "equals": "is"}
_DATE_TYPES: Final = ("modified", "created")
NOTE_KINDS: Final = ("note",)


def list_files_by_frontmatter(
    context: Context,
    field: str,
    value: str,
    match_type: Literal["contains", "equals"] = "contains",
    limit: int = 100,
    offset: int = 0,
) -> PathPage:
    """List the notes whose property has a value.

    Args:
        context: The vault, as the client sees it.
        field: The property's name, such as ``status`` or ``tags``.
        value: The value to look for; case doesn't matter.
        match_type: ``contains``: an element of a list, or a part of a text. ``equals``: the whole value.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results``: their paths, sorted.
    """
    if match_type not in _MATCH_OPERATORS:
        raise BadInput(f"there is no match_type '{match_type}'", hint="give contains or equals")
    test = PropertyTest(
        name=check_name("field", field),
        op=_MATCH_OPERATORS[match_type],
        value=check_text("value", value),
    )
    return _list_paths(context, Filter(properties=(test,), kinds=NOTE_KINDS), limit, offset)


def search_by_date_range(
    context: Context,
    start_date: str,
    end_date: str,
    date_type: Literal["modified", "created"] = "modified",
    limit: int = 100,
    offset: int = 0,
) -> PathPage:
    """List the notes saved or created between two days, both included.

    Args:
        context: The vault, as the client sees it.
        start_date: The first day, such as ``2026-01-31``.
        end_date: The last day, such as ``2026-02-28``.
        date_type: ``modified``: when the file was saved. ``created``: the property Date or created, else when the file
            was created.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results``: their paths, sorted.
    """
    first = parse_day("start_date", start_date, needed=True)
    last = parse_day("end_date", end_date, needed=True)
    if date_type not in _DATE_TYPES:
        raise BadInput(f"there is no date_type '{date_type}'", hint="give modified or created")
    if last < first:
        raise BadInput(f"end_date {last} lies before start_date {first}", hint="swap them", code="invalid_date")
    if date_type == "created":
        where = Filter(created_from=first, created_to=last, kinds=NOTE_KINDS)
    else:
        where = Filter(modified_from=first, modified_to=last, kinds=NOTE_KINDS)
    return _list_paths(context, where, limit, offset)


def search_by_folder(
    context: Context,
    folder: str,
    recursive: bool = False,  # noqa: FBT001, FBT002 - arguments of tools come by name
    limit: int = 100,
    offset: int = 0,
) -> PathPage:
    """List the notes of a folder.

    Args:
        context: The vault, as the client sees it.
        folder: Relative to the vault; empty for the vault's root.
        recursive: Include the notes of its subfolders.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results``: their paths, sorted.

    Raises:
        NotFound: There is no such folder.
        BadInput: The text isn't a valid path, or limit or offset is out of its range.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    inside = resolve_folder(context, folder)
    where = (
        Filter(folders=(inside,), kinds=NOTE_KINDS) if recursive else Filter(directly_in=(inside,), kinds=NOTE_KINDS)
    )
    return {**_path_page(context, where, limit, offset), **freshness_fields(freshness)}


def _list_paths(context: Context, where: Filter, limit: int, offset: int) -> PathPage:
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    return {**_path_page(context, where, limit, offset), **freshness_fields(freshness)}


def _path_page(context: Context, where: Filter, limit: int, offset: int) -> Page[str]:
    listing = context.index.catalog.find(ListingQuery(where=context.restrict(where), limit=limit, offset=offset))
    return answers.page_of([str(entry.path) for entry in listing.entries], listing.total, limit, offset)
