"""Serve tasks of several agents and their presets over HTTP: ``/ask`` and ``/presets``."""

from __future__ import annotations

import asyncio
import functools
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.pipeline import scopes, store
from knapper.agents.sessions import store as sessions_store
from knapper.app.clients import TaskOrder
from knapper.errors import KnapError, NotFound, RefusedError, SetupError
from knapper.jsontypes import Record, list_or_empty
from knapper.server import security
from knapper.server.http import background, binding, openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, RequestArguments
from knapper.server.http.job_schemas import (
    CANCEL_TASK_CONTENT,
    CONTEXT_CONTENT,
    CONTEXT_PARAMETERS,
    DEFAULTS_CONTENT,
    NUMBER_RANGES,
    OUTCOME_CONTENT,
    PRESET_PARAMETERS,
    PRESET_SCHEMA,
    SWITCH_PARAMETERS,
    SWITCHES_CONTENT,
    TASK_PARAMETERS,
    TASK_STREAM_CONTENT,
    check_task_or_answer,
    read_switches,
    read_task_order,
)
from knapper.server.http.openapi import STRING, RouteSpec
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from knapper.agents.events import BackgroundJob, JobEventSink
    from knapper.agents.pipeline.context import TaskRequest
    from knapper.agents.pipeline.records import PipelineOutcome
    from knapper.agents.pipeline.service import PipelineService
    from knapper.agents.pipeline.store import PausedRun, Preset
    from knapper.app.pipelines import ClientPipelines
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.tools.context import Context


async def begin_task(
    service: JobService, client_pipelines: ClientPipelines, order: TaskOrder, model: str = ""
) -> BackgroundJob[PipelineOutcome]:
    """Begin a task.

    Args:
        service: Has the job.
        client_pipelines: The client's pipelines.
        order: The task.
        model: Its model's name; empty for the configured one.

    Raises:
        NotFound: There is no such note, preset or session.
        ConflictError: The session is busy (code ``session_busy``), or too many jobs are running.
        SetupError: There is no model.
        RefusedError: The client may not use that model.
        StorageError: The server is stopping (code ``stopping``).
        BadInput: A value can't be used.
    """

    def prepare() -> tuple[PipelineService, TaskRequest, Context]:
        answering = client_pipelines.answering(model)
        request = client_pipelines.request(order)
        return answering, request, client_pipelines.agent_context(request.run_id)

    answering, request, context = await service.run_blocking(prepare)
    if request.session_id:
        async with sessions_store.lock_session(answering.folder, request.session_id, wait_s=0):
            pass  # who comes later than this is told in the stream

    async def work(emit: JobEventSink) -> None:
        _ = await answering.ask(request, context, emit)

    job = service.jobs.begin(client_pipelines.jobs, request.run_id, work, request.task)
    job.session_id = request.session_id
    return job


async def resume_task(
    service: JobService, client_pipelines: ClientPipelines, run_id: str, answer: str, model: str = ""
) -> BackgroundJob[PipelineOutcome]:
    """Resume a run that asked a question.

    Args:
        service: Has the job.
        client_pipelines: The pipelines of the client that answers.
        run_id: The run's.
        answer: The person's answer.
        model: The model's name; empty for the configured one.

    Raises:
        NotFound: There is no such paused run, or it is another client's (code ``no_run``).
        KnapError: As for `begin_task`.
    """
    stack = ExitStack()

    def prepare() -> tuple[PausedRun, PipelineService, Context]:
        from knapper.app import pipelines  # noqa: PLC0415 - a server without tasks needn't pay for models

        run = pipelines.find_paused_run(client_pipelines.pipelines, run_id, client_pipelines.client)
        resumption = pipelines.open_paused_run(
            client_pipelines.pipelines, run, client_pipelines.client, client_pipelines.model(model)
        )
        answering, context = stack.enter_context(resumption)
        return run, replace(answering, wait_s=0, is_stopping=lambda: service.jobs.is_stopping), context

    try:
        run, answering, context = await service.run_blocking(prepare)
        by = client_pipelines.client.grants

        async def work(emit: JobEventSink) -> None:
            try:
                _ = await answering.resume(run_id, answer, context, emit, by=by)
            finally:
                await asyncio.shield(asyncio.to_thread(stack.close))

        job = service.jobs.begin(client_pipelines.jobs, run_id, work, str(run.request.get("task", "")))
    except BaseException:
        stack.close()
        raise
    job.session_id = str(run.request.get("session_id", ""))
    return job


