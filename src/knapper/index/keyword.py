"""Rank chunks and names by the words of a query, with SQLite's BM25."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from knapper.index import schema, terms
from knapper.index.postings import Postings
from knapper.index.remembered import Remembered
from knapper.index.segment import Query
from knapper.index.stems import Stemmer
from knapper.index.terms import Choice, Counts

_CHUNK_WEIGHTS = {"title": 3.0, "heading": 2.0, "body": 1.0}
_NAME_COLUMNS = "1.0, 1.0, 0.3"
"""Weights of title, aliases and headings."""
_NAME_POOL = 100
_KEPT_NAMES = 10_000
"""Files whose names' stems are remembered, about 0.5 kB each."""
_Names = Sequence[Sequence[str]]
"""The stems of each of a file's names."""


class Keywords:
    """Look words up in one store's tables."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._stemmer = Stemmer()
        self._chunk_counts = Counts("chunk_words")
        self._name_counts = Counts("title_words")
        self._postings = Postings("chunk_words", _CHUNK_WEIGHTS)
        self._is_asked = False
        self._names = Remembered[dict[int, _Names]](1)

    def close(self) -> None:
        """Close what reduces words to stems."""
        self._stemmer.close()

    def chunks(
        self,
        connection: sqlite3.Connection,
        query: Query,
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        include_log: bool = False,
    ) -> dict[int, float]:
        """Give the best chunks by BM25, best first; those of the program's log only with *include_log*."""
        choice = terms.choose(
            connection, query, stemmer=self._stemmer, counts=self._chunk_counts, budget=terms.CHUNK_POSTINGS
        )
        match = choice.match(query)
        if not match:
            return {}
        if self._is_asked and not (choice.every or query.phrases or query.excluded):
            return self._best(connection, choice, limit=limit, allowed=allowed, include_log=include_log)
        self._is_asked = True  # from the second question on it is worth to know how long all chunks are
        only = _restrict(connection, allowed, shift=schema.CHUNK_BITS)
        if not include_log and connection.execute(f"{schema.LOGGED} LIMIT 1").fetchone():
            only += f" AND rowid NOT IN ({schema.LOGGED})"
        return _scores(connection, "chunk_words", self._postings.score, f"chunk_words MATCH ?{only}", (match, limit))

    def names(
        self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None
    ) -> dict[int, float]:
        """Score files whose title, aliases or headings hold words of the query.

        Returns:
            By file id, 0 to 1: BM25 as a share of the best, times the largest share of a name that the query says.
        """
        choice = terms.choose(
            connection, query, stemmer=self._stemmer, counts=self._name_counts, budget=terms.NAME_POSTINGS
        )
        if not choice.words:
            return {}
        only = _restrict(connection, allowed, shift=0)
        joined = (" AND " if choice.every else " OR ").join(word.expression for word in choice.words)
        score = f"-bm25(title_words, {_NAME_COLUMNS})"
        found = _scores(connection, "title_words", score, f"title_words MATCH ?{only}", (joined, _NAME_POOL))
        best = max(found.values(), default=0.0)
        if best <= 0:
            return {}
        shares = self._shares(connection, query, list(found))
        return {i: score / best * shares.get(i, 0.0) for i, score in found.items()}

    def unknown(self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None) -> list[str]:
        """Give the query's words that neither a text nor a name of an allowed file holds."""
        words = {term.text: term.expression() for term in query.words if not term.prefix}
        tables = (("chunk_words", self._chunk_counts, schema.CHUNK_BITS), ("title_words", self._name_counts, 0))
        for table, counts, shift in tables:
            found, _ = counts.of(connection, list(words.values()))
            held = {e for e in words.values() if found[e] and _holds(connection, table, e, allowed, shift=shift)}
            words = {word: expression for word, expression in words.items() if expression not in held}
        return list(words)

    def passing(self, connection: sqlite3.Connection, query: Query, ids: Collection[int]) -> set[int]:
        """Give those of *ids* that hold the query's phrases and none of what it excludes."""
        kept = set(ids)
        for term in (*query.phrases, *query.excluded):
            rows = connection.execute(
                "SELECT rowid FROM chunk_words WHERE chunk_words MATCH ? AND rowid IN (SELECT value FROM json_each(?))",
                (term.expression(), json.dumps(list(kept))),
            )
            found = {int(i) for (i,) in rows}
            kept = kept - found if term in query.excluded else kept & found
        return kept

    def _best(
        self,
        connection: sqlite3.Connection,
        choice: Choice,
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        include_log: bool,
    ) -> dict[int, float]:
        """Give the best chunks of all that hold any of the words."""
        ids, scores = self._postings.scores(connection, choice.words)
        if allowed is not None:
            files = ids >> schema.CHUNK_BITS
            held = files < len(allowed)
            held[held] = allowed[files[held]]
            ids, scores = ids[held], scores[held]
        if not include_log:
            logged = [int(i) for (i,) in connection.execute(schema.LOGGED)]
            held = ~np.isin(ids, logged) if logged else slice(None)
            ids, scores = ids[held], scores[held]
        if len(ids) > limit:
            lowest = np.partition(scores, -limit)[-limit]
            ids, scores = ids[scores >= lowest], scores[scores >= lowest]
        order = np.lexsort((ids, -scores))[:limit]
        return dict(zip(ids[order].tolist(), scores[order].tolist(), strict=True))

    def _shares(self, connection: sqlite3.Connection, query: Query, files: Sequence[int]) -> dict[int, float]:
        """Give, by file, the largest share of a title or alias that the query says."""
        said = frozenset(self._stemmer.stems([query.plain])[0]).__contains__
        named = self._named(connection, files)
        return {
            file: max((sum(map(said, parts)) / len(parts) for parts in named.get(file, ())), default=0.0)
            for file in files
        }

    def _named(self, connection: sqlite3.Connection, files: Sequence[int]) -> Mapping[int, _Names]:
        """Give the stems of each file's names, as far as possible from memory."""
        known = self._names.get(connection, "", dict)
        found = {file: held for file in files if (held := known.get(file)) is not None}
        names = _names(connection, [file for file in files if file not in found]) if len(found) < len(files) else []
        anew: defaultdict[int, list[Sequence[str]]] = defaultdict(list)
        for (file, _), stems in zip(names, self._stemmer.stems([name for _, name in names]), strict=True):
            anew[file].extend([stems] if stems else [])
        if len(known) > _KEPT_NAMES:
            known.clear()
        known.update(anew)
        return {**found, **anew}


