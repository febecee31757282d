"""Serve schedules over HTTP: list, make, change, pause, run, cancel and remove them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from starlette.requests import Request
from starlette.responses import Response

from knapper.agents import stages as stored_schedules
from knapper.agents.stages import WEEKDAYS, Cadence, RunState, Schedule
from knapper.app import clients, schedules
from knapper.errors import ConflictError, NotFound, RefusedError
from knapper.server import security
from knapper.server.http import binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import RouteSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from starlette.types import Scope

    from knapper.agents.stages import ScheduleStore
    from knapper.app import Hub
    from knapper.app.schedules import ScheduleRunner
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import WorkerThreads

LOG: Final = logging.getLogger("knapper.server.http.schedules")
_CREATED: Final = 201
_ACCEPTED: Final = 202
_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
_BOOLEAN: Final[Mapping[str, Any]] = {"type": "boolean"}
_FIELDS: Final[Mapping[str, str]] = {
    "agent": "agent",
    "cadence": "cadence",
    "at": "at",
    "weekday": "weekday",
    "folder": "folder",
    "client": "client",
    "tokens": "max_tokens",
    "minutes": "max_minutes",
    "results": "results",
    "max_open": "max_open",
    "apply": "may_apply",
    "paused": "is_paused",
}
"""A schedule's fields, by the names of the parameters that set them."""
_NAME_PARAMETER: Final = Parameter(
    name="name", doc="Small letters, digits and hyphens; the agent's name where it is left out.", maximum=40
)
_EDIT_PARAMETERS: Final = (
    Parameter(name="cadence", doc="When it is due.", choices=get_args(Cadence)),
    Parameter(name="at", doc="Time of the day by the server's clock, such as 18:00.", maximum=5),
    Parameter(name="weekday", doc="For `weekly`.", choices=WEEKDAYS),
    Parameter(name="folder", doc="For `changed`: whose notes count; empty for the whole vault."),
    Parameter(name="client", doc="On whose behalf the agent works; never a person.", maximum=200),
    Parameter(
        name="tokens",
        doc="Most tokens of one run.",
        kind="count",
        minimum=stored_schedules.TOKEN_RANGE[0],
        maximum=stored_schedules.TOKEN_RANGE[1],
    ),
    Parameter(
        name="minutes",
        doc="Most time of one run.",
        kind="count",
        minimum=stored_schedules.MINUTE_RANGE[0],
        maximum=stored_schedules.MINUTE_RANGE[1],
    ),
    Parameter(name="results", doc="Folder for the reports; empty for none."),
    Parameter(
        name="max_open",
        doc="Nothing is done while so many of its proposals wait.",
        kind="count",
        minimum=stored_schedules.OPEN_RANGE[0],
        maximum=stored_schedules.OPEN_RANGE[1],
    ),
    Parameter(name="apply", doc="Apply what the rules of agent and client both allow; only for the page.", kind="flag"),
    Parameter(name="paused", doc="Do nothing until it is false again; what is missed isn't caught up.", kind="flag"),
)
_NEW_PARAMETERS: Final = (
    Parameter(name="agent", doc="Which agent works; /agents lists them.", required=True, maximum=40),
    _NAME_PARAMETER,
    *_EDIT_PARAMETERS,
    VAULT_PARAMETER,
)
_CHANGE_PARAMETERS: Final = (
    Parameter(name="agent", doc="Which agent works; /agents lists them.", maximum=40),
    *_EDIT_PARAMETERS,
    VAULT_PARAMETER,
)
_BY_VAULT: Final = (VAULT_PARAMETER,)
_RUN_SCHEMA: Final[Mapping[str, Any]] = openapi.object_schema(
    {
        "at": _STRING,
        "state": {"enum": [*get_args(RunState)]},
        "session_id": {"type": "string", "description": "The session with its report; empty for none."},
        "proposals": _INTEGER,
        "changes": _INTEGER,
        "tokens": _INTEGER,
        "note": {"type": "string", "description": "The report's note, which may be a proposal yet; empty for none."},
        "reason": {"type": "string", "description": "Why it failed, or nothing was begun."},
        "cancelled": {"type": "boolean", "description": "Whether what is at work is to end."},
    }
)
_SCHEDULE_SCHEMA: Final[Mapping[str, Any]] = openapi.object_schema(
    {
        "name": _STRING,
        "agent": _STRING,
        "when": {"type": "string", "description": "In words."},
        "cadence": {"enum": [*get_args(Cadence)]},
        "at": _STRING,
        "weekday": {"enum": [*WEEKDAYS]},
        "folder": _STRING,
        "next": {
            "type": ["string", "null"],
            "description": "When it is due, by the server's clock; null while it is paused, or waits for a change.",
        },
        "paused": _BOOLEAN,
        "client": _STRING,
        "tokens": _INTEGER,
        "minutes": _INTEGER,
        "results": _STRING,
        "max_open": _INTEGER,
        "apply": _BOOLEAN,
        "last": {"anyOf": [_RUN_SCHEMA, {"type": "null"}]},
        "runs": {"type": "array", "items": _STRING, "description": "Its latest runs, whose open proposals count."},
    }
)
_ONE_CONTENT: Final = openapi.json_content({"schedule": dict(_SCHEDULE_SCHEMA)})
_LIST_CONTENT: Final = openapi.json_content(
    {"results": {"type": "array", "items": dict(_SCHEDULE_SCHEMA)}, "total": _INTEGER, "now": _STRING}
)
_DELETED_CONTENT: Final = openapi.json_content({"deleted": _STRING})
_AGENT_SCHEMA: Final = openapi.object_schema({"name": _STRING, "title": _STRING, "summary": _STRING})
_PROBLEM_SCHEMA: Final = openapi.object_schema({"name": _STRING, "error": _STRING, "hint": _STRING})
_OPTIONS_CONTENT: Final = openapi.json_content(
    {
        "agents": {"type": "array", "items": _AGENT_SCHEMA},
        "problems": {"type": "array", "items": _PROBLEM_SCHEMA, "description": "Agents whose files have mistakes."},
        "clients": {"type": "array", "items": _STRING, "description": "On whose behalf agents may work."},
        "defaults": openapi.object_schema(
            {
                "at": _STRING,
                "weekday": {"enum": [*WEEKDAYS]},
                "client": _STRING,
                "tokens": _INTEGER,
                "minutes": _INTEGER,
                "results": _STRING,
                "max_open": _INTEGER,
            }
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request about the schedules of a vault, by a person."""

    client: str
    vault: str
    store: ScheduleStore
    args: RequestArguments
    scope: Scope
    name: str
    """The schedule's, by the path."""


@dataclass(slots=True, kw_only=True)
class ScheduleService:
    """The schedules of one server's vaults, and those that a person has set to work; used from its event loop."""

    hub: Hub
    threads: WorkerThreads
    open_runner: Callable[[], ScheduleRunner]
    """Opens what runs schedules; called in a thread."""
    _running: set[asyncio.Task[Schedule]] = field(default_factory=set[asyncio.Task[Schedule]])

    async def begin(self, asked: _Asked) -> None:
        """Set a schedule to work, and return once it is.

        Raises:
            ConflictError: It is at work already (code ``schedule_busy``).
        """
        runner = await asyncio.to_thread(self.open_runner)
        started = asyncio.Event()
        work = runner.run(asked.store, asked.vault, asked.name, on_start=started.set)
        task = asyncio.create_task(work, name=f"schedule {asked.name}")
        self._running.add(task)
        waiting = asyncio.create_task(started.wait())
        try:
            _ = await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            _ = waiting.cancel()
            task.add_done_callback(self._forget)
        if task.done():
            _ = task.result()

    async def shut(self) -> None:
        """Cancel what a person has set to work; what it has is kept."""
        running = list(self._running)
        for task in running:
            _ = task.cancel()
        _ = await asyncio.gather(*running, return_exceptions=True)

    def _forget(self, task: asyncio.Task[Schedule]) -> None:
        self._running.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            LOG.error("a schedule that was set to work can't be run: %s", type(problem).__name__)


if TYPE_CHECKING:
    _Handler = Callable[[ScheduleService, _Asked], Awaitable[dict[str, JSONValue]]]
    """Does what a route is for; its docstring says it in the document."""


def mount_schedules(hub: Hub, threads: WorkerThreads, open_runner: Callable[[], ScheduleRunner]) -> Mount:
    """Create the mount for ``/schedules``.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where files are read and written; the caller closes them.
        open_runner: Opens what runs schedules among the server's jobs; called in a thread.
    """
    service = ScheduleService(hub=hub, threads=threads, open_runner=open_runner)

    @asynccontextmanager
    async def around() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await service.shut()

    def route(
        method: Literal["GET", "POST", "PATCH", "DELETE"],
        path: str,
        work: _Handler,
        content: Mapping[str, Any] = _ONE_CONTENT,
        parameters: Sequence[Parameter] = _BY_VAULT,
        status: int = 200,
    ) -> RouteSpec:
        summary, description = openapi.read_doc(work)

        async def endpoint(request: Request) -> Response:
            args = await binding.read_arguments(request, parameters)
            security.check_person(service.hub.settings, request.scope, "schedule agents")
            client = security.client_of(request.scope)
            vault = service.hub.name_for(client, args.text("vault"))
            asked = _Asked(
                client=client,
                vault=vault,
                store=await service.threads.run("read", lambda: schedules.open_schedules(service.hub, vault)),
                args=args,
                scope=request.scope,
                name=str(request.path_params.get("name", "")),
            )
            return security.JsonReply({"success": True, **await work(service, asked)}, status)

        return RouteSpec(
            method, f"/schedules{path}", "schedules", summary, endpoint, description, parameters, content, status
        )

    specs = (
        route("GET", "/options", _show_options, _OPTIONS_CONTENT),
        route("GET", "", _list_schedules, _LIST_CONTENT),
        route("POST", "", _add, _ONE_CONTENT, _NEW_PARAMETERS, _CREATED),
        route("PATCH", "/{name}", _change, _ONE_CONTENT, _CHANGE_PARAMETERS),
        route("DELETE", "/{name}", _remove, _DELETED_CONTENT),
        route("POST", "/{name}/run", _run, status=_ACCEPTED),
        route("POST", "/{name}/cancel", _cancel),
    )
    return Mount(routes=[*map(openapi.make_route, specs)], lifespan=around)


async def _list_schedules(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """List schedules.

    For persons, from whom nothing may be hidden that a schedule's agent sees. `/events` tells of changes.
    """
    visible = await service.threads.run("read", lambda: schedules.list_visible(service.hub, asked.client, asked.vault))
    now = stored_schedules.wall_clock()
    rows: list[JSONValue] = [describe(one) for one in visible]
    return {"results": rows, "total": len(rows), "now": now.isoformat(timespec="seconds")}


async def _show_options(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Show what a schedule may be.

    For persons.
    """
    stages, problems = await service.threads.run("read", clients.open_stages(service.hub).all)
    names = await service.threads.run("read", lambda: _list_clients(service.hub, asked))
    agents: list[JSONValue] = [{"name": one.name, "title": one.title, "summary": one.summary} for one in stages]
    mistakes: list[JSONValue] = [
        {"name": name, "error": error.message, "hint": error.hint} for name, error in problems.items()
    ]
    defaults: dict[str, JSONValue] = {
        "at": f"{stored_schedules.DEFAULT_AT:%H:%M}",
        "weekday": WEEKDAYS[stored_schedules.DEFAULT_WEEKDAY],
        "client": stored_schedules.DEFAULT_CLIENT,
        "tokens": stored_schedules.DEFAULT_TOKENS,
        "minutes": stored_schedules.DEFAULT_MINUTES,
        "results": stored_schedules.DEFAULT_RESULTS,
        "max_open": stored_schedules.DEFAULT_MAX_OPEN,
    }
    return {"agents": agents, "problems": mistakes, "clients": [*names], "defaults": defaults}


def _list_clients(hub: Hub, asked: _Asked) -> list[str]:
    """List the clients on whose behalf a person may have agents work; the usual one first."""
    configured = (one.name for one in hub.settings.clients)
    names = dict.fromkeys((stored_schedules.DEFAULT_CLIENT, *configured))
    return [
        name
        for name in names
        if not hub.settings.client(name).grants.is_person and hub.covers_agent_view(asked.client, name, asked.vault)
    ]


async def _add(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Add a schedule.

    For persons.
    """
    agent, fields = asked.args.text("agent"), _read_fields(asked.args)
    name = asked.args.text("name") or agent
    blank = Schedule(name=name, agent=agent, cadence="weekly", handled=stored_schedules.wall_clock())
    schedule = replace(blank, **fields)

    def add() -> Schedule:
        _check_right(service.hub, asked, schedule)
        return asked.store.add(schedules.prepare(service.hub, schedule, asked.vault, asked.client))

    return {"schedule": describe(await service.threads.run("write", add))}


async def _change(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Change, pause or resume a schedule.

    What is left out stays. For persons.
    """
    fields = _read_fields(asked.args)

    def change() -> Schedule:
        before = _find(service.hub, asked)
        if fields == {"is_paused": True}:  # also where it couldn't be made any more, such as without its agent
            return asked.store.change(asked.name, lambda one: replace(one, **fields))
        _check_right(service.hub, asked, replace(before, **fields), is_resume=fields == {"is_paused": False})
        return schedules.edit(
            service.hub, asked.store, asked.vault, asked.client, asked.name, lambda one: replace(one, **fields)
        )

    return {"schedule": describe(await service.threads.run("write", change))}


async def _remove(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Remove a schedule.

    Its proposals and reports stay. For persons.
    """

    def remove() -> None:
        _ = _find(service.hub, asked)
        asked.store.remove(asked.name)

    await service.threads.run("write", remove)
    return {"deleted": asked.name}


async def _run(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Run a schedule now.

    Replies once it is at work, due or not. For persons.
    """
    found = await service.threads.run("read", lambda: _find(service.hub, asked))
    if found.last is not None and found.last.state == "running":
        raise ConflictError(
            f"the schedule '{found.name}' is at work", hint="wait until it is done", code="schedule_busy"
        )
    await service.begin(asked)
    return {"schedule": describe(await service.threads.run("read", lambda: asked.store.find(asked.name)))}


async def _cancel(service: ScheduleService, asked: _Asked) -> dict[str, JSONValue]:
    """Cancel the run of a schedule.

    What it has by then is kept. For persons.
    """

    def cancel() -> Schedule:
        _ = _find(service.hub, asked)
        return asked.store.cancel(asked.name)

    return {"schedule": describe(await service.threads.run("write", cancel))}


def describe(schedule: Schedule) -> dict[str, JSONValue]:
    """Return a schedule as the routes and the feed show it."""
    return {**schedule.as_dict(stored_schedules.wall_clock()), "runs": [*schedule.runs]}


def _find(hub: Hub, asked: _Asked) -> Schedule:
    """Return the schedule of the path, which a person has to see all of.

    Raises:
        NotFound: There is none of that name, or it sees what is hidden from the person (code ``no_schedule``).
    """
    found = next(
        (one for one in schedules.list_visible(hub, asked.client, asked.vault) if one.name == asked.name), None
    )
    if found is None:
        hint = "it may have been removed; list the schedules"
        raise NotFound(f"there is no schedule '{asked.name[:80]}'", hint=hint, code="no_schedule")
    return found


def _check_right(hub: Hub, asked: _Asked, schedule: Schedule, *, is_resume: bool = False) -> None:
    """Check that a person may have an agent work so.

    Raises:
        RefusedError: It applies changes and the request isn't the page's, or its client sees what the person doesn't.
    """
    if schedule.may_apply and not is_resume:
        security.check_owner(hub.settings, asked.scope, "let an agent apply changes by itself")
    settings = hub.settings.client(schedule.client)
    if not settings.grants.is_person and not hub.covers_agent_view(asked.client, schedule.client, asked.vault):
        raise RefusedError(
            f"the client '{schedule.client}' sees notes that are hidden from you, or can't open this vault",
            hint="take another client, or none",
            code="client_hidden",
        )


def _read_fields(args: RequestArguments) -> dict[str, Any]:
    given = args.non_null_values()
    fields: dict[str, Any] = {_FIELDS[name]: value for name, value in given.items() if name in _FIELDS}
    if "at" in fields:
        at: time = stored_schedules.parse_time(args.text("at"))
        fields["at"] = at
    if "weekday" in fields:
        fields["weekday"] = WEEKDAYS.index(args.text("weekday"))
    return fields
