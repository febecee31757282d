"""Serve runs over HTTP: begin, list, follow, answer, resume, cancel and export them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import ConflictError, NotFound
from knapper.server import security
from knapper.server.http import background
from knapper.server.http.background import CallRoutes, ServerSentEvent
from knapper.server.http.binding import PAGE_PARAMETERS, VAULT_PARAMETER, Parameter
from knapper.server.http.models import SPENT_SCHEMA
from knapper.server.http.openapi import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    ExtendedType,
    RouteSpec,
    json_content,
    object_schema,
    page_content,
    type_content,
)
from knapper.tools import answers
from knapper.tools.context import SCRIPT_PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from knapper.agents.events import BackgroundJob, BackgroundJobs, JobEventSink
    from knapper.agents.runs.model import NodeDetails, RunDetails, RunDone, RunEvent, RunRecord
    from knapper.app.client_runs import ClientRuns, PreparedRun
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.server.http.binding import RequestArguments


def _of_runs(name: str) -> Callable[[], Any]:
    """Return a function that imports a type of runs, for which a server's start needn't wait."""

    def load() -> Any:  # noqa: ANN401 - a type
        from knapper.agents.runs import model  # noqa: PLC0415 - only the document needs it

        return getattr(model, name)

    return load


LIMIT_PARAMETERS: Final = (
    Parameter(name="depth", doc="Levels of subtasks at most.", kind="count", maximum=8),
    Parameter(name="nodes", doc="Nodes at most.", kind="count", minimum=1, maximum=500),
    Parameter(name="minutes", doc="How long it may take, from now.", kind="number", minimum=0.01, maximum=1_440),
    Parameter(name="tokens", doc="Tokens at most; 0 for no limit.", kind="count", maximum=10**9),
    Parameter(name="cents", doc="What it may cost; 0 for no limit.", kind="count", maximum=10**6),
)
"""Whoever isn't a person may only lower what the owner configured."""
ANSWER_PARAMETERS: Final = (
    Parameter(
        name="answer", doc="`go on`, `skip`, notes by their paths, or where to look.", required=True, maximum=20_000
    ),
    VAULT_PARAMETER,
)
EXPORT_PARAMETERS: Final = (
    Parameter(name="to", doc="A note, by its ending .md; otherwise a folder.", required=True),
    VAULT_PARAMETER,
)
NEW_RUN_PARAMETERS: Final = (
    Parameter(name="task", doc="What is to be done.", required=True, maximum=50_000),
    Parameter(name="strategy", doc="How it is split and done; see /runs/options.", maximum=40),
    Parameter(name="code_mode", doc="Whether scripts retrieve; otherwise search does.", kind="flag"),
    Parameter(
        name="profile",
        doc="What else scripts may read, where the owner configured any.",
        choices=SCRIPT_PROFILES,
    ),
    Parameter(name="fresh", doc="Take nothing from the cache.", kind="flag"),
    Parameter(
        name="model",
        doc="Another model than the configured one; only a person may name any.",
        maximum=200,
        refuses_blank=True,
    ),
    Parameter(name="also", doc="Other vaults to look through, by name.", kind="texts", maximum=200),
    *LIMIT_PARAMETERS,
    VAULT_PARAMETER,
)
RESUME_PARAMETERS: Final = (
    Parameter(
        name="replay",
        doc="`stale` does again what read notes that have changed, a node's id that and all below.",
        maximum=200,
    ),
    *LIMIT_PARAMETERS,
    VAULT_PARAMETER,
)

