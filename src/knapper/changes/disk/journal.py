"""Write down each change before it is made, with what it replaces, in one SQLite file a vault.

A change goes through its phases in order: ``begin`` (staging), ``ready``, ``applied``, ``close`` (done); ``forget``
takes it out again if it couldn't be made. What must outlast a power cut is forced to the disk; the rest outlasts a
kill.
"""

import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knapper.changes.disk import blobs, lock, records
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.records import Change, Phase
from knapper.changes.disk.steps import Step
from knapper.errors import NotFound, StorageError

FILE = "journal.db"
VERSION = 1
BUSY_S = 10.0

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    phase TEXT NOT NULL,
    at TEXT NOT NULL,
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    reason TEXT NOT NULL,
    proposal TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS steps (
    change TEXT NOT NULL REFERENCES changes(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    source_at TEXT NOT NULL,
    target_at TEXT NOT NULL,
    before TEXT,
    after TEXT,
    mode INTEGER,
    temp TEXT NOT NULL,
    inode TEXT NOT NULL,
    is_folder INTEGER NOT NULL,
    PRIMARY KEY (change, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS undoes (
    change TEXT NOT NULL REFERENCES changes(id) ON DELETE CASCADE,
    undone TEXT NOT NULL,
    PRIMARY KEY (change, undone)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS unfinished ON changes(phase) WHERE phase <> 'done';
CREATE INDEX IF NOT EXISTS by_run ON changes(run) WHERE run <> '';
CREATE INDEX IF NOT EXISTS by_proposal ON changes(proposal) WHERE proposal <> '';
CREATE INDEX IF NOT EXISTS by_source ON steps(source);
CREATE INDEX IF NOT EXISTS by_target ON steps(target);
CREATE INDEX IF NOT EXISTS by_before ON steps(before) WHERE before IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_after ON steps(after) WHERE after IS NOT NULL;
{blobs.SCHEMA}
PRAGMA user_version = {VERSION};
"""


class Journal:
    """Hold the open journal of a vault; threads may share it, and processes have one each."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        """Wrap an open database; `open_journal` makes one."""
        self._database = database
        self._guard = threading.RLock()
        self.path = path

    def begin(self, change_id: str, meta: Meta, steps: Iterable[Step]) -> None:
        """Note which temp files are about to be written."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction(durable=False) as database:
            database.execute(
                "INSERT INTO changes (id, phase, at, client, run, reason, proposal) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (change_id, "staging", at, meta.client, meta.run, meta.reason, meta.proposal),
            )
            names = records.STEP_COLUMNS
            database.executemany(
                f"INSERT INTO steps (change, number, {names}) VALUES (?, ?{', ?' * len(names.split(', '))})",  # noqa: S608
                [(change_id, number, *records.step_row(step)) for number, step in enumerate(steps)],
            )
            database.executemany("INSERT INTO undoes VALUES (?, ?)", [(change_id, undone) for undone in meta.undoes])

    def ready(self, change_id: str, contents: Mapping[str, bytes]) -> None:
        """Keep what the change replaces and writes, and note that names change from here on."""
        with self._transaction() as database:
            for name, content in contents.items():
                blobs.put(database, name, content)
            _set_phase(database, change_id, "ready")

    def applied(self, change_id: str, *, durable: bool = True) -> None:
        """Note that the change holds, and that what it undoes is undone.

        Args:
            change_id: Which.
            durable: False spares the wait for the disk, where the one file tells by itself what became of the change.
        """
        with self._transaction(durable=durable) as database:
            _set_phase(database, change_id, "applied")
            for undone in _undoes(database, change_id):
                _toggle(database, undone)

    def close(self, change_id: str) -> None:
        """Note that nothing of the change is left over."""
        with self._transaction(durable=False) as database:
            _set_phase(database, change_id, "done")

    def forget(self, change_id: str) -> None:
        """Take out a change that wasn't made, or was taken back just after it had been."""
        with self._transaction(durable=False) as database:
            held = database.execute("SELECT 1 FROM changes WHERE id = ? AND phase = 'applied'", (change_id,)).fetchone()
            for undone in _undoes(database, change_id) if held else ():
                _toggle(database, undone)
            drop(database, [change_id])

    def unfinished(self) -> list[Change]:
        """List the changes that a kill or a failure cut short, oldest first."""
        with self.reading() as database:
            rows = database.execute("SELECT * FROM changes WHERE phase <> 'done' ORDER BY seq").fetchall()
            return [_change(database, row) for row in rows]

    def show(self, change_id: str) -> Change:
        """Give a change with its steps.

        Raises:
            NotFound: The journal has none of this id.
        """
        with self.reading() as database:
            row = database.execute("SELECT * FROM changes WHERE id = ?", (change_id,)).fetchone()
            if row is None:
                raise NotFound(f"no change '{change_id}' in the journal", hint="list the journal for its changes")
            return _change(database, row)

    def content(self, name: str) -> bytes:
        """Give the content of a hash.

        Raises:
            NotFound: The journal doesn't hold it.
        """
        with self.reading() as database:
            return blobs.get(database, name)

    def select(self, where: str, values: Mapping[str, object] | None = None) -> list[Change]:
        """Give the changes that a condition of SQL over the table ``changes`` holds for.

        Args:
            where: Constant text of this package, with ``ORDER BY`` and ``LIMIT`` where wanted; never a caller's.
            values: For its placeholders, such as ``:run``.
        """
        with self.reading() as database:
            rows = database.execute(f"SELECT * FROM changes WHERE {where}", values or {}).fetchall()  # noqa: S608
            return [_change(database, row) for row in rows]

    def count(self, where: str, values: Mapping[str, object] | None = None) -> int:
        """Count what `select` gives."""
        with self.reading() as database:
            row = database.execute(f"SELECT count(*) FROM changes WHERE {where}", values or {}).fetchone()  # noqa: S608
            return int(row[0])

    def prune(self, *, max_bytes: int | None = None, max_age_days: float | None = None) -> int:
        """Drop the oldest finished changes until the rest is small and young enough.

        Args:
            max_bytes: Stored bytes of contents; None for any.
            max_age_days: Of the oldest change; None for any.

        Returns:
            How many were dropped.
        """
        dropped = 0
        with self._transaction(durable=False) as database:
            if max_age_days is not None:
                oldest = (datetime.now(UTC) - timedelta(days=max_age_days)).isoformat(timespec="milliseconds")
                dropped += drop(database, _finished(database, "AND at < ?", (oldest,)))
            while max_bytes is not None and blobs.size(database) > max_bytes:
                eldest = _finished(database, "ORDER BY seq LIMIT 16")
                if not eldest:
                    break
                dropped += drop(database, eldest)
        if dropped:
            with self.reading() as database:
                database.execute("PRAGMA incremental_vacuum").fetchall()
        return dropped

    def shut(self) -> None:
        """Close the file."""
        with self._guard:
            self._database.close()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Lend the database to one thread.

        Raises:
            StorageError: The file can't be read.
        """
        with self._guard, _named(self.path):
            yield self._database

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        with self.reading() as database:
            database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise


def open_journal(folder: Path) -> Journal:
    """Open a vault's journal, and make it where there is none.

    Args:
        folder: The vault's state folder; it exists.

    Raises:
        StorageError: The file is damaged, can't be opened, or a newer version made it.
    """
    path = folder / FILE
    with _named(path):
        database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        database.row_factory = sqlite3.Row
        try:
            _prepare(database, path)
        except BaseException:
            database.close()
            raise
        return Journal(database, path)


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    if _version(database) > VERSION:
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if _version(database) < VERSION:
        with lock.hold(path.parent, timeout_s=BUSY_S):
            if _version(database) < VERSION:
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                database.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "COMMIT;")
    database.execute("PRAGMA foreign_keys = ON")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def drop(database: sqlite3.Connection, change_ids: Iterable[str]) -> int:
    """Delete changes with their steps, and contents that nothing else names."""
    doomed = list(change_ids)
    for change_id in doomed:
        rows = database.execute("SELECT before, after FROM steps WHERE change = ?", (change_id,)).fetchall()
        database.execute("DELETE FROM changes WHERE id = ?", (change_id,))
        blobs.drop_unused(database, (name for row in rows for name in row))
    return len(doomed)


def _finished(database: sqlite3.Connection, rest: str, values: tuple[object, ...] = ()) -> list[str]:
    found = database.execute(f"SELECT id FROM changes WHERE phase = 'done' {rest}", values)  # noqa: S608
    return [row["id"] for row in found.fetchall()]


def _change(database: sqlite3.Connection, row: sqlite3.Row) -> Change:
    found = database.execute("SELECT * FROM steps WHERE change = ? ORDER BY number", (row["id"],))
    return records.change(row, undoes=_undoes(database, row["id"]), steps=map(records.step, found.fetchall()))


def _undoes(database: sqlite3.Connection, change_id: str) -> list[str]:
    found = database.execute("SELECT undone FROM undoes WHERE change = ?", (change_id,))
    return [row["undone"] for row in found.fetchall()]


def _toggle(database: sqlite3.Connection, change_id: str) -> None:
    """Turn a change to undone or back, and what it had taken back itself the other way."""
    database.execute("UPDATE changes SET undone = 1 - undone WHERE id = ?", (change_id,))
    for inner in _undoes(database, change_id):
        _toggle(database, inner)


def _set_phase(database: sqlite3.Connection, change_id: str, phase: Phase) -> None:
    database.execute("UPDATE changes SET phase = ? WHERE id = ?", (phase, change_id))


@contextmanager
def _named(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"the journal '{path}' can't be used: {error}",
            hint="check the disk's free space and the folder's permissions",
        ) from error
