"""Serve runs over HTTP: begin, list, follow, answer, resume, cancel and export them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import ConflictError, NotFound, SetupError
from knapper.server import replies, security, workers
from knapper.server.http import background, binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.background import JobSet, ServerSentEvent
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.job_schemas import (
    ANSWER_CONTENT,
    ANSWER_PARAMETER,
    CANCEL_RUN_CONTENT,
    DELETE_CONTENT,
    EXPORT_CONTENT,
    EXPORT_TO_PARAMETER,
    LIMIT_PARAMETERS,
    NEW_RUN_PARAMETERS,
    NODE_CONTENT,
    OPTIONS_CONTENT,
    PAGE_PARAMETERS,
    RESUME_PARAMETERS,
    RUN_CONTENT,
    RUN_DETAIL_CONTENT,
    RUN_STREAM_CONTENT,
    RUNS_CONTENT,
    STALE_CONTENT,
)
from knapper.server.http.openapi import RouteSpec
from knapper.server.workers import WorkerThreads
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from knapper.agents.background import BackgroundJob, BackgroundJobs, JobEventSink
    from knapper.agents.runs.model import RunDone, RunEvent, RunRecord
    from knapper.agents.runs.service import RunDetails
    from knapper.app import Hub
    from knapper.app.client_runs import ClientRuns, ClientRunsRegistry, PreparedRun
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import Endpoint, RequestArguments
    from knapper.server.workers import StopSignal
    from knapper.tools.context import ScriptProfile


T = TypeVar("T")
_THREADS: Final = 8
"""For looking runs up and opening models; a run has a thread of its own."""
MOST_RUNS: Final = 8
"""That go on at once, of all clients together."""
_MAX_WATCHED: Final = 32
POLL_INTERVAL_S: Final = 1.0
"""How often is looked at runs of other processes."""


class RunService:
    """The runs that one server carries out or follows; used from its event loop."""

    def __init__(
        self, open_rooms: Callable[[Callable[[], bool]], ClientRunsRegistry], *, look_s: float = POLL_INTERVAL_S
    ) -> None:
        """Start empty.

        Args:
            open_rooms: Opens the runs, given a function that returns whether the server is stopping; called
                once, in a thread, on first use.
            look_s: See `LOOK_S`.
        """
        self._open = open_rooms
        self._rooms: ClientRunsRegistry | None = None
        self._lock = threading.Lock()
        self._threads = WorkerThreads(_THREADS)
        self._ongoing = JobSet()
        self._carried: BackgroundJobs[RunDone] | None = None
        self._watched: BackgroundJobs[RunDone] | None = None
        self._look_s = look_s
        self._is_leaving = False
        self._preparing = 0

    async def run_blocking(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread."""
        return await self._threads.run("read", work)

    async def client_runs(self, client: str, vault: str) -> ClientRuns:
        """Return what is open for a client in a vault, opening it on first use.

        Raises:
            KnapError: It can't be opened.
        """
        return await self.run_blocking(lambda: self._all().open(client, vault))

    async def begin(self, ready: Callable[[], PreparedRun]) -> RunRecord:
        """Start a run in the background.

        Args:
            ready: Prepares the run, in a thread.

        Raises:
            ConflictError: Too many runs are running (code ``too_many_runs``), or this one is running already.
            StorageError: The server is stopping (code ``stopping``).
            KnapError: It can't be started.
        """
        running_count = len(self._carried.running()) if self._carried else 0
        if running_count + self._preparing >= MOST_RUNS:
            hint = "wait until one has ended, or cancel one"
            raise ConflictError(f"{MOST_RUNS} runs go on here already", hint=hint, code="too_many_runs")
        self._preparing += 1
        try:
            prepared = await self.run_blocking(ready)
        finally:
            self._preparing -= 1
        run = prepared.run
        if self.running_job(run.id) is not None:
            raise run_busy_error(run.id)
        if self._carried is None:
            from knapper.agents.runs import store  # noqa: PLC0415 - a server without runs needn't pay for models

            self._carried = store.make_run_jobs(MOST_RUNS)

        def carried(tell: JobEventSink) -> Coroutine[object, object, object]:
            return _carry_out_run(prepared, tell)

        _ = self._ongoing.begin(self._carried, run.id, carried, run.order.task)
        return run

    def running_job(self, run_id: str) -> BackgroundJob[RunDone] | None:
        """Return the job of a run that this server is carrying out."""
        return _find_running_job(self._carried, run_id)

    def watch(self, client_runs: ClientRuns, run_id: str) -> BackgroundJob[RunDone]:
        """Follow a run of another process; all its followers share one poll.

        Raises:
            ConflictError: Too many runs are followed.
            StorageError: The server is stopping (code ``stopping``).
        """
        watch_job = _find_running_job(self._watched, run_id)
        if watch_job is not None:
            return watch_job
        if self._watched is None:
            from knapper.agents.runs import store  # noqa: PLC0415 - as above

            self._watched = store.make_watched_jobs(_MAX_WATCHED)

        def watched(tell: JobEventSink) -> Coroutine[object, object, object]:
            return self._poll(client_runs, run_id, tell)

        return self._ongoing.begin(self._watched, run_id, watched)

    def end(self) -> None:
        """Refuse new runs, and interrupt the running ones so that they can be resumed."""
        self._is_leaving = True
        self._ongoing.cancel_all()

    async def shut(self) -> None:
        """End all jobs, wait until their results are saved, and close the runs."""
        self.end()
        await self._ongoing.shut()
        if self._rooms is not None:
            await asyncio.to_thread(self._rooms.close)
        self._threads.close()

    async def _poll(self, client_runs: ClientRuns, run_id: str, tell: JobEventSink) -> None:
        from knapper.agents.runs.service import RunWatcher  # noqa: PLC0415 - as above

        watch = RunWatcher()
        while True:
            run_view, open_questions = await self.run_blocking(
                lambda: (client_runs.show(run_id), client_runs.unanswered_checkpoints(run_id))
            )
            for event in watch.new_events(run_view.run, run_view.nodes, open_questions):
                tell(event)
                if event.kind == "run_done":
                    return
            await asyncio.sleep(self._look_s)

    def _all(self) -> ClientRunsRegistry:
        with self._lock:
            if self._rooms is None:
                self._rooms = self._open(lambda: self._is_leaving)
            return self._rooms


