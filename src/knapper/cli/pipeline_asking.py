"""Have several agents do a task, at the terminal: questions, what was found, and the review of edits."""

import asyncio
from collections.abc import Coroutine
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
from knapper.cli import ask_switches, asking, decisions, output
from knapper.cli.ask_switches import Switches
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import agents as shown
from knapper.config import Settings
from knapper.errors import BadInput, RefusedError, SetupError
from knapper.jsontypes import JSONValue

_MAX_STEP: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold what the person asks."""

    question: str
    note: str
    model: str
    switches: Switches


@dataclass(slots=True)
class Screen:
    """Tell what happens on the error stream."""

    said: Options
    outcome: PipelineOutcome | None = None
    opened: list[str] = field(default_factory=list[str])
    found: bool = False
    """Something came of it: the task was worked on, or there are notes or pages for it."""

    def tell(self, event: PipelineEvent) -> None:
        """Show an event."""
        self.found = self.found or _finds(event)
        match event:
            case PhaseProgress(phase="scout", state="ended"):  # `Selected` has told it, with the notes
                pass
            case PhaseProgress():
                self._note(f"{event.phase}: {event.text}")
            case ToolCall():
                self._note(f"  → {event.name}")
            case SelectionEvent():
                self._lines(shown.selection(event.scout))
            case ContextEvent():
                self._lines(shown.context(event.context))
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
        cut = line if len(line) <= _MAX_STEP else f"{line[:_MAX_STEP]}…"
        output.note(self.said, click.style(cut, dim=True) if output.wants_colour(self.said) else cut)


def answer(said: Options, found: Settings, asked: Asked) -> ExitCode:
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
        pipelines.open_pipelines(hub) as opened,
        asyncio.Runner() as runner,
    ):
        screen = Screen(said)
        if asked.switches["resume"]:
            finished = _run(runner, _resumed(opened, asked.switches["resume"], asked, screen.tell))
        else:
            answering, request = opened.answering(asked.model), _request(opened, asked)
            finished = _run(runner, answering.ask(request, opened.context(request.run_id), screen.tell))
        while finished and screen.outcome is not None and screen.outcome.state == "asked":
            if said.as_json or not asking.is_possible():
                break
            finished = _answered(runner, opened, asked, screen)
        return _end(said, hub, screen, finished=finished)


async def _resumed(opened: VaultPipelines, run_id: str, asked: Asked, tell: PipelineEventSink) -> PipelineOutcome:
    """Go on with a run on the person's word; the agents see and change no more by that."""
    person = opened.hub.settings.client("cli")
    run = pipelines.find_paused_run(opened, run_id, person)
    with pipelines.open_paused_run(opened, run, person, asked.model) as (answering, context):
        return await answering.resume(run_id, asked.question, context, tell, by=person.grants)


def _run(runner: asyncio.Runner, work: Coroutine[Any, Any, PipelineOutcome]) -> bool:
    """Carry a run out; Ctrl-C stops it, and what there is by then is shown."""
    try:
        _ = runner.run(work)
    except KeyboardInterrupt:
        return False
    return True


def _answered(runner: asyncio.Runner, opened: VaultPipelines, asked: Asked, screen: Screen) -> bool:
    outcome = cast("PipelineOutcome", screen.outcome)
    for line in shown.question(outcome.question):
        click.echo(output.plain(line), err=True)
    text = click.prompt("answer", err=True)
    return _run(runner, _resumed(opened, outcome.run_id, replace(asked, question=text), screen.tell))


def _request(opened: VaultPipelines, asked: Asked) -> TaskRequest:
    switches = asked.switches
    sight = opened.context("").view
    for path in filter(None, (asked.note, *switches["add"])):
        _ = sight.path(path)  # so that a note that isn't there is told before anything is kept
    usual, choice = opened.usual(switches["preset"]), _choice(switches)
    chosen = choice.applied(usual)
    if choice.switches:
        opened.presets.set_toggles(chosen.toggles)
    if switches["save_preset"]:
        opened.presets.save(replace(chosen, name=switches["save_preset"]))
    session = opened.chats.conversations.route(asked.note).id if switches["history"] and asked.note else ""
    request = opened.request(asked.question, chosen, current=asked.note, session_id=session)
    if switches["token_limit"] is not None:
        context.check_limit(switches["token_limit"])
        request = replace(request, token_limit=switches["token_limit"])
    route = request.orchestrate if switches["route"] is None else switches["route"]
    return replace(request, orchestrate=route, debug=switches["debug"])


def _choice(switches: Switches) -> PresetOverrides:
    return PresetOverrides(
        scout=switches["scout"],
        web=switches["web"],
        task=switches["task"],
        link_depth=switches["depth"],
        same_folder=switches["same_folder"],
        editable=switches["editable"] or None,
        can=ask_switches.words(switches["can"]) or None,
        added=switches["add"],
    )


def _end(said: Options, hub: Hub, screen: Screen, *, finished: bool) -> ExitCode:
    outcome = screen.outcome
    if outcome is None:
        raise BadInput("nothing came of it", hint="ask again")
    if outcome.error is not None and outcome.state in {"failed", "limit"}:
        kind = RefusedError if outcome.state == "limit" else SetupError
        raise kind(str(outcome.error["error"]), hint=str(outcome.error["hint"]), code=str(outcome.error["code"]))
    told = outcome.as_dict()
    if said.as_json:
        output.write_json({"success": True, **{name: told[name] for name in told if name not in {"type", "error"}}})
        return _code(screen, outcome, finished=finished)
    if outcome.answer:
        output.write(said, outcome.answer)
    for line in shown.ending(told):
        output.note(said, output.plain(line))
    if finished:
        _review(said, hub, outcome.proposals)
    return _code(screen, outcome, finished=finished)


def _code(screen: Screen, outcome: PipelineOutcome, *, finished: bool) -> ExitCode:
    if not finished:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if screen.found or outcome.state == "asked" else ExitCode.NOTHING


def _finds(event: PipelineEvent) -> bool:
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


def _review(said: Options, hub: Hub, proposals: list[JSONValue]) -> None:
    """Go through what waits, where the person can be asked."""
    if not asking.is_possible():
        return
    for proposal in proposals:
        if asking.confirm(f"Review {proposal} now?"):
            with hub.context(client="cli") as context:
                _ = decisions.review(said, context, str(proposal))
