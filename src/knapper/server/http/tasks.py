"""Serve tasks of several agents and their presets over HTTP: ``/ask`` and ``/presets``."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.pipeline import records, scopes, store
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.app.clients import PresetOverrides, TaskOrder
from knapper.config.editing import SETTINGS_BY_NAME
from knapper.errors import BadInput, KnapError, NotFound, RefusedError
from knapper.jsontypes import Record, list_or_empty
from knapper.server import security
from knapper.server.http import background, binding, openapi
from knapper.server.http.background import CallRoutes
from knapper.server.http.binding import VAULT_PARAMETER, Parameter, RequestArguments, count_parameter
from knapper.server.http.openapi import BOOLEAN, INTEGER, STRING, STRINGS, RouteSpec
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from knapper.agents.events import BackgroundJob, JobEventSink
    from knapper.agents.pipeline.context import TaskRequest
    from knapper.agents.pipeline.records import PipelineOutcome
    from knapper.agents.pipeline.service import PipelineService
    from knapper.agents.pipeline.store import PausedRun
    from knapper.app.pipelines import ClientPipelines
    from knapper.jsontypes import JSONValue
    from knapper.server.http.background import JobService
    from knapper.tools.context import Context


_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_RANGE_SCHEMA: Final[Mapping[str, Any]] = {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2}
OUTCOME_CONTENT: Final = openapi.type_content(
    records.PipelineOutcome,
    state={"enum": ["complete", "asked", "cancelled"]},  # all others come with an error
    question={
        "type": ["object", "null"],
        "description": "What the person is asked; `run_id` and `answer` continue the run.",
        "properties": {"question": STRING, "options": {"type": "array"}},
    },
)
TASK_STREAM_CONTENT: Final = background.events_content(
    "TaskEvent",
    "`start` comes first, with run_id and task; then `progress`, `round` (of the scout), `selection`, `sources`, "
    "`context`, `navigate`, `notice`, `debug`, `text`, `tool_call`, `tool_result`, `proposal`, `question`, `usage` and "
    "`error`, as they happen; "
    "`outcome` comes last. A lost connection doesn't end the run: GET /ask/{run_id}/events continues it.",
    background.start_schema("run_id", "task"),
    records.PipelineEvent,
)
CANCEL_TASK_CONTENT: Final = openapi.json_content(
    {
        "run_id": STRING,
        "cancelled": BOOLEAN,
        "ended": BOOLEAN,
        "outcome": {"type": ["object", "null"], "description": "What there is, where it has ended."},
    }
)
CONTEXT_CONTENT: Final = openapi.json_content(
    {
        "notes": {
            "type": "array",
            "description": "What goes in, each with path, sources, why, tokens, and its text where that is asked for.",
            "items": {"type": "object", "required": ["path", "sources", "why", "tokens"]},
        },
        "removed": {
            "type": "array",
            "description": "What the limit leaves out, the first to go first; tokens are null where it wasn't read.",
            "items": {"type": "object", "required": ["path", "source", "why", "tokens"]},
        },
        "tokens": {"type": "integer", "description": "Of all that goes in, roughly."},
        "notices": STRINGS,
        "cut": {"type": ["string", "null"], "description": "The note of which only the beginning goes in."},
        "limit": INTEGER,
        "explored": {"type": "boolean", "description": "Whether the scout would choose more notes."},
    }
)


def _number_parameter(setting_name: str, doc: str, name: str = "") -> Parameter:
    """Return the parameter that stands in for a setting, and has its range; also its name, where none is given."""
    setting = SETTINGS_BY_NAME[setting_name]
    return count_parameter(name or setting_name.rpartition(".")[2], doc, setting.least, setting.most)


_SCOPE_PARAMETERS: Final = (
    _number_parameter("agents.link_depth", "How many links from the note are followed, out and back."),
    Parameter(name="include_same_folder", doc="Whether the notes of its folder go with it.", kind="flag"),
    Parameter(
        name="excluded_folders",
        doc="Folders whose notes are left out, and through which no link is followed.",
        kind="texts",
    ),
)
_RULES_PARAMETERS: Final = (
    Parameter(name="editable", doc="Which notes may be edited.", choices=scopes.EDITABLE_SCOPES),
    Parameter(name="can", doc="What edits may do.", kind="texts", choices=scopes.ABILITIES),
)
_TOGGLE_PARAMETERS: Final = (
    Parameter(name="scout", doc="Look for the notes first, in the whole vault.", kind="flag"),
    Parameter(name="web", doc="Search the web where the notes don't answer.", kind="flag"),
    Parameter(name="task", doc="Do the task, or only show what was found.", kind="flag"),
)
PRESET_PARAMETERS: Final = (
    Parameter(name="scope", doc="Which notes go with the open one.", kind="object", fields=_SCOPE_PARAMETERS),
    Parameter(name="rules", doc="Which notes may be edited, and how.", kind="object", fields=_RULES_PARAMETERS),
    Parameter(name="added", doc="Paths of notes that go with it.", kind="texts"),
    Parameter(name="toggles", doc="Which agents work.", kind="object", fields=_TOGGLE_PARAMETERS),
)
SWITCHES_CONTENT: Final = openapi.json_content({"switches": AgentToggles})
DEFAULTS_CONTENT: Final = openapi.json_content(
    {
        "choice": {**_OBJECT, "description": "What the configuration says, as POST /ask takes it."},
        "switches": AgentToggles,
        "ranges": {
            "type": "object",
            "description": "The lowest and the highest of each number.",
            "additionalProperties": _RANGE_SCHEMA,
        },
        "editable": STRINGS,
        "can": {**STRINGS, "description": "What edits of this client may do at all."},
        "model": {"type": "string", "description": "The model's name; empty where none can answer."},
        "web": {"type": "boolean", "description": "Whether the owner allows the web."},
        "problems": {
            "type": "object",
            "description": "Why there is no model, or no web: each as an error shows itself.",
        },
    }
)

_MAX_ANSWER_CHARS: Final = 20_000
SWITCH_PARAMETERS: Final = _TOGGLE_PARAMETERS
_LIMIT_PARAMETERS: Final = (
    _number_parameter("scout.rounds", "How many rounds of looking the scout has."),
    _number_parameter("scout.notes", "How many notes the scout may choose."),
    _number_parameter("agents.linked_notes", "How many notes go with the open one for links alone."),
    _number_parameter("agents.semantic_notes", "How many notes near the open one in meaning go with it."),
    _number_parameter("agents.semantic_similarity", "How near those are at least, in percent of the cosine."),
    _number_parameter("scout.keyword_limit", "How many notes a search by words gives the scout."),
    Parameter(
        name="tools",
        doc="The scout's tools; a program takes some of the configured ones.",
        kind="texts",
        choices=scopes.OPTIONAL_SCOUT_TOOLS,
    ),
    Parameter(name="show_tags", doc="Whether the scout is shown all tags of the vault at the beginning.", kind="flag"),
    _number_parameter("scout.timeout_s", "How long the scout may take, in seconds; a program may only lower it."),
    _number_parameter(
        "web.max_results", "How many results a search of the web gives; at most as many as configured.", "snippet_limit"
    ),
    _number_parameter("web.max_pages", "How many pages are read in full.", "fetch_limit"),
    _number_parameter("web.token_budget", "How many tokens of pages are read."),
    Parameter(
        name="auto_search",
        doc="Search the web where the notes don't answer, or only say so; a program may only forbid it.",
        kind="flag",
    ),
    _number_parameter("agents.orchestrator_steps", "How often agents gather before the task is done."),
    _number_parameter(
        "agents.orchestrator_tokens", "How many tokens gathering may use; 0 for no limit; a program may only lower it."
    ),
)
OVERRIDE_PARAMETERS: Final = (
    Parameter(
        name="note", doc="The note that it is about; without one, and with none added, the scout looks for notes."
    ),
    VAULT_PARAMETER,
    Parameter(name="preset", doc="A saved choice, by its name; what is said here counts more.", maximum=200),
    *PRESET_PARAMETERS,
    *(one for one in _TOGGLE_PARAMETERS if one.name != "task"),
    *_SCOPE_PARAMETERS,
    *_RULES_PARAMETERS,
    _number_parameter("agents.token_limit", "Tokens of notes at most."),
    _number_parameter("agents.chat_history_length", "How many earlier messages of the session the agents are told of."),
    Parameter(name="orchestrate", doc="Let a model choose which agents work, and in which order.", kind="flag"),
    *_LIMIT_PARAMETERS,
)
"""Of these, members of `toggles`, `scope` and `rules` may also stand beside them, but for `task`, which is the text."""
NUMBER_RANGES: Final = {one.name: (one.minimum, one.maximum) for one in OVERRIDE_PARAMETERS if one.kind == "count"}
"""The lowest and the highest of each number."""
TASK_PARAMETERS: Final = (
    Parameter(name="task", doc="What is to be done; needed unless a run is continued.", maximum=200_000),
    Parameter(name="session_id", doc="The session to continue, which keeps the turn; none where it is left out."),
    Parameter(
        name="model",
        doc="The model that works; one of the configuration, unless a person asks.",
        maximum=500,
        refuses_blank=True,
    ),
    Parameter(name="run_id", doc="A run that asked the person something; it continues as it was started.", maximum=200),
    Parameter(name="answer", doc="What the person says to that; only with run_id.", maximum=_MAX_ANSWER_CHARS),
    Parameter(
        name="debug",
        doc="Tell the models' prompts and replies: as events `debug`, and in the answer's `debug`. Only for persons.",
        kind="flag",
    ),
    *OVERRIDE_PARAMETERS,
)
CONTEXT_PARAMETERS: Final = (
    Parameter(name="texts", doc="Whether the notes' texts come along, to be copied.", kind="flag"),
    *OVERRIDE_PARAMETERS,
)


def read_task_order(given: RequestArguments) -> TaskOrder:
    """Read a task from a request's arguments.

    Raises:
        BadInput: Something is said twice, and differently (code ``bad_arguments``).
    """
    toggles = _join_members(given, "toggles", _TOGGLE_PARAMETERS)
    scope = _join_members(given, "scope", _SCOPE_PARAMETERS)
    rules = _join_members(given, "rules", _RULES_PARAMETERS)
    return TaskOrder(
        task=given.text("task"),
        note=given.text("note"),
        session_id=given.text("session_id"),
        preset=given.text("preset"),
        choice=PresetOverrides(
            scout=toggles.flag("scout"),
            web=toggles.flag("web"),
            task=toggles.flag("task"),
            link_depth=scope.integer("link_depth"),
            same_folder=scope.flag("include_same_folder"),
            excluded_folders=scope.texts("excluded_folders"),
            editable=rules.text("editable") or None,
            can=rules.texts("can"),
            added=given.texts("added") or (),
        ),
        token_limit=given.integer("token_limit"),
        chat_history_length=given.integer("chat_history_length"),
        orchestrate=given.flag("orchestrate"),
        debug=given.flag("debug") is True,
        limits=records.read_task_limits({one.name: given.values.get(one.name) for one in _LIMIT_PARAMETERS}),
    )


def read_switches(given: RequestArguments) -> PresetOverrides:
    """Read which agents are to be kept switched on; None for those that aren't named."""
    return PresetOverrides(scout=given.flag("scout"), web=given.flag("web"), task=given.flag("task"))


