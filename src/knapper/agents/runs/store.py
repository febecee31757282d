"""Store task runs and their cache in SQLite, lock and watch runs, and keep the tree of nodes of a running one."""

import json
import secrets
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import TypeAdapter

from knapper.agents.events import FinalEventSpec
from knapper.agents.runs import model
from knapper.agents.runs.model import (
    ENDED,
    ROOT,
    NodeChanged,
    NodeRow,
    NodeState,
    RunDetails,
    RunDone,
    RunEvent,
    RunEventSink,
    RunNode,
    RunOrder,
    RunRecord,
    RunStarted,
)
from knapper.agents.work_store import WorkStore
from knapper.changes.disk.storage import WorkLocks
from knapper.codemode.checkpoints import Checkpoint
from knapper.codemode.tasks import ModelSpend
from knapper.errors import Ambiguous, ConflictError, NotFound

RUN_LOCK_FOLDER: Final = "runs"
MAX_CACHE_ENTRIES: Final = 5_000
"""Entries of the cache; the oldest are deleted first."""
_START_GRACE: Final = timedelta(minutes=1)
"""How long a run may take from being stored to being started."""
_CLIENT_SQL: Final = "coalesce(json_extract(data, '$.order.client'), 'cli')"
"""Runs that were stored before there were clients belong to the person at the terminal."""
_CLIENT_FILTER: Final = f":clients IS NULL OR {_CLIENT_SQL} IN (SELECT value FROM json_each(:clients))"  # noqa: S608 - constants of this module
_NODE_ADAPTER: Final = TypeAdapter(RunNode)
_RUN_ADAPTER: Final = TypeAdapter(RunRecord)


