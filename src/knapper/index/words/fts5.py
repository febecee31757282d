"""The seam between a search and what ranks by words: what is asked, SQLite's own BM25, and the record of changed rows.

Two engines answer the same question with the same scores: `Fts5Engine` from the full-text tables themselves, for every
index, and `knapper.index.words.postings.PostingsEngine` from a file that is derived from them, for a large one.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from knapper.index import database
from knapper.index.tokenizer import TOKENIZER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from knapper.system.arrays import np


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTable:
    """A full-text table whose rows are ranked by BM25."""

    name: str
    columns: Mapping[str, int]
    """The weight of each column, times *scale*."""
    scale: int
    """Makes whole numbers of the weights, which a derived file adds up."""
    file_shift: int
    """How many bits of a row's id to cut for the id of its file."""
    texts_view: str
    """The view of the texts that its words come from."""

    @property
    def weights(self) -> tuple[float, ...]:
        """Return the weight of each column."""
        return tuple(weight / self.scale for weight in self.columns.values())

    @property
    def score_sql(self) -> str:
        """Return the SQL expression of a row's score."""
        return f"-bm25({self.name}, {', '.join(map(repr, self.weights))})"

    @property
    def weight_sql(self) -> str:
        """Return the SQL expression of what an occurrence weighs, times *scale*."""
        cases = " ".join(f"WHEN '{column}' THEN {weight}" for column, weight in self.columns.items())
        return f"CASE col {cases} END"


