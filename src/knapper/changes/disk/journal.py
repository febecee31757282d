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

from knapper.changes.disk import blobs, journal_rows, journal_schema, pruning
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.pruning import Pruned
from knapper.changes.disk.records import Change
from knapper.changes.disk.steps import Step
from knapper.errors import NotFound, StorageError

FILE = "journal.db"
_SHARE = 20


class Journal:
    """Hold the open journal of a vault; threads may share it, and processes have one each."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        """Wrap an open database; `open_journal` makes one."""
        self._database = database
        self._guard = threading.RLock()
        self._max_bytes: int | None = None
        self._grown = 0
        self.path = path

    def begin(self, change_id: str, meta: Meta, steps: Iterable[Step]) -> None:
        """Note which temp files are about to be written."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction(durable=False) as database:
            journal_rows.add(database, change_id, at, meta, steps)

    def ready(self, change_id: str, contents: Mapping[str, bytes]) -> None:
        """Keep what the change replaces and writes, and note that names change from here on."""
        with self._transaction() as database:
            self._grown += sum(blobs.put(database, name, content) for name, content in contents.items())
            journal_rows.set_phase(database, change_id, "ready")

    def applied(self, change_id: str, *, durable: bool = True) -> None:
        """Note that the change holds, and that what it undoes is undone.

        Args:
            change_id: Which.
            durable: False spares the wait for the disk, where the one file tells by itself what became of the change.
        """
        with self._transaction(durable=durable) as database:
            journal_rows.set_phase(database, change_id, "applied")
            for undone in journal_rows.undoes(database, change_id):
                journal_rows.toggle(database, undone)

    def close(self, change_id: str) -> None:
        """Note that nothing of the change is left over."""
        with self._transaction(durable=False) as database:
            journal_rows.set_phase(database, change_id, "done")
        if self._max_bytes is not None and self._grown > self._max_bytes // _SHARE:
            self.prune(max_bytes=self._max_bytes)

    def forget(self, change_id: str) -> None:
        """Take out a change that wasn't made, or was taken back just after it had been."""
        with self._transaction(durable=False) as database:
            held = database.execute("SELECT 1 FROM changes WHERE id = ? AND phase = 'applied'", (change_id,)).fetchone()
            for undone in journal_rows.undoes(database, change_id) if held else ():
                journal_rows.toggle(database, undone)
            journal_rows.drop(database, change_id)

    def unfinished(self) -> list[Change]:
        """List the changes that a kill or a failure cut short, oldest first."""
        with self.reading() as database:
            rows = database.execute("SELECT * FROM changes WHERE phase <> 'done' ORDER BY seq").fetchall()
            return [journal_rows.read(database, row) for row in rows]

    def show(self, change_id: str) -> Change:
        """Give a change with its steps.

        Raises:
            NotFound: The journal has none of this id.
        """
        with self.reading() as database:
            row = database.execute("SELECT * FROM changes WHERE id = ?", (change_id,)).fetchone()
            if row is None:
                raise self.missing(change_id)
            return journal_rows.read(database, row)

    def missing(self, change_id: str) -> NotFound:
        """Make the error that says that there is no such change."""
        return NotFound(f"no change '{change_id}' in the journal", hint="list the journal for its changes")

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
            return [journal_rows.read(database, row) for row in rows]

    def count(self, where: str, values: Mapping[str, object] | None = None) -> int:
        """Count what `select` gives."""
        with self.reading() as database:
            row = database.execute(f"SELECT count(*) FROM changes WHERE {where}", values or {}).fetchone()  # noqa: S608
            return int(row[0])

    def limit(self, *, max_bytes: int, max_age_days: float) -> int:
        """Prune now, and by size again whenever a twentieth of that came in; tell how many changes were dropped."""
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
                dropped += pruning.by_age(database, oldest)
            if max_bytes is not None:
                dropped += pruning.by_size(database, max_bytes)
                self._grown = 0
        if dropped:
            with self.reading() as database:
                database.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page and no more
        return dropped

    def pruned(self, where: str, values: Mapping[str, object] | None = None) -> list[Pruned]:
        """List the changes that `prune` dropped, newest first; the condition is as for `select`."""
        with self.reading() as database:
            return pruning.find(database, where, values or {})

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
        database = sqlite3.connect(path, timeout=journal_schema.BUSY_S, isolation_level=None, check_same_thread=False)
        database.row_factory = sqlite3.Row
        try:
            journal_schema.prepare(database, path)
        except BaseException:
            database.close()
            raise
        return Journal(database, path)


@contextmanager
def _named(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"the journal '{path}' can't be used: {error}",
            hint="check the disk's free space and the folder's permissions",
        ) from error
