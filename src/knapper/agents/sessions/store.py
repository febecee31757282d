"""Store chat sessions and their turns in SQLite, lock them, recognise renamed notes, and export them as notes."""

import asyncio
import json
import os
import sqlite3
import struct
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from filelock import BaseFileLock
from typing_extensions import TypedDict

from knapper.agents.work_store import WorkStore, client_key
from knapper.changes.disk import undo
from knapper.changes.disk.storage import MIN_LOCK_WAIT_S, WorkLocks
from knapper.changes.disk.undo import ChangeFilter
from knapper.errors import BadInput, ConflictError, KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.view import View

LOCK_FOLDER: Final = "sessions"
WAIT_S: Final = 120.0
_POLL_S: Final = 0.05


async def acquire_lock(locks: WorkLocks, name: str, *, wait_s: float = MIN_LOCK_WAIT_S) -> BaseFileLock | None:
    """Acquire a lock without blocking the event loop; None where it is held for longer than *wait_s*."""
    deadline = time.monotonic() + wait_s
    # Polled, since another process may hold it, and the lock's own waiting would block the event loop.
    while (lock := locks.acquire(name, wait_s=0)) is None and time.monotonic() < deadline:  # noqa: ASYNC110 - see above
        await asyncio.sleep(_POLL_S)
    return lock


SessionKind = Literal["file", "none", "own"]
"""Found by the open note; the default where no note is open; found by its id alone."""


class StoredSession(TypedDict):
    """What is stored of a session besides its name, as every surface shows it."""

    id: str
    active_file: str | None
    kind: SessionKind
    """Found by its file, without a file, or by its id."""
    created: str
    updated: str
    turns: int
    forked_from: str | None


class NamedSession(StoredSession):
    """A session with its name, as commands show it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session without its turns."""

    id: str
    kind: SessionKind
    file: str
    """The note that it belongs to or was begun with; empty for none."""
    name: str
    """The name that the person gave, else the beginning of the first question."""
    created: datetime
    updated: datetime
    turns: int
    forked_from: str = ""

    def stored_fields(self) -> StoredSession:
        """Return what every surface shows of it besides its name."""
        return {
            "id": self.id,
            "active_file": self.file or None,
            "kind": self.kind,
            "created": self.created.isoformat(timespec="seconds"),
            "updated": self.updated.isoformat(timespec="seconds"),
            "turns": self.turns,
            "forked_from": self.forked_from or None,
        }

    def as_dict(self) -> NamedSession:
        """Return it as commands show it."""
        return {"id": self.id, "name": self.name, **self.stored_fields()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One stored turn: the question and its outcome."""

    number: int
    """From 1."""
    at: datetime
    question: str
    file: str
    """The note that was open; empty for none."""
    outcome: Mapping[str, JSONValue]
    """`knapper.agents.events.Done` as a dictionary: answer, citations, proposals, changes, usage."""
    messages: str = field(default="[]", repr=False)
    """pydantic-ai's messages as JSON, shortened."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {
            "number": self.number,
            "at": self.at.isoformat(timespec="seconds"),
            "question": self.question,
            "active_file": self.file or None,
            "outcome": dict(self.outcome),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySummary:
    """The summary that replaces a session's first turns."""

    messages: str = "[]"
    upto: int = 0
    """The number of the last turn that it covers; 0 for no summary."""


_MAX_CHANGES: Final = 200
_GET_VERSION: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("v") << 8 | 1
"""The request's number on most processors; elsewhere the call fails, and the generation is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """What identifies a file after it was renamed."""

    path: str
    """As the vault has it; as given, where there is no such file."""
    hash: str = ""
    """Empty where the note is empty, since all empty notes have the same hash."""
    node: str = ""
    """The file's identity on the disk, which a rename keeps; empty where the system has none."""


def identify_file(view: View, path: str) -> FileIdentity:
    """Return the identity of a file as it is now; a file that can't be read has its path only."""
    try:
        note = view.read(path)
        with view.open_bytes(path) as opened:
            status = os.fstat(opened.fileno())
            # File systems reuse the inode of a deleted file for the next new one, which differs in its creation.
            born = getattr(status, "st_birthtime_ns", 0) or getattr(status, "st_birthtime", 0)
            born = born or _inode_generation(opened.fileno())
            node = f"{status.st_dev}:{status.st_ino}:{born}" if status.st_ino else ""
    except (KnapError, OSError):
        return FileIdentity(path=path)
    content_hash = note.hash if note.raw.strip() else ""
    return FileIdentity(path=note.path, hash=content_hash, node=node)


def _inode_generation(descriptor: int) -> int:
    """Return the generation of a file's inode on Linux; 0 where it isn't known.

    Source: ioctl_iflags(2) and FS_IOC_GETVERSION in linux/fs.h.
    """
    if sys.platform != "linux":
        return 0
    # Windows has no such module.
    import fcntl  # noqa: PLC0415 - see above

    answer = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _GET_VERSION, answer)
    except OSError:
        return 0
    return int.from_bytes(answer[:4], sys.byteorder)


