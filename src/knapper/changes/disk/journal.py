"""Journal of changes: each is recorded before it is made, in one SQLite file per vault."""

import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal

from knapper.changes.disk import plan, storage
from knapper.changes.disk.plan import ChangeMeta, FileResult, Step
from knapper.errors import NotFound, StorageError

Phase = Literal["staging", "ready", "applied", "done"]
"""Progress of a change. *Staging*: its temp files are being written. *Ready*: names are being changed. *Applied*: it is
in effect, and its leftovers are being deleted. *Done*: it is finished."""

STEP_COLUMNS = "kind, source, target, source_at, target_at, before, after, mode, temp, inode, is_folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change as recorded in the journal."""

    id: str
    phase: Phase
    at: datetime
    """When it began, in UTC."""
    client: str
    run: str
    reason: str
    proposal: str
    undone: bool
    """Whether a later undo took it back (and wasn't taken back itself)."""
    undoes: tuple[str, ...]
    """Ids of the changes that this one took back; empty for any change but an undo."""
    steps: tuple[Step, ...]

    @property
    def files(self) -> tuple[FileResult, ...]:
        """The result of the change for each file."""
        return plan.file_results(self.steps)


def read_change_row(row: sqlite3.Row, *, undoes: Iterable[str], steps: Iterable[Step]) -> Change:
    """Build a change from its row, and from its rows in the other tables."""
    return Change(
        id=row["id"],
        phase=row["phase"],
        at=datetime.fromisoformat(row["at"]),
        client=row["client"],
        run=row["run"],
        reason=row["reason"],
        proposal=row["proposal"],
        undone=bool(row["undone"]),
        undoes=tuple(undoes),
        steps=tuple(steps),
    )


def read_step_row(row: sqlite3.Row) -> Step:
    """Build a step from its row."""
    facts = {name: row[name] for name in STEP_COLUMNS.split(", ")}
    facts["is_folder"] = bool(facts["is_folder"])
    return Step(**facts)


_STEP_VALUES: Final = attrgetter(*STEP_COLUMNS.split(", "))
"""Returns a step's values in the order of the columns; `astuple` takes ten times as long."""

SCHEMA_VERSION: Final = 3
BUSY_S: Final = 10.0
_MOST_WAL_BYTES: Final = 16_000_000
"""Size to which the write-ahead log is cut after a large change."""
_SCHEMA: Final = f"""
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
CREATE TABLE IF NOT EXISTS pruned (
    id TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    run TEXT NOT NULL,
    proposal TEXT NOT NULL,
    held INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS unfinished ON changes(phase) WHERE phase <> 'done';
CREATE INDEX IF NOT EXISTS by_client ON changes(client);
CREATE INDEX IF NOT EXISTS by_run ON changes(run) WHERE run <> '';
CREATE INDEX IF NOT EXISTS by_proposal ON changes(proposal) WHERE proposal <> '';
CREATE INDEX IF NOT EXISTS by_source ON steps(source);
CREATE INDEX IF NOT EXISTS by_target ON steps(target);
CREATE INDEX IF NOT EXISTS by_before ON steps(before) WHERE before IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_after ON steps(after) WHERE after IS NOT NULL;
{storage.BLOB_SCHEMA}
PRAGMA user_version = {SCHEMA_VERSION};
"""


def prepare_journal(database: sqlite3.Connection, path: Path) -> None:
    """Create missing tables, and set the options of the connection.

    Raises:
        StorageError: A newer version made the file.
    """
    if storage.schema_version(database) > SCHEMA_VERSION:
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if storage.schema_version(database) < SCHEMA_VERSION:
        with storage.hold_write_lock(path.parent, timeout_s=BUSY_S):
            # Checked again under the lock: another process may have made the tables meanwhile.
            if storage.schema_version(database) < SCHEMA_VERSION:
                # SQLite takes this setting only before the first table is made.
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                _make_tables(database)
    database.execute("PRAGMA foreign_keys = ON")
    database.execute(f"PRAGMA journal_size_limit = {_MOST_WAL_BYTES}").fetchone()