def _join_members(given: RequestArguments, part: str, members: Sequence[Parameter]) -> RequestArguments:
    """Return the members of an object, with those that stand beside it.

    Raises:
        BadInput: One is said twice, and differently.
    """
    inner = given.object(part)
    values = dict(inner.values)
    for member in members:
        beside = None if member.name == "task" else given.values.get(member.name)  # which is the task's text there
        if beside is None:
            continue
        if values.get(member.name) not in (None, beside):  # a list can't be in a set
            raise BadInput(
                f"'{member.name}' is said twice, and differently",
                hint=f"say it in '{part}', or beside it",
                code="bad_arguments",
            )
        values[member.name] = beside
    return RequestArguments(values=values)


def check_task_or_answer(given: RequestArguments) -> None:
    """Check that a request has a task to start, or an answer to resume a run with.

    Raises:
        BadInput: Neither is complete (code ``bad_arguments``).
    """
    run, answer = given.text("run_id"), given.text("answer")
    if run and not answer.strip():
        raise BadInput("'answer' is needed", hint="say what the person answers to the run", code="bad_arguments")
    if answer and not run:
        raise BadInput("'run_id' is needed", hint="name the run whose question is answered", code="bad_arguments")
    if not run and not given.text("task").strip():
        raise BadInput("'task' is needed", hint="say what is to be done", code="bad_arguments")


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
        async with answering.store.lock(request.session_id, wait_s=0):
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
    settings, configured = client_pipelines.chats.chats.hub.settings, client_pipelines.configured()
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
    request: Request

    async def carry_out_task(self) -> Response:
        """Carry out a task.

        Runs the agents that are switched on; a run that asked a question is resumed with its answer.
        """
        job = await self._begin_task()
        outcome = await job.wait()  # if the client disconnects, the task continues
        return background.ended_reply(job, outcome.as_dict(), self.request)

    async def stream_task(self) -> Response:
        """Carry out a task and stream its events.

        Runs the agents that are switched on; a run that asked a question is resumed with its answer.
        """
        return await _tell_task(await self._begin_task(), self.request, self.args)

    async def _begin_task(self) -> BackgroundJob[PipelineOutcome]:
        args = self.args
        if args.flag("debug") is True:
            security.check_person(self.pipelines.chats.chats.hub.settings, self.request.scope, "see a model's prompts")
        run_id, model = args.text("run_id"), args.text("model")
        if run_id:
            return await resume_task(self.service, self.pipelines, run_id, args.text("answer"), model)
        return await begin_task(self.service, self.pipelines, read_task_order(args), model)

    async def show_defaults(self) -> dict[str, JSONValue]:
        """Show the defaults of a task."""
        return await self.service.run_blocking(lambda: _describe_defaults(self.pipelines))

    async def list_presets(self) -> dict[str, JSONValue]:
        """List presets."""
        rows: list[JSONValue] = [preset.as_dict() for preset in await self.service.run_blocking(self.pipelines.presets)]
        return {"results": rows}

    async def save_preset(self) -> dict[str, JSONValue]:
        """Save a preset.

        What is left out is as by default. One of the same name, in whatever case, is replaced. The notes that it adds
        have to exist.
        """
        args = self.args

        def save() -> tuple[Preset, list[str]]:
            self._check_may_change()
            preset_data: dict[str, JSONValue] = {"name": args.text("name"), "added": [*(args.texts("added") or ())]}
            for part in ("scope", "rules", "toggles"):
                preset_data[part] = args.object(part).non_null_values()
            return self.pipelines.save(store.read_preset(preset_data))

        preset, remarks = await self.service.run_blocking(save)
        return {"preset": preset.as_dict(), "notes": [*remarks]}

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


