"""Serve runs over HTTP: begin, list, follow, answer, resume, cancel and export them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import ConflictError, NotFound, SetupError
from knapper.server import security
from knapper.server.http import background, binding
from knapper.server.http.background import ServerSentEvent
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
    USED_NOTES_CONTENT,
)
from knapper.server.http.openapi import RouteSpec
from knapper.tools import answers
from knapper.tools.context import SCRIPT_PROFILES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from knapper.agents.events import BackgroundJob, BackgroundJobs, JobEventSink
    from knapper.agents.runs.model import RunDone, RunEvent, RunRecord
    from knapper.agents.runs.service import RunDetails
    from knapper.app.client_runs import ClientRuns, PreparedRun
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.server.http.binding import Endpoint, RequestArguments


MOST_RUNS: Final = 8
"""That run at once, of all clients together."""
_MAX_WATCHED: Final = 32
POLL_INTERVAL_S: Final = 1.0
"""How often is looked at runs of other processes."""


class RunJobs:
    """The runs that one server carries out or follows; used from its event loop."""

    def __init__(self, service: JobService) -> None:
        """Start without any.

        Args:
            service: Has the jobs.
        """
        self.service = service
        self._carried: BackgroundJobs[RunDone] | None = None
        self._watched: BackgroundJobs[RunDone] | None = None
        self._preparing = 0

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
            raise ConflictError(f"{MOST_RUNS} runs are already running here", hint=hint, code="too_many_runs")
        self._preparing += 1
        try:
            prepared = await self.service.run_blocking(ready)
        finally:
            self._preparing -= 1
        run = prepared.run
        if self.running_job(run.id) is not None:
            raise run_busy_error(run.id)
        if self._carried is None:
            from knapper.agents.runs import store  # noqa: PLC0415 - a server without runs needn't pay for models

            self._carried = store.make_run_jobs(MOST_RUNS)

        def carried(emit: JobEventSink) -> Coroutine[object, object, object]:
            return _carry_out_run(prepared, emit)

        _ = self.service.jobs.begin(self._carried, run.id, carried, run.order.task)
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

        def watched(emit: JobEventSink) -> Coroutine[object, object, object]:
            return self._poll(client_runs, run_id, emit)

        return self.service.jobs.begin(self._watched, run_id, watched)

    async def _poll(self, client_runs: ClientRuns, run_id: str, emit: JobEventSink) -> None:
        from knapper.agents.runs.service import RunWatcher  # noqa: PLC0415 - as above

        watch = RunWatcher()
        while True:
            run_view, open_questions = await self.service.run_blocking(
                lambda: (client_runs.show(run_id), client_runs.unanswered_checkpoints(run_id))
            )
            for event in watch.new_events(run_view.run, run_view.nodes, open_questions):
                emit(event)
                if event.kind == "run_done":
                    return
            await asyncio.sleep(POLL_INTERVAL_S)


def run_busy_error(run_id: str) -> ConflictError:
    """Return the error for a run that is still running."""
    return ConflictError(f"the run {run_id} is already running", hint="wait for it, or cancel it", code="run_busy")


async def _carry_out_run(going: PreparedRun, emit: JobEventSink) -> None:
    """Carry out a run; its end is reported only once it can be resumed."""
    from knapper.agents.runs import executor  # noqa: PLC0415 - a server without runs needn't pay for models
    from knapper.app import runs  # noqa: PLC0415 - the same

    loop, engine, run_id = asyncio.get_running_loop(), going.engine, going.run.id
    final_events: list[RunEvent] = []

    def told(event: RunEvent) -> None:
        receive_event = final_events.append if event.kind == "run_done" else emit
        with contextlib.suppress(RuntimeError):  # the server has gone
            _ = loop.call_soon_threadsafe(receive_event, event)

    def work() -> Coroutine[object, object, RunRecord]:
        return executor.carry_out_run(engine, run_id, told, replay=going.replay, limits=going.limits)

    try:
        _ = await runs.run_in_thread(work, f"run {run_id}")
    except asyncio.CancelledError:
        await asyncio.to_thread(executor.record_unstarted_end, engine, run_id)
        raise
    finally:
        for event in final_events:
            emit(event)


def _find_running_job(jobs: BackgroundJobs[RunDone] | None, run_id: str) -> BackgroundJob[RunDone] | None:
    if jobs is None:
        return None
    try:
        job = jobs.find(run_id)
    except NotFound:
        return None
    return None if job.has_ended else job


if TYPE_CHECKING:
    RunHandler = Callable[
        [RunJobs, ClientRuns, str, RequestArguments, Request], Awaitable[Response | dict[str, JSONValue]]
    ]
    """Does what a route is for, among a client's runs, with the run of the path."""

_RUNS_PATH: Final = "/runs"
_RUN_PATH: Final = "/runs/{run_id}"
_TAG: Final = "runs"
_DEFAULT_LIMIT: Final = 50
_ACCEPTED_STATUS: Final = 202


