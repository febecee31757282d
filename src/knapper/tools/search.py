"""Search the vault's notes."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knapper.errors import BadInput
from knapper.index.engine import Freshness
from knapper.index.filters import Filter, PropertyOp, PropertyTest
from knapper.index.search import Hit, Mode, Question
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.vault.outline import JSONValue

MAX_RESULTS = 200
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
_SIGN: Final = re.compile(r"!~|!=|~|=")
_OPS: Mapping[str, PropertyOp] = {"!~": "not_contains", "!=": "not_equals", "~": "contains", "=": "equals"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """Say what of the hits is shown."""

    per_note: int = 2
    """Passages of one note at most."""
    explain: bool = False
    """Say where each score comes from."""


def search_vault(
    context: Context,
    query: str,
    n_results: int = 5,
    mode: Mode = "hybrid",
    *,
    where: Filter | None = None,
    show: Show = Show(),
) -> dict[str, JSONValue]:
    """Search the vault by words and by meaning.

    Args:
        context: The vault, as the client sees it.
        query: Words, ``"phrases"``, ``-without``, ``begins*``.
        n_results: How many passages at most, 1 to 200.
        mode: Rank by words (keyword), by meaning (semantic) or by both (hybrid).
        where: Which notes may be found; the client's policy is added to it.
        show: How many passages of a note, and what of them.

    Returns:
        ``results`` with source, content, heading, start_line, end_line, score and hash, best first; what they may miss.

    Raises:
        BadInput: An argument is out of its range, or the query holds no word.
    """
    _check(query, n_results, mode, show.per_note)
    freshness = context.freshen(meaning=mode != "keyword")
    found = context.index.search(
        Question(
            text=query, mode=mode, limit=n_results, per_note=show.per_note, where=context.restrict(where or Filter())
        )
    )
    answer: dict[str, JSONValue] = {"success": True}
    if not found.hits:
        answer["message"] = "No matching documents found"
    others = foreign.found(context, (hit.row.note for hit in found.hits))
    results: list[JSONValue] = [_from(others, hit, shape(hit, explain=show.explain)) for hit in found.hits]
    return {**answer, "results": results, **missing(freshness, found.remarks)}


def _from(others: Collection[str], hit: Hit, shown: dict[str, JSONValue]) -> JSONValue:
    """Say of a hit that others wrote it, where they did."""
    return {**shown, "foreign": True} if hit.row.note in others else shown


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
        notes.append("the index isn't complete yet: run `knap index`")
    elif freshness.stale:
        notes.append(
            f"{freshness.stale} changed files aren't in the index yet: run `knap index`, or keep `knap watch` running"
        )
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


def property_test(text: str) -> PropertyTest:
    """Read a test of a property: ``name``, ``!name``, ``name=value``, ``name!=value``, ``name~part``, ``name!~part``.

    Raises:
        BadInput: There is no name.
    """
    sign = _SIGN.search(text, 1)  # the first one: a value may hold others
    if sign is not None and text[: sign.start()].strip():
        name, value = text[: sign.start()].strip(), text[sign.end() :].strip()
        return PropertyTest(name=name, op=_OPS[sign.group()], value=value)
    name = text.removeprefix("!").strip()
    if not name:
        raise BadInput(
            f"'{text}' tests no property", hint="write name, !name, name=value, name!=value, name~part or name!~part"
        )
    return PropertyTest(name=name, op="missing" if text.startswith("!") else "exists")


def _check(query: str, n_results: int, mode: str, per_note: int) -> None:
    if not query.strip():
        raise BadInput("the query is empty", hint="give at least one word")
    if not 1 <= n_results <= MAX_RESULTS:
        raise BadInput(f"n_results is {n_results}", hint=f"give 1 to {MAX_RESULTS}")
    if per_note < 1:
        raise BadInput(f"per_note is {per_note}", hint="give 1 or more")
    if mode not in MODES:
        raise BadInput(f"there is no mode '{mode}'", hint=f"modes: {', '.join(MODES)}")