CHUNKS: Final = WordTable(
    name="chunk_words",
    columns={"title": 3, "heading": 2, "body": 1},
    scale=1,
    file_shift=database.CHUNK_BITS,
    texts_view="chunk_texts",
)
NAMES: Final = WordTable(
    name="title_words",
    columns={"title": 10, "aliases": 10, "headings": 3},
    scale=10,
    file_shift=0,
    texts_view="title_texts",
)
TABLES: Final = (CHUNKS, NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word of the query."""

    expression: str
    """The FTS5 expression."""
    token: str
    """The token in the index; empty where the expression isn't one whole token."""
    times: int = 1
    """Its number of repetitions."""
    stems: tuple[str, ...] = ()
    """The tokens that it is split into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuestion:
    """Which rows of a table to rank."""

    words: Sequence[QueryWord]
    """A row holds one of them at least, where any row does."""
    phrases: Sequence[str] = ()
    """FTS5 expressions that a row must match; they add to its score."""
    excluded: Sequence[str] = ()
    """FTS5 expressions that a row must not match."""
    limit: int
    allowed: NDArray[np.bool_] | None = None
    """Mask by file id of the files that may be found; None allows all."""
    include_log: bool = False
    """Whether chunks of the program's log may be found."""


class WordEngine(Protocol):
    """Ranks the rows of a full-text table by BM25 over all of the question's words, as one state of the index has them.

    Scores are those of SQLite's ``bm25()``; filters are complete: as many rows are returned as exist, up to the limit.
    """

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> Mapping[int, float]:
        """Return the rows with the highest scores, best first; of equal ones that with the lower id first."""
        ...


class Fts5Engine:
    """SQLite's own ``bm25()``: exact, nothing beside the database, and a microsecond for each row with a word."""

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> dict[int, float]:
        """Let SQLite score every row with any of the words, and sort them."""
        match = match_expression(connection, table, question)
        if not match:
            return {}
        restriction = allowed_condition(connection, question.allowed, shift=table.file_shift)
        if table is CHUNKS and not question.include_log and has_log(connection):
            restriction += f" AND rowid NOT IN ({database.LOG_CHUNKS_SQL})"
        ranked = (
            f"SELECT rowid AS id, {table.score_sql} AS score FROM {table.name} WHERE {table.name} MATCH ?{restriction}"
            " ORDER BY score DESC, rowid LIMIT ?"
        )
        # Read as one text: each row by itself would have to wait for the GIL.
        scores_sql = f"SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({ranked})"
        parts = (connection.execute(scores_sql, (match, question.limit)).fetchone()[0] or "").split(" ")
        scored = zip(map(int, parts[::2]), map(float, parts[1::2]), strict=True) if len(parts) > 1 else ()
        return dict(sorted(scored, key=lambda one: (-one[1], one[0])))


def match_expression(connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> str:
    """Return the FTS5 expression of a question; empty where there is nothing to find."""
    present = present_expressions(connection, table, [word.expression for word in question.words])
    any_word = " OR ".join(
        word.expression for word in question.words if word.expression in present for _ in range(word.times)
    )
    required = " AND ".join([*([f"({any_word})"] if any_word else []), *question.phrases])
    excluded = " OR ".join(question.excluded)
    return f"({required}) NOT ({excluded})" if required and excluded else required


_EXPRESSIONS_PER_STATEMENT: Final = 64


def present_expressions(
    connection: sqlite3.Connection,
    table: WordTable,
    expressions: Sequence[str],
    *,
    allowed: NDArray[np.bool_] | None = None,
) -> set[str]:
    """Return those FTS5 expressions that a row, of an allowed file, matches."""
    restriction = allowed_condition(connection, allowed, shift=table.file_shift)
    exists = f"EXISTS (SELECT 1 FROM {table.name} WHERE {table.name} MATCH ?{restriction})"
    present: set[str] = set()
    # Several in one query: SQLite releases the GIL at each one, and another thread may keep it.
    for start in range(0, len(expressions), _EXPRESSIONS_PER_STATEMENT):
        batch = expressions[start : start + _EXPRESSIONS_PER_STATEMENT]
        row = connection.execute(f"SELECT {', '.join([exists] * len(batch))}", batch).fetchone()
        present.update(one for one, is_present in zip(batch, row, strict=True) if is_present)
    return present


def allowed_condition(connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, *, shift: int) -> str:
    """Return the SQL condition for allowed files, which SQLite checks while it searches."""
    if allowed is None:
        return ""
    flags = allowed.tobytes()

    def passes(rowid: int) -> int:
        file = rowid >> shift
        return flags[file] if file < len(flags) else 0

    connection.create_function("knap_allowed", 1, passes)
    return " AND knap_allowed(rowid)"


def has_log(connection: sqlite3.Connection) -> bool:
    """Return whether any chunk is of the program's log."""
    return connection.execute(f"{database.LOG_CHUNKS_SQL} LIMIT 1").fetchone() is not None


def inverse_document_frequency(count: int, total: int) -> float:
    """Return the inverse document frequency that FTS5's BM25 uses.

    Source: SQLite FTS5 documentation, "The bm25() function".
    """
    return max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6) if count <= total else 1e-6


def count_rows(
    connection: sqlite3.Connection, table: WordTable, expressions: Sequence[str], *, allowed: NDArray[np.bool_] | None
) -> dict[str, int]:
    """Count the rows of allowed files that match each FTS5 expression."""
    restriction = allowed_condition(connection, allowed, shift=table.file_shift)
    count_sql = f"(SELECT COUNT(*) FROM {table.name} WHERE {table.name} MATCH ?{restriction})"
    counts: dict[str, int] = {}
    # Several in one query: SQLite releases the GIL at each one, and another thread may keep it.
    for start in range(0, len(expressions), _EXPRESSIONS_PER_STATEMENT):
        batch = expressions[start : start + _EXPRESSIONS_PER_STATEMENT]
        row = connection.execute(f"SELECT {', '.join([count_sql] * len(batch))}", batch).fetchone()
        counts.update(zip(batch, map(int, row), strict=True))
    return counts


def read_names(connection: sqlite3.Connection, files: Sequence[int]) -> list[tuple[int, str]]:
    """Return the titles and aliases of files, as they are indexed, each with its file."""
    rows = connection.execute(
        "SELECT json_group_array(json_array(id, json_extract(title_row, '$[0]'), json_extract(title_row, '$[1]')))"
        " FROM files WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    title_rows = cast("list[tuple[int, str, str]]", json.loads(rows.fetchone()[0]))
    return [(file, name) for file, title, aliases in title_rows for name in (title, *filter(None, aliases.split("\n")))]


def rareness(count: int, total: int) -> float:
    """Return how rare a word is in *count* of *total* rows: 1 in a single one, near 0 in all."""
    count = min(max(count, 1), total)
    return math.log((total + 1) / (count + 0.5)) / math.log((total + 1) / 1.5) if total else 0.0


FILE_META: Final = "postings"
"""Where the database names the derived file that its record of changed rows begins with."""
RECORDING_META: Final = "recording"
"""Whether changed rows are recorded, ``1`` where they are."""
MAX_RECORDED_ROWS: Final = 50_000
"""Changed rows from which on it is quicker to derive the file again than to read them with each question."""


def is_recording(connection: sqlite3.Connection) -> bool:
    """Return whether changed rows are recorded for a derived file."""
    return connection.execute("SELECT 1 FROM meta WHERE key = ?", (RECORDING_META,)).fetchone() is not None


def names_file(connection: sqlite3.Connection) -> bool:
    """Return whether the database names a derived file."""
    return FILE_META in database.meta_of(connection)


def start_recording(connection: sqlite3.Connection) -> None:
    """Record changed rows from this transaction on."""
    connection.execute("INSERT OR IGNORE INTO meta VALUES (?, '1')", (RECORDING_META,))


def stop_recording(connection: sqlite3.Connection) -> None:
    """Forget the derived file and what changed since; SQLite's own ``bm25()`` answers from this transaction on."""
    connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (RECORDING_META, FILE_META))
    for name in ("added_words", "added_rows", "dropped_rows"):
        connection.execute(f"DELETE FROM {name}")


def forget_recorded(connection: sqlite3.Connection, generation: int) -> None:
    """Forget the changed rows up to a generation, which a new derived file holds."""
    old_rows = "SELECT source, id FROM added_rows WHERE generation <= ?"
    connection.execute(f"DELETE FROM added_words WHERE (source, id) IN ({old_rows})", (generation,))
    for name in ("added_rows", "dropped_rows"):
        connection.execute(f"DELETE FROM {name} WHERE generation <= ?", (generation,))


def count_recorded(connection: sqlite3.Connection) -> int:
    """Count the changed rows since the derived file was made."""
    counts = "SELECT (SELECT COUNT(*) FROM added_rows) + (SELECT COUNT(*) FROM dropped_rows)"
    return int(connection.execute(counts).fetchone()[0])


def record_added(connection: sqlite3.Connection, table: WordTable, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Record rows that were just stored in a full-text table, in the same transaction.

    A temporary table of the same kind splits and stems the texts, so that the terms are the very same.

    Args:
        connection: Inside a transaction.
        table: Where the rows were stored.
        rows: The id and the text of each column.
    """
    if not rows or not is_recording(connection):
        return
    if count_recorded(connection) + len(rows) > MAX_RECORDED_ROWS:
        stop_recording(connection)
        return
    with _split_rows(connection, table, rows) as split_words:
        connection.execute(f"INSERT INTO added_words SELECT ?, * FROM ({split_words})", (table.name,))
    generation = database.generation_of(connection)
    # SQLite itself would choose the key, which begins with the same column, and read all recorded words for each row.
    connection.executemany(
        "INSERT OR REPLACE INTO added_rows SELECT ?1, ?2, ?3, COALESCE(SUM(words), 0) FROM added_words"
        " INDEXED BY added_words_id WHERE source = ?1 AND id = ?2",
        [(table.name, row_id, generation) for row_id, _ in rows],
    )


@contextmanager
def _split_rows(
    connection: sqlite3.Connection, table: WordTable, rows: Iterable[tuple[int, Sequence[str]]]
) -> Generator[str]:
    """Let FTS5 split texts into words; yield the SQL that selects each term, row, weight and number of occurrences."""
    scratch = f"temp.added_{table.name}"
    columns = ", ".join(table.columns)
    connection.execute(
        f'CREATE VIRTUAL TABLE IF NOT EXISTS {scratch} USING fts5({columns}, content="", tokenize="{TOKENIZER}")'
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {scratch}_terms USING fts5vocab(temp, added_{table.name}, instance)"
    )
    marks = ", ".join("?" * (1 + len(table.columns)))
    connection.executemany(
        f"INSERT INTO {scratch} (rowid, {columns}) VALUES ({marks})", [(row_id, *texts) for row_id, texts in rows]
    )
    yield f"SELECT term, doc, SUM({table.weight_sql}), COUNT(*) FROM {scratch}_terms GROUP BY term, doc"
    connection.execute(f"INSERT INTO {scratch} (added_{table.name}) VALUES ('delete-all')")


_WRONG_LENGTHS_SQL: Final = (
    "SELECT 1 FROM added_rows r WHERE r.source = ?1 AND r.words !="
    " (SELECT COALESCE(SUM(w.words), 0) FROM added_words w INDEXED BY added_words_id"
    " WHERE w.source = ?1 AND w.id = r.id)"
)
"""Selects recorded rows with another number of words than was recorded of them."""


def find_wrong_record(connection: sqlite3.Connection) -> str:
    """Compare the recorded rows with the stored texts; return what is wrong, and an empty text where nothing is.

    Args:
        connection: In a snapshot.
    """
    for table in TABLES:
        texts_sql = (
            f"SELECT id, {', '.join(table.columns)} FROM {table.texts_view}"
            " WHERE id IN (SELECT id FROM added_rows WHERE source = ?)"
        )
        rows = [(int(row_id), texts) for row_id, *texts in connection.execute(texts_sql, (table.name,))]
        with _split_rows(connection, table, rows) as split_words:
            words_sql = "SELECT term, id, weight, words FROM added_words WHERE source = ?1"
            is_different = connection.execute(
                f"SELECT EXISTS (SELECT * FROM ({split_words}) EXCEPT {words_sql})"
                f" OR EXISTS ({words_sql} EXCEPT SELECT * FROM ({split_words}))"
                f" OR EXISTS ({_WRONG_LENGTHS_SQL})",
                (table.name,),
            ).fetchone()[0]
        if is_different or {row_id for row_id, _ in rows} != {row_id for row_id, _ in added_rows(connection, table)}:
            return f"the recorded rows of {table.name} aren't those that were stored"
    return ""


def record_dropped(connection: sqlite3.Connection, table: WordTable, ids: Iterable[int]) -> None:
    """Record rows that are removed from a full-text table, in the same transaction."""
    if not is_recording(connection):
        return
    generation = database.generation_of(connection)
    keys = [(table.name, row_id) for row_id in ids]
    connection.executemany("DELETE FROM added_words WHERE (source, id) = (?, ?)", keys)
    connection.executemany("DELETE FROM added_rows WHERE (source, id) = (?, ?)", keys)
    connection.executemany("INSERT OR REPLACE INTO dropped_rows VALUES (?, ?, ?)", [(*key, generation) for key in keys])
    if count_recorded(connection) > MAX_RECORDED_ROWS:
        stop_recording(connection)


def added_rows(connection: sqlite3.Connection, table: WordTable) -> list[tuple[int, int]]:
    """Return the id and the number of words of each row that was stored since the derived file was made, by id."""
    sql = "SELECT json_group_array(json_array(id, words)) FROM (SELECT * FROM added_rows WHERE source = ? ORDER BY id)"
    return [(row_id, words) for row_id, words in json.loads(connection.execute(sql, (table.name,)).fetchone()[0])]


def dropped_rows(connection: sqlite3.Connection, table: WordTable) -> list[int]:
    """Return the ids of the rows that were removed, or replaced, since the derived file was made."""
    sql = "SELECT json_group_array(id) FROM dropped_rows WHERE source = ?"
    return list(json.loads(connection.execute(sql, (table.name,)).fetchone()[0]))