def run_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of runs."""
    run_jobs = RunJobs(service)
    return (*_runs_routes(run_jobs), *_run_reading_routes(run_jobs), *_run_action_routes(run_jobs))


def _runs_routes(run_jobs: RunJobs) -> tuple[RouteSpec, ...]:
    """List the routes of all runs: what a run may be, which there are, and a new one."""
    vault_parameters = (VAULT_PARAMETER,)
    options_endpoint = _run_endpoint(run_jobs, _show_options, vault_parameters)
    list_endpoint = _run_endpoint(run_jobs, _list_runs, PAGE_PARAMETERS)
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
            _run_endpoint(run_jobs, _begin_run, NEW_RUN_PARAMETERS),
            "Replies at once; follow the run at /runs/{run_id}/events. Only persons may raise limits.",
            NEW_RUN_PARAMETERS,
            RUN_CONTENT,
            _ACCEPTED_STATUS,
        ),
    )


def _run_reading_routes(run_jobs: RunJobs) -> tuple[RouteSpec, ...]:
    """List the routes that show a run or a part of it, or forget it: they take the vault alone."""
    by_vault = (VAULT_PARAMETER,)

    def of(work: RunHandler) -> Endpoint:
        return _run_endpoint(run_jobs, work, by_vault)

    def read(path: str, summary: str, work: RunHandler, content: Mapping[str, Any]) -> RouteSpec:
        return RouteSpec("GET", f"{_RUN_PATH}{path}", _TAG, summary, of(work), "", by_vault, content)

    event_parameters = (*background.EVENT_PARAMETERS, VAULT_PARAMETER)
    events_description = "Also for a run of another process, and for an ended one: its nodes, then `run_done`."
    return (
        read("", "Show a run.", _show_run, RUN_DETAIL_CONTENT),
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
        read("/nodes/{node_id}", "Show a node.", _show_node, NODE_CONTENT),
        RouteSpec(
            "GET",
            f"{_RUN_PATH}/events",
            _TAG,
            "Stream the events of a run.",
            _run_endpoint(run_jobs, _stream_run, event_parameters),
            events_description,
            event_parameters,
            background.events_content(RUN_STREAM_CONTENT),
        ),
        read("/notes", "List the notes that a run used.", _list_used_notes, USED_NOTES_CONTENT),
        read("/stale", "List the nodes whose notes have changed.", _show_stale_nodes, STALE_CONTENT),
    )


def _run_action_routes(run_jobs: RunJobs) -> tuple[RouteSpec, ...]:
    """List the routes that resume, end and export a run, and answer what it asks."""
    export_parameters = (EXPORT_TO_PARAMETER, VAULT_PARAMETER)
    answer_parameters = (ANSWER_PARAMETER, VAULT_PARAMETER)
    return (
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/resume",
            _TAG,
            "Resume a run.",
            _run_endpoint(run_jobs, _resume_run, RESUME_PARAMETERS),
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
            _run_endpoint(run_jobs, _cancel_run, (VAULT_PARAMETER,)),
            "Works whichever process runs it; finished work is kept.",
            (VAULT_PARAMETER,),
            CANCEL_RUN_CONTENT,
        ),
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/export",
            _TAG,
            "Propose a run's answer as notes.",
            _run_endpoint(run_jobs, _export_run, export_parameters),
            "",
            export_parameters,
            EXPORT_CONTENT,
        ),
        RouteSpec(
            "POST",
            f"{_RUN_PATH}/checkpoints/{{checkpoint_id}}",
            _TAG,
            "Answer a run's question.",
            _run_endpoint(run_jobs, _answer_checkpoint, answer_parameters),
            "Only a person may answer.",
            answer_parameters,
            ANSWER_CONTENT,
        ),
    )


def _run_endpoint(run_jobs: RunJobs, work: RunHandler, parameters: Sequence[Parameter]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, parameters)
        try:
            client_runs = await run_jobs.service.client_runs(security.client_of(request.scope), args.text("vault"))
            result = await work(run_jobs, client_runs, str(request.path_params.get("run_id", "")), args, request)
        except SetupError as error:
            return background.setup_needed_reply(error, request)
        return result if isinstance(result, Response) else security.JsonReply({"success": True, **result})

    return endpoint


async def _show_options(
    run_jobs: RunJobs, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    return await run_jobs.service.run_blocking(client_runs.options)


async def _list_runs(
    run_jobs: RunJobs, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del request
    limit, offset = args.integer_or_default("limit", _DEFAULT_LIMIT), args.integer_or_default("offset", 0)
    page_runs, total, question_counts = await run_jobs.service.run_blocking(
        lambda: _read_page(client_runs, limit, offset)
    )
    rows: list[JSONValue] = [
        {**_describe_run(run_jobs, run), "asks": question_counts.get(run.id, 0)} for run in page_runs
    ]
    return {"results": rows, "total": total, "limit": limit, "offset": offset}


def _read_page(client_runs: ClientRuns, limit: int, offset: int) -> tuple[Sequence[RunRecord], int, Mapping[str, int]]:
    page_runs, total = client_runs.runs(limit, offset)
    return page_runs, total, client_runs.count_questions(page_runs)


async def _begin_run(
    run_jobs: RunJobs, client_runs: ClientRuns, _: str, args: RequestArguments, request: Request
) -> Response:
    from knapper.app.client_runs import RunRequest  # noqa: PLC0415 - a server without runs needn't pay for models

    del request
    run_request = RunRequest(
        task=args.text("task"),
        strategy=args.text("strategy"),
        code_mode=args.flag("code_mode"),
        profile=args.choice("profile", SCRIPT_PROFILES, "strict"),
        fresh=bool(args.flag("fresh")),
        model=args.text("model"),
        also=tuple(args.texts("also") or ()),
        limits=_read_limits(args),
    )
    return _accepted_reply(run_jobs, await run_jobs.begin(lambda: client_runs.prepare_new(run_request)))


async def _show_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    run_view, questions = await run_jobs.service.run_blocking(
        lambda: (client_runs.show(run_id), client_runs.questions(run_id))
    )
    rows: list[JSONValue] = [question.as_dict() for question in questions]
    return {**run_view.as_dict(), "is_live": _is_running(run_jobs, run_view.run), "checkpoints": rows}


async def _show_node(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args
    node_id = str(request.path_params["node_id"])
    return (await run_jobs.service.run_blocking(lambda: client_runs.node(run_id, node_id))).as_dict()


async def _stream_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> Response:
    run_view = await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))
    start: dict[str, JSONValue] = {"run_id": run_id, "task": run_view.run.order.task}
    job = run_jobs.running_job(run_id)
    if job is not None:
        return await background.events_reply(job, start, request, args)
    if run_view.run.state in {"pending", "running"}:
        return await background.events_reply(run_jobs.watch(client_runs, run_id), start, request, args)
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
    return Response(body, media_type="text/event-stream", headers=security.REPLY_HEADERS)


async def _list_used_notes(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    from knapper.agents.runs.model import list_used_notes  # noqa: PLC0415 - as above

    del args, request
    nodes = (await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))).nodes
    return {"id": run_id, "notes": [note.as_dict() for note in list_used_notes(nodes)]}


async def _show_stale_nodes(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    notes_by_node = await run_jobs.service.run_blocking(lambda: client_runs.stale(run_id))
    return {"id": run_id, "stale": {node: [*notes] for node, notes in notes_by_node.items()}}


async def _resume_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> Response:
    del request
    replay, limits = args.text("replay").strip(), _read_limits(args)
    if run_jobs.running_job(run_id) is not None:
        _ = await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))
        raise run_busy_error(run_id)
    return _accepted_reply(run_jobs, await run_jobs.begin(lambda: client_runs.prepare_resume(run_id, replay, limits)))


async def _cancel_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    _ = await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))
    job = run_jobs.running_job(run_id)
    if job is None:
        cancelled = await run_jobs.service.run_blocking(lambda: client_runs.cancel(run_id))
    else:
        cancelled, _ = await background.cancel_job(job)
    run = (await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))).run
    return {"id": run_id, "cancelled": cancelled, "ended": not _is_running(run_jobs, run), "state": run.state}


async def _delete_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del args, request
    _ = await run_jobs.service.run_blocking(lambda: client_runs.show(run_id))
    if run_jobs.running_job(run_id) is not None:
        raise run_busy_error(run_id)
    await run_jobs.service.run_blocking(lambda: client_runs.delete(run_id))
    return {"deleted": run_id}


async def _export_run(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    del request
    to = args.text("to")
    return answers.as_json(await run_jobs.service.run_blocking(lambda: client_runs.export(run_id, to)))


async def _answer_checkpoint(
    run_jobs: RunJobs, client_runs: ClientRuns, run_id: str, args: RequestArguments, request: Request
) -> dict[str, JSONValue]:
    checkpoint, word = str(request.path_params["checkpoint_id"]), args.text("answer")
    return (await run_jobs.service.run_blocking(lambda: client_runs.answer(run_id, checkpoint, word))).as_dict()


def _read_limits(args: RequestArguments) -> dict[str, float]:
    numbers = {parameter.name: args.number(parameter.name) for parameter in LIMIT_PARAMETERS}
    return {name: number for name, number in numbers.items() if number is not None}


def _accepted_reply(run_jobs: RunJobs, run: RunRecord) -> Response:
    return security.JsonReply({"success": True, **_describe_run(run_jobs, run)}, _ACCEPTED_STATUS)


def _describe_run(run_jobs: RunJobs, run: RunRecord) -> dict[str, JSONValue]:
    return {**run.brief(), "is_live": _is_running(run_jobs, run)}


def _is_running(run_jobs: RunJobs, run: RunRecord) -> bool:
    return run.state in {"pending", "running"} or run_jobs.running_job(run.id) is not None
