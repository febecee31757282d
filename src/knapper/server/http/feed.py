"""Tell what happens in a vault: changes to notes, what waits for a person, what has been settled; and what happened."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from knapper.agents import work_store
from knapper.agents.stages import SCHEDULES_FILE, Schedule
from knapper.app import history
from knapper.app.history import EntryKind, HistoryPage, HistoryQuery
from knapper.app.schedules import list_visible
from knapper.errors import NotFound, StorageError
from knapper.jsontypes import JSONValue
from knapper.server import logs, security, workers
from knapper.server.http import background, openapi, schedules, tasks
from knapper.server.http.app import Mount
from knapper.server.http.background import ServerSentEvent
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, count_parameter
from knapper.server.http.openapi import BOOLEAN, INTEGER, STRING, RouteSpec
from knapper.tools import answers, journal, proposals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from knapper.app import Hub
    from knapper.app.client_runs import ClientRuns
    from knapper.server.http.background import JobService
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import StopSignal, WorkerThreads


LOG: Final = logging.getLogger("knapper.server.http.feed")
LOOK_INTERVAL_S: Final = 0.2
"""How often is looked for news while somebody listens."""
_MAX_KEPT: Final = 1_000
_PAGE: Final = 100
_WAITING_STATUSES: Final = ("open", "stale")
_VAULT_FILES: Final = ("journal.db", "proposals.db")
_STATE_FILES: Final = (*_VAULT_FILES, "checkpoints.db", work_store.WORK_FILE, SCHEDULES_FILE)
"""What changes with them, or with their write-ahead logs, is news.