async def find_task(service: JobService, client: str, run_id: str) -> BackgroundJob[PipelineOutcome]:
    """Find a client's task by its run, to show it to the client; the latest job of a resumed one.

    Raises:
        NotFound: There is none, it ended long ago, or it is another client's (code ``no_run``).
    """
    for client_pipelines in service.clients.list_pipelines(client):
        try:
            job = client_pipelines.jobs.find(run_id)
        except NotFound:
            continue
        await service.run_blocking(lambda: client_pipelines.chats.mark_shown(run_id))  # noqa: B023  # called at once
        return job
    raise NotFound("there is no such run", hint="the session holds what came of runs that ended", code="no_run")


def _describe_defaults(client_pipelines: ClientPipelines) -> dict[str, JSONValue]:
    settings, configured = client_pipelines.pipelines.hub.settings, client_pipelines.configured()
    model_names: list[str] = []
    attempts: dict[str, Callable[[], object]] = {
        "model": lambda: model_names.append(client_pipelines.chats.chat().name),
        "web": client_pipelines.agent_context("").open_web,
    }
    problems: dict[str, JSONValue] = {}
    for name, work in attempts.items():
        try:
            _ = work()
        except KnapError as error:
            problems[name] = answers.as_json(error.as_dict())
    ranges: dict[str, JSONValue] = {name: [*both] for name, both in NUMBER_RANGES.items()}
    from knapper.app import pipelines  # noqa: PLC0415 - a server without tasks needn't pay for models

    agent_settings = settings.agents
    return {
        "choice": {
            **{name: value for name, value in configured.as_dict().items() if name != "name"},
            "token_limit": agent_settings.token_limit,
            "chat_history_length": agent_settings.chat_history_length,
            "linked_notes": agent_settings.linked_notes,
            "semantic_notes": agent_settings.semantic_notes,
            "semantic_similarity": agent_settings.semantic_similarity,
            "orchestrate": agent_settings.orchestrate,
            **pipelines.configured_task_limits(settings).as_dict(),
        },
        "switches": client_pipelines.default_preset().toggles.as_dict(),
        "ranges": ranges,
        "editable": [*scopes.EDITABLE_SCOPES],
        "can": [ability for ability in scopes.ABILITIES if ability in configured.rules.can],
        "model": model_names[0] if model_names else "",
        "web": "web" not in problems,
        "problems": problems,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _PipelineCall:
    """A request about a client's pipelines; what the path names is among the arguments."""

    service: JobService
    pipelines: ClientPipelines
    args: RequestArguments

    async def show_defaults(self) -> dict[str, JSONValue]:
        """Show the defaults of a task."""
        return await self.service.run_blocking(lambda: _describe_defaults(self.pipelines))

    async def list_presets(self) -> dict[str, JSONValue]:
        """List presets."""
        rows: list[JSONValue] = [preset.as_dict() for preset in await self.service.run_blocking(self.pipelines.presets)]
        return {"results": rows}

    async def save_preset(self) -> dict[str, JSONValue]:
        """Save a preset.

        What is left out is as by default. One of the same name, in whatever case, is replaced.
        """
        args = self.args

        def save() -> Preset:
            self._check_may_change()
            preset_data: dict[str, JSONValue] = {"name": args.text("name"), "added": [*(args.texts("added") or ())]}
            for part in ("scope", "rules", "toggles"):
                preset_data[part] = args.object(part).non_null_values()
            return self.pipelines.save(store.read_preset(preset_data))

        return {"preset": (await self.service.run_blocking(save)).as_dict()}

    async def delete_preset(self) -> dict[str, JSONValue]:
        """Delete a preset."""
        name = self.args.text("name")

        def delete() -> None:
            self._check_may_change()
            self.pipelines.pipelines.presets.delete(name)

        await self.service.run_blocking(delete)
        return {"deleted": name}

    def _check_may_change(self) -> None:
        """Check that a client may change presets, which others use too and nobody reviews."""
        grants = self.pipelines.client.grants
        if grants.is_read_only:
            raise RefusedError("this client only reads", hint="the owner's configuration says so", code="read_only")
        if not grants.is_person and self.pipelines.chats.context("").writer.current_grants().tainted:
            hint = "a person can save it: `knap presets save`, or the page"
            raise RefusedError("this client has read untrusted content", hint=hint, code="tainted")

    async def save_switches(self) -> dict[str, JSONValue]:
        """Save the choice of agents.

        For the next task; agents that aren't named keep theirs.
        """
        toggles = await self.service.run_blocking(lambda: self.pipelines.save_switches(read_switches(self.args)))
        return {"switches": toggles.as_dict()}

    async def preview_context(self) -> dict[str, JSONValue]:
        """Preview the notes that a task would use.

        No model is asked. The scout's choice can't be known in advance: only the other notes are shown.
        """
        from knapper.app import pipelines  # noqa: PLC0415 - a server without tasks needn't pay for models

        def work() -> dict[str, JSONValue]:
            preview_request = self.pipelines.preview_request(read_task_order(self.args))
            reader = self.pipelines.chats.context("")
            return pipelines.preview_context(
                self.pipelines.agent_context(""), reader, preview_request, texts=self.args.flag("texts") is True
            )

        return await self.service.preview(work)

    async def list_waiting(self) -> dict[str, JSONValue]:
        """List runs that wait for an answer."""
        return {"results": [run.as_dict() for run in await list_waiting_runs(self.service, self.pipelines)]}


if TYPE_CHECKING:
    TaskAnswer = Callable[[BackgroundJob[PipelineOutcome], Request, RequestArguments], Awaitable[Response]]
    """Replies with a task that has begun."""

_BY_VAULT: Final = (VAULT_PARAMETER,)


def _pipeline_route(
    service: JobService,
    method: Literal["GET", "POST", "PUT", "DELETE"],
    path: str,
    work: Callable[[_PipelineCall], Awaitable[dict[str, JSONValue]]],
    content: Mapping[str, Any],
    parameters: tuple[Parameter, ...] = _BY_VAULT,
) -> RouteSpec:
    """Return the route of what is done with a client's pipelines."""

    @functools.wraps(work)
    async def handle(request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        client_pipelines = await service.client_pipelines(security.client_of(request.scope), args.text("vault"))
        named = RequestArguments(values={**args.values, **request.path_params})
        return await work(_PipelineCall(service=service, pipelines=client_pipelines, args=named))

    return openapi.bind_route(method, path, path.split("/")[1], handle, parameters, content)


def preset_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of presets."""
    route, by_name = functools.partial(_pipeline_route, service), "/presets/{name:path}"
    preset_content = openapi.json_content({"preset": PRESET_SCHEMA})
    presets_content = openapi.json_content({"results": {"type": "array", "items": dict(PRESET_SCHEMA)}})
    deleted_content = openapi.json_content({"deleted": STRING})
    return (
        route("GET", "/presets", _PipelineCall.list_presets, presets_content),
        route("PUT", by_name, _PipelineCall.save_preset, preset_content, (*PRESET_PARAMETERS, VAULT_PARAMETER)),
        route("DELETE", by_name, _PipelineCall.delete_preset, deleted_content),
    )


def task_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of tasks."""
    start_description = "Runs the agents that are switched on; a run that asked a question is resumed with its answer."
    streamed = (*TASK_PARAMETERS, background.WAIT_PARAMETER)
    switch_parameters = (*SWITCH_PARAMETERS, VAULT_PARAMETER)
    stream_content = background.events_content(TASK_STREAM_CONTENT)
    route = functools.partial(_pipeline_route, service)

    def start(
        path: str, summary: str, answer: TaskAnswer, parameters: tuple[Parameter, ...], content: Mapping[str, Any]
    ) -> RouteSpec:
        async def endpoint(request: Request) -> Response:
            args = await binding.read_arguments(request, parameters)
            check_task_or_answer(args)
            try:
                client_pipelines = await service.client_pipelines(security.client_of(request.scope), args.text("vault"))
                if args.flag("debug") is True:
                    security.check_person(
                        client_pipelines.pipelines.hub.settings, request.scope, "see a model's prompts"
                    )
                run_id, model = args.text("run_id"), args.text("model")
                if run_id:
                    job = await resume_task(service, client_pipelines, run_id, args.text("answer"), model)
                else:
                    job = await begin_task(service, client_pipelines, read_task_order(args), model)
            except SetupError as error:
                return background.setup_needed_reply(error, request, args.text("model"))
            return await answer(job, request, args)

        return RouteSpec("POST", path, "ask", summary, endpoint, start_description, parameters, content)

    return (
        start("/ask", "Carry out a task.", _wait_for_outcome, TASK_PARAMETERS, OUTCOME_CONTENT),
        start("/ask/stream", "Carry out a task and stream its events.", _tell_task, streamed, stream_content),
        *_task_job_routes(service),
        route("GET", "/ask/waiting", _PipelineCall.list_waiting, openapi.json_content({"results": list[WaitingRun]})),
        route("POST", "/ask/context", _PipelineCall.preview_context, CONTEXT_CONTENT, CONTEXT_PARAMETERS),
        route("PUT", "/ask/switches", _PipelineCall.save_switches, SWITCHES_CONTENT, switch_parameters),
        route("GET", "/ask/defaults", _PipelineCall.show_defaults, DEFAULTS_CONTENT),
    )


async def _wait_for_outcome(job: BackgroundJob[PipelineOutcome], request: Request, args: RequestArguments) -> Response:
    """Wait for the end; if the client disconnects, the task continues."""
    del args
    outcome = (await job.wait()).as_dict()
    if conversations := [job_event.as_dict() for job_event in job.events if job_event.kind == "debug"]:
        outcome["debug"] = [*conversations]
    error = next((job_event.as_dict() for job_event in job.events if job_event.kind == "error"), None)
    return (
        security.JsonReply({"success": True, **outcome})
        if error is None
        else background.failed_job_reply(outcome, error, request)
    )


async def _tell_task(job: BackgroundJob[PipelineOutcome], request: Request, args: RequestArguments) -> Response:
    """Stream a task's events; for who can't stream, reply with its id, by which the events are asked for."""
    return await background.events_reply(job, {"run_id": job.subject_id, "task": job.question}, request, args)


def _task_job_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes that follow and stop a task, in whichever vault it is."""

    async def tell(request: Request, args: RequestArguments) -> Response:
        """Stream the events of a run.

        After `Last-Event-ID`, or from the beginning.
        """
        return await _tell_task(await find(request), request, args)

    async def cancel(request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Cancel a run; the partial result is kept."""
        del args
        job = await find(request)
        cancelled, last_event = await background.cancel_job(job)
        outcome = last_event.as_dict() if last_event else None
        return {"run_id": job.subject_id, "cancelled": cancelled, "ended": job.has_ended, "outcome": outcome}

    async def find(request: Request) -> BackgroundJob[PipelineOutcome]:
        return await find_task(service, security.client_of(request.scope), request.path_params["run_id"])

    path, event_parameters = "/ask/{run_id}", (*background.EVENT_PARAMETERS, *binding.ANY_VAULT)
    stream_content = background.events_content(TASK_STREAM_CONTENT)
    return (
        openapi.bind_route("GET", f"{path}/events", "ask", tell, event_parameters, stream_content),
        openapi.bind_route("POST", f"{path}/cancel", "ask", cancel, binding.ANY_VAULT, CANCEL_TASK_CONTENT),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun(Record):
    """A run that waits for an answer, as a person is shown it."""

    run_id: str
    task: str
    note: str
    question: str
    options: tuple[JsonValue, ...]
    at: str
    client: str
    """On whose behalf it runs."""
    session_id: str
    """Empty for none, or for another client's."""


async def list_waiting_runs(service: JobService, client_pipelines: ClientPipelines) -> list[WaitingRun]:
    """List runs that wait for an answer, and record that the client is shown them."""
    from knapper.app import pipelines  # noqa: PLC0415 - a server without tasks needn't pay for models

    own_name = client_pipelines.client.name

    def list_shown() -> list[PausedRun]:
        paused_runs = pipelines.list_paused_runs(client_pipelines.pipelines, client_pipelines.client)
        client_pipelines.chats.mark_shown(*(run.id for run in paused_runs))
        return paused_runs

    return [
        WaitingRun(
            run_id=run.id,
            task=str(run.request.get("task", "")),
            note=str(run.request.get("current", "")),
            question=str(run.question.get("question", "")),
            options=tuple(list_or_empty(run.question.get("options"))),
            at=run.at.isoformat(timespec="seconds"),
            client=run.client,
            session_id=str(run.request.get("session_id", "")) if run.client == own_name else "",
        )
        for run in await service.run_blocking(list_shown)
    ]
