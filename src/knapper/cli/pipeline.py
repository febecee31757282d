"""Run a task of several agents at the terminal: show its events, ask its questions, report its outcome."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import click

from knapper import app
from knapper.agents.events import Debug, Notice, ToolCall, ToolResult
from knapper.agents.pipeline import context
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.pipeline import PipelineEventSink
from knapper.agents.pipeline.records import (
    ContextEvent,
    Navigate,
    PhaseProgress,
    PipelineEvent,
    PipelineOutcome,
    SelectionEvent,
    SourcesEvent,
)
from knapper.app import clients, pipelines
from knapper.app.clients import PresetOverrides
from knapper.app.hub import Hub
from knapper.app.pipelines import VaultPipelines
from knapper.cli import output, review
from knapper.cli.options import GlobalOptions, PipelineOptions, split_words
from knapper.cli.output import ExitCode, pluralize
from knapper.config import Settings
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue, is_object, list_or_empty, object_or_empty, objects_in

JSONRow = Mapping[str, JSONValue]
_MAX_NOTES = 30


def render_selection(scout: JSONRow) -> list[str]:
    """Format the chosen notes, each with its reason."""
    notes = objects_in(scout.get("selected_notes"))
    lines = [f"chosen: {pluralize(len(notes), 'note') if notes else 'nothing'} ({scout['confidence']})"]
    return lines + [f"  {one['path']}: {one.get('reason') or one['why']}" for one in notes[:_MAX_NOTES]]


def render_context(context: JSONRow) -> list[str]:
    """Format the size of a task's context."""
    notes = objects_in(context.get("notes"))
    lines = [f"context: {pluralize(len(notes), 'note')}, about {context['tokens']} tokens"]
    return lines + [f"  {one['path']}: {one['why']}" for one in notes[:_MAX_NOTES]]


def render_question(question: JSONValue) -> list[str]:
    """Format a question to the person."""
    if not is_object(question):
        return []
    options = list_or_empty(question.get("options"))
    return [f"? {question['question']}", *(f"  - {one}" for one in options)]


def render_outcome(outcome: JSONRow) -> list[str]:
    """Format a run's outcome, after its answer."""
    lines: list[str] = []
    if outcome["state"] == "asked":
        lines += [*render_question(outcome["question"])]
        lines.append(f'answer it with: knap ask --resume {outcome["run_id"]} "…"')
    lines += [f"open: {path}" for path in list_or_empty(outcome["opened"])]
    for failure in objects_in(object_or_empty(outcome["edit_results"]).get("failures")):
        lines.append(f"can't be made: {failure['file']} {failure['position']}: {failure['error']}")
    lines += output.describe_dropped(objects_in(outcome.get("removed")))
    for one in objects_in(object_or_empty(object_or_empty(outcome["pipeline"]).get("web")).get("sources")):
        date = f" ({one['date']})" if one.get("date") else ""
        lines.append(f"source: {one['title']} {one['url']}{date}")
    lines += [f"waits for your decision: `knap edits show {one}`" for one in list_or_empty(outcome["proposals"])]
    usage = object_or_empty(outcome["usage"])
    phases = object_or_empty(usage.get("phases"))
    by_phase = ", ".join(f"{name} {object_or_empty(one)['total_tokens']}" for name, one in phases.items())
    cost = f", ${float(str(usage['cost_usd'])):.4f}" if usage.get("cost_usd") is not None else ""
    return [*lines, f"{outcome['model']}, {usage['total_tokens']} tokens{f' ({by_phase})' if by_phase else ''}{cost}"]


_MAX_STEP: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineQuestion:
    """The person's question and options."""

    question: str
    note: str
    model: str
    options: PipelineOptions


@dataclass(slots=True)
class PipelineDisplay:
    """The display of events on the error stream."""

    options: GlobalOptions
    outcome: PipelineOutcome | None = None
    opened_paths: list[str] = field(default_factory=list[str])
    has_results: bool = False
    """Something came of it: the task was worked on, or there are notes or pages for it."""

    def handle(self, event: PipelineEvent) -> None:
        """Show an event."""
        self.has_results = self.has_results or _is_result(event)
        match event:
            case PhaseProgress(phase="scout", state="ended"):  # `Selected` has told it, with the notes
                pass
            case PhaseProgress():
                self._note(f"{event.phase}: {event.text}")
            case ToolCall() | ToolResult(success=False):
                self._note(_describe_call(event))
            case SelectionEvent():
                self._note_lines(render_selection(event.scout))
            case ContextEvent():
                self._note_lines(render_context(event.context))
            case Notice():
                self._note(f"! {event.text}")
            case Navigate():
                self.opened_paths.append(event.path)
            case Debug():
                output.note(self.options, output.plain(f"=== {event.phase}: {event.title}\n{event.text}"))
            case PipelineOutcome():
                self.outcome = event
            case _:
                pass

    def _note_lines(self, lines: list[str]) -> None:
        for line in lines:
            self._note(line)

    def _note(self, text: str) -> None:
        line = output.plain(text).replace("\n", " ")
        clipped = line if len(line) <= _MAX_STEP else f"{line[:_MAX_STEP]}…"
        output.note(self.options, click.style(clipped, dim=True) if output.wants_colour(self.options) else clipped)