A question is stored before its run says that it asks: without the runs, whoever looks between would never hear of it.
"""
_VAULT_STAMPS: Final = 2 * len(_VAULT_FILES)
"""How many stamps, from the first, are those of the journal and the proposals: each file's, and its log's."""

WaitingSource = Callable[[str, str], Awaitable[Sequence[Mapping[str, JSONValue]]]]
"""Lists what waits for a client in a vault: rows with ``kind`` and ``id``."""
_Row = dict[str, JSONValue]
_Key = tuple[str, str]


class VaultFeed:
    """The news of one vault for one client; used from the server's event loop.

    Nothing is read while nobody listens; what happened meanwhile is told to the next one who does.
    """

    def __init__(
        self, hub: Hub, threads: WorkerThreads, client: str, vault: str, sources: Sequence[WaitingSource]
    ) -> None:
        """Start empty.

        Args:
            hub: The vaults.
            threads: Where they are read.
            client: Who listens.
            vault: The vault's name.
            sources: List what waits beside proposals.
        """
        self._hub = hub
        self._threads = threads
        self._client = client
        self._vault = vault
        self._sources = sources
        self._lock = asyncio.Lock()
        # By the clock, so that no id of an earlier run of the server is taken for one of this.
        self._last_id = int(time.time() * 1_000)
        self._events: deque[ServerSentEvent] = deque(maxlen=_MAX_KEPT)
        self._first_known_id = self._last_id
        self._waiting: dict[_Key, _Row] = {}
        self._proposals: list[_Row] = []
        """Those that wait, as they were read last."""
        self._schedules: dict[str, Schedule] = {}
        self._last_change: _Row | None = None
        self._seen_changes: set[str] = set()
        self._stamp: tuple[tuple[int, int], ...] | None = None
        self._looked_at = 0.0

    async def look(self) -> None:
        """Read what is new, unless that was done just before."""
        async with self._lock:
            if self._stamp is not None and time.monotonic() - self._looked_at < LOOK_INTERVAL_S / 2:
                return
            folder = await self._threads.run("read", lambda: self._hub.open(self._vault).folder)
            stamp = await self._threads.run("read", partial(_stamp_files, folder))
            if stamp != self._stamp:
                known, before = self._schedules, self._stamp
                is_first = before is None
                # Each turn of a chat and each step of a run is stored, too: for these, what is costly isn't read again.
                if before is None or before[:_VAULT_STAMPS] != stamp[:_VAULT_STAMPS]:
                    changes, self._proposals = await self._threads.run("read", self._read_vault)
                    for change in [] if is_first else changes:
                        self._tell("change", change)
                await self._read_waiting(is_first=is_first)
                await self._read_schedules(is_first=is_first)
                if before and before[-2:] != stamp[-2:] and self._schedules == known:
                    # One came and went since the last look, and a client may have read it meanwhile: have all who
                    # listen told what there is now, so that they read again what isn't told in events.
                    self._last_id += 1
                    self._first_known_id = self._last_id
                    self._events.clear()
                self._stamp = stamp
            self._looked_at = time.monotonic()

    def events_after(self, last_id: int) -> list[ServerSentEvent]:
        """Return the events after one; where that isn't known, what there is now."""
        if not self._first_known_id <= last_id <= self._last_id:
            waiting: list[JSONValue] = [*self._waiting.values()]
            data: _Row = {"type": background.START_EVENT, "vault": self._vault, "waiting": waiting}
            data["last_change"] = self._last_change
            return [ServerSentEvent(id=self._last_id, name=background.START_EVENT, data=data)]
        return [event for event in self._events if event.id > last_id]

    async def wait_for_events(self, last_id: int, wait_s: float, stop: StopSignal) -> list[ServerSentEvent]:
        """Return the events after one, and wait for the first of them; empty if none came in time."""
        deadline = time.monotonic() + wait_s
        while True:
            await self.look()
            events = self.events_after(last_id)
            left_s = deadline - time.monotonic()
            if events or left_s <= 0 or stop.is_cancelled:
                return events
            await asyncio.sleep(min(LOOK_INTERVAL_S, left_s))

    async def _read_waiting(self, *, is_first: bool) -> None:
        """Tell what waits newly, otherwise or no more: the proposals as they were read last, and the sources' rows."""
        rows = [*self._proposals]
        for source in self._sources:
            rows += [dict(row) for row in await source(self._client, self._vault)]
        waiting = {(str(row["kind"]), str(row["id"])): row for row in rows}
        if not is_first:
            for row in (row for key, row in waiting.items() if self._waiting.get(key) != row):
                self._tell("waiting", row)
            for kind, name in self._waiting.keys() - waiting.keys():
                self._tell("settled", {"kind": kind, "id": name})
        self._waiting = waiting

    async def _read_schedules(self, *, is_first: bool) -> None:
        try:
            found = await self._threads.run("read", lambda: list_visible(self._hub, self._client, self._vault))
        except StorageError as error:  # /schedules tells of it; whoever listens hears of all else
            LOG.warning("the schedules of a vault can't be read: %s", error.code)
            return
        by_name = {one.name: one for one in found}
        for name in [] if is_first else sorted(self._schedules.keys() | by_name.keys()):
            one = by_name.get(name)
            if one != self._schedules.get(name):
                self._tell("schedule", {"name": name, "schedule": schedules.describe(one) if one else None})
        self._schedules = by_name

    def _tell(self, name: str, row: Mapping[str, JSONValue]) -> None:
        self._last_id += 1
        if len(self._events) == self._events.maxlen:
            self._first_known_id = self._events[0].id
        self._events.append(ServerSentEvent(id=self._last_id, name=name, data={**row, "type": name}))

    def _read_vault(self) -> tuple[list[_Row], list[_Row]]:
        """Return the new changes, the oldest first, and the proposals that wait."""
        context = self._hub.context(client=self._client, vault=self._vault)
        since = str(self._last_change["at"]) if self._last_change else ""
        rows: list[_Row] = []
        while True:
            changes = journal.list_changes(context, limit=_PAGE if self._stamp else 1, offset=len(rows), since=since)
            rows += map(answers.as_json, changes["results"])
            if not self._stamp or not changes["results"] or len(rows) >= changes["total"]:
                break
        new_rows = [row for row in reversed(rows) if str(row["id"]) not in self._seen_changes]
        if rows:
            self._last_change = rows[0]
            self._seen_changes = {str(row["id"]) for row in rows if row["at"] == rows[0]["at"]} | (
                self._seen_changes if rows[0]["at"] == since else set()
            )
        waiting: list[_Row] = []
        for status in _WAITING_STATUSES:
            found: list[_Row] = []
            while True:
                page = proposals.list_proposals(context, status, limit=_PAGE, offset=len(found))
                found += map(answers.as_json, page["results"])
                if len(found) >= page["total"] or not page["results"]:
                    break
            waiting += [{"kind": "proposal", **row} for row in found]
        return new_rows, waiting


