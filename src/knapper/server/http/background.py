"""Run background jobs of the server, and stream their events and outcomes over HTTP."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from knapper.agents.model import names
from knapper.app import schedules
from knapper.app.open_clients import OpenClients
from knapper.errors import SetupError, StorageError
from knapper.server import logs, security, workers
from knapper.server.http import openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, RequestArguments
from knapper.server.http.openapi import INTEGER, STRING, RouteSpec
from knapper.server.workers import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from knapper.agents.events import BackgroundJob, BackgroundJobs, FinalT, JobFunction
    from knapper.app.chats import ClientChats
    from knapper.app.client_runs import ClientRuns
    from knapper.app.hub import Hub
    from knapper.app.open_clients import ModelOpeners
    from knapper.app.pipelines import ClientPipelines
    from knapper.jsontypes import JSONValue
    from knapper.server.http.app import Lifespan
    from knapper.server.workers import StopSignal


LOG: Final = logging.getLogger("knapper.server.http.background")
T = TypeVar("T")
CallT = TypeVar("CallT")
_THREADS: Final = 16
"""For looking up sessions and runs and opening models; never for tools, so that slow ones hold none of these up."""
_PREVIEW_THREADS: Final = 2
_END_S: Final = 5.0
_CANCEL_S: Final = 2.0
"""How long work that is cancelled is waited for."""


class JobSet:
    """The running jobs of one server, of any kind; used from its event loop."""

    def __init__(self) -> None:
        """Start empty."""
        self.is_stopping = False
        """Whether the server stops."""
        self._running: list[BackgroundJob[Any]] = []
        self._watching: set[asyncio.Task[None]] = set()

    def begin(
        self, jobs: BackgroundJobs[FinalT], about: str, work: JobFunction, question: str = ""
    ) -> BackgroundJob[FinalT]:
        """Start a job; the arguments are those of `knapper.agents.events.BackgroundJobs.start`.

        Raises:
            StorageError: The server is stopping (code ``stopping``).
            ConflictError: Too many jobs are running.
        """
        if self.is_stopping:
            raise StorageError("the server stops", hint="try again in a moment", code="stopping")
        job = jobs.start(about, work, question)
        self._running = [*(running_job for running_job in self._running if not running_job.has_ended), job]
        watch_task = asyncio.create_task(_log_failure(job))
        self._watching.add(watch_task)
        watch_task.add_done_callback(self._watching.discard)
        return job

    def within(self, session_id: str) -> BackgroundJob[Any] | None:
        """Return the job that runs within a session, if its subject is something else."""
        return next((job for job in self._running if job.session_id == session_id and not job.has_ended), None)

    def cancel_all(self) -> None:
        """Refuse new jobs, and cancel the running ones with a reason."""
        from knapper.agents.events import Error  # noqa: PLC0415 - a server without chats needn't pay for models

        self.is_stopping = True
        for job in self._running:
            if not job.has_ended:
                job.tell(Error(error="the server stops", code="stopping", hint="what there is so far, is kept"))
                _ = job.cancel()
        self._running = []

    async def shut(self) -> None:
        """End all jobs, and wait until their results are saved."""
        self.cancel_all()
        try:
            async with asyncio.timeout(_END_S):
                while self._watching:
                    await asyncio.wait(set(self._watching))
        except TimeoutError:
            LOG.warning("%d that go on didn't end in time", len(self._watching))


class JobService:
    """What one server's clients have open, and the jobs that go on for them; used from its event loop."""

    def __init__(self, hub: Hub, openers: ModelOpeners | None = None) -> None:
        """Start empty.

        Args:
            hub: The vaults; the caller closes it.
            openers: Open what answers; None for what the configuration says.
        """
        self.jobs = JobSet()
        self.clients = OpenClients(hub, openers, lambda: self.jobs.is_stopping)
        self._threads = WorkerThreads(_THREADS)
        self._preview_threads = WorkerThreads(_PREVIEW_THREADS)

    async def run_blocking(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread."""
        return await self._threads.run("read", work)

    async def preview(self, work: Callable[[], T]) -> T:
        """Read many notes in a thread of a separate pool, so that only the same kind of request waits."""
        return await self._preview_threads.run("read", work)

    async def client_chats(self, client: str, vault: str) -> ClientChats:
        """Return a client's chats in a vault, opening them on first use.

        Raises:
            KnapError: They can't be opened.
        """
        return await self._open("chats", lambda: self.clients.chats(client, vault))

    async def client_pipelines(self, client: str, vault: str) -> ClientPipelines:
        """Return a client's tasks in a vault, opening them on first use; raises as `client_chats` does."""
        return await self._open("pipelines", lambda: self.clients.pipelines(client, vault))

    async def client_runs(self, client: str, vault: str) -> ClientRuns:
        """Return a client's runs in a vault, opening them on first use; raises as `client_chats` does."""
        return await self._open("client_runs", lambda: self.clients.runs(client, vault))

    async def session_chats(self, client: str, vault: str, session_id: str) -> ClientChats:
        """Return the chats that a session is in: the client's own, or those of a schedule's client that it sees.

        Raises:
            KnapError: They can't be opened.
        """
        seen = await self.seen_clients(client, vault)
        for name in seen if session_id and len(seen) > 1 else ():
            client_chats = await self.client_chats(name, vault)
            if await self.run_blocking(lambda: client_chats.store.has(session_id)):  # noqa: B023  # called at once
                return client_chats
        return await self.client_chats(client, vault)

    async def seen_open_chats(self, client: str) -> list[ClientChats]:
        """List the chats that are open of all clients whose sessions a client sees."""
        opened = self.clients.list_chats()
        seen = {vault: await self.seen_clients(client, vault) for vault in {one.chats.vault for one in opened}}
        return [one for one in opened if one.client in seen[one.chats.vault]]

    async def seen_clients(self, client: str, vault: str) -> list[str]:
        """List the clients whose sessions a client sees: itself, and for a person those that schedules work for.

        Only those from whom nothing is hidden that is hidden from the person.

        Raises:
            NotFound: There is no such vault.
        """
        hub, find_work = self.clients.hub, self.clients.find_work
        return await self.run_blocking(lambda: schedules.list_seen_clients(hub, client, vault, find_work))

    def end(self) -> None:
        """Refuse new jobs, and cancel the running ones with a reason; runs can be resumed."""
        self.jobs.cancel_all()

    async def shut(self) -> None:
        """End all jobs, wait until their results are saved, and close what is open."""
        await self.jobs.shut()
        await asyncio.to_thread(self.clients.close)
        self._threads.close()
        self._preview_threads.close()

    async def _open(self, module: str, open_it: Callable[[], T]) -> T:
        def work() -> T:
            with workers.IMPORT_LOCK:  # the first call imports the models
                _ = importlib.import_module(f"knapper.app.{module}")
            return open_it()

        return await self.run_blocking(work)


async def cancel_job(job: BackgroundJob[FinalT]) -> tuple[bool, FinalT | None]:
    """Cancel a job, and wait a moment for its end: a running write finishes first.

    Returns:
        Whether it was still running, and its last event if it has ended.
    """
    cancelled = job.cancel()
    try:
        async with asyncio.timeout(_CANCEL_S):
            return cancelled, await job.wait()
    except TimeoutError:
        return cancelled, None


def job_lifespan(stop: StopSignal, end: Callable[[], None], shut: Callable[[], Awaitable[None]]) -> Lifespan:
    """Return a lifespan for a server's jobs: they end when the server stops, and are waited for afterwards.

    Args:
        stop: Set when the server stops, by any thread.
        end: Refuses new jobs and ends the running ones; called in the event loop.
        shut: Waits for their end, and closes what is open.
    """

    @asynccontextmanager
    async def around() -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()

        def told() -> None:
            _ = loop.call_soon_threadsafe(end)

        forget = stop.subscribe(told)
        try:
            yield
        finally:
            forget()
            await shut()

    return around


async def _log_failure(job: BackgroundJob[Any]) -> None:
    """Log an unexpected failure."""
    _ = await job.wait()
    if job.failure is not None:
        LOG.error("%s failed", job.id, exc_info=job.failure)


if TYPE_CHECKING:
    RedactEvent = Callable[[Mapping[str, JSONValue]], Mapping[str, JSONValue]]

HEARTBEAT_S: Final = 15.0
"""After so many silent seconds a comment is sent, so that a dead connection is noticed."""
START_EVENT: Final = "start"
"""The first event: what this is, for windows that come later."""
ERROR_EVENT: Final = "error"
"""The event that tells what went wrong."""
_MAX_ID_DIGITS: Final = 15
HEARTBEAT: Final = b": still here\n\n"
"""A comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One server-sent event."""

    id: int
    """Counts from 1 in its stream."""
    name: str
    """What kind: one word, such as ``text``."""
    data: Mapping[str, JSONValue]

    def encode(self) -> bytes:
        """Encode the event for the wire; JSON contains no line ends of its own."""
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.id}\nevent: {self.name}\ndata: {text}\n\n".encode("utf-8", "backslashreplace")