_IS_LIVE: Final[Mapping[str, Any]] = {
    "is_live": {"type": "boolean", "description": "Whether somebody carries it out right now."}
}
_OPEN_QUESTIONS: Final[Mapping[str, Any]] = {
    "asks": {**INTEGER, "description": "Questions to a person that nobody has answered."}
}
_CITATION: Final = object_schema(
    {
        "vault": STRING,
        "path": STRING,
        "heading": STRING,
        "start_line": INTEGER,
        "end_line": INTEGER,
        "hash": STRING,
    }
)
_ANSWER_FIELDS: Final[Mapping[str, Any]] = {
    "citations": {"type": "array", "items": _CITATION},
    "removed": {
        "type": "array",
        "items": object_schema({"citation": STRING, "reason": STRING}),
        "description": "Citations that were dropped, each with the reason.",
    },
    "usage": SPENT_SCHEMA,
}
RUN_CONTENT: Final = type_content(_of_runs("RunRow"), **_IS_LIVE)
RUNS_CONTENT: Final = page_content("results", ExtendedType(_of_runs("RunRow"), {**_IS_LIVE, **_OPEN_QUESTIONS}))
RUN_DETAIL_CONTENT: Final = type_content(
    _of_runs("RunWithNodes"),
    **_IS_LIVE,
    **_ANSWER_FIELDS,
    checkpoints={
        "type": "array",
        "items": _of_runs("CheckpointEvent"),
        "description": "What it asks a person, and nobody has answered.",
    },
)
NODE_CONTENT: Final = type_content(_of_runs("NodeDetails"), **_ANSWER_FIELDS)
USED_NOTES_CONTENT: Final = json_content(
    {
        "id": STRING,
        "notes": {"type": "array", "items": _of_runs("UsedNote"), "description": "Each once; cited ones first."},
    }
)
STALE_CONTENT: Final = json_content(
    {
        "id": STRING,
        "stale": {
            "type": "object",
            "additionalProperties": STRINGS,
            "description": "By the nodes' ids, the notes that have changed since.",
        },
    }
)
EXPORT_CONTENT: Final = json_content({"status": {"enum": ["applied", "proposed"]}})
ANSWER_CONTENT: Final = json_content({"id": STRING, "run": STRING, "node": STRING, "answer": {"type": "object"}})
CANCEL_RUN_CONTENT: Final = json_content(
    {"id": STRING, "cancelled": BOOLEAN, "ended": BOOLEAN, "state": _of_runs("RunState")}
)
DELETE_CONTENT: Final = json_content({"deleted": STRING})
OPTIONS_CONTENT: Final = json_content(
    {
        "strategies": {
            "type": "array",
            "items": object_schema({"name": STRING, "summary": STRING, "own": BOOLEAN}),
        },
        "strategy": {"type": "string", "description": "The one that is taken where none is said."},
        "code_mode": BOOLEAN,
        "profiles": STRINGS,
        "limits": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What is usual."},
        "ranges": {
            "type": "object",
            "additionalProperties": object_schema({"least": {"type": "number"}, "most": {"type": "number"}}),
        },
        "model": {"type": ["string", "null"], "description": "The configured model; null where there is none."},
        "model_hint": STRING,
        "sandbox_ready": {
            "type": ["boolean", "null"],
            "description": "False where scripts have to be prepared first; null where they can't be run here.",
        },
        "sandbox_hint": STRING,
    }
)
RUN_STREAM_CONTENT: Final = background.events_content(
    "RunEvent",
    "`start` comes first, with run_id and task; then `run_started`, `node`, `checkpoint`, `notice`, `usage` and "
    "`error`, as they happen; `run_done` comes last, with the answer.",
    background.start_schema("run_id", "task"),
    _of_runs("RunEvent"),
)