def _stamp_files(folder: Path) -> tuple[tuple[int, int], ...]:
    """Return times and sizes of the files whose changes are news; the last two are those of the schedules."""
    stamps: list[tuple[int, int]] = []
    for name in (f"{state}{suffix}" for state in _STATE_FILES for suffix in ("", "-wal")):
        try:
            found = (folder / name).stat()
            stamps.append((found.st_mtime_ns, found.st_size))
        except OSError:
            stamps.append((0, 0))
    return tuple(stamps)


class FeedService:
    """The feeds of one server; used from its event loop."""

    def __init__(self, hub: Hub, threads: WorkerThreads, stop: StopSignal, sources: Sequence[WaitingSource]) -> None:
        """Start empty; the arguments are those of `mount_feed`."""
        self.stop = stop
        self._hub = hub
        self._threads = threads
        self._sources = sources
        self._feeds: dict[_Key, VaultFeed] = {}

    def open(self, client: str, vault: str) -> VaultFeed:
        """Return the feed of a client in a vault.

        Raises:
            NotFound: There is no such vault, or none that the client may open.
        """
        name = self._hub.name_for(client, vault)
        feed = self._feeds.get((client, name))
        if feed is None:
            feed = self._feeds[client, name] = VaultFeed(self._hub, self._threads, client, name, self._sources)
        return feed


_PARAMETERS: Final = (*background.EVENT_PARAMETERS, VAULT_PARAMETER)
_CONTENT: Final[Mapping[str, Any]] = background.events_content(
    "FeedEvent",
    "`start` comes first, with all that is `waiting` and the `last_change`; then `change` for each in the journal; "
    "`waiting` for what waits for a person newly or otherwise than before, with its `kind` (`proposal`, `task`, "
    "`run`) and `id`; `settled` for what doesn't wait any more; and for persons `schedule`, with the `name` of a "
    "schedule that was changed, and it as /schedules shows it, or null where it was removed.",
    openapi.object_schema({"type": {"enum": ["start", "change", "waiting", "settled", "schedule"]}}),
)


def mount_feed(hub: Hub, threads: WorkerThreads, stop: StopSignal, sources: Sequence[WaitingSource] = ()) -> Mount:
    """Create the mount for ``/events``.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where they are read; the caller closes them.
        stop: Set when the server stops.
        sources: List what waits beside proposals, such as questions of tasks; read when somebody listens.
    """
    service = FeedService(hub, threads, stop, sources)

    async def tell(request: Request, args: RequestArguments) -> Response:
        """Tell what happens in a vault.

        As a stream, after `Last-Event-ID`; or as JSON. After an id that isn't known any more, `start` comes again.
        """
        feed = service.open(security.client_of(request.scope), args.text("vault"))
        if background.is_polled(args):
            after = args.integer_or_default("after", 0)
            waiting = feed.wait_for_events(after, args.number("wait") or 0.0, service.stop)
            events = await workers.run_unless_disconnected(request.receive, waiting)
            return background.polled_reply(events, after, has_ended=False)
        await feed.look()  # so that what can't be read is an error, and no stream that breaks off
        headers = {**security.REPLY_HEADERS, "x-accel-buffering": "no"}
        frames = _encode_frames(feed, background.last_event_id(request), service.stop)
        return StreamingResponse(frames, media_type="text/event-stream", headers=headers)

    spec = openapi.bind_route("GET", "/events", "events", tell, _PARAMETERS, _CONTENT)
    return Mount(routes=[openapi.make_route(spec)])


async def _encode_frames(feed: VaultFeed, last_id: int, stop: StopSignal) -> AsyncGenerator[bytes]:
    while not stop.is_cancelled:
        events = await feed.wait_for_events(last_id, background.HEARTBEAT_S, stop)
        for event in events:
            last_id = event.id
            yield event.encode()
        if not events:
            yield background.HEARTBEAT


_CHECKPOINTS_FILE: Final = "checkpoints.db"


def task_source(hub: Hub, service: JobService) -> WaitingSource:
    """Return a function that lists the tasks which wait for an answer: rows of the kind ``task``."""

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        if not await service.run_blocking(lambda: work_store.has_any(hub.open(vault).folder, "paused")):
            return []
        client_pipelines = await service.client_pipelines(client, vault)
        runs = await tasks.list_waiting_runs(service, client_pipelines)
        return [{"kind": "task", "id": run.run_id, **run.as_dict()} for run in runs]

    return source


