"""Serve schedules over HTTP: list, make, change, pause, run, cancel and remove them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from typing import TYPE_CHECKING, Any, Final, get_args

from starlette.requests import Request

from knapper.agents import stages as stored_schedules
from knapper.agents.stages import WEEKDAYS, Cadence, Schedule, ScheduleRow, Stage
from knapper.app import clients, schedules
from knapper.errors import ConflictError, NotFound, RefusedError
from knapper.server import security
from knapper.server.http import openapi
from knapper.server.http.app import Mount
from knapper.server.http.background import CallRoutes
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, count_parameter
from knapper.server.http.openapi import INTEGER, STRING
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

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
_FIELD_NAMES: Final[Mapping[str, str]] = {
    "tokens": "max_tokens",
    "minutes": "max_minutes",
    "apply": "may_apply",
    "paused": "is_paused",
}
"""A schedule's fields, by the names of the parameters that set them, where the two differ."""
_NAME_PARAMETER: Final = Parameter(
    name="name", doc="Small letters, digits and hyphens; the agent's name where it is left out.", maximum=40
)
_EDIT_PARAMETERS: Final = (
    Parameter(name="cadence", doc="When it is due.", choices=get_args(Cadence)),
    Parameter(name="at", doc="Time of the day by the server's clock, such as 18:00.", maximum=5),
    Parameter(name="weekday", doc="For `weekly`.", choices=WEEKDAYS),
    Parameter(name="folder", doc="For `changed`: whose notes count; empty for the whole vault."),
    Parameter(name="client", doc="On whose behalf the agent works; never a person.", maximum=200),
    count_parameter("tokens", "Most tokens of one run.", *stored_schedules.TOKEN_RANGE),
    count_parameter("minutes", "Most time of one run.", *stored_schedules.MINUTE_RANGE),
    Parameter(name="results", doc="Folder for the reports; empty for none."),
    count_parameter("max_open", "Nothing is done while so many of its proposals wait.", *stored_schedules.OPEN_RANGE),
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
_SCHEDULE: Final = openapi.ExtendedType(
    ScheduleRow,
    {"runs": {"type": "array", "items": STRING, "description": "Its latest runs, whose open proposals count."}},
)
_ONE_CONTENT: Final = openapi.json_content({"schedule": _SCHEDULE})
_LIST_CONTENT: Final = openapi.json_content(
    {"results": {"type": "array", "items": _SCHEDULE}, "total": INTEGER, "now": STRING}
)
_DELETED_CONTENT: Final = openapi.json_content({"deleted": STRING})
_PROBLEM_SCHEMA: Final = openapi.object_schema({"name": STRING, "error": STRING, "hint": STRING})
_OPTIONS_CONTENT: Final = openapi.json_content(
    {
        "agents": list[Stage],
        "problems": {"type": "array", "items": _PROBLEM_SCHEMA, "description": "Agents whose files have mistakes."},
        "clients": {"type": "array", "items": STRING, "description": "On whose behalf agents may work."},
        "defaults": openapi.object_schema(
            {
                "at": STRING,
                "weekday": {"enum": [*WEEKDAYS]},
                "client": STRING,
                "tokens": INTEGER,
                "minutes": INTEGER,
                "results": STRING,
                "max_open": INTEGER,
            }
        ),
    }
)


@dataclass(slots=True, kw_only=True)
class ScheduleService:
    """The schedules that persons have set to work on one server; used from its event loop."""

    open_runner: Callable[[], ScheduleRunner]
    """Opens what runs schedules; called in a thread."""
    _running: set[asyncio.Task[Schedule]] = field(default_factory=set[asyncio.Task[Schedule]])

    async def begin(self, store: ScheduleStore, vault: str, name: str) -> None:
        """Set a schedule to work, and return once it is.

        Raises:
            ConflictError: It is at work already (code ``schedule_busy``).
        """
        runner = await asyncio.to_thread(self.open_runner)
        started = asyncio.Event()
        work = runner.run(store, vault, name, on_start=started.set)
        task = asyncio.create_task(work, name=f"schedule {name}")
        self._running.add(task)
        waiting = asyncio.create_task(started.wait())
        try:
            _ = await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            _ = waiting.cancel()
            task.add_done_callback(self._forget)
        if task.done():
            _ = task.result()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Cancel at the end what persons have set to work; what they have by then is kept."""
        try:
            yield
        finally:
            running = list(self._running)
            for task in running:
                _ = task.cancel()
            _ = await asyncio.gather(*running, return_exceptions=True)

    def _forget(self, task: asyncio.Task[Schedule]) -> None:
        self._running.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            LOG.error("a schedule that was set to work can't be run: %s", type(problem).__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScheduleCall:
    """A person's request about the schedules of a vault, or about the one of the path."""

    service: ScheduleService
    hub: Hub
    threads: WorkerThreads
    client: str
    vault: str
    store: ScheduleStore
    args: RequestArguments
    scope: Scope
    name: str
    """Empty where the path names no schedule."""

    async def list_visible(self) -> Mapping[str, object]:
        """List schedules.

        For persons, from whom nothing may be hidden that a schedule's agent sees. `/events` tells of changes.
        """
        visible = await self.threads.run("read", lambda: schedules.list_visible(self.hub, self.client, self.vault))
        now = stored_schedules.wall_clock()
        rows = [describe(one) for one in visible]
        return {"results": rows, "total": len(rows), "now": now.isoformat(timespec="seconds")}

    async def show_options(self) -> dict[str, JSONValue]:
        """Show what a schedule may be.

        For persons.
        """

        def list_clients() -> list[JSONValue]:
            names = dict.fromkeys((stored_schedules.DEFAULT_CLIENT, *(one.name for one in self.hub.settings.clients)))
            return [
                name
                for name in names
                if not self.hub.settings.client(name).grants.is_person
                and self.hub.covers_agent_view(self.client, name, self.vault)
            ]

        stages, problems = await self.threads.run("read", clients.open_stages(self.hub).all)
        names = await self.threads.run("read", list_clients)
        agents: list[JSONValue] = [one.as_dict() for one in stages]
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
        return {"agents": agents, "problems": mistakes, "clients": names, "defaults": defaults}

    async def add(self) -> dict[str, JSONValue]:
        """Add a schedule.

        For persons.
        """
        agent, fields = self.args.text("agent"), _read_fields(self.args)
        name = self.args.text("name") or agent
        blank = Schedule(name=name, agent=agent, cadence="weekly", handled=stored_schedules.wall_clock())
        schedule = replace(blank, **fields)

        def add() -> Schedule:
            self._check_right(schedule)
            return self.store.add(schedules.prepare(self.hub, schedule, self.vault, self.client))

        return {"schedule": describe(await self.threads.run("write", add))}

    async def change(self) -> dict[str, JSONValue]:
        """Change, pause or resume a schedule.

        What is left out stays. For persons.
        """
        fields = _read_fields(self.args)

        def change() -> Schedule:
            before = self._find()
            if fields == {"is_paused": True}:  # also where it couldn't be made any more, such as without its agent
                return self.store.change(self.name, lambda one: replace(one, **fields))
            self._check_right(replace(before, **fields), is_resume=fields == {"is_paused": False})
            return schedules.edit(
                self.hub, self.store, self.vault, self.client, self.name, lambda one: replace(one, **fields)
            )

        return {"schedule": describe(await self.threads.run("write", change))}

    async def remove(self) -> dict[str, JSONValue]:
        """Remove a schedule.

        Its proposals and reports stay. For persons.
        """

        def remove() -> None:
            _ = self._find()
            self.store.remove(self.name)

        await self.threads.run("write", remove)
        return {"deleted": self.name}

    async def run_now(self) -> dict[str, JSONValue]:
        """Run a schedule now.

        Replies once it is at work, due or not. For persons.
        """
        found = await self.threads.run("read", self._find)
        if found.last is not None and found.last.state == "running":
            raise ConflictError(
                f"the schedule '{found.name}' is at work", hint="wait until it is done", code="schedule_busy"
            )
        await self.service.begin(self.store, self.vault, self.name)
        return {"schedule": describe(await self.threads.run("read", lambda: self.store.find(self.name)))}

    async def cancel(self) -> dict[str, JSONValue]:
        """Cancel the run of a schedule.

        What it has by then is kept. For persons.
        """

        def cancel() -> Schedule:
            _ = self._find()
            return self.store.cancel(self.name)

        return {"schedule": describe(await self.threads.run("write", cancel))}

    def _find(self) -> Schedule:
        """Return the schedule of the path, which a person has to see all of.

        Raises:
            NotFound: There is none of that name, or it sees what is hidden from the person (code ``no_schedule``).
        """
        found = next(
            (one for one in schedules.list_visible(self.hub, self.client, self.vault) if one.name == self.name),
            None,
        )
        if found is None:
            hint = "it may have been removed; list the schedules"
            raise NotFound(f"there is no schedule '{self.name[:80]}'", hint=hint, code="no_schedule")
        return found

    def _check_right(self, schedule: Schedule, *, is_resume: bool = False) -> None:
        """Check that a person may have an agent work so.

        Raises:
            RefusedError: It applies changes and the request isn't the page's, or its client sees what the person
                doesn't.
        """
        if schedule.may_apply and not is_resume:
            security.check_owner(self.hub.settings, self.scope, "let an agent apply changes by itself")
        settings = self.hub.settings.client(schedule.client)
        if not settings.grants.is_person and not self.hub.covers_agent_view(self.client, schedule.client, self.vault):
            raise RefusedError(
                f"the client '{schedule.client}' sees notes that are hidden from you, or can't open this vault",
                hint="take another client, or none",
                code="client_hidden",
            )


def mount_schedules(hub: Hub, threads: WorkerThreads, open_runner: Callable[[], ScheduleRunner]) -> Mount:
    """Create the mount for ``/schedules``.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where files are read and written; the caller closes them.
        open_runner: Opens what runs schedules among the server's jobs; called in a thread.
    """
    service = ScheduleService(open_runner=open_runner)

    async def open_call(request: Request, args: RequestArguments) -> _ScheduleCall:
        security.check_person(hub.settings, request.scope, "schedule agents")
        client = security.client_of(request.scope)
        vault = hub.name_for(client, args.text("vault"))
        return _ScheduleCall(
            service=service,
            hub=hub,
            threads=threads,
            client=client,
            vault=vault,
            store=await threads.run("read", lambda: schedules.open_schedules(hub, vault)),
            args=args,
            scope=request.scope,
            name=str(request.path_params.get("name", "")),
        )

    route = CallRoutes(tag="schedules", open_call=open_call).route
    specs = (
        route("GET", "/schedules/options", _ScheduleCall.show_options, _OPTIONS_CONTENT),
        route("GET", "/schedules", _ScheduleCall.list_visible, _LIST_CONTENT),
        route("POST", "/schedules", _ScheduleCall.add, _ONE_CONTENT, _NEW_PARAMETERS, _CREATED),
        route("PATCH", "/schedules/{name}", _ScheduleCall.change, _ONE_CONTENT, _CHANGE_PARAMETERS),
        route("DELETE", "/schedules/{name}", _ScheduleCall.remove, _DELETED_CONTENT),
        route("POST", "/schedules/{name}/run", _ScheduleCall.run_now, _ONE_CONTENT, status=_ACCEPTED),
        route("POST", "/schedules/{name}/cancel", _ScheduleCall.cancel, _ONE_CONTENT),
    )
    return Mount(routes=[*map(openapi.make_route, specs)], lifespan=service.lifespan)


def describe(schedule: Schedule) -> dict[str, JSONValue]:
    """Return a schedule as the routes and the feed show it."""
    return answers.as_json({**schedule.as_dict(stored_schedules.wall_clock()), "runs": [*schedule.runs]})


def _read_fields(args: RequestArguments) -> dict[str, Any]:
    given = args.non_null_values()
    fields: dict[str, Any] = {
        _FIELD_NAMES.get(name, name): value for name, value in given.items() if name not in {"name", "vault"}
    }
    if "at" in fields:
        at: time = stored_schedules.parse_time(args.text("at"))
        fields["at"] = at
    if "weekday" in fields:
        fields["weekday"] = WEEKDAYS.index(args.text("weekday"))
    return fields