def _describe_call(event: ToolCall | ToolResult) -> str:
    return f"  → {event.name}" if isinstance(event, ToolCall) else f"  ✗ {event.name}: {event.summary}"


def run_pipeline(options: GlobalOptions, config: Settings, question: PipelineQuestion) -> ExitCode:
    """Run a task with the selected agents.

    Args:
        options: The shared options.
        config: What the configuration says.
        question: The task.

    Raises:
        SetupError: A model isn't available.
        KnapError: A note, a preset or a run doesn't exist.
    """
    with (
        app.open_hub(config, only=True) as hub,
        pipelines.open_pipelines(hub) as client_pipelines,
        asyncio.Runner() as runner,
    ):
        display = PipelineDisplay(options)
        if question.options["resume"]:
            finished = _run_to_end(
                runner, _resume(client_pipelines, question.options["resume"], question, display.handle)
            )
        else:
            answering, request = client_pipelines.answering(question.model), _build_request(client_pipelines, question)
            finished = _run_to_end(
                runner, answering.ask(request, client_pipelines.chats.context(request.run_id), display.handle)
            )
        while finished and display.outcome is not None and display.outcome.state == "asked":
            if options.as_json or not output.can_ask():
                break
            for line in render_question(display.outcome.question):
                click.echo(output.plain(line), err=True)
            text = click.prompt("answer", err=True)
            finished = _run_to_end(
                runner,
                _resume(client_pipelines, display.outcome.run_id, replace(question, question=text), display.handle),
            )
        return _report_outcome(options, hub, display, finished=finished)


async def _resume(
    client_pipelines: VaultPipelines, run_id: str, question: PipelineQuestion, emit: PipelineEventSink
) -> PipelineOutcome:
    """Resume a run with the person's answer; the agents get no further rights by that."""
    person = client_pipelines.chats.hub.settings.client("cli")
    run = pipelines.find_paused_run(client_pipelines, run_id, person)
    with pipelines.open_paused_run(client_pipelines, run, person, question.model) as (answering, context):
        return await answering.resume(run_id, question.question, context, emit, by=person.grants)


def _run_to_end(runner: asyncio.Runner, work: Coroutine[Any, Any, PipelineOutcome]) -> bool:
    """Run to the end; Ctrl-C cancels, and the partial result is shown."""
    try:
        _ = runner.run(work)
    except KeyboardInterrupt:
        return False
    return True


def _build_request(client_pipelines: VaultPipelines, question: PipelineQuestion) -> TaskRequest:
    switches = question.options
    view = client_pipelines.chats.context("").view
    for path in filter(None, (question.note, *switches["add"])):
        _ = view.path(path)  # so that a note that isn't there is told before anything is kept
    defaults = clients.default_preset(client_pipelines.presets, client_pipelines.chats.hub.settings, switches["preset"])
    choice = PresetOverrides(
        scout=switches["scout"],
        web=switches["web"],
        task=switches["task"],
        link_depth=switches["depth"],
        same_folder=switches["same_folder"],
        editable=switches["editable"] or None,
        can=split_words(switches["can"]) or None,
        added=switches["add"],
    )
    preset = choice.apply_to(defaults)
    if switches["remember"]:
        client_pipelines.presets.set_toggles(preset.toggles)
    if switches["save_preset"]:
        client_pipelines.presets.save(replace(preset, name=switches["save_preset"]))
    session = (
        client_pipelines.chats.conversations.route(question.note).id if switches["history"] and question.note else ""
    )
    request = client_pipelines.request(question.question, preset, current=question.note, session_id=session)
    if switches["token_limit"] is not None:
        context.check_limit(switches["token_limit"])
        request = replace(request, token_limit=switches["token_limit"])
    route = request.orchestrate if switches["route"] is None else switches["route"]
    return replace(request, orchestrate=route, debug=switches["debug"])


def _report_outcome(options: GlobalOptions, hub: Hub, display: PipelineDisplay, *, finished: bool) -> ExitCode:
    outcome = display.outcome
    if outcome is None:
        raise BadInput("nothing came of it", hint="ask again")
    outcome.check()
    outcome_fields = outcome.as_dict()
    if options.as_json:
        output.write_json(
            {
                "success": True,
                **{name: outcome_fields[name] for name in outcome_fields if name not in {"type", "error"}},
            }
        )
        return _exit_code(display, outcome, finished=finished)
    if outcome.answer:
        output.write(options, outcome.answer)
    for line in render_outcome(outcome_fields):
        output.note(options, output.plain(line))
    if not finished:
        output.note(options, "stopped")
    if finished and output.can_ask():
        for proposal in outcome.proposals:
            if output.confirm(f"Review {proposal} now?"):
                with hub.context(client="cli") as context:
                    _ = review.review_proposal(options, context, str(proposal))
    return _exit_code(display, outcome, finished=finished)


def _exit_code(display: PipelineDisplay, outcome: PipelineOutcome, *, finished: bool) -> ExitCode:
    if not finished:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if display.has_results or outcome.state == "asked" else ExitCode.NOTHING


def _is_result(event: PipelineEvent) -> bool:
    """Return whether an event is part of a run's result."""
    match event:
        case PhaseProgress():
            return event.phase == "task"
        case SelectionEvent():
            return bool(event.scout["selected_notes"])
        case SourcesEvent():
            return bool(event.web["sources"] or event.web["findings"])
        case _:
            return False
