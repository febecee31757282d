"""Run a task of several agents at the terminal: show its events, ask its questions, report its outcome."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import click

from knapper import app
from knapper.agents.events import ToolCall
from knapper.agents.pipeline import context
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.pipeline import PipelineEventSink
from knapper.agents.pipeline.records import (
    ContextEvent,
    Debug,
    Navigate,
    Notice,
    PhaseProgress,
    PipelineEvent,
    PipelineOutcome,
    SelectionEvent,
    SourcesEvent,
)
from knapper.app import pipelines
from knapper.app.hub import Hub
from knapper.app.pipelines import VaultPipelines
from knapper.app.presets import PresetOverrides
from knapper.cli import output, review, task_options
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.cli.render.formatting import pluralize
from knapper.cli.task_options import PipelineOptions
from knapper.config import Settings
from knapper.errors import BadInput, RefusedError, SetupError
from knapper.jsontypes import JSONValue

JSONRow = Mapping[str, JSONValue]
_MAX_NOTES = 30


def render_selection(scout: JSONRow) -> list[str]:
    """Show what was chosen, with the reason for each note."""
    notes = _rows(scout, "selected_notes")
    lines = [f"chosen: {pluralize(len(notes), 'note') if notes else 'nothing'} ({scout['confidence']})"]
    return lines + [f"  {one['path']}: {one.get('reason') or one['why']}" for one in notes[:_MAX_NOTES]]


def render_context(found: JSONRow) -> list[str]:
    """Show how much a task is done with."""
    notes = _rows(found, "notes")
    lines = [f"context: {pluralize(len(notes), 'note')}, about {found['tokens']} tokens"]
    return lines + [f"  {one['path']}: {one['why']}" for one in notes[:_MAX_NOTES]]


def render_question(asked: JSONRow | None) -> list[str]:
    """Show what the person is asked."""
    if asked is None:
        return []
    options = cast("list[JSONValue]", asked.get("options") or [])
    return [f"? {asked['question']}", *(f"  - {one}" for one in options)]


def render_outcome(outcome: JSONRow) -> list[str]:
    """Show what a run came to, after its answer."""
    lines: list[str] = []
    if outcome["state"] == "asked":
        lines += [*render_question(cast("JSONRow | None", outcome["question"]))]
        lines.append(f'answer it with: knap ask --resume {outcome["run_id"]} "…"')
    lines += [f"open: {path}" for path in cast("list[JSONValue]", outcome["opened"])]
    for failure in _rows(cast("JSONRow", outcome["edit_results"]), "failures"):
        lines.append(f"can't be made: {failure['file']} {failure['position']}: {failure['error']}")
    for one in _rows(outcome, "removed"):
        lines.append(f"a citation was dropped: {one['citation']}: {one['reason']}")
    for one in _rows(cast("JSONRow", cast("JSONRow", outcome["pipeline"]).get("web") or {}), "sources"):
        lines.append(f"source: {one['title']} {one['url']}{_date_suffix(one)}")
    lines += [f"waits for your word: `knap edits show {one}`" for one in cast("list[JSONValue]", outcome["proposals"])]
    return [*lines, _usage_line(outcome)]


def _usage_line(outcome: JSONRow) -> str:
    usage = cast("JSONRow", outcome["usage"])
    phases = cast("JSONRow", usage.get("phases") or {})
    by_phase = ", ".join(f"{name} {cast('JSONRow', one)['total_tokens']}" for name, one in phases.items())
    cost = f", ${float(str(usage['cost_usd'])):.4f}" if usage.get("cost_usd") is not None else ""
    return f"{outcome['model']}, {usage['total_tokens']} tokens{f' ({by_phase})' if by_phase else ''}{cost}"


def _date_suffix(source: JSONRow) -> str:
    return f" ({source['date']})" if source.get("date") else ""


def _rows(row: JSONRow, name: str) -> list[JSONRow]:
    value = row.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


_MAX_STEP: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineQuestion:
    """Hold what the person asks."""

    question: str
    note: str
    model: str
    switches: PipelineOptions


@dataclass(slots=True)
class PipelineDisplay:
    """Tell what happens on the error stream."""

    said: GlobalOptions
    outcome: PipelineOutcome | None = None
    opened: list[str] = field(default_factory=list[str])
    found: bool = False
    """Something came of it: the task was worked on, or there are notes or pages for it."""

    def tell(self, event: PipelineEvent) -> None:
        """Show an event."""
        self.found = self.found or _is_result(event)
        match event:
            case PhaseProgress(phase="scout", state="ended"):  # `Selected` has told it, with the notes
                pass
            case PhaseProgress():
                self._note(f"{event.phase}: {event.text}")
            case ToolCall():
                self._note(f"  → {event.name}")
            case SelectionEvent():
                self._lines(render_selection(event.scout))
            case ContextEvent():
                self._lines(render_context(event.context))
            case Notice():
                self._note(f"! {event.text}")
            case Navigate():
                self.opened.append(event.path)
            case Debug():
                output.note(self.said, output.plain(f"=== {event.phase}: {event.title}\n{event.text}"))
            case PipelineOutcome():
                self.outcome = event
            case _:
                pass

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self._note(line)

    def _note(self, text: str) -> None:
        line = output.plain(text).replace("\n", " ")
        clipped = line if len(line) <= _MAX_STEP else f"{line[:_MAX_STEP]}…"
        output.note(self.said, click.style(clipped, dim=True) if output.wants_colour(self.said) else clipped)


def run_pipeline(said: GlobalOptions, found: Settings, asked: PipelineQuestion) -> ExitCode:
    """Do a task with the agents that are switched on.

    Args:
        said: The shared options.
        found: What the configuration says.
        asked: The task.

    Raises:
        SetupError: A model can't answer.
        KnapError: A note, a preset or a run isn't there.
    """
    with (
        app.open_hub(found, only=True) as hub,
        pipelines.open_pipelines(hub) as client_pipelines,
        asyncio.Runner() as runner,
    ):
        display = PipelineDisplay(said)
        if asked.switches["resume"]:
            finished = _run_to_end(runner, _resume(client_pipelines, asked.switches["resume"], asked, display.tell))
        else:
            answering, request = client_pipelines.answering(asked.model), _build_request(client_pipelines, asked)
            finished = _run_to_end(
                runner, answering.ask(request, client_pipelines.context(request.run_id), display.tell)
            )
        while finished and display.outcome is not None and display.outcome.state == "asked":
            if said.as_json or not output.can_ask():
                break
            finished = _answer_question(runner, client_pipelines, asked, display)
        return _report_outcome(said, hub, display, finished=finished)


async def _resume(
    opened: VaultPipelines, run_id: str, asked: PipelineQuestion, tell: PipelineEventSink
) -> PipelineOutcome:
    """Go on with a run on the person's word; the agents see and change no more by that."""
    person = opened.hub.settings.client("cli")
    run = pipelines.find_paused_run(opened, run_id, person)
    with pipelines.open_paused_run(opened, run, person, asked.model) as (answering, context):
        return await answering.resume(run_id, asked.question, context, tell, by=person.grants)