def _scores(
    connection: sqlite3.Connection, table: str, score: str, where: str, parameters: tuple[str, int]
) -> dict[int, float]:
    """Give the rows with the highest scores, best first.

    They come as one text: a thread that takes row after row has to wait for its turn as many times.
    """
    ranked = f"SELECT rowid AS id, {score} AS score FROM {table} WHERE {where} ORDER BY score DESC, rowid LIMIT ?"
    told = f"SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({ranked})"
    said = (connection.execute(told, parameters).fetchone()[0] or "").split(" ")
    found = zip(map(int, said[::2]), map(float, said[1::2]), strict=True) if len(said) > 1 else ()
    return dict(sorted(found, key=lambda one: (-one[1], one[0])))


def _names(connection: sqlite3.Connection, files: Sequence[int]) -> list[tuple[int, str]]:
    """Give the titles and aliases of files, each with its file."""
    rows = connection.execute(
        "SELECT json_group_array(json_array(id, json_extract(title_row, '$[0]'), json_extract(title_row, '$[1]')))"
        " FROM files WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    told = cast("list[tuple[int, str, str]]", json.loads(rows.fetchone()[0]))
    return [(file, name) for file, title, aliases in told for name in (title, *filter(None, aliases.split("\n")))]


def _holds(
    connection: sqlite3.Connection, table: str, expression: str, allowed: NDArray[np.bool_] | None, *, shift: int
) -> bool:
    """Tell whether an allowed file holds a word that some file holds."""
    if allowed is None:
        return True
    only = _restrict(connection, allowed, shift=shift)
    return bool(
        connection.execute(f"SELECT 1 FROM {table} WHERE {table} MATCH ?{only} LIMIT 1", (expression,)).fetchone()
    )


def _restrict(connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, *, shift: int) -> str:
    """Give the condition that lets only allowed files through, while the engine still looks for words."""
    if allowed is None:
        return ""
    flags = allowed.tobytes()

    def passes(rowid: int) -> int:
        file = rowid >> shift
        return flags[file] if file < len(flags) else 0

    connection.create_function("knap_allowed", 1, passes)
    return " AND knap_allowed(rowid)"
