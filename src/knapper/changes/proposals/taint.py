"""Taint: which clients and runs have read text that others wrote, until a person clears them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from knapper.changes.disk import storage
from knapper.changes.disk.storage import SharedDatabase
from knapper.errors import RefusedError
from knapper.vault.access import Grants

FILE = "taint.db"
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE taints (
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    at TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (client, run)
) WITHOUT ROWID;
"""
_APPLIES = "(run <> '' AND run = :run) OR (run = '' AND client = :client)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """Since when a client or run may only propose, and why."""

    client: str
    run: str
    """Empty for the client itself: it counts outside of runs and sessions, and in each of them."""
    at: datetime
    source: str
    """The first note or address with foreign text that was read."""


class Taints:
    """Open list of tainted clients and runs; `open_taints` returns one."""

    def __init__(self, own: SharedDatabase, also_marked: str = "") -> None:
        """Wrap an open file."""
        self._ledger = own
        self._also_marked = also_marked

    def shared_with(self, client: str) -> "Taints":
        """Return the same list for an agent that works for a client: what taints the agent taints the client too."""
        return Taints(self._ledger, client)

    def mark(self, client: str, run: str, source: str) -> bool:
        """Record that foreign text was read.

        Args:
            client: Who read it.
            run: The run or session that it was read in; empty where there is none.
            source: The note or address.

        Returns:
            True if this wasn't recorded before.
        """
        if self._also_marked:
            _ = self._mark(self._also_marked, "", source)
        return self._mark(client, run, source)

    def is_tainted(self, client: str, run: str = "") -> bool:
        """Return whether a client, or the run or session that it works in, has read foreign text.

        All clients of one run share what one of them has read; what a client read outside of runs counts in each.
        """
        with self._ledger.reading() as database:
            sql = f"SELECT 1 FROM taints WHERE {_APPLIES}"  # noqa: S608  # a constant of this module
            return database.execute(sql, {"client": client, "run": run}).fetchone() is not None

    def entries(self) -> tuple[Taint, ...]:
        """Return the tainted clients and runs, the newest first."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT * FROM taints ORDER BY at DESC, client, run").fetchall()
        return tuple(
            Taint(client=row["client"], run=row["run"], at=datetime.fromisoformat(row["at"]), source=row["source"])
            for row in rows
        )

    def clear(self, client: str, run: str = "", *, by: Grants) -> bool:
        """Remove the taint of a client or run.

        Args:
            client: Whose entry.
            run: Which run's; empty for the entry of the client itself.
            by: The grants of whoever clears it.

        Returns:
            True if there was such an entry.

        Raises:
            RefusedError: It isn't a person.
        """
        if not by.is_person:
            raise RefusedError("only a person can clear who has read foreign text", hint="use the command line or page")
        with self._ledger.writing() as database:
            cursor = database.execute("DELETE FROM taints WHERE client = ? AND run = ?", (client, run))
            return cursor.rowcount > 0

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _mark(self, client: str, run: str, source: str) -> bool:
        values = {"client": client, "run": run, "at": datetime.now(UTC).isoformat(), "source": source}
        # A read spares a client that is tainted already the durable write, which waits for the disk.
        with self._ledger.reading() as database:
            known = "SELECT 1 FROM taints WHERE client = :client AND run = :run"
            if database.execute(known, values).fetchone():
                return False
        with self._ledger.writing() as database:
            cursor = database.execute("INSERT OR IGNORE INTO taints VALUES (:client, :run, :at, :source)", values)
            return cursor.rowcount > 0


def open_taints(folder: Path) -> Taints:
    """Open a vault's list, and make it where there is none.

    Args:
        folder: The vault's state folder; it exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Taints(storage.open_shared_database(folder / FILE, _SCHEMA, SCHEMA_VERSION))