MAX_WAIT_S: Final = 60.0
_MAX_POLLED_EVENTS: Final = 1_000
"""In one reply; the others come with the next."""
AFTER_PARAMETER: Final = Parameter(
    name="after",
    doc="Reply with JSON at once, for clients that can't stream: the events after this id; 0 for all.",
    kind="count",
    maximum=10**_MAX_ID_DIGITS - 1,
)
WAIT_PARAMETER: Final = Parameter(
    name="wait",
    doc="Likewise, and wait up to so many seconds if there is no such event yet.",
    kind="number",
    maximum=MAX_WAIT_S,
)
EVENT_PARAMETERS: Final = (AFTER_PARAMETER, WAIT_PARAMETER)
"""Those of every route that tells events: as a stream, or as JSON where one of them is given."""


def events_content(name: str, event_order: str, *events: Any) -> dict[str, Any]:  # noqa: ANN401 - schemas, or types
    """Describe the reply of a route that tells events: the stream, or what `after` and `wait` ask for.

    Args:
        name: By which the document has the schema of their data.
        event_order: The events and their order, in words.
        events: The schemas or types of their data.
    """
    data = openapi.NamedSchema(name, {"anyOf": [*events]})
    event = openapi.object_schema({"id": INTEGER, "event": STRING, "data": data})
    polled = openapi.json_content(
        {
            "events": {"type": "array", "items": event},
            "last": {"type": "integer", "description": "What to give as `after` the next time."},
            "ended": {"type": "boolean", "description": "Whether no more events follow."},
        }
    )
    return {**openapi.stream_content(event_order, data), **polled}


