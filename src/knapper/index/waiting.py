"""Keep the list of chunks that wait for their vector, so that nobody has to look through all chunks for them.

The list is about one model, named in ``meta``; asking for another one's makes it anew.
"""

import sqlite3
from collections.abc import Iterable


def add(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Put new chunks on the list."""
    connection.executemany("INSERT INTO waiting VALUES (?)", [(i,) for i in ids])


def drop(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Take chunks off the list that have got their vector, or are gone."""
    connection.executemany("DELETE FROM waiting WHERE chunk_id = ?", [(i,) for i in ids])


def is_about(connection: sqlite3.Connection, model: str) -> bool:
    """Tell whether the list is about vectors of *model*."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'model'").fetchone()
    return row is not None and bool(row[0] == model)


def restart(connection: sqlite3.Connection, model: str) -> None:
    """Make the list anew for *model*."""
    connection.execute("DELETE FROM waiting")
    connection.execute(
        "INSERT INTO waiting SELECT c.id FROM chunks c LEFT JOIN vectors v ON v.chunk_id = c.id AND v.model = ?"
        " WHERE v.chunk_id IS NULL",
        (model,),
    )
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('model', ?)", (model,))


def count(connection: sqlite3.Connection, model: str) -> int:
    """Count the chunks that have no vector of *model* yet."""
    if is_about(connection, model):
        return int(connection.execute("SELECT COUNT(*) FROM waiting").fetchone()[0])
    sql = "SELECT (SELECT COUNT(*) FROM chunks) - (SELECT COUNT(*) FROM vectors WHERE model = ?)"
    return int(connection.execute(sql, (model,)).fetchone()[0])