T = TypeVar("T")
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
            from knapper.agents.events import BackgroundJobs  # noqa: PLC0415 - a server without runs needn't pay for models
            from knapper.agents.runs import store  # noqa: PLC0415 - the same

            self._carried = BackgroundJobs(store.RUN_END, max_running=MOST_RUNS)

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
            from knapper.agents.events import BackgroundJobs  # noqa: PLC0415 - as above
            from knapper.agents.runs import store  # noqa: PLC0415 - as above

            self._watched = BackgroundJobs(store.WATCH_END, kept_s=store.WATCHED_KEPT_S, max_running=_MAX_WATCHED)

        async def watched(emit: JobEventSink) -> None:
            from knapper.agents.runs.store import RunWatcher  # noqa: PLC0415 - as above

            watch = RunWatcher()
            while True:
                run_view, open_questions = await self.service.run_blocking(
                    lambda: (client_runs.show(run_id), client_runs.opened_runs.checkpoints.waiting(run_id))
                )
                for event in watch.new_events(run_view.run, run_view.nodes, open_questions):
                    emit(event)
                    if event.kind == "run_done":
                        return
                await asyncio.sleep(POLL_INTERVAL_S)

        return self.service.jobs.begin(self._watched, run_id, watched)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunCall:
    """A client's request about its runs, or about the one of the path."""

    jobs: RunJobs
    runs: ClientRuns
    run_id: str
    """Empty where the path names no run."""
    args: RequestArguments
    request: Request

    async def blocking(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread."""
        return await self.jobs.service.run_blocking(work)

    async def details(self) -> RunDetails:
        """Return the run of the path; raises as `ClientRuns.show` does."""
        return await self.blocking(lambda: self.runs.show(self.run_id))

    def is_live(self, run: RunRecord) -> bool:
        """Return whether a run goes on, here or in another process."""
        return run.state in {"pending", "running"} or self.jobs.running_job(run.id) is not None

    def describe(self, run: RunRecord) -> Mapping[str, object]:
        """Return a run in brief, and whether it goes on."""
        return {**run.brief(), "is_live": self.is_live(run)}

    async def start(self, ready: Callable[[], PreparedRun]) -> Mapping[str, object]:
        """Start a run in the background, and return it at once."""
        return self.describe(await self.jobs.begin(ready))

    async def show_options(self) -> dict[str, JSONValue]:
        """Show the options of a run."""
        return await self.blocking(self.runs.options)

    async def list_runs(self) -> Mapping[str, object]:
        """List runs."""
        limit, offset = self.args.page()

        def read_page() -> tuple[Sequence[RunRecord], int, Mapping[str, int]]:
            page_runs, total = self.runs.runs(limit, offset)
            return page_runs, total, self.runs.opened_runs.count_questions(page_runs)

        page_runs, total, question_counts = await self.blocking(read_page)
        rows = [{**self.describe(run), "asks": question_counts.get(run.id, 0)} for run in page_runs]
        return {"results": rows, "total": total, "limit": limit, "offset": offset}

    async def begin_run(self) -> Mapping[str, object]:
        """Start a run.

        Replies at once; follow the run at /runs/{run_id}/events. Only persons may raise limits.
        """
        from knapper.app.client_runs import RunRequest  # noqa: PLC0415 - a server without runs needn't pay for models

        args = self.args
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
        return await self.start(lambda: self.runs.prepare_new(run_request))

    async def show_run(self) -> Mapping[str, object]:
        """Show a run."""
        run_view, questions = await self.blocking(
            lambda: (self.runs.show(self.run_id), self.runs.questions(self.run_id))
        )
        rows = [question.as_dict() for question in questions]
        return {**run_view.as_dict(), "is_live": self.is_live(run_view.run), "checkpoints": rows}

    async def show_node(self) -> NodeDetails:
        """Show a node."""
        node_id = str(self.request.path_params["node_id"])
        return (await self.blocking(lambda: self.runs.node(self.run_id, node_id))).as_dict()

    async def stream_run(self) -> Response:
        """Stream the events of a run.

        Also for a run of another process, and for an ended one: its nodes, then `run_done`.
        """
        run_view = await self.details()
        start: dict[str, JSONValue] = {"run_id": self.run_id, "task": run_view.run.order.task}
        job = self.jobs.running_job(self.run_id)
        if job is None and run_view.run.state in {"pending", "running"}:
            job = self.jobs.watch(self.runs, self.run_id)
        if job is not None:
            return await background.events_reply(job, start, self.request, self.args)
        # the result of an ended run, with ids above those of its live events
        from knapper.agents.runs.store import RunWatcher  # noqa: PLC0415 - as above

        event_rows = [(event.kind, event.as_dict()) for event in RunWatcher().new_events(run_view.run, run_view.nodes)]
        is_polled, after = background.is_polled(self.args), self.args.integer_or_default("after", 0)
        first_id = (after if is_polled else background.last_event_id(self.request)) + 1
        rows = [(background.START_EVENT, {"type": background.START_EVENT, **start}), *event_rows]
        events = [ServerSentEvent(id=first_id + index, name=name, data=data) for index, (name, data) in enumerate(rows)]
        if is_polled:
            return background.polled_reply(events, after, has_ended=True)
        body = b"".join(event.encode() for event in events)
        return Response(body, media_type="text/event-stream", headers=security.REPLY_HEADERS)

    async def list_used_notes(self) -> dict[str, JSONValue]:
        """List the notes that a run used."""
        from knapper.agents.runs.model import list_used_notes  # noqa: PLC0415 - as above

        nodes = (await self.details()).nodes
        return {"id": self.run_id, "notes": [note.as_dict() for note in list_used_notes(nodes)]}

    async def show_stale_nodes(self) -> dict[str, JSONValue]:
        """List the nodes whose notes have changed."""
        notes_by_node = await self.blocking(lambda: self.runs.stale(self.run_id))
        return {"id": self.run_id, "stale": {node: [*notes] for node, notes in notes_by_node.items()}}

    async def resume_run(self) -> Mapping[str, object]:
        """Resume a run.

        Finished work isn't paid for again. Replies at once.
        """
        replay, limits = self.args.text("replay").strip(), _read_limits(self.args)
        if self.jobs.running_job(self.run_id) is not None:
            _ = await self.details()
            raise run_busy_error(self.run_id)
        return await self.start(lambda: self.runs.prepare_resume(self.run_id, replay, limits))

    async def cancel_run(self) -> dict[str, JSONValue]:
        """Cancel a run.

        Works whichever process runs it; finished work is kept.
        """
        _ = await self.details()
        job = self.jobs.running_job(self.run_id)
        if job is None:
            cancelled = await self.blocking(lambda: self.runs.cancel(self.run_id))
        else:
            cancelled, _ = await background.cancel_job(job)
        run = (await self.details()).run
        return {"id": self.run_id, "cancelled": cancelled, "ended": not self.is_live(run), "state": run.state}

    async def delete_run(self) -> dict[str, JSONValue]:
        """Delete a run.

        Its notes stay.
        """
        _ = await self.details()
        if self.jobs.running_job(self.run_id) is not None:
            raise run_busy_error(self.run_id)
        await self.blocking(lambda: self.runs.delete(self.run_id))
        return {"deleted": self.run_id}

    async def export_run(self) -> dict[str, JSONValue]:
        """Propose a run's answer as notes."""
        to = self.args.text("to")
        return answers.as_json(await self.blocking(lambda: self.runs.export(self.run_id, to)))

    async def answer_checkpoint(self) -> dict[str, JSONValue]:
        """Answer a run's question.

        Only a person may answer.
        """
        checkpoint, word = str(self.request.path_params["checkpoint_id"]), self.args.text("answer")
        return (await self.blocking(lambda: self.runs.answer(self.run_id, checkpoint, word))).as_dict()


_ACCEPTED_STATUS: Final = 202


def run_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of runs."""
    run_jobs = RunJobs(service)

    async def open_call(request: Request, args: RequestArguments) -> _RunCall:
        client_runs = await service.client_runs(security.client_of(request.scope), args.text("vault"))
        run_id = str(request.path_params.get("run_id", ""))
        return _RunCall(jobs=run_jobs, runs=client_runs, run_id=run_id, args=args, request=request)

    route = CallRoutes(tag="runs", open_call=open_call, needs_setup=True).route
    event_parameters = (*background.EVENT_PARAMETERS, VAULT_PARAMETER)
    checkpoint_path = "/runs/{run_id}/checkpoints/{checkpoint_id}"
    return (
        route("GET", "/runs/options", _RunCall.show_options, OPTIONS_CONTENT),
        route("GET", "/runs", _RunCall.list_runs, RUNS_CONTENT, (*PAGE_PARAMETERS, VAULT_PARAMETER)),
        route("POST", "/runs", _RunCall.begin_run, RUN_CONTENT, NEW_RUN_PARAMETERS, _ACCEPTED_STATUS),
        route("GET", "/runs/{run_id}", _RunCall.show_run, RUN_DETAIL_CONTENT),
        route("DELETE", "/runs/{run_id}", _RunCall.delete_run, DELETE_CONTENT),
        route("GET", "/runs/{run_id}/nodes/{node_id}", _RunCall.show_node, NODE_CONTENT),
        route("GET", "/runs/{run_id}/events", _RunCall.stream_run, RUN_STREAM_CONTENT, event_parameters),
        route("GET", "/runs/{run_id}/notes", _RunCall.list_used_notes, USED_NOTES_CONTENT),
        route("GET", "/runs/{run_id}/stale", _RunCall.show_stale_nodes, STALE_CONTENT),
        route("POST", "/runs/{run_id}/resume", _RunCall.resume_run, RUN_CONTENT, RESUME_PARAMETERS, _ACCEPTED_STATUS),
        route("POST", "/runs/{run_id}/cancel", _RunCall.cancel_run, CANCEL_RUN_CONTENT),
        route("POST", "/runs/{run_id}/export", _RunCall.export_run, EXPORT_CONTENT, EXPORT_PARAMETERS),
        route("POST", checkpoint_path, _RunCall.answer_checkpoint, ANSWER_CONTENT, ANSWER_PARAMETERS),
    )


def _read_limits(args: RequestArguments) -> dict[str, float]:
    numbers = {parameter.name: args.number(parameter.name) for parameter in LIMIT_PARAMETERS}
    return {name: number for name, number in numbers.items() if number is not None}
