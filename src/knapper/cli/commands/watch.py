"""Keep the index up to date."""

import datetime as dt
import json
import signal
import threading
from types import FrameType

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import progress
from knapper.index import watch
from knapper.index.refresh import Outcome


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
        with progress.shown(said) as heard:
            before = context.index.refresh(progress=heard)
            context.index.embed(progress=heard)
        _tell(said, before)
        output.note(said, f"watching {context.view.root}; Ctrl-C ends it")
        watch.follow(
            context.index, _ended_by_signals(), lambda outcome: _tell(said, outcome) if _any(outcome) else None
        )
    output.note(said, "stopped")
    return ExitCode.OK


def _ended_by_signals() -> threading.Event:
    """Give an event that Ctrl-C sets; a second Ctrl-C interrupts what is going on."""
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, end)
    return stop


def _any(outcome: Outcome) -> bool:
    return bool(outcome.indexed or outcome.removed)


def _tell(said: Options, outcome: Outcome) -> None:
    now = dt.datetime.now().astimezone()
    if said.as_json:
        counts = {"indexed": outcome.indexed, "removed": outcome.removed, "unchanged": outcome.unchanged}
        output.write(said, json.dumps({"time": now.isoformat(timespec="seconds"), **counts}))
        return
    took = f"took in {outcome.indexed}, removed {outcome.removed}"
    output.write(said, f"{now:%H:%M:%S}  {took}")
    for problem in outcome.problems:
        output.note(said, f"          {output.plain(problem)}")
