"""Read and write sessions' rows; a transaction around them is the caller's."""

import json
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from knapper.agents.sessions.identity import Traits
from knapper.agents.sessions.records import Exchange, Session
from knapper.errors import NotFound

SELECT: Final = (
    "SELECT s.*, (SELECT count(*) FROM turns t WHERE t.session = s.id AND t.number > s.cleared) AS turns"
    " FROM sessions s"
)
_MAX_SHOWN: Final = 80


def new_id() -> str:
    """Make an id that nobody can guess."""
    return str(uuid.uuid4())


def one(database: sqlite3.Connection, where: str, *values: str) -> sqlite3.Row | None:
    """Give the first session that fits."""
    return database.execute(f"{SELECT} WHERE {where} LIMIT 1", values).fetchone()


def need(database: sqlite3.Connection, session_id: str) -> sqlite3.Row:
    """Give a session's row.

    Raises:
        NotFound: There is none of that id (code ``no_session``).
    """
    row = one(database, "s.id = ?", session_id)
    if row is None:
        shown = session_id[:_MAX_SHOWN]
        raise NotFound(f"there is no session '{shown}'", hint="list the sessions", code="no_session")
    return row


def session(row: sqlite3.Row) -> Session:
    """Read a session."""
    return Session(
        id=row["id"],
        kind=row["kind"],
        file=row["file"],
        name=row["name"],
        created=datetime.fromisoformat(row["created"]),
        updated=datetime.fromisoformat(row["updated"]),
        turns=row["turns"],
        forked_from=row["forked_from"],
    )


def turns(database: sqlite3.Connection, session_id: str, after: int) -> list[Exchange]:
    """List a session's turns after one."""
    found = database.execute(
        "SELECT * FROM turns WHERE session = ? AND number > ? ORDER BY number", (session_id, after)
    ).fetchall()
    return [
        Exchange(
            number=row["number"],
            at=datetime.fromisoformat(row["at"]),
            question=row["question"],
            file=row["file"],
            outcome=json.loads(row["outcome"]),
            messages=row["messages"],
        )
        for row in found
    ]


def last(database: sqlite3.Connection, session_id: str) -> int:
    """Tell the number of a session's last turn; 0 for none."""
    found = database.execute("SELECT coalesce(max(number), 0) FROM turns WHERE session = ?", (session_id,)).fetchone()
    return int(found[0])


def insert(database: sqlite3.Connection, session_id: str, number: int, exchange: Exchange) -> None:
    """Add a turn."""
    outcome = json.dumps(dict(exchange.outcome), ensure_ascii=False)
    values = (session_id, number, exchange.at.isoformat(), exchange.file, exchange.question, exchange.messages, outcome)
    database.execute("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def renamed(
    database: sqlite3.Connection, seen: Traits, earlier: Sequence[str], gone: Callable[[str], bool]
) -> sqlite3.Row | None:
    """Find the session of a note that had another name, the surest sign first."""
    signs = [("s.file = ?", path) for path in earlier]
    signs += [("s.file_node = ?", seen.node)] if seen.node else []
    signs += [("s.file_hash = ?", seen.hash)] if seen.hash else []
    for where, value in signs:
        found = database.execute(f"{SELECT} WHERE s.kind = 'file' AND {where} ORDER BY s.updated DESC", (value,))
        row = next((row for row in found.fetchall() if gone(row["file"])), None)
        if row is not None:
            return row
    return None