def start_schema(*names: str) -> dict[str, Any]:
    """Describe the data of the event ``start``, by the names of its fields, which are texts."""
    return openapi.object_schema({"type": {"const": START_EVENT}, **dict.fromkeys(names, STRING)})


async def events_reply(
    job: BackgroundJob[FinalT], start: Mapping[str, JSONValue], request: Request, args: RequestArguments
) -> Response:
    """Reply with a job's events: as a stream, or as JSON where the request says after which.

    Args:
        job: The running or ended job.
        start: The first event, of kind ``start``.
        request: The request to answer.
        args: Its arguments, which may be those of `EVENT_PARAMETERS`.
    """
    if not is_polled(args):
        return stream_events(job, start, request)
    after = args.integer_or_default("after", 0)
    if after > len(job.events) + 1:  # an id of other work, such as from before a restart: all is new
        after = 0
    if after:
        waiting = _wait_for_event(job, after - 1, args.number("wait") or 0.0)
        await workers.run_unless_disconnected(request.receive, waiting)
    has_ended = job.has_ended  # before the events are read: afterwards more may have come, and the end with them
    rows = [ServerSentEvent(id=1, name=START_EVENT, data={"type": START_EVENT, **start})] if not after else []
    for number, event in enumerate(job.events[max(after - 1, 0) :], max(after - 1, 0) + 2):
        data = event.as_dict()
        visible_data = logs.redact_event(request.scope, data) if event.kind == ERROR_EVENT else data
        rows.append(ServerSentEvent(id=number, name=event.kind, data=visible_data))
    page = rows[:_MAX_POLLED_EVENTS]
    return polled_reply(page, after, has_ended=has_ended and len(page) == len(rows))


