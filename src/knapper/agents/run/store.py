"""Keep runs, their nodes and the cache in SQLite; several threads and processes may."""

import json
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from knapper.agents.run.nodes import Node
from knapper.agents.run.records import Order, Run, RunState
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import Ambiguous, NotFound

FILE: Final = "task_runs.db"
VERSION: Final = 1
KEPT_ENTRIES: Final = 5_000
"""Of the cache; the oldest go first."""
_BEGINNING: Final = timedelta(minutes=1)
"""How long a run may take from being kept to being carried out."""
_SCHEMA: Final = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    data TEXT NOT NULL
);
CREATE INDEX runs_created ON runs (created);
CREATE TABLE nodes (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run, id)
) WITHOUT ROWID;
CREATE TABLE cache (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    sources TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX cache_key ON cache (key);
"""
_CLIENT: Final = "coalesce(json_extract(data, '$.order.client'), 'cli')"
"""Runs of before there were others are the person's at the terminal."""
_OF: Final = f":clients IS NULL OR {_CLIENT} IN (SELECT value FROM json_each(:clients))"  # noqa: S608 - constants of this module
_NODE: Final = TypeAdapter(Node)
_RUN: Final = TypeAdapter(Run)


class Store:
    """Hold the open file; `open_store` makes one."""

    def __init__(self, own: SharedDatabase) -> None:
        """Wrap an open file."""
        self._ledger = own

    def begin(self, order: Order, model: str, root: Node) -> Run:
        """Keep a new run, not begun yet."""
        now = datetime.now(UTC)
        run = Run(id=_new_id(now), order=order, model=model, state="pending", created=now, updated=now)
        with self._ledger.writing() as database:
            database.execute(
                "INSERT INTO runs (id, state, created, updated, data) VALUES (?, ?, ?, ?, ?)",
                (run.id, run.state, now.isoformat(), now.isoformat(), _RUN.dump_json(run).decode()),
            )
            _put(database, run.id, [root])
        return run

    def get(self, run_id: str) -> Run:
        """Give a run by its id, or by how that begins.

        Raises:
            NotFound: There is none (code ``no_run``).
            Ambiguous: Several begin so.
        """
        with self._ledger.reading() as database:
            return _run(_need(database, run_id))

    def save(self, run: Run, nodes: Sequence[Node] = ()) -> Run:
        """Keep a run as it is now, and some of its nodes."""
        run = replace(run, updated=datetime.now(UTC))
        with self._ledger.writing() as database:
            database.execute(
                "UPDATE runs SET state = ?, updated = ?, data = ? WHERE id = ?",
                (run.state, run.updated.isoformat(), _RUN.dump_json(run).decode(), run.id),
            )
            _put(database, run.id, nodes)
        return run

    def put(self, run_id: str, *nodes: Node) -> None:
        """Keep nodes as they are now, all or none."""
        with self._ledger.writing() as database:
            _put(database, run_id, nodes)

    def nodes(self, run_id: str) -> list[Node]:
        """List a run's nodes, in the order in which they came to be."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT data FROM nodes WHERE run = ? ORDER BY number", (run_id,)).fetchall()
        return [_NODE.validate_json(row["data"]) for row in rows]

    def runs(
        self, *, limit: int = 50, offset: int = 0, clients: Sequence[str] | None = None
    ) -> tuple[Sequence[Run], int]:
        """List runs, the last begun first; tells how many there are, too.

        Args:
            limit: How many at most.
            offset: How many are passed over.
            clients: Those on whose behalf they are; None for everybody.
        """
        given = {"limit": limit, "offset": offset, "clients": None if clients is None else json.dumps(list(clients))}
        with self._ledger.reading() as database:
            total = int(database.execute(f"SELECT count(*) FROM runs WHERE {_OF}", given).fetchone()[0])  # noqa: S608 - the same
            rows = database.execute(
                f"SELECT data FROM runs WHERE {_OF} ORDER BY created DESC, id LIMIT :limit OFFSET :offset",  # noqa: S608 - the same
                given,
            ).fetchall()
        return [_run(row) for row in rows], total

    def clients(self) -> dict[str, list[str]]:
        """List those on whose behalf there are runs, each with the other vaults that these look through."""
        found: dict[str, list[str]] = {}
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT DISTINCT {_CLIENT} AS client, also.value AS vault FROM runs"  # noqa: S608 - the same
                " LEFT JOIN json_each(data, '$.order.also') AS also ORDER BY client, vault"
            ).fetchall()
        for row in rows:
            vaults = found.setdefault(str(row["client"]), [])
            if row["vault"] is not None:
                vaults.append(str(row["vault"]))
        return found

    def delete(self, run_id: str) -> None:
        """Forget a run; what it wrote stays, and can be undone."""
        with self._ledger.writing() as database:
            database.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def prune(self, max_days: float) -> int:
        """Forget runs that nobody has touched for so long; tells how many."""
        oldest = (datetime.now(UTC) - timedelta(days=max_days)).isoformat()
        with self._ledger.writing() as database:
            return database.execute("DELETE FROM runs WHERE updated < ?", (oldest,)).rowcount

    def ask_to_cancel(self, run_id: str, *, wanted: bool = True) -> None:
        """Note that a run is to end, for the process that carries it out."""
        with self._ledger.writing() as database:
            database.execute("UPDATE runs SET cancel = ? WHERE id = ?", (int(wanted), run_id))

    def is_to_cancel(self, run_id: str) -> bool:
        """Tell whether a run is to end."""
        with self._ledger.reading() as database:
            row = database.execute("SELECT cancel FROM runs WHERE id = ?", (run_id,)).fetchone()
        return row is None or bool(row["cancel"])

    def remember(self, key: str, sources: str, data: str) -> None:
        """Put something into the cache.

        Args:
            key: Identifies what it was made from, the notes apart.
            sources: The notes, as JSON.
            data: What is kept.
        """
        with self._ledger.writing() as database:
            database.execute("DELETE FROM cache WHERE key = ? AND sources = ?", (key, sources))
            database.execute("INSERT INTO cache (key, sources, data) VALUES (?, ?, ?)", (key, sources, data))
            database.execute("DELETE FROM cache WHERE number <= (SELECT max(number) FROM cache) - ?", (KEPT_ENTRIES,))

    def recall(self, key: str) -> list[tuple[str, str]]:
        """List what the cache has under a key, the newest first: the notes as JSON, and what was kept."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT sources, data FROM cache WHERE key = ? ORDER BY number DESC", (key,))
            return [(row["sources"], row["data"]) for row in rows.fetchall()]

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()