def run_busy_error(run_id: str) -> ConflictError:
    """Return the error for a run that is still running."""
    return ConflictError(f"the run {run_id} goes on already", hint="wait for it, or cancel it", code="run_busy")


async def _carry_out_run(going: PreparedRun, tell: JobEventSink) -> None:
    """Carry out a run; its end is reported only once it can be resumed."""
    from knapper.agents.runs import service  # noqa: PLC0415 - a server without runs needn't pay for models
    from knapper.app import runs  # noqa: PLC0415 - the same

    loop, engine, run_id = asyncio.get_running_loop(), going.engine, going.run.id
    final_events: list[RunEvent] = []

    def told(event: RunEvent) -> None:
        receive_event = final_events.append if event.kind == "run_done" else tell
        with contextlib.suppress(RuntimeError):  # the server has gone
            _ = loop.call_soon_threadsafe(receive_event, event)

    def work() -> Coroutine[object, object, RunRecord]:
        return service.carry_out_run(engine, run_id, told, replay=going.replay, limits=going.limits)

    try:
        _ = await runs.run_in_thread(work, f"run {run_id}")
    except asyncio.CancelledError:
        await asyncio.to_thread(service.record_unstarted_end, engine, run_id)
        raise
    finally:
        for event in final_events:
            tell(event)


def _find_running_job(jobs: BackgroundJobs[RunDone] | None, run_id: str) -> BackgroundJob[RunDone] | None:
    if jobs is None:
        return None
    try:
        job = jobs.find(run_id)
    except NotFound:
        return None
    return None if job.has_ended else job


if TYPE_CHECKING:
    OpenClientRuns = Callable[[Callable[[], bool]], ClientRunsRegistry]
    RunHandler = Callable[
        [RunService, ClientRuns, str, RequestArguments, Request], Awaitable[Response | dict[str, JSONValue]]
    ]
    """Does what a route is for, in a room, with the run of the path."""