def is_polled(args: RequestArguments) -> bool:
    """Return whether a request asks for events as JSON."""
    return args.integer("after") is not None or args.number("wait") is not None


def polled_reply(events: Sequence[ServerSentEvent], after: int, *, has_ended: bool) -> Response:
    """Reply with events as JSON.

    Args:
        events: Those after the last one that the client has.
        after: That one's id; 0 for none.
        has_ended: Whether no more follow them.
    """
    rows: list[JSONValue] = [{"id": event.id, "event": event.name, "data": dict(event.data)} for event in events]
    last = events[-1].id if events else after
    return security.JsonReply({"success": True, "events": rows, "last": last, "ended": has_ended})


async def _wait_for_event(job: BackgroundJob[FinalT], after: int, wait_s: float) -> None:
    """Wait until a job has more than *after* events, has ended, or the time is over."""
    event_iterator = job.follow(after)
    next_event = asyncio.ensure_future(anext(event_iterator, None))
    try:
        _ = await asyncio.wait([next_event], timeout=wait_s)
    finally:
        _ = next_event.cancel()
        _ = await asyncio.wait([next_event])
        await event_iterator.aclose()


def stream_events(
    job: BackgroundJob[FinalT], start: Mapping[str, JSONValue], request: Request, *, heartbeat_s: float = HEARTBEAT_S
) -> StreamingResponse:
    """Stream a job's events, from the client's ``Last-Event-ID`` on.

    When the server stops, the job is cancelled, and the stream ends with its last events.

    Args:
        job: The running or ended job.
        start: The first event, of kind ``start``.
        request: The request to answer.
        heartbeat_s: See `HEARTBEAT_S`.
    """
    workers.let_stream_end_itself(request.scope)
    headers = {**security.REPLY_HEADERS, "x-accel-buffering": "no"}
    redact = functools.partial(logs.redact_event, request.scope)
    frames = encode_frames(job, start, last_event_id(request), heartbeat_s, redact)
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


async def encode_frames(
    job: BackgroundJob[FinalT],
    start: Mapping[str, JSONValue],
    last_id: int,
    heartbeat_s: float = HEARTBEAT_S,
    redact: RedactEvent | None = None,
) -> AsyncGenerator[bytes]:
    """Encode events; their ids are one above the job's, as the ``start`` event comes first.

    Args:
        job: The running job.
        start: The first event.
        last_id: The last event that the client received; 0 for none.
        heartbeat_s: See `HEARTBEAT_S`.
        redact: Redacts an error event for the client; None for no redaction.
    """
    if last_id > len(job.events) + 1:  # an id of other work, such as from before a restart: all is new
        last_id = 0
    if not last_id:
        yield ServerSentEvent(id=1, name=START_EVENT, data={"type": START_EVENT, **start}).encode()
    event_iterator = job.follow(max(last_id - 1, 0))
    next_event = asyncio.ensure_future(anext(event_iterator, None))
    try:
        while True:
            ready, _ = await asyncio.wait([next_event], timeout=heartbeat_s)
            if not ready:
                yield HEARTBEAT
                continue
            numbered_event = next_event.result()
            if numbered_event is None:
                return
            number, event = numbered_event
            data = event.as_dict()
            visible_data = redact(data) if redact and event.kind == ERROR_EVENT else data
            yield ServerSentEvent(id=number + 1, name=event.kind, data=visible_data).encode()
            next_event = asyncio.ensure_future(anext(event_iterator, None))
    finally:
        _ = next_event.cancel()
        _ = await asyncio.wait([next_event])
        await event_iterator.aclose()


def last_event_id(request: Request) -> int:
    """Return the client's ``Last-Event-ID``; 0 if it is missing or invalid."""
    header = request.headers.get("last-event-id", "")
    return int(header) if header.isascii() and header.isdigit() and len(header) <= _MAX_ID_DIGITS else 0