class RunStore:
    """The runs of a vault in an open file."""

    def __init__(self, work: WorkStore) -> None:
        """Use an open file.

        Raises:
            StorageError: An earlier version's file of the runs can't be migrated.
        """
        self._ledger = work.database_with("runs")
        self._locks = WorkLocks(work.folder / RUN_LOCK_FOLDER)

    @contextmanager
    def lock(self, run_id: str) -> Generator[None]:
        """Lock a stored run; the system releases the lock where the process ends.

        Raises:
            ConflictError: Another process is carrying it out (code ``run_busy``).
        """
        lock = self._locks.acquire(run_id)
        if lock is None:
            raise ConflictError(
                f"the run {run_id} is being carried out already",
                hint=f"`knap run cancel {run_id}` ends it",
                code="run_busy",
            )
        try:
            yield
        finally:
            lock.release()

    def begin(self, order: RunOrder, model: str, root: RunNode) -> RunRecord:
        """Store a new run, which isn't started yet."""
        now = datetime.now(UTC)
        # An id that sorts by time: ``r260314-092653-a1b2c3d4``.
        run_id = f"r{now:%y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        run = RunRecord(id=run_id, order=order, model=model, state="pending", created=now, updated=now)
        with self._ledger.writing() as database:
            database.execute(
                "INSERT INTO runs (id, state, created, updated, data) VALUES (?, ?, ?, ?, ?)",
                (run.id, run.state, now.isoformat(), now.isoformat(), _RUN_ADAPTER.dump_json(run).decode()),
            )
            _put_nodes(database, run.id, [root])
        return run

    def get(self, run_id: str) -> RunRecord:
        """Return a run by its id, or by the beginning of its id.

        Raises:
            NotFound: There is no such run (code ``no_run``).
            Ambiguous: Several ids begin like that.
        """
        with self._ledger.reading() as database:
            # With LIKE, a percent sign or underscore in the given id would match anything.
            rows = database.execute(
                "SELECT id, data FROM runs WHERE substr(id, 1, length(:id)) = :id LIMIT 3", {"id": run_id}
            ).fetchall()
            matches = [row for row in rows if row["id"] == run_id] or rows
            if not matches or not run_id:
                raise NotFound(f"there is no run '{run_id[:80]}'", hint="`knap run list` names them", code="no_run")
            if len(matches) > 1:
                raise Ambiguous(
                    f"several runs begin with '{run_id[:80]}'", hint=", ".join(str(row["id"]) for row in matches)
                )
            return _read_run(matches[0])

    def save(self, run: RunRecord, nodes: Sequence[RunNode] = ()) -> RunRecord:
        """Store the current state of a run, and of some of its nodes."""
        run = replace(run, updated=datetime.now(UTC))
        with self._ledger.writing() as database:
            database.execute(
                "UPDATE runs SET state = ?, updated = ?, data = ? WHERE id = ?",
                (run.state, run.updated.isoformat(), _RUN_ADAPTER.dump_json(run).decode(), run.id),
            )
            _put_nodes(database, run.id, nodes)
        return run

    def put(self, run_id: str, *nodes: RunNode) -> None:
        """Store the current state of nodes in one transaction."""
        with self._ledger.writing() as database:
            _put_nodes(database, run_id, nodes)

    def nodes(self, run_id: str) -> list[RunNode]:
        """List a run's nodes in the order in which they were created."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT data FROM nodes WHERE run = ? ORDER BY number", (run_id,)).fetchall()
        return [_NODE_ADAPTER.validate_json(row["data"]) for row in rows]

    def show(self, run_id: str) -> RunDetails:
        """Return a run in its actual state, with its nodes; raises as `get` does."""
        run = self.get(run_id)
        return RunDetails(run=self._with_actual_state(run), nodes=self.nodes(run.id))

    def node(self, run_id: str, node_id: str) -> RunNode:
        """Return a run's node with all its details.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        for node in self.nodes(self.get(run_id).id):
            if node.id == node_id:
                return node
        hint = "`knap run trace tree` names them"
        raise NotFound(f"the run has no node '{node_id[:40]}'", hint=hint, code="no_node")

    def runs(
        self, *, limit: int = 50, offset: int = 0, clients: Sequence[str] | None = None
    ) -> tuple[Sequence[RunRecord], int]:
        """List runs in their actual state, the last created first, with the total number.

        Args:
            limit: Maximum number of runs.
            offset: Number of runs to skip.
            clients: The clients whose runs are listed; None for all.
        """
        parameters = {
            "limit": limit,
            "offset": offset,
            "clients": None if clients is None else json.dumps(list(clients)),
        }
        with self._ledger.reading() as database:
            total = int(database.execute(f"SELECT count(*) FROM runs WHERE {_CLIENT_FILTER}", parameters).fetchone()[0])  # noqa: S608 - the same
            rows = database.execute(
                f"SELECT data FROM runs WHERE {_CLIENT_FILTER} ORDER BY created DESC, id LIMIT :limit OFFSET :offset",  # noqa: S608 - the same
                parameters,
            ).fetchall()
        return [self._with_actual_state(_read_run(row)) for row in rows], total

    def latest(
        self, *, until: datetime | None, clients: Sequence[str] | None, run_id: str = "", limit: int, offset: int = 0
    ) -> list[RunRecord]:
        """List runs that were created until a time, the last updated first, without counting the others.

        Args:
            until: The time; None for all.
            clients: As for `runs`.
            run_id: Only this run; empty for all.
            limit: Maximum number of runs.
            offset: Number of runs to skip.
        """
        parameters = {
            "until": until.astimezone(UTC).isoformat() if until else "",
            "clients": None if clients is None else json.dumps(list(clients)),
            "run": run_id,
            "limit": limit,
            "offset": offset,
        }
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT data FROM runs WHERE ({_CLIENT_FILTER}) AND (:until = '' OR created <= :until)"  # noqa: S608 - the same
                " AND (:run = '' OR id = :run) ORDER BY updated DESC, id DESC LIMIT :limit OFFSET :offset",
                parameters,
            ).fetchall()
        return [_read_run(row) for row in rows]

    def clients(self) -> dict[str, list[str]]:
        """Return the clients that have runs, with the names of the other vaults that these search."""
        vaults_by_client: dict[str, list[str]] = {}
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT DISTINCT {_CLIENT_SQL} AS client, also.value AS vault FROM runs"  # noqa: S608 - the same
                " LEFT JOIN json_each(data, '$.order.also') AS also ORDER BY client, vault"
            ).fetchall()
        for row in rows:
            vaults = vaults_by_client.setdefault(str(row["client"]), [])
            if row["vault"] is not None:
                vaults.append(str(row["vault"]))
        return vaults_by_client

    def delete(self, run_id: str) -> None:
        """Delete a run; the notes that it wrote stay, and can be undone.

        Raises:
            NotFound: There is no such run.
            ConflictError: It is running.
        """
        run = self.get(run_id)
        with self.lock(run.id), self._ledger.writing() as database:
            database.execute("DELETE FROM runs WHERE id = ?", (run.id,))

    def prune(self, max_days: float) -> int:
        """Delete runs that weren't updated for so many days, and return how many."""
        oldest = (datetime.now(UTC) - timedelta(days=max_days)).isoformat()
        if self._ledger.is_read_only:
            return 0
        with self._ledger.writing() as database:
            return database.execute("DELETE FROM runs WHERE updated < ?", (oldest,)).rowcount

    def cancel(self, run_id: str) -> bool:
        """Request a run's cancellation, in whichever process it runs, and return whether one does.

        Raises:
            NotFound: There is no such run.
        """
        run = self.get(run_id)
        if not self._is_locked(run.id):
            return False
        self.ask_to_cancel(run.id)
        return True

    def ask_to_cancel(self, run_id: str, *, wanted: bool = True) -> None:
        """Request a run's cancellation, for the process that carries it out."""
        with self._ledger.writing() as database:
            database.execute("UPDATE runs SET cancel = ? WHERE id = ?", (int(wanted), run_id))

    def is_to_cancel(self, run_id: str) -> bool:
        """Return whether a run's cancellation is requested, or the run was deleted."""
        with self._ledger.reading() as database:
            row = database.execute("SELECT cancel FROM runs WHERE id = ?", (run_id,)).fetchone()
        return row is None or bool(row["cancel"])

    def remember(self, key: str, sources: str, data: str) -> None:
        """Add an entry to the cache.

        Args:
            key: A digest of everything but the notes that it was made from.
            sources: The notes, as JSON.
            data: The entry.
        """
        with self._ledger.writing() as database:
            database.execute("DELETE FROM cache WHERE key = ? AND sources = ?", (key, sources))
            database.execute("INSERT INTO cache (key, sources, data) VALUES (?, ?, ?)", (key, sources, data))
            database.execute(
                "DELETE FROM cache WHERE number <= (SELECT max(number) FROM cache) - ?", (MAX_CACHE_ENTRIES,)
            )

    def recall(self, key: str) -> list[tuple[str, str]]:
        """List the entries of a key, the newest first: the notes as JSON, and the entry."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT sources, data FROM cache WHERE key = ? ORDER BY number DESC", (key,))
            return [(row["sources"], row["data"]) for row in rows.fetchall()]

    def mark_interrupted(self, run: RunRecord) -> RunRecord:
        """Return a run with the state *interrupted*, where it is stored as running but nobody carries it out."""
        # A run that was stored just now isn't locked yet: its process is about to start it.
        soon = run.state == "pending" and datetime.now(UTC) - run.updated < _START_GRACE
        goes_on = run.state in {"pending", "running"} and not soon
        return replace(run, state="interrupted") if goes_on and not self._is_locked(run.id) else run

    def _with_actual_state(self, run: RunRecord) -> RunRecord:
        marked = self.mark_interrupted(run)
        if marked is run:
            return run
        # The run may have ended between reading its state and probing its lock.
        current = self.get(run.id)
        return marked if current.state == run.state else current

    def _is_locked(self, run_id: str) -> bool:
        """Return whether a run is being carried out in any process."""
        try:
            return self._locks.is_held(run_id)
        except OSError:  # a lock that this user may not take: what is stored of the run counts
            return True


def _put_nodes(database: sqlite3.Connection, run_id: str, nodes: Sequence[RunNode]) -> None:
    for node in nodes:
        database.execute(
            "INSERT INTO nodes VALUES (:run, :id, (SELECT count(*) FROM nodes WHERE run = :run), :state, :data)"
            " ON CONFLICT (run, id) DO UPDATE SET state = :state, data = :data",
            {"run": run_id, "id": node.id, "state": node.state, "data": _NODE_ADAPTER.dump_json(node).decode()},
        )


def _read_run(row: sqlite3.Row) -> RunRecord:
    return _RUN_ADAPTER.validate_json(row["data"])


class RunTree:
    """The nodes of a run that is carried out; for one event loop."""

    def __init__(self, store: RunStore, run: RunRecord, nodes: Iterable[RunNode], emit: RunEventSink) -> None:
        """Reset a run's nodes to *pending*, and remember their previous states."""
        self._store = store
        self._run = run
        self._emit = emit
        before = list(nodes)
        self._previous_states: dict[str, NodeState] = {node.id: node.state for node in before}
        self._nodes: dict[str, RunNode] = {}
        for node in before:
            # Whoever broke off while it was at something didn't say when.
            spans = tuple(span for span in node.spans if span.ended is not None)
            reset = replace(node, state="pending", reason="", spans=spans)
            # What broke off at a limit is tried once more.
            if node.limited:
                reset = replace(reset, split=None, why="", limited="", inputs="")
            if node.found and node.found.limited:
                reset = replace(reset, found=None, inputs="")
            self._nodes[node.id] = reset

    @property
    def all(self) -> list[RunNode]:
        """List all nodes, parents before children."""
        return list(self._nodes.values())

    @property
    def root(self) -> RunNode:
        """Return the root node."""
        return self._nodes[ROOT]

    @property
    def spent(self) -> ModelSpend:
        """Return the total cost of the nodes; each counts only its own cost."""
        return model.total_spent(self._nodes.values())

    def get(self, node_id: str) -> RunNode:
        """Return the current state of a node."""
        return self._nodes[node_id]

    def get_many(self, ids: Iterable[str]) -> list[RunNode]:
        """Return the current state of nodes."""
        return [self._nodes[one] for one in ids]

    def children(self, node: RunNode) -> list[RunNode]:
        """Return the children of a node."""
        return self.get_many(node.children)

    def subtree(self, node_id: str) -> list[RunNode]:
        """Return a node and all nodes below it."""
        node = self._nodes[node_id]
        return [node, *(one for child in node.children for one in self.subtree(child))]

    def previous_state(self, node_id: str) -> NodeState:
        """Return a node's state before the run was resumed."""
        return self._previous_states.get(node_id, "pending")

    def change(self, node_id: str, doing: str = "", /, **changes: Any) -> RunNode:  # noqa: ANN401 - fields of a node
        """Change a node, store it, and report the change.

        Args:
            node_id: The node's id.
            doing: The current activity.
            changes: The changed fields.
        """
        node = replace(self._nodes[node_id], **changes)
        spans = model.continue_spans(node.spans, doing, datetime.now(UTC), has_ended=node.state in ENDED)
        node = self._nodes[node_id] = replace(node, spans=spans)
        self._store.put(self._run.id, node)
        self._emit(NodeChanged(node=node.brief(), doing=doing))
        return node

    def grow(self, node: RunNode, children: Sequence[RunNode]) -> None:
        """Add children to a node in one transaction."""
        self._nodes[node.id] = node
        self._nodes |= {child.id: child for child in children}
        self._store.put(self._run.id, node, *children)
        for one in (node, *children):
            self._emit(NodeChanged(node=one.brief()))

    def forget(self, *ids: str) -> None:
        """Reset nodes' answers, so that they are worked on again; plans stay."""
        for node_id in ids:
            node = self._nodes[node_id]
            self._previous_states[node_id] = "pending"
            self._nodes[node_id] = replace(node, found=None, answer="", inputs="", asking=None, cached=False, spans=())

    def cut(self, reason: str) -> None:
        """End all nodes below the root that haven't ended."""
        for node in self.all:
            if node.id != ROOT and node.state not in ENDED:
                _ = self.change(node.id, state="cut", reason=reason)

    def lost(self) -> list[RunNode]:
        """List the nodes below the root without an answer, or with a part of one for a reason of their own."""
        return model.list_unanswered(self._nodes.values())

    def tell(self, event: RunEvent) -> None:
        """Report an event other than a node's change."""
        self._emit(event)

    def tell_usage(self) -> None:
        """Report what was used so far."""
        self._emit(model.make_usage_event(self._nodes.values()))