def _make_tables(database: sqlite3.Connection) -> None:
    database.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "COMMIT;")


def add_change(database: sqlite3.Connection, change_id: str, at: str, meta: ChangeMeta, steps: Iterable[Step]) -> None:
    """Record a change that is about to be made."""
    database.execute(
        "INSERT INTO changes (id, phase, at, client, run, reason, proposal) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (change_id, "staging", at, meta.client, meta.run, meta.reason, meta.proposal),
    )
    names = STEP_COLUMNS
    database.executemany(
        f"INSERT INTO steps (change, number, {names}) VALUES (?, ?{', ?' * len(names.split(', '))})",  # noqa: S608
        [(change_id, number, *_STEP_VALUES(step)) for number, step in enumerate(steps)],
    )
    database.executemany("INSERT INTO undoes VALUES (?, ?)", [(change_id, undone) for undone in meta.undoes])


def read_change(database: sqlite3.Connection, row: sqlite3.Row) -> Change:
    """Return the change of a row of the table ``changes``, with its steps."""
    step_rows = database.execute("SELECT * FROM steps WHERE change = ? ORDER BY number", (row["id"],))
    return read_change_row(row, undoes=undone_ids(database, row["id"]), steps=map(read_step_row, step_rows.fetchall()))


def undone_ids(database: sqlite3.Connection, change_id: str) -> list[str]:
    """Return the ids of the changes that a change took back."""
    rows = database.execute("SELECT undone FROM undoes WHERE change = ?", (change_id,))
    return [row["undone"] for row in rows.fetchall()]


def toggle_undone(database: sqlite3.Connection, change_id: str) -> None:
    """Mark a change as undone or as in effect again, and the changes that it took back itself as the opposite."""
    database.execute("UPDATE changes SET undone = 1 - undone WHERE id = ?", (change_id,))
    for inner in undone_ids(database, change_id):
        toggle_undone(database, inner)


def set_phase(database: sqlite3.Connection, change_id: str, phase: Phase) -> None:
    """Record the progress of a change."""
    database.execute("UPDATE changes SET phase = ? WHERE id = ?", (phase, change_id))


def delete_change(database: sqlite3.Connection, change_id: str) -> int:
    """Delete a change with its steps, and contents that nothing else uses; return how many bytes were freed."""
    rows = database.execute("SELECT before, after FROM steps WHERE change = ?", (change_id,)).fetchall()
    database.execute("DELETE FROM changes WHERE id = ?", (change_id,))
    return storage.drop_unused_blobs(database, (name for row in rows for name in row))


_RECORD_PRUNED: Final = """INSERT OR IGNORE INTO pruned
    SELECT id, at, run, proposal, undone = 0 AND id NOT IN (SELECT change FROM undoes) FROM changes WHERE id = ?"""
"""``held`` is 1 for a change that was still in effect; one that was undone, or an undo, is no loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedChange:
    """A change that the journal had to drop."""

    id: str
    at: str
    """When it was made, in the journal's format."""


def prune_by_age(database: sqlite3.Connection, oldest: str) -> int:
    """Drop the finished changes that were made before a time; return how many."""
    rows = database.execute("SELECT id FROM changes WHERE phase = 'done' AND at < ?", (oldest,)).fetchall()
    for row in rows:
        _drop_change(database, row["id"])
    return len(rows)


def prune_by_size(database: sqlite3.Connection, max_bytes: int) -> int:
    """Drop finished changes, the oldest first, until the contents fit into *max_bytes*; return how many.

    The newest is kept whatever its size, so that it can be undone.
    """
    size = storage.blob_bytes(database)
    if size <= max_bytes:
        return 0
    rows = database.execute("SELECT id FROM changes WHERE phase = 'done' ORDER BY seq").fetchall()
    dropped = 0
    for row in rows[:-1]:
        if size <= max_bytes:
            break
        size -= _drop_change(database, row["id"])
        dropped += 1
    return dropped


def find_pruned(database: sqlite3.Connection, where: str, values: Mapping[str, object]) -> list[PrunedChange]:
    """Return the dropped changes that match a condition of constant SQL over the table, newest first."""
    rows = database.execute(f"SELECT id, at FROM pruned WHERE {where} ORDER BY at DESC", values)  # noqa: S608
    return [PrunedChange(id=row["id"], at=row["at"]) for row in rows.fetchall()]