BAD_GATEWAY: Final = 502
_STATUS_BY_ERROR_CODE: Final = {
    "session_busy": security.CONFLICT,
    "session_changed": security.CONFLICT,
    "no_session": security.NOT_FOUND,
    "no_run": security.NOT_FOUND,
    "not_found": security.NOT_FOUND,
    "web_off": security.FORBIDDEN,
    "budget_spent": security.FORBIDDEN,
    "bad_input": security.UNPROCESSABLE_CONTENT,
    "internal": security.INTERNAL_SERVER_ERROR,
    "stopping": security.SERVICE_UNAVAILABLE,
    "storage": security.SERVICE_UNAVAILABLE,
    "no_prompt": security.SERVICE_UNAVAILABLE,
    "agent_invalid": security.SERVICE_UNAVAILABLE,
}
"""Of errors while a model works; all others are the model's server's."""


def failed_job_reply(shape: Mapping[str, JSONValue], error: Mapping[str, JSONValue], request: Request) -> Response:
    """Reply with an error beside the partial result.

    Args:
        shape: The partial result.
        error: As `knapper.agents.events.Error` is serialised.
        request: The request to answer.
    """
    code, visible_error = str(error["code"]), logs.redact_event(request.scope, error)
    error_data = {"success": False, "error": visible_error["error"], "code": code, "hint": visible_error["hint"]}
    return security.JsonReply({**shape, **error_data}, _STATUS_BY_ERROR_CODE.get(code, BAD_GATEWAY))


def ended_reply(job: BackgroundJob[FinalT], outcome: Mapping[str, JSONValue], request: Request) -> Response:
    """Reply with an ended job: its outcome, beside it the models' conversations and the error, if there are any.

    Args:
        job: The job, whose events tell both.
        outcome: What came of it.
        request: The request to answer.
    """
    conversations: list[JSONValue] = [event.as_dict() for event in job.events if event.kind == "debug"]
    error = next((event.as_dict() for event in job.events if event.kind == ERROR_EVENT), None)
    content = {**outcome, **({"debug": conversations} if conversations else {})}
    if error is None:
        return security.JsonReply({"success": True, **content})
    return failed_job_reply(content, error, request)


def setup_needed_reply(error: SetupError, request: Request, model: str) -> Response:
    """Reply that something has to be configured first, such as a model.

    Args:
        error: What is missing.
        request: The request to answer.
        model: What it calls the model. Where that can't be read, the request is wrong, and asking again won't help.
    """
    is_callers = bool(model) and error.code == "model_name" and not _is_readable(model)
    status = security.UNPROCESSABLE_CONTENT if is_callers else security.SERVICE_UNAVAILABLE
    return security.JsonReply(logs.redact_error(request.scope, error).as_dict(), status)


def _is_readable(model: str) -> bool:
    """Return whether a model's name can be read; where it can, another one's can't, such as the scout's."""
    try:
        _ = names.parse_model_name(model)
    except SetupError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRoutes(Generic[CallT]):
    """Makes the routes of one kind of work: each is a method of a class that holds what a request is about."""

    tag: str
    """Their group in the document."""
    open_call: Callable[[Request, RequestArguments], Awaitable[CallT]]
    """Returns what a request is about."""
    needs_setup: bool = False
    """Whether a SetupError means that something has to be configured first, such as a model."""

    def route(
        self,
        method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
        path: str,
        work: Callable[[CallT], Awaitable[Response | Mapping[str, object]]],
        content: Mapping[str, Any],
        parameters: Sequence[Parameter] = (VAULT_PARAMETER,),
        status: int = 200,
    ) -> RouteSpec:
        """Return a route.

        Args:
            method: Of HTTP.
            path: Of the route, such as ``/runs/{run_id}``.
            work: The method that does what the route is for; its docstring says it in the document.
            content: Of the good reply, by its type.
            parameters: What the route takes besides the names in its path.
            status: Of the good reply.
        """

        @functools.wraps(work)
        async def handle(request: Request, args: RequestArguments) -> Response | Mapping[str, object]:
            try:
                return await work(await self.open_call(request, args))
            except SetupError as error:
                if not self.needs_setup:
                    raise
                return setup_needed_reply(error, request, args.text("model"))

        return replace(openapi.bind_route(method, path, self.tag, handle, parameters, content), status=status)
