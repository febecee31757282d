"""Show a turn while it goes on, at the terminal."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import click

from knapper.agents.chat.turn import EventSink
from knapper.agents.events import Done, Error, Event, ProposalEvent, QuestionEvent, Text, ToolCall, ToolResult
from knapper.cli import codes, output
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import streaming
from knapper.cli.render.amounts import count
from knapper.errors import KnapError, RefusedError, SetupError
from knapper.jsontypes import JSONValue

_MAX_ARGUMENT = 60
_MAX_STEP = 160


@dataclass(slots=True)
class Screen:
    """Show events to a person: the answer on the output stream, the steps on the error stream."""

    said: Options
    show: Callable[[str], None]
    """Shows text of the answer."""
    flush: Callable[[], None]
    step: int = 0
    text: str = ""
    """What was shown of the last reply."""
    done: Done | None = None
    error: Error | None = None
    proposals: list[str] = field(default_factory=list[str])

    def tell(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Text():
                self._say(event)
            case ToolCall():
                self.flush()
                self._note(f"→ {event.name}({_arguments(event.arguments)})")
            case ToolResult():
                self._note(f"  {'✓' if event.success else '✗'} {event.summary}")
            case ProposalEvent():
                self.proposals.append(str(event.proposal["id"]))
            case QuestionEvent():
                options = "".join(f"\n  - {one}" for one in event.options)
                output.note(self.said, output.plain(f"? {event.question}{options}"))
            case Error():
                self.error = event
            case Done():
                self.done = event
            case _:
                pass

    def asking(self, model: str) -> None:
        """Say who is asked, as the first word may take a while."""
        self._note(f"asking {model} …")

    def end(self) -> None:
        """Show what the turn came to, after its text."""
        self.flush()
        if self.done is None:
            return
        if self.done.state != "cancelled" and self.done.answer.strip() != self.text.strip():
            if self.text.strip() and not self.done.answer.startswith(self.text):
                self._note("the answer was corrected after its citations were checked:")
                self.show(self.done.answer)
            else:
                self.show(self.done.answer[len(self.text) :])
            self.flush()
        for one in self.done.removed:
            row = cast("Mapping[str, JSONValue]", one)
            self._note(f"a citation was dropped: {row['citation']}: {row['reason']}")
        for note in self.done.notes:
            self._note(str(note))
        for proposal in self.proposals:
            self._note(f"waits for your word: `knap edits show {proposal}`")
        self._note(footer(self.done))

    def _say(self, event: Text) -> None:
        if event.step != self.step:
            self.flush()
            self.step, self.text = event.step, ""
        self.text += event.text
        self.show(event.text)

    def _note(self, text: str) -> None:
        if text:
            line = output.plain(text).replace("\n", " ")
            shown = line if len(line) <= _MAX_STEP else f"{line[:_MAX_STEP]}…"
            output.note(self.said, click.style(shown, dim=True) if output.wants_colour(self.said) else shown)


def screen(said: Options) -> Screen:
    """Make a screen for this terminal, or for a file."""
    if sys.stdout.isatty():
        width = min(shutil.get_terminal_size().columns, 100)
        blocks = streaming.Blocks(streaming.markdown(width, colour=output.wants_colour(said)))
        return Screen(said=said, show=blocks.feed, flush=blocks.flush)
    plain = Plain()
    return Screen(said=said, show=plain.feed, flush=plain.flush)


class Plain:
    """Write an answer as it is, with a line's end after it."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        self._ends = True

    def feed(self, text: str) -> None:
        """Write a piece."""
        if text:
            click.echo(output.plain(text), nl=False)
            self._ends = text.endswith("\n")

    def flush(self) -> None:
        """End the line."""
        if not self._ends:
            click.echo()
        self._ends = True


def answer(runner: asyncio.Runner, work: Callable[[EventSink], Coroutine[Any, Any, object]], shown: Screen) -> bool:
    """Carry a turn out; Ctrl-C stops it, and not the program.

    Returns:
        Whether it wasn't stopped.
    """
    try:
        runner.run(work(shown.tell))
    except KeyboardInterrupt:
        shown.end()
        output.note(shown.said, "stopped")
        return False
    shown.end()
    return True


def failure(shown: Screen) -> KnapError | None:
    """Give the error that a turn ended with; None where there is an answer all the same."""
    if shown.error is None or (shown.done is not None and shown.done.state not in {"failed", "limit"}):
        return None
    kind = RefusedError if shown.error.code == "budget_spent" else SetupError
    return kind(shown.error.error, hint=shown.error.hint, code=shown.error.code)


def code(shown: Screen) -> ExitCode:
    """Give the exit code that tells how a turn ended."""
    error = failure(shown)
    return codes.of(error) if error else ExitCode.OK


def footer(done: Done) -> str:
    """Tell in a line what the turn used."""
    usage = done.usage
    parts = [done.model]
    if usage.get("total_tokens"):
        parts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens")
    if usage.get("cost_usd") is not None:
        parts.append(f"${float(str(usage['cost_usd'])):.4f}")
    if done.tools:
        parts.append(count(len(done.tools), "tool call"))
    return ", ".join(parts)


def _arguments(given: Mapping[str, JSONValue]) -> str:
    shown = [f"{name}={str(value)[:_MAX_ARGUMENT]!r}" for name, value in given.items()]
    return ", ".join(shown)