_RUNS_PATH: Final = "/runs"
_RUN_PATH: Final = "/runs/{run_id}"
_TAG: Final = "runs"
_DEFAULT_LIMIT: Final = 50
_ACCEPTED_STATUS: Final = 202


def mount_runs(
    hub: Hub, stop: StopSignal, open_rooms: OpenClientRuns | None = None, service: RunService | None = None
) -> Mount:
    """Create the mount for ``/runs``.

    Args:
        hub: The vaults; the caller closes it.
        stop: Set when the server stops; runs are interrupted then, and can be resumed.
        open_rooms: Opens the runs, given a function that returns whether the server is stopping; None for what the
            configuration says.
        service: Carries them out; None for a new one.
    """
    service = service or RunService(open_rooms or (lambda is_leaving: open_client_runs(hub, is_leaving)))
    return Mount(
        routes=[*map(openapi.make_route, _run_routes(service))],
        lifespan=background.job_lifespan(stop, service.end, service.shut),
    )


def open_client_runs(hub: Hub, is_leaving: Callable[[], bool]) -> ClientRunsRegistry:
    """Open the runs that the configuration describes."""
    with workers.IMPORT_LOCK:
        from knapper.app.client_runs import ClientRunsRegistry  # noqa: PLC0415 - 2 s that a server without runs needn't wait for

    return ClientRunsRegistry(hub, is_leaving=is_leaving)


def _run_routes(service: RunService) -> tuple[RouteSpec, ...]:
    return (*_runs_routes(service), *_run_reading_routes(service), *_run_action_routes(service))


def _runs_routes(service: RunService) -> tuple[RouteSpec, ...]:
    """List the routes of all runs: what a run may be, which there are, and a new one."""
    vault_parameters = (VAULT_PARAMETER,)
    options_endpoint = _run_endpoint(service, _show_options, vault_parameters)
    list_endpoint = _run_endpoint(service, _list_runs, PAGE_PARAMETERS)
    summary = "Show the options of a run."
    return (
        RouteSpec(
            "GET", f"{_RUNS_PATH}/options", _TAG, summary, options_endpoint, "", vault_parameters, OPTIONS_CONTENT
        ),
        RouteSpec("GET", _RUNS_PATH, _TAG, "List runs.", list_endpoint, "", PAGE_PARAMETERS, RUNS_CONTENT),
        RouteSpec(
            "POST",
            _RUNS_PATH,
            _TAG,
            "Start a run.",
            _run_endpoint(service, _begin_run, NEW_RUN_PARAMETERS),
            "Replies at once; follow the run at /runs/{run_id}/events. Only persons may raise limits.",
            NEW_RUN_PARAMETERS,
            RUN_CONTENT,
            _ACCEPTED_STATUS,
        ),
    )


def _run_reading_routes(service: RunService) -> tuple[RouteSpec, ...]:
    """List the routes that show a run or a part of it, or forget it: they take the vault alone."""
    by_vault = (VAULT_PARAMETER,)

    def of(work: RunHandler) -> Endpoint:
        return _run_endpoint(service, work, by_vault)

    node_path, show, show_node, stale = (
        f"{_RUN_PATH}/nodes/{{node_id}}",
        of(_show_run),
        of(_show_node),
        of(_show_stale_nodes),
    )
    event_parameters = (*background.EVENT_PARAMETERS, VAULT_PARAMETER)
    events_description = "Also for a run of another process, and for an ended one: its nodes, then `run_done`."
    return (
        RouteSpec("GET", _RUN_PATH, _TAG, "Show a run.", show, "", by_vault, RUN_DETAIL_CONTENT),
        RouteSpec(
            "DELETE",
            _RUN_PATH,
            _TAG,
            "Delete a run.",
            of(_delete_run),
            "Its notes stay.",
            by_vault,
            DELETE_CONTENT,
        ),
        RouteSpec("GET", node_path, _TAG, "Show a node.", show_node, "", by_vault, NODE_CONTENT),
        RouteSpec(
            "GET",
            f"{_RUN_PATH}/events",
            _TAG,
            "Stream the events of a run.",
            _run_endpoint(service, _stream_run, event_parameters),
            events_description,
            event_parameters,
            background.events_content(RUN_STREAM_CONTENT),
        ),
        RouteSpec(
            "GET",
            f"{_RUN_PATH}/stale",
            _TAG,
            "List the nodes whose notes have changed.",
            stale,
            "",
            by_vault,
            STALE_CONTENT,
        ),
    )