def _drop_change(database: sqlite3.Connection, change_id: str) -> int:
    database.execute(_RECORD_PRUNED, (change_id,))
    return delete_change(database, change_id)


JOURNAL_FILE = "journal.db"
_COUNT_UNMADE: Final = "SELECT count(*) FROM changes INDEXED BY unfinished WHERE phase <> 'done' AND phase <> 'applied'"
_PRUNE_SHARE = 20


class Journal:
    """Open journal of a vault; threads may share it, processes have one each."""

    def __init__(self, database: sqlite3.Connection, path: Path, *, is_read_only: bool = False) -> None:
        """Wrap an open database; use `open_journal`."""
        self.is_read_only = is_read_only
        """The disk can't be written: the journal can only be read."""
        self._database = database
        self._guard = threading.RLock()
        self._max_bytes: int | None = None
        self._grown = 0
        self._is_recorded = False
        self.path = path

    def begin(self, change_id: str, meta: ChangeMeta, steps: Iterable[Step]) -> None:
        """Record the change before its temp files are written."""
        self._record_use()
        # Not synced: a record lost in a power cut leaves only temp files, and no name has changed yet.
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction(durable=False) as database:
            add_change(database, change_id, at, meta, steps)

    def _record_use(self) -> None:
        """Leave a trace beside the file: emptied, it would be taken for a new one where it has no backup."""
        if not self._is_recorded:
            storage.record_use(self.path)
            self._is_recorded = True

    def ready(self, change_id: str, contents: Mapping[str, bytes]) -> None:
        """Store what the change replaces and writes, and record that names change from here on."""
        with self._transaction() as database:
            self._grown += sum(storage.put_blob(database, name, content) for name, content in contents.items())
            set_phase(database, change_id, "ready")

    def applied(self, change_id: str, *, durable: bool = True) -> None:
        """Record that the change is in effect, and that what it undoes is undone.

        Args:
            change_id: Which.
            durable: False doesn't wait for the disk; enough for one step, whose outcome recovery can see in the file.
        """
        with self._transaction(durable=durable) as database:
            set_phase(database, change_id, "applied")
            for undone in undone_ids(database, change_id):
                toggle_undone(database, undone)

    def close(self, change_id: str) -> None:
        """Record that nothing of the change is left over."""
        with self._transaction(durable=False) as database:
            set_phase(database, change_id, "done")
        if self._max_bytes is not None and self._grown > self._max_bytes // _PRUNE_SHARE:
            self.prune(max_bytes=self._max_bytes)

    def forget(self, change_id: str) -> None:
        """Delete the record of a change that wasn't made, or was taken back at once."""
        with self._transaction(durable=False) as database:
            applied_row = database.execute(
                "SELECT 1 FROM changes WHERE id = ? AND phase = 'applied'", (change_id,)
            ).fetchone()
            for undone in undone_ids(database, change_id) if applied_row else ():
                toggle_undone(database, undone)
            delete_change(database, change_id)

    def unfinished(self) -> list[Change]:
        """Return the changes that a kill or a failure interrupted, oldest first."""
        with self.reading() as database:
            # By itself SQLite reads all changes for their order, so that each edit takes longer in a longer journal.
            found = database.execute(
                "SELECT * FROM changes INDEXED BY unfinished WHERE phase <> 'done' ORDER BY seq"
            ).fetchall()
            return [read_change(database, row) for row in found]

    def show(self, change_id: str) -> Change:
        """Return a change with its steps.

        Raises:
            NotFound: The journal has none of this id.
        """
        with self.reading() as database:
            row = database.execute("SELECT * FROM changes WHERE id = ?", (change_id,)).fetchone()
            if row is None:
                raise self.missing(change_id)
            return read_change(database, row)

    def missing(self, change_id: str) -> NotFound:
        """Build the error for a change that isn't in the journal."""
        return NotFound(f"no change '{change_id}' in the journal", hint="list the journal for its changes")

    def content(self, name: str) -> bytes:
        """Return the content of a hash.

        Raises:
            NotFound: The journal doesn't hold it.
        """
        with self.reading() as database:
            return storage.get_blob(database, name)

    def select(self, where: str, values: Mapping[str, object] | None = None) -> list[Change]:
        """Return the changes that match a condition of SQL over the table ``changes``.

        Args:
            where: Constant text of this package, with ``ORDER BY`` and ``LIMIT`` where wanted; never a caller's.
            values: For its placeholders, such as ``:run``.
        """
        with self.reading() as database:
            rows = database.execute(f"SELECT * FROM changes WHERE {where}", values or {}).fetchall()  # noqa: S608
            return [read_change(database, row) for row in rows]

    def count(self, where: str, values: Mapping[str, object] | None = None) -> int:
        """Return how many changes `select` would return."""
        with self.reading() as database:
            row = database.execute(f"SELECT count(*) FROM changes WHERE {where}", values or {}).fetchone()  # noqa: S608
            return int(row[0])

    def count_applied(self, where: str = "", values: Mapping[str, object] | None = None) -> int:
        """Return how many changes match a condition, of those that were made; where it is empty, of all.

        The few unfinished ones are taken away again, so that SQLite needs the rows' phase of none: without a condition
        it counts pages, and with one the entries of an index.
        """
        condition, more = (f" WHERE {where}", f" AND {where}") if where else ("", "")
        with self.reading() as database:
            sql = f"SELECT (SELECT count(*) FROM changes{condition}) - ({_COUNT_UNMADE}{more})"  # noqa: S608
            return int(database.execute(sql, values or {}).fetchone()[0])

    def limit(self, *, max_bytes: int, max_age_days: float) -> int:
        """Prune now, and by size again after each growth by a twentieth of the limit; return how many were dropped."""
        self._max_bytes = max_bytes
        return self.prune(max_bytes=max_bytes, max_age_days=max_age_days)

    def prune(self, *, max_bytes: int | None = None, max_age_days: float | None = None) -> int:
        """Drop the oldest finished changes until the rest is small and young enough.

        Args:
            max_bytes: Stored bytes of contents; None for any. The newest change stays, however large it is.
            max_age_days: Of the oldest change; None for any.

        Returns:
            How many were dropped.
        """
        dropped = 0
        with self._transaction(durable=False) as database:
            if max_age_days is not None:
                oldest = (datetime.now(UTC) - timedelta(days=max_age_days)).isoformat(timespec="milliseconds")
                dropped += prune_by_age(database, oldest)
            if max_bytes is not None:
                dropped += prune_by_size(database, max_bytes)
                self._grown = 0
        if dropped:
            with self.reading() as database:
                # `execute` would free a single page: it stops at the pragma's first row.
                database.executescript("PRAGMA incremental_vacuum")
        return dropped

    def pruned(self, where: str, values: Mapping[str, object] | None = None) -> list[PrunedChange]:
        """Return the changes that `prune` dropped, newest first; the condition is as for `select`."""
        with self.reading() as database:
            return find_pruned(database, where, values or {})

    def shut(self) -> None:
        """Close the file."""
        with self._guard:
            self._database.close()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Yield the database to one thread at a time.

        Raises:
            StorageError: The file can't be read.
        """
        with self._guard, _storage_errors(self.path):
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
    """Open a vault's journal, and create it where there is none.

    Args:
        folder: The vault's state folder; it exists.

    Raises:
        StorageError: The file is damaged, can't be opened, or a newer version made it.
    """
    path = folder / JOURNAL_FILE
    if not path.exists():  # whoever deleted it wants a new one
        storage.forget_use(path)
    storage.check_emptied(path)
    with _storage_errors(path):
        database, is_read_only = storage.open_or_read(
            path,
            lambda database: prepare_journal(database, path),
            version=SCHEMA_VERSION,
            make_tables=lambda database, _: _make_tables(database),
        )
        return Journal(database, path, is_read_only=is_read_only)


@contextmanager
def _storage_errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise storage.storage_error(error, f"the journal '{path}'") from error
