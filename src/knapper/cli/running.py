"""Carry a run out at the terminal: show each step, ask where a person is wanted, and print the answer."""

import asyncio
import contextlib
import shutil
import sys
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from knapper.agents.events import Error, Usage
from knapper.agents.runs.model import CheckpointEvent, NodeChanged, RunDone, RunEvent, RunRecord, RunStarted, RunState
from knapper.cli import asking, output
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import runs, streaming

if TYPE_CHECKING:
    from knapper.agents.runs.engine import AskPerson


_CODES: dict[RunState, ExitCode] = {
    "complete": ExitCode.OK,
    "partial": ExitCode.PARTIAL,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.INTERRUPTED,
}


@dataclass(slots=True)
class Screen:
    """Show a run's events to a person, on the error stream."""

    said: Options
    done: RunDone | None = None
    _shown: dict[str, str] = field(default_factory=dict[str, str])

    def tell(self, event: RunEvent) -> None:
        """Show an event; what was shown of a node already isn't shown again."""
        match event:
            case RunStarted():
                self._note(f"{'going on with' if event.resumed else 'run'} {event.run['id']}")
            case NodeChanged():
                text = runs.progress(event)
                if text and self._shown.get(str(event.node["id"])) != text:
                    self._shown[str(event.node["id"])] = text
                    self._note(text)
            case CheckpointEvent():
                if event.unattended:
                    self._note(f"? {event.question} Nobody is here to be asked; it goes on.")
            case RunDone():
                self.done = event
            case Error() | Usage():
                pass

    def end(self) -> None:
        """Show what the run used."""
        if self.done is not None:
            self._note(runs.footer(self.done))

    def _note(self, text: str) -> None:
        output.note(self.said, text if output.wants_colour(self.said) else click.unstyle(text))


class Person:
    """Ask whoever sits at the terminal, one question at a time; who is quicker on another surface is heard as well."""

    def __init__(self, elsewhere: "AskPerson | None" = None) -> None:
        """Begin with no question open.

        Args:
            elsewhere: Waits for an answer that is given on another surface; None where none can be.
        """
        self._turn = asyncio.Lock()
        self._elsewhere = elsewhere
        self._line: asyncio.Future[str] | None = None
        """What is being typed; one that nobody has finished belongs to the next question."""

    async def __call__(self, point: CheckpointEvent) -> str:
        """Ask, and wait for the answer; other nodes go on meanwhile."""
        async with self._turn:
            choices = ", ".join([*point.options, "or in your own words"])
            click.echo(f"? {output.plain(point.question)}\n  ({choices}): ", err=True, nl=False)
            if self._elsewhere is None or not point.id:
                return await self._typed()
            typed, other = asyncio.create_task(self._typed()), asyncio.ensure_future(self._elsewhere(point))
            try:
                _ = await asyncio.wait({typed, other}, return_when=asyncio.FIRST_COMPLETED)
                if typed.done():
                    return typed.result()
                click.echo(f"\n  answered elsewhere: {output.plain(other.result())}", err=True)
                return other.result()
            finally:
                _ = typed.cancel()
                _ = other.cancel()

    async def _typed(self) -> str:
        """Give the next line that is typed."""
        self._line = self._line or _next_line()
        text = await asyncio.shield(self._line)
        self._line = None
        return text


def carry_out(said: Options, runner: asyncio.Runner, work: Coroutine[Any, Any, RunRecord], screen: Screen) -> ExitCode:
    """Carry a run out; Ctrl-C ends it, and what is done is kept.

    Args:
        said: The shared options.
        runner: Runs it.
        work: The run.
        screen: Has been told its events.

    Returns:
        The exit code that says how it ended.
    """
    try:
        run = runner.run(work)
    except KeyboardInterrupt:
        screen.end()
        if screen.done is not None:
            output.note(said, f"stopped; `knap run resume {screen.done.run_id}` goes on")
        return ExitCode.INTERRUPTED
    if not said.as_json:
        show(said, run.answer) if run.answer else _excuse(run)
    screen.end()
    return _CODES.get(run.state, ExitCode.FAILED)


def show(said: Options, answer: str) -> None:
    """Print an answer: as Markdown on a terminal, as it is elsewhere."""
    if sys.stdout.isatty():
        width = min(shutil.get_terminal_size().columns, 100)
        streaming.markdown(width, colour=output.wants_colour(said))(answer)
    else:
        click.echo(output.plain(answer))


def _excuse(run: RunRecord) -> None:
    """Say why there is no answer, also to those who want no more than that."""
    why = "; ".join(run.reasons) or run.state
    click.echo(output.plain(f"error: the run {run.id} has no answer: {why}"), err=True)


def is_attended(said: Options) -> bool:
    """Tell whether somebody can be asked."""
    return asking.is_possible() and not said.as_json


def _next_line() -> asyncio.Future[str]:
    """Read a line without holding up the rest; whoever ends the program needn't type one first."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def give(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = sys.stdin.readline()
        with contextlib.suppress(RuntimeError):  # the run has ended meanwhile
            loop.call_soon_threadsafe(give, text.strip())

    threading.Thread(target=read, daemon=True, name="question").start()
    return answer
