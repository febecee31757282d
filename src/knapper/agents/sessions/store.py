"""Keep sessions in SQLite; several threads and processes may."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from knapper.agents.sessions import rows
from knapper.agents.sessions.identity import Traits
from knapper.agents.sessions.records import SCHEMA, VERSION, Exchange, Head, History, Kind, Session
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import BadInput, ConflictError

FILE: Final = "sessions.db"
_NAME_CHARS: Final = 60
_MAX_NAME: Final = 200


class Store:
    """Hold the open file; `open_store` makes one."""

    def __init__(self, own: SharedDatabase, now: Callable[[], datetime]) -> None:
        """Wrap an open file."""
        self._ledger = own
        self._now = now

    def by_file(self, seen: Traits, earlier: Sequence[str] = (), gone: Callable[[str], bool] | None = None) -> Session:
        """Give the session of an open note, and begin one where there is none.

        A note that was renamed keeps its session: it is known by the paths that it had before, by its content, or by
        its place on the disk, if the session's own file is gone.

        Args:
            seen: The note.
            earlier: Paths that it had before, the latest first.
            gone: Tells whether a file isn't there any more.
        """
        with self._ledger.writing() as database:
            row = rows.one(database, "s.kind = 'file' AND s.file = ?", seen.path)
            if row is None and gone is not None:
                row = rows.renamed(database, seen, earlier, gone)
            if row is None:
                return self._begin(database, "file", seen)
            database.execute(
                "UPDATE sessions SET file = ?, file_hash = ?, file_node = ? WHERE id = ?",
                (seen.path, seen.hash, seen.node, row["id"]),
            )
            return rows.session(rows.need(database, row["id"]))

    def without_file(self) -> Session:
        """Give the session that is meant where no note is open, and begin it where there is none."""
        with self._ledger.writing() as database:
            row = rows.one(database, "s.kind = ?", "none")
            return rows.session(row) if row else self._begin(database, "none", Traits(path=""))

    def begin(self, *, file: str = "", name: str = "") -> Session:
        """Begin a session that is found by its id alone."""
        with self._ledger.writing() as database:
            return self._begin(database, "own", Traits(path=file), name=_tidy(name))

    def get(self, session_id: str) -> Session:
        """Give a session.

        Raises:
            NotFound: There is none of that id (code ``no_session``).
        """
        with self._ledger.reading() as database:
            return rows.session(rows.need(database, session_id))

    def list(self, *, limit: int = 50, offset: int = 0) -> tuple[Sequence[Session], int]:
        """List sessions, the last used first; tells how many there are, too."""
        with self._ledger.reading() as database:
            total = int(database.execute("SELECT count(*) FROM sessions").fetchone()[0])
            found = database.execute(f"{rows.SELECT} ORDER BY s.updated DESC, s.id LIMIT ? OFFSET ?", (limit, offset))
            return [rows.session(row) for row in found.fetchall()], total

    def turns(self, session_id: str) -> Sequence[Exchange]:
        """List a session's turns since it was last cleared, the oldest first.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.reading() as database:
            cleared = int(rows.need(database, session_id)["cleared"])
            return rows.turns(database, session_id, cleared)

    def history(self, session_id: str) -> History:
        """Give what a session goes on from.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.reading() as database:
            row = rows.need(database, session_id)
            head = Head(messages=row["head"], upto=row["head_upto"])
            return History(head=head, turns=rows.turns(database, session_id, max(head.upto, int(row["cleared"]))))

    def append(self, session_id: str, after: int, exchange: Exchange) -> int:
        """Add a turn.

        Args:
            session_id: Whose.
            after: The number of the last turn that the writer knew; 0 for none.
            exchange: The turn; its number is given here.

        Returns:
            Its number.

        Raises:
            NotFound: There is no such session.
            ConflictError: Somebody else added one meanwhile (code ``session_changed``); nothing was written.
        """
        with self._ledger.writing() as database:
            row = rows.need(database, session_id)
            last = rows.last(database, session_id)
            if last != after:
                hint = "read the session again"
                raise ConflictError("the session went on meanwhile", hint=hint, code="session_changed")
            rows.insert(database, session_id, last + 1, exchange)
            name = row["name"] or " ".join(exchange.question.split())[:_NAME_CHARS]
            self._touch(database, session_id, name=name)
            return last + 1

    def last(self, session_id: str) -> int:
        """Tell the number of a session's last turn; 0 for none."""
        with self._ledger.reading() as database:
            return rows.last(database, session_id)

    def sum_up(self, session_id: str, head: Head) -> None:
        """Let a summary stand for the turns up to one; they stay readable.

        A session that was cleared while it was written stays so.
        """
        with self._ledger.writing() as database:
            values = (head.messages, head.upto, session_id, head.upto)
            database.execute("UPDATE sessions SET head = ?, head_upto = ? WHERE id = ? AND cleared < ?", values)

    def rename(self, session_id: str, name: str) -> Session:
        """Give a session another name.

        Raises:
            NotFound: There is no such session.
            BadInput: The name is empty or too long.
        """
        if not name.strip() or len(name) > _MAX_NAME:
            raise BadInput("a session needs a name", hint=f"give 1 to {_MAX_NAME} characters")
        with self._ledger.writing() as database:
            _ = rows.need(database, session_id)
            database.execute("UPDATE sessions SET name = ? WHERE id = ?", (_tidy(name), session_id))
            return rows.session(rows.need(database, session_id))

    def fork(self, session_id: str, *, upto: int | None = None) -> Session:
        """Begin a session that goes on from another one.

        Args:
            session_id: The other one, which stays as it is.
            upto: The last turn that is taken over; None for all.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            row = rows.need(database, session_id)
            stop = rows.last(database, session_id) if upto is None else upto
            made = self._begin(database, "own", Traits(path=row["file"]), name=_tidy(f"{row['name']} (fork)"))
            values = {"new": made.id, "old": session_id, "stop": stop}
            whole = row["head_upto"] <= stop
            database.execute(
                "UPDATE sessions SET forked_from = ?, head = ?, head_upto = ?, cleared = ? WHERE id = ?",
                (
                    session_id,
                    row["head"] if whole else "[]",
                    row["head_upto"] if whole else 0,
                    row["cleared"],
                    made.id,
                ),
            )
            database.execute(
                "INSERT INTO turns SELECT :new, number, at, file, question, messages, outcome FROM turns"
                " WHERE session = :old AND number <= :stop",
                values,
            )
            return rows.session(rows.need(database, made.id))

    def clear(self, session_id: str) -> Session:
        """Let a session begin anew; what was said before isn't sent to a model again, and is no longer listed.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            _ = rows.need(database, session_id)
            last = rows.last(database, session_id)
            database.execute(
                "UPDATE sessions SET head = '[]', head_upto = 0, cleared = ? WHERE id = ?", (last, session_id)
            )
            return rows.session(rows.need(database, session_id))

    def delete(self, session_id: str) -> None:
        """Delete a session with all its turns.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            _ = rows.need(database, session_id)
            database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))

    def prune(self, *, max_days: float, max_bytes: int) -> int:
        """Delete sessions that are too old, and the oldest ones where all take up too much.

        Returns:
            How many were deleted.
        """
        with self._ledger.writing() as database:
            oldest = (self._now() - timedelta(days=max_days)).astimezone(UTC).isoformat()
            gone = database.execute("DELETE FROM sessions WHERE updated < ?", (oldest,)).rowcount
            sizes = database.execute(
                "SELECT s.id, length(s.head) + coalesce((SELECT sum(length(messages) + length(outcome) + "
                "length(question)) FROM turns WHERE session = s.id), 0) FROM sessions s ORDER BY s.updated DESC, s.id"
            ).fetchall()
            used = 0
            for number, (session_id, size) in enumerate(sizes):
                used += size
                if used > max_bytes and number:  # the one that is in use stays
                    gone += database.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount
            return gone

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _begin(self, database: sqlite3.Connection, kind: Kind, seen: Traits, *, name: str = "") -> Session:
        session_id, now = rows.new_id(), self._stamp()
        database.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '[]', 0, 0)",
            (session_id, kind, seen.path, seen.hash, seen.node, name, now, now),
        )
        return rows.session(rows.need(database, session_id))

    def _touch(self, database: sqlite3.Connection, session_id: str, *, name: str) -> None:
        database.execute("UPDATE sessions SET updated = ?, name = ? WHERE id = ?", (self._stamp(), name, session_id))

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).isoformat()


def open_store(folder: Path, now: Callable[[], datetime]) -> Store:
    """Open the sessions in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Store(open_shared_database(folder / FILE, SCHEMA, VERSION), now)


def _tidy(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME]
