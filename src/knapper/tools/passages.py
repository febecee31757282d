"""Search for notes in one way at a time: by words, by meaning, by a task."""

import re
from collections.abc import Collection
from typing import Final

from knapper.errors import BadInput
from knapper.index import database
from knapper.index.documents import Filter
from knapper.index.search import Hit, OpenNote, SearchMode, SearchRequest, SearchResult
from knapper.index.words.fulltext import MatchPlace
from knapper.tools import answers, notes, reading, search
from knapper.tools.context import Context
from knapper.tools.shapes.read import NoteCopy, NoteHit, NoteHits
from knapper.vault import parser
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_MIN_RANKED: Final = 50
"""Fewest notes that are ordered by where the words occur."""
_MATCH_PLACES: Final[tuple[MatchPlace, ...]] = ("title", "heading", "content")
_SNIPPET_LENGTH: Final = 400
_NOTHING: Final = "No matching notes found"
_WORD: Final = re.compile(r"\w+")
_MAX_WORDS: Final = 40
"""Most words that are searched of a task, and of the current note where it has no vectors."""


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
    search.check_query(query, limit, name="limit")
    freshness = context.freshen(meaning=False)
    # More than the limit: a note with the words in its title may score below one that only repeats them.
    ranking = _search_notes(context, query, "keyword", max(limit, _MIN_RANKED))
    places = context.index.catalog.match_places(query, [database.file_of(hit.row.id) for hit in ranking.hits])
    ranked = sorted(ranking.hits, key=lambda hit: _MATCH_PLACES.index(places[database.file_of(hit.row.id)]))[:limit]
    foreign_paths = search.mark_foreign_hits(context, ranked)
    results: list[NoteHit] = [
        {**_hit_answer(hit, foreign_paths), "match": places[database.file_of(hit.row.id)]} for hit in ranked
    ]
    return {**search.found_fields(results, [], nothing=_NOTHING), **search.freshness_fields(freshness, ranking.remarks)}


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
    search.check_query(query, limit, name="limit")
    freshness = context.freshen()
    ranking = _search_notes(context, query, "semantic", limit)
    foreign_paths = search.mark_foreign_hits(context, (*ranking.hits, *ranking.nearest))
    results = [_hit_answer(hit, foreign_paths) for hit in ranking.hits]
    nearest = [_hit_answer(hit, foreign_paths) for hit in ranking.nearest]
    return {
        **search.found_fields(results, nearest, nothing=_NOTHING),
        **search.freshness_fields(freshness, ranking.remarks),
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
    search.check_query(task, limit, name="limit")
    freshness = context.freshen()
    source = reading.read_note_head(context, current_note) if current_note else None
    question = SearchRequest(text=_plain_words(task), limit=limit, where=context.restrict(Filter()))
    related = context.index.related(question, _current_note(context, source) if source else None)
    if source:
        _ = answers.mark_if_foreign(context, source)
    foreign_paths = search.mark_foreign_hits(context, (*(item.hit for item in related.related), *related.nearest))
    results: list[NoteHit] = [
        {**_hit_answer(item.hit, foreign_paths), "score": round(item.score, 4), "why": [*item.why]}
        for item in related.related
    ]
    nearest = [_hit_answer(hit, foreign_paths) for hit in related.nearest]
    return {
        **search.found_fields(results, nearest, nothing=_NOTHING),
        **search.freshness_fields(freshness, related.remarks),
    }


def _search_notes(context: Context, query: str, mode: SearchMode, limit: int) -> SearchResult:
    where = context.restrict(Filter())
    return context.index.search(
        SearchRequest(text=query, mode=mode, limit=limit, per_note=1, where=where, merges_copies=True, reranks=True)
    )


def _current_note(context: Context, note: Note) -> OpenNote:
    name = note.path.removesuffix(".md").replace("/", " ")
    return OpenNote(
        path=note.path,
        linked=lambda: _linked_paths(context, note.path),
        words=lambda: _plain_words(f"{name} {parser.decode_text(note.raw)[:2_000]}"),
    )


def _hit_answer(hit: Hit, foreign_paths: Collection[NotePath]) -> NoteHit:
    row = hit.row
    copies: list[NoteCopy] = [
        {"path": copy.note, "start_line": copy.start_line, "end_line": copy.end_line, "hash": copy.hash}
        for copy in hit.copies
    ]
    return {
        "path": row.note,
        "title": row.title,
        "content": notes.preview(row.text, _SNIPPET_LENGTH),
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "score": round(hit.score, 4),
        "hash": row.hash,
        **search.shared_hit_fields(hit, foreign_paths, copies),
    }


def _plain_words(text: str) -> str:
    """Reduce a text to its words: what looks like an operator in a sentence isn't meant as one."""
    words = _WORD.findall(text)[:_MAX_WORDS]
    return " ".join(words) or text


def _linked_paths(context: Context, path: NotePath) -> set[NotePath]:
    graph = context.index.graph
    lookup = graph.cached_lookup()
    targets = {edge.path for edge in graph.outgoing(path, lookup) if edge.path is not None}
    return targets | {edge.source for edge in graph.incoming(path, lookup)}