def open_store(folder: Path) -> Store:
    """Open the runs in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Store(open_shared_database(folder / FILE, _SCHEMA, VERSION))


def resting(run: Run, *, is_held: Callable[[str], bool]) -> Run:
    """Give a run as it really stands: one that says it goes on, and doesn't, was interrupted."""
    state: RunState = "interrupted"
    soon = run.state == "pending" and datetime.now(UTC) - run.updated < _BEGINNING
    goes_on = run.state in {"pending", "running"} and not soon
    return replace(run, state=state) if goes_on and not is_held(run.id) else run


def _put(database: sqlite3.Connection, run_id: str, nodes: Sequence[Node]) -> None:
    for node in nodes:
        database.execute(
            "INSERT INTO nodes VALUES (:run, :id, (SELECT count(*) FROM nodes WHERE run = :run), :state, :data)"
            " ON CONFLICT (run, id) DO UPDATE SET state = :state, data = :data",
            {"run": run_id, "id": node.id, "state": node.state, "data": _NODE.dump_json(node).decode()},
        )


def _need(database: sqlite3.Connection, run_id: str) -> sqlite3.Row:
    shown = run_id[:80]
    rows = database.execute(
        "SELECT id, data FROM runs WHERE substr(id, 1, length(:id)) = :id LIMIT 3", {"id": run_id}
    ).fetchall()
    found = [row for row in rows if row["id"] == run_id] or rows
    if not found or not run_id:
        raise NotFound(f"there is no run '{shown}'", hint="`knap run list` names them", code="no_run")
    if len(found) > 1:
        raise Ambiguous(f"several runs begin with '{shown}'", hint=", ".join(str(row["id"]) for row in found))
    return found[0]


def _run(row: sqlite3.Row) -> Run:
    return _RUN.validate_json(row["data"])


def _new_id(now: datetime) -> str:
    """Make an id that sorts by time: ``r260314-092653-a1b2c3d4``."""
    return f"r{now:%y%m%d-%H%M%S}-{secrets.token_hex(4)}"
