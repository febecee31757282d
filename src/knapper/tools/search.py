"""Search the vault's notes."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Unpack

from knapper.errors import BadInput, NotFound, RefusedError
from knapper.index.search import Hit, SearchMode, SearchRequest
from knapper.index.status import Freshness
from knapper.jsontypes import JSONValue
from knapper.tools import absent, checks, filters, foreign
from knapper.tools.context import Context
from knapper.tools.filters import Where
from knapper.tools.shapes import Answer
from knapper.tools.shapes.found import Passages

MAX_RESULTS = 200
MAX_QUERY = 100_000
MODES: tuple[SearchMode, ...] = ("hybrid", "semantic", "keyword")


class More(Where, total=False):
    """Hold what else a search may be told."""

    per_note: int
    include_log: bool
    explain: bool


def search_vault(
    context: Context, query: str, n_results: int = 5, mode: SearchMode = "hybrid", **more: Unpack[More]
) -> Annotated[Answer, Passages]:
    """Search the notes by words and by meaning; gives the best passages.

    Args:
        context: The vault, as the client sees it.
        query: Words, ``"phrases"``, ``-without``, ``begins*``.
        n_results: How many passages at most, 1 to 200.
        mode: Rank by words (keyword), by meaning (semantic) or by both (hybrid).
        folders: Only below any of these.
        exclude_folders: Nothing below these.
        tags: Only notes with all of these, or tags nested below them.
        exclude_tags: No notes with any of these.
        properties: Tests that must all hold: ``status=open``, ``status!=open``, ``title~part``, ``title!~part``,
            ``due`` (is there), ``!due`` (is missing).
        modified_from: Only notes saved on this day (2026-01-31) or later.
        modified_to: Only notes saved on this day or before.
        created_from: Only notes made on this day or later.
        created_to: Only notes made on this day or before.
        per_note: Passages of one note at most; 2 if not given.
        include_log: Find what this program logged in daily notes, too.
        explain: Say where each score comes from.

    Returns:
        ``results`` with source, content, heading, start_line, end_line, score and hash, best first; what they may miss.

    Raises:
        BadInput: An argument is out of its range, or the query holds no word.
    """
    per_note = more.get("per_note", 2)
    check(query, n_results, mode, per_note)
    where = filters.read(more, include_log=more.get("include_log", False))
    freshness = context.freshen(meaning=mode != "keyword")
    found = context.index.search(
        SearchRequest(text=query, mode=mode, limit=n_results, per_note=per_note, where=context.restrict(where))
    )
    others = foreign.found(context, (hit.row.note for hit in found.hits))
    answer: dict[str, JSONValue] = {"success": True}
    remarks = [*found.remarks]
    if not found.hits:
        answer["message"] = "No matching documents found"
        remarks += [*_lost(context, where.folders), *absent.names(context, where)]
    results: list[JSONValue] = [
        shape(hit, explain=more.get("explain", False)) | ({"foreign": True} if hit.row.note in others else {})
        for hit in found.hits
    ]
    return {**answer, "results": results, **missing(freshness, remarks)}


def _lost(context: Context, folders: Sequence[str]) -> Iterator[str]:
    """Say which folders aren't there: a mistyped one holds nothing."""
    for each in folders:
        try:
            _ = checks.folder(context, each)
        except NotFound as error:
            yield f"{error.message}; {error.hint}"
        except (BadInput, RefusedError) as error:
            yield error.message


def shape(hit: Hit, *, explain: bool) -> dict[str, JSONValue]:
    """Give a hit as every surface shows it."""
    row = hit.row
    shown: dict[str, JSONValue] = {
        "source": row.note,
        "content": row.text,
        "heading": row.heading,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "score": round(hit.score, 4),
        "hash": row.hash,
    }
    if explain:
        shown["explain"] = {name: round(value, 4) for name, value in hit.parts.items()}
    return shown


def missing(freshness: Freshness, remarks: Sequence[str] = ()) -> dict[str, JSONValue]:
    """Say what the answer may miss."""
    notes: list[JSONValue] = [*remarks]
    if freshness.incomplete:
        step = "it is being filled right now; ask again later" if freshness.filling else "run `knap index`"
        notes.append(f"the index isn't complete yet: {step}")
    elif freshness.stale:
        step = "run `knap index`, or keep `knap watch` running"
        step = "they are being taken in right now; ask again later" if freshness.filling else step
        notes.append(f"{freshness.stale} changed files aren't in the index yet: {step}")
    elif freshness.unchecked:
        notes.append("the vault is too large to be checked for changes at each search: keep `knap watch` running")
    if freshness.pending:
        notes.append(f"{freshness.pending} passages can be found by words only until they are embedded")
    shown: dict[str, JSONValue] = {
        "index_stale": bool(freshness.stale) or freshness.unchecked,
        "index_incomplete": freshness.incomplete,
        "pending": freshness.pending,
    }
    return {**shown, "notes": notes} if notes else shown


def check(query: str, limit: int, mode: str = "hybrid", per_note: int = 1, *, name: str = "n_results") -> None:
    """Refuse a search that can't be one.

    Args:
        query: What is looked for.
        limit: How many results.
        mode: What to rank by.
        per_note: How many of one note.
        name: What the limit is called.

    Raises:
        BadInput: An argument is out of its range, or the query is empty.
    """
    if not query.strip():
        raise BadInput("the query is empty", hint="give at least one word")
    if len(query) > MAX_QUERY:
        raise BadInput(f"the query is {len(query)} characters long", hint=f"give at most {MAX_QUERY}")
    if not 1 <= limit <= MAX_RESULTS:
        raise BadInput(f"{name} is {limit}", hint=f"give 1 to {MAX_RESULTS}")
    if per_note < 1:
        raise BadInput(f"per_note is {per_note}", hint="give 1 or more")
    if mode not in MODES:
        raise BadInput(f"there is no mode '{mode}'", hint=f"modes: {', '.join(MODES)}")