def _bind_calls(service: JobService, tag: str, *, starts_tasks: bool = False) -> CallRoutes[_PipelineCall]:
    async def open_call(request: Request, args: RequestArguments) -> _PipelineCall:
        if starts_tasks:
            check_task_or_answer(args)  # before a vault is opened in vain
        client_pipelines = await service.client_pipelines(security.client_of(request.scope), args.text("vault"))
        named = RequestArguments(values={**args.values, **request.path_params})
        return _PipelineCall(service=service, pipelines=client_pipelines, args=named, request=request)

    return CallRoutes(tag=tag, open_call=open_call, needs_setup=starts_tasks)


def preset_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of presets."""
    route, by_name = _bind_calls(service, "presets").route, "/presets/{name:path}"
    notes = {**STRINGS, "description": "Which of the folders that it excludes isn't there, and the nearest."}
    preset_content = openapi.json_content({"preset": Preset, "notes": notes})
    presets_content = openapi.json_content({"results": list[Preset]})
    deleted_content = openapi.json_content({"deleted": STRING})
    return (
        route("GET", "/presets", _PipelineCall.list_presets, presets_content),
        route("PUT", by_name, _PipelineCall.save_preset, preset_content, (*PRESET_PARAMETERS, VAULT_PARAMETER)),
        route("DELETE", by_name, _PipelineCall.delete_preset, deleted_content),
    )


def task_routes(service: JobService) -> tuple[RouteSpec, ...]:
    """List the routes of tasks."""
    streamed = (*TASK_PARAMETERS, background.WAIT_PARAMETER)
    switch_parameters = (*SWITCH_PARAMETERS, VAULT_PARAMETER)
    route, start = _bind_calls(service, "ask").route, _bind_calls(service, "ask", starts_tasks=True).route
    return (
        start("POST", "/ask", _PipelineCall.carry_out_task, OUTCOME_CONTENT, TASK_PARAMETERS),
        start("POST", "/ask/stream", _PipelineCall.stream_task, TASK_STREAM_CONTENT, streamed),
        *_task_job_routes(service),
        route("GET", "/ask/waiting", _PipelineCall.list_waiting, openapi.json_content({"results": list[WaitingRun]})),
        route("POST", "/ask/context", _PipelineCall.preview_context, CONTEXT_CONTENT, CONTEXT_PARAMETERS),
        route("PUT", "/ask/switches", _PipelineCall.save_switches, SWITCHES_CONTENT, switch_parameters),
        route("GET", "/ask/defaults", _PipelineCall.show_defaults, DEFAULTS_CONTENT),
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
    return (
        openapi.bind_route("GET", f"{path}/events", "ask", tell, event_parameters, TASK_STREAM_CONTENT),
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
    from knapper.app import clients  # noqa: PLC0415 - a server without tasks needn't pay for models

    own_name = client_pipelines.client.name

    def list_shown() -> list[PausedRun]:
        vault_chats = client_pipelines.chats.chats
        paused_runs = clients.list_paused(vault_chats.hub, own_name, vault_chats.work)
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