def is_file_gone(view: View, path: str) -> bool:
    """Return whether a file doesn't exist any more."""
    try:
        _ = view.path(path)
    except KnapError:
        return True
    return False


def list_earlier_paths(context: Context, path: str) -> tuple[str, ...]:
    """Return the earlier paths of a file, the latest first, as far as the journal knows."""
    journal = context.writer.state.journal
    changes = undo.list_changes(journal, ChangeFilter(path=path), limit=_MAX_CHANGES).changes
    earlier_names: list[str] = []
    for change in changes:
        for file in change.files:
            if file.after_path == path and file.before_path and file.before_path != path:
                path = file.before_path
                earlier_names.append(path)
    return tuple(earlier_names)


_SELECT_SESSIONS: Final = (
    "SELECT s.*, (SELECT count(*) FROM turns t WHERE t.session = s.id AND t.number > s.cleared) AS turns"
    " FROM sessions s WHERE s.client_key = :client_key"
)
_MATCHES_QUERY: Final = (
    "(s.name LIKE :like ESCAPE '\\' OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND t.number > s.cleared"
    " AND (t.question LIKE :like ESCAPE '\\' OR json_extract(t.outcome, '$.answer') LIKE :like ESCAPE '\\')))"
)
_LATEST_FIRST: Final = "julianday(t.at) DESC, t.at DESC, t.session DESC, t.number DESC"
# Chosen by the keys first, as most of a row is its messages. CROSS JOIN has the turns gone through in their order: to
# seek those of each session takes several times as long. Of a fork, turns that its original still has are left out.
_LATEST_TURNS: Final = f"""WITH page AS MATERIALIZED (
    SELECT t.session, t.number FROM turns t CROSS JOIN sessions s ON s.id = t.session
    WHERE s.client_key = :client_key AND t.number > s.cleared
    AND (:until = '' OR julianday(t.at) <= julianday(:until))
    AND (:work = '' OR t.session = :work OR json_extract(t.outcome, '$.run_id') = :work)
    AND (:path = '' OR instr(t.outcome, :as_json) OR instr(t.file, :path))
    AND NOT (s.forked_from <> '' AND julianday(t.at) < julianday(s.created)
        AND EXISTS (SELECT 1 FROM sessions o WHERE o.id = s.forked_from))
    ORDER BY {_LATEST_FIRST} LIMIT :limit OFFSET :offset)
SELECT t.session, t.number, t.at, t.file, t.question, json_remove(t.outcome, '$.trace', '$.pipeline') AS outcome
    FROM page JOIN turns t ON t.session = page.session AND t.number = page.number ORDER BY {_LATEST_FIRST}"""  # noqa: S608 - constants
_MAX_SHOWN_ID: Final = 80


def read_session(row: sqlite3.Row) -> Session:
    """Return a database row as a session."""
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


