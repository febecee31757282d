"""Search for notes in one way at a time: by words, by meaning, by a task."""

import re
from collections.abc import Collection
from typing import Annotated, Final

from knapper.errors import BadInput
from knapper.index import database
from knapper.index.filters import Filter
from knapper.index.fulltext import MatchPlace
from knapper.index.search import Hit, OpenNote, SearchMode, SearchRequest, SearchResult
from knapper.jsontypes import JSONValue
from knapper.tools import foreign, notes, reading, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.found import NoteHits
from knapper.vault import parser
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_RANKED: Final = 50
"""Notes, at least, that are put in order by where the words stand."""
_PLACES: Final[tuple[MatchPlace, ...]] = ("title", "heading", "content")
_SNIPPET: Final = 400
_WORD: Final = re.compile(r"\w+")
_WORDS: Final = 40
"""Words of a task that are looked for, and of the current note where no vectors tell what it is about."""


def search_keyword(context: Context, query: str, limit: int = 10) -> Annotated[Answer, NoteHits]:
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
    search.check(query, limit, name="limit")
    freshness = context.freshen(meaning=False)
    found = _search(context, query, "keyword", max(limit, _RANKED))
    places = context.index.catalog.places(query, [database.file_of(hit.row.id) for hit in found.hits])
    ranked = sorted(found.hits, key=lambda hit: _PLACES.index(places[database.file_of(hit.row.id)]))[:limit]
    others = foreign.found(context, (hit.row.note for hit in ranked))
    results: list[JSONValue] = [
        {**_shape(hit, others), "match": places[database.file_of(hit.row.id)]} for hit in ranked
    ]
    return {**_answer(results), **search.missing(freshness, found.remarks)}


def search_semantic(context: Context, query: str, limit: int = 10) -> Annotated[Answer, NoteHits]:
    """Find notes by meaning alone.

    Args:
        context: The vault, as the client sees it.
        query: What they are about, in your own words.
        limit: How many notes at most.

    Returns:
        ``results`` with path, title, the nearest passage and score, best first.

    Raises:
        BadInput: An argument is out of its range, or the query is empty.
    """
    search.check(query, limit, name="limit")
    freshness = context.freshen()
    found = _search(context, query, "semantic", limit)
    others = foreign.found(context, (hit.row.note for hit in found.hits))
    results: list[JSONValue] = [_shape(hit, others) for hit in found.hits]
    return {**_answer(results), **search.missing(freshness, found.remarks)}


def search_task_relevant(
    context: Context, task: str, current_note: str = "", limit: int = 10
) -> Annotated[Answer, NoteHits]:
    """Find the notes that matter for a task, given the note that is open.

    Args:
        context: The vault, as the client sees it.
        task: What is to be done, in plain words.
        current_note: Path of the note that is open; empty for none. It isn't among the results.
        limit: How many notes at most.

    Returns:
        ``results`` with path, title, the best passage, score and why: found by the task, by what the current
        note says, or linked with it; best first.

    Raises:
        NotFound: There is no such note.
        BadInput: An argument is out of its range, or the task is empty.
    """
    if not task.strip():
        raise BadInput("the task is empty", hint="say what is to be done")
    search.check(task, limit, name="limit")
    freshness = context.freshen()
    source = reading.head(context, current_note) if current_note else None
    question = SearchRequest(text=_plain(task), limit=limit, where=context.restrict(Filter()))
    found = context.index.related(question, _beside(context, source) if source else None)
    if source:
        _ = foreign.heard(context, source)
    others = foreign.found(context, (one.hit.row.note for one in found.related))
    results: list[JSONValue] = [
        {**_shape(one.hit, others), "score": round(one.score, 4), "why": [*one.why]} for one in found.related
    ]
    return {**_answer(results), **search.missing(freshness, found.remarks)}


def _search(context: Context, query: str, mode: SearchMode, limit: int) -> SearchResult:
    where = context.restrict(Filter())
    return context.index.search(SearchRequest(text=query, mode=mode, limit=limit, per_note=1, where=where))


def _beside(context: Context, note: Note) -> OpenNote:
    name = note.path.removesuffix(".md").replace("/", " ")
    return OpenNote(
        path=note.path,
        linked=lambda: _linked(context, note.path),
        words=lambda: _plain(f"{name} {parser.decode_text(note.raw)[:2_000]}"),
    )


def _shape(hit: Hit, others: Collection[str]) -> dict[str, JSONValue]:
    row = hit.row
    shown: dict[str, JSONValue] = {
        "path": row.note,
        "title": row.title,
        "content": notes.beginning(row.text, _SNIPPET),
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "score": round(hit.score, 4),
        "hash": row.hash,
    }
    return shown | ({"foreign": True} if row.note in others else {})


def _answer(results: list[JSONValue]) -> dict[str, JSONValue]:
    answer: dict[str, JSONValue] = {"success": True}
    if not results:
        answer["message"] = "No matching notes found"
    return {**answer, "results": results}


def _plain(text: str) -> str:
    """Take a text for words only: what looks like an operator in a sentence isn't meant as one."""
    words = _WORD.findall(text)[:_WORDS]
    return " ".join(words) or text


def _linked(context: Context, path: NotePath) -> set[NotePath]:
    graph = context.index.graph
    look = graph.remembering()
    out = {edge.path for edge in graph.outgoing(path, look) if edge.path is not None}
    return out | {edge.source for edge in graph.incoming(path, look)}