def run_source(hub: Hub, service: JobService) -> WaitingSource:
    """Return a function that lists the questions of runs which nobody has answered: rows of the kind ``run``."""

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        if not await service.run_blocking(lambda: (hub.open(vault).folder / _CHECKPOINTS_FILE).exists()):
            return []
        client_runs = await service.client_runs(client, vault)
        return await service.run_blocking(lambda: _list_questions(client_runs))

    return source


def _list_questions(client_runs: ClientRuns) -> list[dict[str, JSONValue]]:
    rows: list[dict[str, JSONValue]] = []
    run_ids = dict.fromkeys(checkpoint.run for checkpoint in client_runs.opened_runs.checkpoints.waiting())
    for run_id in run_ids:
        try:
            questions = client_runs.questions(run_id)
            if questions:
                _ = client_runs.show(run_id)  # whoever is told what a tainted run asks has read what it read
        except NotFound:  # another client's
            continue
        for question in questions:
            row = {**question.as_dict(), "kind": "run", "run_id": run_id}
            del row["type"]
            rows.append(row)
    return rows


_HISTORY_PARAMETERS: Final = (
    count_parameter("limit", f"How many at most; {history.LIMIT} where it is left out.", 1, 500),
    Parameter(name="before", doc="Only what was before a time, or the `next` of another page."),
    Parameter(name="since", doc="Only from this time on, such as 2026-01-31T12:00.", maximum=100),
    Parameter(name="client", doc="Only steps of this client.", maximum=200),
    Parameter(name="run", doc="Only the work of this run, session, proposal or change, by its id.", maximum=200),
    Parameter(name="kind", doc="Only steps of this kind.", choices=history.KINDS),
    Parameter(name="note", doc="Only steps about this note, by its path or name, or about notes below this folder."),
    VAULT_PARAMETER,
)
_HISTORY_CONTENT: Final = openapi.json_content(
    {
        "results": list[history.Entry],
        "limit": INTEGER,
        "more": BOOLEAN,
        "next": {**STRING, "description": "What to give as `before` for the next page; empty where there is none."},
        "notes": {**openapi.STRINGS, "description": "What couldn't be read, why, and what to do."},
    }
)


def history_routes(hub: Hub, service: JobService) -> tuple[RouteSpec, ...]:
    """List the route of the history.

    Args:
        hub: Holds the vaults.
        service: Has their runs.
    """

    async def list_entries(request: Request, args: RequestArguments) -> Response:
        """List what was asked, found, proposed, accepted, rejected, changed and undone, the latest first.

        A client is shown what it sees of sessions, runs, proposals and changes. What has the same `work` belongs
        together.
        """
        client, vault = security.client_of(request.scope), args.text("vault")
        has_runs = await service.run_blocking(lambda: history.has_runs(hub, hub.name_for(client, vault)))
        client_runs, run_error = None, None
        try:
            client_runs = await service.client_runs(client, vault) if has_runs else None
        except StorageError as error:  # the page says so
            run_error = error
        kinds: frozenset[EntryKind] = frozenset(kind for kind in history.KINDS if args.text("kind") in {"", kind})
        query = HistoryQuery(
            limit=args.integer_or_default("limit", history.LIMIT),
            before=args.text("before"),
            since=args.text("since"),
            client=args.text("client"),
            work=args.text("run"),
            kinds=kinds,
            note=args.text("note"),
        )

        def read_page() -> HistoryPage:
            store = client_runs.opened_runs.store if client_runs else None
            seen = client_runs.seen_clients() if client_runs else ()
            with history.open_for_client(
                hub, client, vault, runs=store, run_clients=seen, run_error=run_error
            ) as sources:
                return history.read_page(sources, query)

        page = await service.run_blocking(read_page)
        unread = [logs.redact_error(request.scope, error) for error in page.unread]
        return security.JsonReply(replace(page, unread=unread).as_dict())

    return (openapi.bind_route("GET", "/history", "history", list_entries, _HISTORY_PARAMETERS, _HISTORY_CONTENT),)