def read_turns(database: sqlite3.Connection, session_id: str, after: int) -> list[Exchange]:
    """List a session's turns after the given number."""
    turn_rows = database.execute(
        "SELECT * FROM turns WHERE session = ? AND number > ? ORDER BY number", (session_id, after)
    ).fetchall()
    return [_read_turn(row, messages=row["messages"]) for row in turn_rows]


def _read_turn(row: sqlite3.Row, *, messages: str) -> Exchange:
    at, outcome = datetime.fromisoformat(row["at"]), json.loads(row["outcome"])
    question, file = row["question"], row["file"]
    return Exchange(number=row["number"], at=at, question=question, file=file, outcome=outcome, messages=messages)


def last_turn_number(database: sqlite3.Connection, session_id: str) -> int:
    """Return the number of a session's last turn; 0 for none."""
    row = database.execute("SELECT coalesce(max(number), 0) FROM turns WHERE session = ?", (session_id,)).fetchone()
    return int(row[0])


_DEFAULT_NAME_CHARS: Final = 60
_MAX_NAME: Final = 200


class SessionStore:
    """The sessions of one client in an open file; those of others are to it as if they weren't there."""

    def __init__(self, work: WorkStore, now: Callable[[], datetime], client: str = "") -> None:
        """Use an open file.

        Args:
            work: The file.
            now: Returns the time.
            client: The client's name; empty for the agent of the person at the terminal.

        Raises:
            StorageError: An earlier version's file of the sessions can't be migrated.
        """
        self.folder = work.folder
        self._ledger = work.database_with("sessions", client)
        self._locks = WorkLocks(work.folder / LOCK_FOLDER)
        self._now = now
        self._client_key = client_key(client)

    @asynccontextmanager
    async def lock(self, session_id: str, *, wait_s: float = WAIT_S) -> AsyncGenerator[None]:
        """Lock a session that exists for one turn; the system releases the lock where the process ends.

        Args:
            session_id: The session's id.
            wait_s: How long to wait for another turn.

        Raises:
            ConflictError: The other turn is still running (code ``session_busy``).
        """
        lock = await acquire_lock(self._locks, session_id, wait_s=max(wait_s, MIN_LOCK_WAIT_S))
        if lock is None:
            raise ConflictError(
                "the session is answering another message",
                hint="wait for it, cancel it, or begin another session",
                code="session_busy",
            )
        try:
            yield
        finally:
            lock.release()

    def is_locked(self, session_id: str) -> bool:
        """Return whether a turn is running in a session, in any process."""
        try:
            return self._locks.is_held(session_id)
        except OSError:  # a lock that this user may not take is one of another account's, of which nothing is known
            return False

    def by_file(
        self, identity: FileIdentity, earlier: Sequence[str] = (), is_gone: Callable[[str], bool] | None = None
    ) -> Session:
        """Return the session of an open note, which is created where there is none.

        A renamed note keeps its session: it is recognised by its earlier paths, its content or its inode, provided that
        the session's own file is gone.

        Args:
            identity: The note's identity.
            earlier: Its earlier paths, the latest first.
            is_gone: Returns whether a file doesn't exist any more.
        """
        # Looked up and created in one transaction, so that two callers get the same session.
        with self._ledger.writing() as database:
            row = self._find(database, "s.kind = 'file' AND s.file = :file", file=identity.path)
            if row is None and is_gone is not None:
                row = self._find_renamed(database, identity, earlier, is_gone)
            if row is None:
                return self._begin(database, "file", identity)
            database.execute(
                "UPDATE sessions SET file = ?, file_hash = ?, file_node = ? WHERE id = ?",
                (identity.path, identity.hash, identity.node, row["id"]),
            )
            return read_session(self._require(database, row["id"]))

    def without_file(self) -> Session:
        """Return the default session for when no note is open, which is created where there is none."""
        with self._ledger.writing() as database:
            row = self._find(database, "s.kind = 'none'")
            return read_session(row) if row else self._begin(database, "none", FileIdentity(path=""))

    def begin(self, *, file: str = "", name: str = "") -> Session:
        """Create a session that is found by its id alone."""
        with self._ledger.writing() as database:
            return self._begin(database, "own", FileIdentity(path=file), name=_clean_name(name))

    def has(self, session_id: str) -> bool:
        """Return whether there is such a session."""
        try:
            _ = self.get(session_id)
        except NotFound:
            return False
        return True

    def get(self, session_id: str) -> Session:
        """Return a session.

        Raises:
            NotFound: There is none of that id (code ``no_session``).
        """
        with self._ledger.reading() as database:
            return read_session(self._require(database, session_id))

    def list(self, *, limit: int = 50, offset: int = 0, query: str = "") -> tuple[Sequence[Session], int]:
        """List sessions, the last used first, with the total number.

        Args:
            limit: How many at most.
            offset: How many of the last used to skip.
            query: Only those in whose name, questions or answers this text stands; empty for all.
        """
        # A text's own % and _ are no wildcards; turns before the session was last cleared aren't its any more.
        escaped = query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values = {"like": f"%{escaped}%", "limit": limit, "offset": offset, "client_key": self._client_key}
        where = f"AND {_MATCHES_QUERY}" if escaped else ""
        counting = f"SELECT count(*) FROM sessions s WHERE s.client_key = :client_key {where}"  # noqa: S608 - two constants
        with self._ledger.reading() as database:
            total = int(database.execute(counting, values).fetchone()[0])
            page = database.execute(
                f"{_SELECT_SESSIONS} {where} ORDER BY s.updated DESC, s.id LIMIT :limit OFFSET :offset", values
            )
            return [read_session(row) for row in page.fetchall()], total

    def turns(self, session_id: str) -> Sequence[Exchange]:
        """List a session's turns since it was last cleared, the oldest first.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.reading() as database:
            cleared = int(self._require(database, session_id)["cleared"])
            return read_turns(database, session_id, cleared)

    def latest_turns(
        self, *, until: datetime | None, work: str = "", path: str = "", limit: int, offset: int = 0
    ) -> Sequence[tuple[str, Exchange]]:
        """List the turns of all sessions until a time, the latest first, each with its session's id.

        They come without messages and traces. *work* is the id of a session or a task's run, and *path* a text that
        stands in their outcome or their open note's path; empty for all.
        """
        values = {"until": until.isoformat() if until else "", "work": work, "limit": limit, "offset": offset}
        values |= {"path": path, "as_json": json.dumps(path, ensure_ascii=False)[1:-1], "client_key": self._client_key}
        with self._ledger.reading() as database:
            rows = database.execute(_LATEST_TURNS, values).fetchall()
        return [(row["session"], _read_turn(row, messages="")) for row in rows]

    def history(self, session_id: str) -> tuple[HistorySummary, Sequence[Exchange]]:
        """Return the messages that a session continues with: a summary, and the turns after it.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.reading() as database:
            row = self._require(database, session_id)
            head = HistorySummary(messages=row["head"], upto=row["head_upto"])
            return head, read_turns(database, session_id, max(head.upto, int(row["cleared"])))

    def append(self, session_id: str, after: int, exchange: Exchange) -> int:
        """Add a turn.

        Args:
            session_id: The session's id.
            after: The number of the last turn that the caller knows; 0 for none.
            exchange: The turn; its number is assigned here.

        Returns:
            The turn's number.

        Raises:
            NotFound: There is no such session.
            ConflictError: Another turn was added meanwhile (code ``session_changed``); nothing was written.
        """
        with self._ledger.writing() as database:
            row = self._require(database, session_id)
            last = last_turn_number(database, session_id)
            # The summary and the messages were made from the turns up to *after*, so a turn between them would be lost.
            if last != after:
                hint = "read it again"
                raise ConflictError("the session was continued meanwhile", hint=hint, code="session_changed")
            at, outcome = exchange.at.isoformat(), json.dumps(dict(exchange.outcome), ensure_ascii=False)
            database.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                (session_id, last + 1, at, exchange.file, exchange.question, exchange.messages, outcome),
            )
            name = row["name"] or " ".join(exchange.question.split())[:_DEFAULT_NAME_CHARS]
            database.execute(
                "UPDATE sessions SET updated = ?, name = ? WHERE id = ?", (self._stamp(), name, session_id)
            )
            return last + 1

    def last(self, session_id: str) -> int:
        """Return the number of a session's last turn; 0 for none."""
        with self._ledger.reading() as database:
            is_own = self._find(database, "s.id = :id", id=session_id) is not None
            return last_turn_number(database, session_id) if is_own else 0

    def sum_up(self, session_id: str, head: HistorySummary) -> None:
        """Replace the first turns of a session by a summary; they stay readable.

        A session that is cleared while the summary is written stays cleared.
        """
        with self._ledger.writing() as database:
            values = (head.messages, head.upto, session_id, self._client_key, head.upto)
            database.execute(
                "UPDATE sessions SET head = ?, head_upto = ? WHERE id = ? AND client_key = ? AND cleared < ?", values
            )

    def rename(self, session_id: str, name: str) -> Session:
        """Rename a session.

        Raises:
            NotFound: There is no such session.
            BadInput: The name is empty or too long.
        """
        if not name.strip() or len(name) > _MAX_NAME:
            raise BadInput("a session needs a name", hint=f"give 1 to {_MAX_NAME} characters")
        with self._ledger.writing() as database:
            _ = self._require(database, session_id)
            database.execute("UPDATE sessions SET name = ? WHERE id = ?", (_clean_name(name), session_id))
            return read_session(self._require(database, session_id))

    def fork(
        self, session_id: str, *, upto: int | None = None, before_commit: Callable[[str], None] = lambda _: None
    ) -> Session:
        """Create a session that continues a copy of another one.

        Args:
            session_id: The session to copy, which stays as it is.
            upto: The last turn to copy; None for all.
            before_commit: Called with the new session's id before anybody can use it; the fork fails where this raises.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            row = self._require(database, session_id)
            stop = last_turn_number(database, session_id) if upto is None else upto
            forked = self._begin(
                database, "own", FileIdentity(path=row["file"]), name=_clean_name(f"{row['name']} (fork)")
            )
            values = {"new": forked.id, "old": session_id, "stop": stop}
            # A summary that covers turns after the cut would bring those back.
            has_whole_head = row["head_upto"] <= stop
            database.execute(
                "UPDATE sessions SET forked_from = ?, head = ?, head_upto = ?, cleared = ? WHERE id = ?",
                (
                    session_id,
                    row["head"] if has_whole_head else "[]",
                    row["head_upto"] if has_whole_head else 0,
                    row["cleared"],
                    forked.id,
                ),
            )
            database.execute(
                "INSERT INTO turns SELECT :new, number, at, file, question, messages, outcome FROM turns"
                " WHERE session = :old AND number <= :stop",
                values,
            )
            before_commit(forked.id)
            return read_session(self._require(database, forked.id))

    def clear(self, session_id: str) -> Session:
        """Clear a session: earlier turns are neither sent to a model again nor listed.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            _ = self._require(database, session_id)
            last = last_turn_number(database, session_id)
            database.execute(
                "UPDATE sessions SET head = '[]', head_upto = 0, cleared = ? WHERE id = ?", (last, session_id)
            )
            return read_session(self._require(database, session_id))

    def delete(self, session_id: str) -> None:
        """Delete a session with all its turns.

        Raises:
            NotFound: There is no such session.
        """
        with self._ledger.writing() as database:
            _ = self._require(database, session_id)
            database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        with suppress(OSError):
            self._locks.path(session_id).unlink(missing_ok=True)

    def prune(self, *, max_days: float, max_bytes: int) -> int:
        """Delete the client's sessions that are too old, then its oldest ones while all together are too large.

        Returns:
            The number of deleted sessions.
        """
        if self._ledger.is_read_only:
            return 0
        with self._ledger.writing() as database:
            oldest = (self._now() - timedelta(days=max_days)).astimezone(UTC).isoformat()
            deleted = database.execute(
                "DELETE FROM sessions WHERE client_key = ? AND updated < ?", (self._client_key, oldest)
            ).rowcount
            sizes = database.execute(
                "SELECT s.id, length(s.head) + coalesce((SELECT sum(length(messages) + length(outcome) + "
                "length(question)) FROM turns WHERE session = s.id), 0) FROM sessions s WHERE s.client_key = ?"
                " ORDER BY s.updated DESC, s.id",
                (self._client_key,),
            ).fetchall()
            kept_bytes = 0
            for number, (session_id, size) in enumerate(sizes):
                kept_bytes += size
                # The session that was used last stays, however large it is.
                if kept_bytes > max_bytes and number:
                    deleted += database.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount
            return deleted

    def _find(self, database: sqlite3.Connection, where: str, **values: str) -> sqlite3.Row | None:
        """Return the first of the client's sessions that matches; None for none."""
        values["client_key"] = self._client_key
        return database.execute(f"{_SELECT_SESSIONS} AND {where} LIMIT 1", values).fetchone()

    def _find_renamed(
        self,
        database: sqlite3.Connection,
        identity: FileIdentity,
        earlier: Sequence[str],
        is_gone: Callable[[str], bool],
    ) -> sqlite3.Row | None:
        """Find the session of a renamed note, by the most reliable sign first."""
        # The journal knows its own renames for certain; an inode survives others', and equal content may be a copy.
        signs = [("s.file", path) for path in earlier]
        signs += [("s.file_node", identity.node)] if identity.node else []
        signs += [("s.file_hash", identity.hash)] if identity.hash else []
        for column, value in signs:
            candidates = database.execute(
                f"{_SELECT_SESSIONS} AND s.kind = 'file' AND {column} = :value ORDER BY s.updated DESC",
                {"value": value, "client_key": self._client_key},
            )
            # A session whose own note still exists belongs to that note, whatever else matches.
            row = next((row for row in candidates.fetchall() if is_gone(row["file"])), None)
            if row is not None:
                return row
        return None

    def _require(self, database: sqlite3.Connection, session_id: str) -> sqlite3.Row:
        row = self._find(database, "s.id = :id", id=session_id)
        if row is None:
            shortened_id = session_id[:_MAX_SHOWN_ID]
            raise NotFound(f"there is no session '{shortened_id}'", hint="list the sessions", code="no_session")
        return row

    def _begin(
        self, database: sqlite3.Connection, kind: SessionKind, identity: FileIdentity, *, name: str = ""
    ) -> Session:
        session_id, now = str(uuid.uuid4()), self._stamp()
        database.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', '[]', 0, 0)",
            (session_id, self._client_key, kind, identity.path, identity.hash, identity.node, name, now, now),
        )
        return read_session(self._require(database, session_id))

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).isoformat()


def _clean_name(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME]


_MAX_EXPORT_NAME: Final = 40


def write_session_markdown(session: Session, turns: Sequence[Exchange]) -> str:
    """Return a session as Markdown, with questions under headings and answers as they were given."""
    parts = [f"# {session.name or 'Chat'}"]
    for turn in turns:
        heading = " ".join(turn.question.split())[:80]
        parts.append(f"## {turn.at:%Y-%m-%d %H:%M} {heading}")
        quoted = "\n".join(f"> {line}".rstrip() for line in turn.question.splitlines())
        parts.append(quoted)
        answer = str(turn.outcome.get("answer", "")).strip()
        if answer:
            parts.append(answer)
    return "\n\n".join(parts) + "\n"


def export_path(session: Session, turns: Sequence[Exchange]) -> str:
    """Return the path of an exported session: ``Chats/2026-03-14 0926 What grows.md``; *turns* aren't empty."""
    safe_name = "".join(sign if sign.isalnum() or sign in " -_" else " " for sign in session.name)
    return f"Chats/{turns[0].at:%Y-%m-%d %H%M} {' '.join(safe_name.split())[:_MAX_EXPORT_NAME].strip() or 'Chat'}.md"