class RunWatcher:
    """The reported state of one run, from which new events are derived."""

    def __init__(self) -> None:
        """Begin with nothing reported."""
        self._has_begun = False
        self._nodes: dict[str, NodeRow] = {}
        self._asked: set[str] = set()
        self._spent = ModelSpend()

    def new_events(
        self, run: RunRecord, nodes: Sequence[RunNode], waiting: Iterable[Checkpoint] = ()
    ) -> list[RunEvent]:
        """Return the events since the last call; where the run has ended, `RunDone` comes last.

        Args:
            run: The run in its actual state.
            nodes: Its stored nodes.
            waiting: Its open questions to a person.
        """
        events: list[RunEvent] = (
            [] if self._has_begun else [RunStarted(run=run.brief(), resumed=run.state != "pending")]
        )
        self._has_begun = True
        for node in nodes:
            brief = node.brief()
            if self._nodes.get(node.id) != brief:
                self._nodes[node.id] = brief
                events.append(NodeChanged(node=brief))
        # New questions, and answers to earlier ones.
        waiting_ids = {one.id for one in waiting}
        for node in nodes:
            if node.asking is None or node.found is None:
                continue
            is_open = not node.asking.answer and not node.asking.unattended
            key = f"{node.id} {is_open}"
            if key in self._asked or (is_open and node.found.checkpoint not in waiting_ids):
                continue
            self._asked.add(key)
            events.append(model.make_checkpoint_event(node, node.asking))
        spent = model.total_spent(nodes)
        if spent != self._spent:
            self._spent = spent
            events.append(model.make_usage_event(nodes))
        if run.state not in {"pending", "running"}:
            events.append(model.make_done_event(run, nodes))
        return events


WATCHED_KEPT_S: Final = 30.0
"""How long the events of another process's run are kept after its end."""
RUN_END: Final = FinalEventSpec(
    kind=RunDone,
    make=lambda state, run_id: RunDone(
        run_id=run_id, state="cancelled" if state == "cancelled" else "failed", answer=""
    ),
)
"""What ends a run that is carried out."""
WATCH_END: Final = FinalEventSpec(
    kind=RunDone, make=lambda _, run_id: RunDone(run_id=run_id, state="running", answer="")
)
"""What ends the following of another process's run, which doesn't stop with it."""
