"""Write the files in which earlier versions kept sessions, runs, paused runs and presets."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from knapper.agents.work_store import WORK_FILE, client_key

SESSIONS: Final = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, file TEXT NOT NULL, file_hash TEXT NOT NULL, file_node TEXT NOT NULL,
    name TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL, forked_from TEXT NOT NULL, head TEXT NOT NULL,
    head_upto INTEGER NOT NULL, cleared INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_file ON sessions (file) WHERE kind = 'file';
CREATE UNIQUE INDEX sessions_none ON sessions (kind) WHERE kind = 'none';
CREATE TABLE turns (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, number INTEGER NOT NULL, at TEXT NOT NULL,
    file TEXT NOT NULL, question TEXT NOT NULL, messages TEXT NOT NULL, outcome TEXT NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
"""
RUNS: Final = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL
);
CREATE INDEX runs_created ON runs (created);
CREATE TABLE nodes (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
    state TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run, id)
) WITHOUT ROWID;
CREATE TABLE cache (number INTEGER PRIMARY KEY, key TEXT NOT NULL, sources TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX cache_key ON cache (key);
"""
PAUSED: Final = """
CREATE TABLE paused (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, at TEXT NOT NULL, question TEXT NOT NULL, request TEXT NOT NULL,
    state TEXT NOT NULL
) WITHOUT ROWID;
"""
PRESETS: Final = """
CREATE TABLE presets (key TEXT PRIMARY KEY, name TEXT NOT NULL, said TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE switches (name TEXT PRIMARY KEY, is_on INTEGER NOT NULL) WITHOUT ROWID;
"""
_SCHEMAS: Final = {"sessions.db": SESSIONS, "task_runs.db": RUNS, "paused.db": PAUSED, "presets.db": PRESETS}

Row = Sequence[object]


def write(path: Path, rows: Mapping[str, Sequence[Row]]) -> None:
    """Write a file with rows, by table, as a version that was closed left it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {_SCHEMAS[path.name]} PRAGMA user_version = 1; BEGIN"
        )
        for table, values in rows.items():
            for row in values:
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        database.execute("COMMIT")


def session(name: str, *, file: str = "", kind: str = "own", updated: str = "2026-03-14T08:26:53+00:00") -> Row:
    """Return a row of a session."""
    created, title = "2026-03-01T08:00:00+00:00", f"about {name}"
    return (name, kind, file, "sha256:1", "1:2:3", title, created, updated, "", "[]", 0, 0)


def turn(name: str, number: int = 1, *, answer: str = "That.") -> Row:
    """Return a row of a turn."""
    outcome = f'{{"answer": "{answer}", "run_id": ""}}'
    return (name, number, f"2026-03-14T08:{number % 60:02}:00+00:00", "", f"question {number}", "[]", outcome)


def folder_of(folder: Path, client: str) -> Path:
    """Return the folder that a client had."""
    return folder / "chats" / client_key(client)


def split(folder: Path) -> None:
    """Distribute what the one file holds over the files of earlier versions, and remove it."""
    with closing(sqlite3.connect(folder / WORK_FILE)) as database:
        sessions = "id, kind, file, file_hash, file_node, name, created, updated, forked_from, head, head_upto, cleared"
        contents: dict[str, dict[str, Sequence[Row]]] = {
            "sessions.db": {
                "sessions": database.execute(f"SELECT {sessions} FROM sessions WHERE client_key = ''").fetchall(),
                "turns": database.execute("SELECT * FROM turns").fetchall(),
            },
            "task_runs.db": {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in ("runs", "nodes")},
        }
    for suffix in ("", "-wal", "-shm"):
        Path(f"{folder / WORK_FILE}{suffix}").unlink(missing_ok=True)
    for name, rows in contents.items():
        write(folder / name, rows)
