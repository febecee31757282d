"""Lay out the tables of the journal, and bring older ones up to date."""

import sqlite3
from pathlib import Path
from typing import Final

from knapper.changes.disk import blobs, lock
from knapper.errors import StorageError

VERSION: Final = 2
BUSY_S: Final = 10.0
_MOST_WAL_BYTES: Final = 16_000_000
"""What the file beside the journal may keep of the disk once a large change is through."""
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
CREATE INDEX IF NOT EXISTS by_run ON changes(run) WHERE run <> '';
CREATE INDEX IF NOT EXISTS by_proposal ON changes(proposal) WHERE proposal <> '';
CREATE INDEX IF NOT EXISTS by_source ON steps(source);
CREATE INDEX IF NOT EXISTS by_target ON steps(target);
CREATE INDEX IF NOT EXISTS by_before ON steps(before) WHERE before IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_after ON steps(after) WHERE after IS NOT NULL;
{blobs.SCHEMA}
PRAGMA user_version = {VERSION};
"""


def prepare(database: sqlite3.Connection, path: Path) -> None:
    """Make the tables that aren't there, and set how the file is used.

    Raises:
        StorageError: A newer version made the file.
    """
    if _version(database) > VERSION:
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if _version(database) < VERSION:
        with lock.hold(path.parent, timeout_s=BUSY_S):
            if _version(database) < VERSION:
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                database.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "COMMIT;")
    database.execute("PRAGMA foreign_keys = ON")
    database.execute(f"PRAGMA journal_size_limit = {_MOST_WAL_BYTES}").fetchone()


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
