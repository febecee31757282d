"""Search without a script: the tasks' own words, and, where that is too little, each of its aspects and more."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knapper.codemode import citing, reading
from knapper.codemode.citing import Citation
from knapper.errors import CallerError
from knapper.index.filters import Filter
from knapper.index.search import Hit, SearchRequest
from knapper.tools.context import Context
from knapper.vault import parser

HITS: Final = 10
"""Of the task's own search."""
_BROAD_HITS: Final = 6
"""Of each query of a broadened search."""
_RANKED: Final = 100
"""Notes that stand in the ranking of an aspect."""
_MOST_QUERIES: Final = 16
_CHANGED: Final = 2_000
"""Characters of a note that has changed since it was indexed."""
_OPERATORS: Final = re.compile(r'["*]|(?<!\w)-')
"""Signs that a search obeys; in a task they are none."""
_WIDE: Final = ("\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be"))
"""How a note begins whose places in the index aren't those in its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Hold what searches have found."""

    context: str
    citations: tuple[Citation, ...]
    queries: tuple[str, ...]


def search(contexts: Sequence[Context], task: str, most_chars: int) -> Gathered:
    """Search for a task's own words.

    Args:
        contexts: The vaults, as the client sees them.
        task: What is looked for.
        most_chars: Of the context.
    """
    return _gather(contexts, (task,), HITS, most_chars)


def broaden(contexts: Sequence[Context], queries: Iterable[str], most_chars: int) -> Gathered:
    """Search for several queries, each of which gives some of the context.

    Args:
        contexts: The vaults, as the client sees them.
        queries: The task, its aspects, what a script has searched for; blank ones and repetitions are left out.
        most_chars: Of the context.
    """
    wanted = dict.fromkeys(query.strip() for query in queries)
    return _gather(contexts, tuple(query for query in wanted if query)[:_MOST_QUERIES], _BROAD_HITS, most_chars)


def ranks(contexts: Sequence[Context], text: str) -> Mapping[tuple[str, str], int]:
    """Give the places of notes in the ranking of a text, the best is 0; by vault and path."""
    found: dict[tuple[str, str], int] = {}
    for context in contexts:
        for place, hit in enumerate(_hits(context, text, _RANKED, per_note=1)):
            found[(context.vault, hit.row.note)] = place
    return found


def _gather(contexts: Sequence[Context], queries: Sequence[str], limit: int, most_chars: int) -> Gathered:
    by_query = [_hits_of(contexts, query, limit) for query in queries]
    parts: list[str] = []
    citations: dict[tuple[str, str, int, int], Citation] = {}
    left = most_chars
    for context, hit in _in_turns(by_query):
        cited = _cite(context, hit)
        if cited is None or (key := (cited.vault, cited.path, cited.start, cited.stop)) in citations:
            continue
        part = f"## {cited.path}\n{cited.text.strip()}"
        if len(part) > left:
            continue
        left -= len(part)
        citations[key] = cited
        parts.append(part)
    return Gathered(context="\n\n".join(parts), citations=tuple(citations.values()), queries=tuple(queries))


def _hits_of(contexts: Sequence[Context], query: str, limit: int) -> list[tuple[Context, Hit]]:
    """Give one query's hits in all vaults, best first; properties come last, since they say little."""
    found = [(context, hit) for context in contexts for hit in _hits(context, query, limit, per_note=2)]
    return sorted(found, key=lambda one: (one[1].row.kind == "frontmatter", -one[1].score))[:limit]


def _hits(context: Context, query: str, limit: int, per_note: int) -> tuple[Hit, ...]:
    asked = SearchRequest(
        text=_OPERATORS.sub(" ", query), limit=limit, per_note=per_note, where=context.restrict(Filter(kinds=("note",)))
    )
    return context.index.search(asked).hits


def _in_turns(by_query: Sequence[Sequence[tuple[Context, Hit]]]) -> Iterable[tuple[Context, Hit]]:
    """Yield the best of each query, then the second of each, and so on."""
    for place in range(max(map(len, by_query), default=0)):
        for found in by_query:
            yield from found[place : place + 1]


def _cite(context: Context, hit: Hit) -> Citation | None:
    """Cite a hit as its file is now; the beginning of a note that has changed since, None where it is gone."""
    row = hit.row
    try:
        note = reading.note(context, row.note)
        if note is None:
            return None
        if note.hash != row.hash or note.raw.startswith(_WIDE):
            return citing.whole(context, row.note, 0, _CHANGED)
        start, stop = (len(parser.decode_text(note.raw[:place])) for place in (row.start, row.stop))
        return citing.whole(context, row.note, start, stop)
    except CallerError:
        return None