def _run_action_routes(service: RunService) -> tuple[RouteSpec, ...]:
    """List the routes that resume, end and export a run, and answer what it asks."""
    export_parameters = (EXPORT_TO_PARAMETER, VAULT_PARAMETER)
    answer_parameters = (ANSWER_PARAMETER, VAULT_PARAMETER)
    return (
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/resume",
            _TAG,
            "Resume a run.",
            _run_endpoint(service, _resume_run, RESUME_PARAMETERS),
            "Finished work isn't paid for again. Replies at once.",
            RESUME_PARAMETERS,
            RUN_CONTENT,
            _ACCEPTED_STATUS,
        ),
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/cancel",
            _TAG,
            "Cancel a run.",
            _run_endpoint(service, _cancel_run, (VAULT_PARAMETER,)),
            "Works whichever process runs it; finished work is kept.",
            (VAULT_PARAMETER,),
            CANCEL_RUN_CONTENT,
        ),
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/export",
            _TAG,
            "Propose a run's answer as notes.",
            _run_endpoint(service, _export_run, export_parameters),
            "",
            export_parameters,
            EXPORT_CONTENT,
        ),
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/checkpoints/{{checkpoint_id}}",
            _TAG,
            "Answer a run's question.",
            _run_endpoint(service, _answer_checkpoint, answer_parameters),
            "Only a person may answer.",
            answer_parameters,
            ANSWER_CONTENT,
        ),
    )


def _run_endpoint(service: RunService, work: RunHandler, parameters: Sequence[Parameter]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, parameters)
        try:
            client_runs = await service.client_runs(security.client_of(request.scope), args.text("vault"))
            result = await work(service, client_runs, str(request.path_params.get("run_id", "")), args, request)
        except SetupError as error:
            return background.setup_needed_reply(error, request)
        return result if isinstance(result, Response) else replies.JsonReply({"success": True, **result})

    return endpoint


