"""Keep the index up to date."""

import datetime as dt
import json
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import progress
from knapper.errors import ConflictError
from knapper.index import watch
from knapper.index.embedders.base import EmbedderUnavailable
from knapper.index.refresh import RefreshOutcome

_PAUSE_S: Final = 30.0


@click.command(
    "watch",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap watch", "until Ctrl-C"),
        ("knap watch --json", "a JSON object a line, for each change taken in"),
    ),
)
@options.shared
@click.pass_obj
def command(said: Options) -> ExitCode:
    """Keep the index up to date while notes are saved.

    What changed before is taken in first. It ends with Ctrl-C.
    """
    with session.vault(said) as context:
        session.tell_if_busy(said, context)
        with progress.shown(said) as heard:
            before = context.index.refresh(progress=heard)
            context.index.embed(progress=heard)
        _tell(said, before)
        output.note(said, f"watching {context.view.root}; Ctrl-C ends it")
        with _signals_that_end() as stop:
            again(
                lambda: watch.follow_vault(context.index, stop, lambda outcome: _tell_news(said, outcome)),
                stop,
                lambda why: output.note(said, f"note: {output.plain(why)}; trying again in {_PAUSE_S:g} s"),
            )
    output.note(said, "stopped")
    return ExitCode.OK


def again(
    work: Callable[[], None], stop: threading.Event, tell: Callable[[str], None], *, pause_s: float = _PAUSE_S
) -> None:
    """Work until *stop* is set, again where an embedding server or another process is in the way for now.

    Args:
        work: Begins with what was missed.
        stop: Ends the work, and the pauses.
        tell: Hears why it has to be begun again.
        pause_s: Before that.
    """
    while not stop.is_set():
        try:
            work()
        except (EmbedderUnavailable, ConflictError) as error:
            tell(error.message)
            _ = stop.wait(pause_s)


@contextmanager
def _signals_that_end() -> Generator[threading.Event]:
    """Give an event that Ctrl-C sets; a second Ctrl-C interrupts what is going on."""
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {name: signal.signal(name, end) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _tell_news(said: Options, outcome: RefreshOutcome) -> None:
    if outcome.indexed or outcome.removed:
        _tell(said, outcome)


def _tell(said: Options, outcome: RefreshOutcome) -> None:
    now = dt.datetime.now().astimezone()
    if said.as_json:
        counts = {"indexed": outcome.indexed, "removed": outcome.removed, "unchanged": outcome.unchanged}
        output.write(said, json.dumps({"time": now.isoformat(timespec="seconds"), **counts}))
        return
    took = f"took in {outcome.indexed}, removed {outcome.removed}"
    output.write(said, f"{now:%H:%M:%S}  {took}")
    for problem in outcome.problems:
        output.note(said, f"          {output.plain(problem)}")