def _run_to_end(runner: asyncio.Runner, work: Coroutine[Any, Any, PipelineOutcome]) -> bool:
    """Carry a run out; Ctrl-C stops it, and what there is by then is shown."""
    try:
        _ = runner.run(work)
    except KeyboardInterrupt:
        return False
    return True


def _answer_question(
    runner: asyncio.Runner, opened: VaultPipelines, asked: PipelineQuestion, screen: PipelineDisplay
) -> bool:
    outcome = cast("PipelineOutcome", screen.outcome)
    for line in render_question(outcome.question):
        click.echo(output.plain(line), err=True)
    text = click.prompt("answer", err=True)
    return _run_to_end(runner, _resume(opened, outcome.run_id, replace(asked, question=text), screen.tell))


def _build_request(opened: VaultPipelines, asked: PipelineQuestion) -> TaskRequest:
    switches = asked.switches
    view = opened.context("").view
    for path in filter(None, (asked.note, *switches["add"])):
        _ = view.path(path)  # so that a note that isn't there is told before anything is kept
    defaults, choice = opened.usual(switches["preset"]), _build_choice(switches)
    preset = choice.applied(defaults)
    if choice.switches:
        opened.presets.set_toggles(preset.toggles)
    if switches["save_preset"]:
        opened.presets.save(replace(preset, name=switches["save_preset"]))
    session = opened.chats.conversations.route(asked.note).id if switches["history"] and asked.note else ""
    request = opened.request(asked.question, preset, current=asked.note, session_id=session)
    if switches["token_limit"] is not None:
        context.check_limit(switches["token_limit"])
        request = replace(request, token_limit=switches["token_limit"])
    route = request.orchestrate if switches["route"] is None else switches["route"]
    return replace(request, orchestrate=route, debug=switches["debug"])


def _build_choice(switches: PipelineOptions) -> PresetOverrides:
    return PresetOverrides(
        scout=switches["scout"],
        web=switches["web"],
        task=switches["task"],
        link_depth=switches["depth"],
        same_folder=switches["same_folder"],
        editable=switches["editable"] or None,
        can=task_options.split_words(switches["can"]) or None,
        added=switches["add"],
    )


def _report_outcome(said: GlobalOptions, hub: Hub, screen: PipelineDisplay, *, finished: bool) -> ExitCode:
    outcome = screen.outcome
    if outcome is None:
        raise BadInput("nothing came of it", hint="ask again")
    if outcome.error is not None and outcome.state in {"failed", "limit"}:
        kind = RefusedError if outcome.state == "limit" else SetupError
        raise kind(str(outcome.error["error"]), hint=str(outcome.error["hint"]), code=str(outcome.error["code"]))
    outcome_fields = outcome.as_dict()
    if said.as_json:
        output.write_json(
            {
                "success": True,
                **{name: outcome_fields[name] for name in outcome_fields if name not in {"type", "error"}},
            }
        )
        return _exit_code(screen, outcome, finished=finished)
    if outcome.answer:
        output.write(said, outcome.answer)
    for line in render_outcome(outcome_fields):
        output.note(said, output.plain(line))
    if finished:
        _offer_review(said, hub, outcome.proposals)
    return _exit_code(screen, outcome, finished=finished)


def _exit_code(screen: PipelineDisplay, outcome: PipelineOutcome, *, finished: bool) -> ExitCode:
    if not finished:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if screen.found or outcome.state == "asked" else ExitCode.NOTHING


def _is_result(event: PipelineEvent) -> bool:
    """Tell whether an event shows that a run comes to something."""
    match event:
        case PhaseProgress():
            return event.phase == "task"
        case SelectionEvent():
            return bool(event.scout["selected_notes"])
        case SourcesEvent():
            return bool(event.web["sources"] or event.web["findings"])
        case _:
            return False


def _offer_review(said: GlobalOptions, hub: Hub, proposals: list[JSONValue]) -> None:
    """Go through what waits, where the person can be asked."""
    if not output.can_ask():
        return
    for proposal in proposals:
        if output.confirm(f"Review {proposal} now?"):
            with hub.context(client="cli") as context:
                _ = review.review_proposal(said, context, str(proposal))