async def _show_options(
    service: RunService, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    return await service.run_blocking(client_runs.options)


async def _list_runs(
    service: RunService, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del request
    limit, offset = args.integer_or_default("limit", _DEFAULT_LIMIT), args.integer_or_default("offset", 0)
    page_runs, total, question_counts = await service.run_blocking(lambda: _read_page(client_runs, limit, offset))
    rows: list[JSONValue] = [
        {**_describe_run(service, run), "asks": question_counts.get(run.id, 0)} for run in page_runs
    ]
    return {"results": rows, "total": total, "limit": limit, "offset": offset}


def _read_page(client_runs: ClientRuns, limit: int, offset: int) -> tuple[Sequence[RunRecord], int, Mapping[str, int]]:
    page_runs, total = client_runs.runs(limit, offset)
    return page_runs, total, client_runs.count_questions(page_runs)


async def _begin_run(
    service: RunService, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> Response:
    from knapper.app.client_runs import RunRequest  # noqa: PLC0415 - a server without runs needn't pay for models

    del request
    run_request = RunRequest(
        task=args.text("task"),
        strategy=args.text("strategy"),
        code_mode=args.flag("code_mode"),
        profile=cast("ScriptProfile", args.text("profile") or "strict"),
        fresh=bool(args.flag("fresh")),
        model=args.text("model"),
        also=tuple(args.texts("also") or ()),
        limits=_read_limits(args),
    )
    return _accepted_reply(service, await service.begin(lambda: client_runs.prepare_new(run_request)))


async def _show_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    run_view, questions = await service.run_blocking(lambda: (client_runs.show(run_id), client_runs.questions(run_id)))
    rows: list[JSONValue] = [question.as_dict() for question in questions]
    return {**run_view.as_dict(), "is_live": _is_running(service, run_view.run), "checkpoints": rows}


async def _show_node(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args
    node_id = str(request.path_params["node_id"])
    return (await service.run_blocking(lambda: client_runs.node(run_id, node_id))).as_dict()


async def _stream_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> Response:
    run_view = await service.run_blocking(lambda: client_runs.show(run_id))
    start: dict[str, JSONValue] = {"run_id": run_id, "task": run_view.run.order.task}
    job = service.running_job(run_id)
    if job is not None:
        return await background.events_reply(job, start, request, args)
    if run_view.run.state in {"pending", "running"}:
        return await background.events_reply(service.watch(client_runs, run_id), start, request, args)
    return _tell_ended_run(run_view, start, request, args)


def _tell_ended_run(
    run_view: RunDetails, start: dict[str, JSONValue], request: Request, args: RequestArguments
) -> Response:
    """Tell the result of an ended run, with ids above those of its live events."""
    from knapper.agents.runs.service import RunWatcher  # noqa: PLC0415 - as above

    event_rows = [(event.kind, event.as_dict()) for event in RunWatcher().new_events(run_view.run, run_view.nodes)]
    is_polled, after = background.is_polled(args), args.integer_or_default("after", 0)
    first_id = (after if is_polled else background.last_event_id(request)) + 1
    rows = [(background.START_EVENT, {"type": background.START_EVENT, **start}), *event_rows]
    events = [ServerSentEvent(id=first_id + index, name=name, data=data) for index, (name, data) in enumerate(rows)]
    if is_polled:
        return background.polled_reply(events, after, has_ended=True)
    body = b"".join(event.encode() for event in events)
    return Response(body, media_type="text/event-stream", headers=replies.REPLY_HEADERS)


async def _show_stale_nodes(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    notes_by_node = await service.run_blocking(lambda: client_runs.stale(run_id))
    return {"id": run_id, "stale": {node: [*notes] for node, notes in notes_by_node.items()}}


async def _resume_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> Response:
    del request
    replay, limits = args.text("replay").strip(), _read_limits(args)
    if service.running_job(run_id) is not None:
        _ = await service.run_blocking(lambda: client_runs.show(run_id))
        raise run_busy_error(run_id)
    return _accepted_reply(service, await service.begin(lambda: client_runs.prepare_resume(run_id, replay, limits)))


async def _cancel_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    _ = await service.run_blocking(lambda: client_runs.show(run_id))
    job = service.running_job(run_id)
    if job is None:
        cancelled = await service.run_blocking(lambda: client_runs.cancel(run_id))
    else:
        cancelled, _ = await background.cancel_job(job)
    run = (await service.run_blocking(lambda: client_runs.show(run_id))).run
    return {"id": run_id, "cancelled": cancelled, "ended": not _is_running(service, run), "state": run.state}


async def _delete_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    _ = await service.run_blocking(lambda: client_runs.show(run_id))
    if service.running_job(run_id) is not None:
        raise run_busy_error(run_id)
    await service.run_blocking(lambda: client_runs.delete(run_id))
    return {"deleted": run_id}


async def _export_run(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del request
    to = args.text("to")
    return answers.as_json(await service.run_blocking(lambda: client_runs.export(run_id, to)))


async def _answer_checkpoint(
    service: RunService, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    checkpoint, word = str(request.path_params["checkpoint_id"]), args.text("answer")
    return (await service.run_blocking(lambda: client_runs.answer(run_id, checkpoint, word))).as_dict()


def _read_limits(args: RequestArguments) -> dict[str, float]:
    numbers = {parameter.name: args.number(parameter.name) for parameter in LIMIT_PARAMETERS}
    return {name: number for name, number in numbers.items() if number is not None}


def _accepted_reply(service: RunService, run: RunRecord) -> Response:
    return replies.JsonReply({"success": True, **_describe_run(service, run)}, _ACCEPTED_STATUS)


def _describe_run(service: RunService, run: RunRecord) -> dict[str, JSONValue]:
    return {**run.brief(), "is_live": _is_running(service, run)}


def _is_running(service: RunService, run: RunRecord) -> bool:
    return run.state in {"pending", "running"} or service.running_job(run.id) is not None
