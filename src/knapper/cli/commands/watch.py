"""Keep the index up to date."""

import datetime as dt
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from knapper.cli import options, output, setup, start
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import indexing
from knapper.errors import ConflictError
from knapper.index import status, watch
from knapper.index.models.base import EmbedderUnavailable
from knapper.index.refresh import RefreshOutcome

_RETRY_PAUSE_S: Final = 30.0


@click.command(
    "watch",
    epilog=options.examples(
        ("knap watch", "until Ctrl-C"),
        ("knap watch --json", "one JSON object per line, for each change"),
    ),
)
@options.pass_options
def command(global_options: GlobalOptions) -> ExitCode:
    """Keep the index up to date as notes change.

    Earlier changes are indexed first. Press Ctrl-C to stop.
    """
    with setup.open_vault(global_options) as context:
        setup.note_if_busy(global_options, is_busy=context.index.is_being_written)
        with indexing.show_progress(global_options) as on_progress:
            first_outcome = context.index.refresh(progress=on_progress)
            context.index.embed(progress=on_progress)
        _report_outcome(global_options, first_outcome)
        start.collect_garbage_as_usual()
        output.note(global_options, f"watching {context.view.root}; Ctrl-C ends it")

        def report(outcome: RefreshOutcome) -> None:
            if outcome.indexed or outcome.removed:
                _report_outcome(global_options, outcome)

        try:
            with _stop_on_signals() as stop:
                retry_while_blocked(
                    lambda: watch.follow_vault(context.index, stop, report),
                    stop,
                    lambda why: output.note(
                        global_options, f"note: {output.plain(why)}; trying again in {_RETRY_PAUSE_S:g} s"
                    ),
                )
        finally:
            status.clear_watch_failure(context.index.folder)  # it may have failed, and isn't tried again
    output.note(global_options, "stopped")
    return ExitCode.OK


def retry_while_blocked(
    work: Callable[[], None], stop: threading.Event, report: Callable[[str], None], *, pause_s: float = _RETRY_PAUSE_S
) -> None:
    """Run *work* until *stop* is set, retrying while an embedding server or another process blocks it.

    Args:
        work: Starts with what was missed.
        stop: Ends the work, and the pauses.
        report: Called with the reason of a retry.
        pause_s: The pause before a retry, in seconds.
    """
    while not stop.is_set():
        try:
            work()
        except (EmbedderUnavailable, ConflictError) as error:
            report(error.message)
            _ = stop.wait(pause_s)


@contextmanager
def _stop_on_signals() -> Generator[threading.Event]:
    """Return an event that Ctrl-C sets; a second Ctrl-C interrupts the work."""
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    previous = {name: signal.signal(name, end) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for name, handler in previous.items():
            signal.signal(name, handler)


def _report_outcome(options: GlobalOptions, outcome: RefreshOutcome) -> None:
    now = dt.datetime.now().astimezone()
    if options.as_json:
        counts = {"indexed": outcome.indexed, "removed": outcome.removed, "unchanged": outcome.unchanged}
        output.write(options, output.dump_json({"time": now.isoformat(timespec="seconds"), **counts}, indent=None))
        return
    summary = f"took in {outcome.indexed}, removed {outcome.removed}"
    output.write(options, f"{now:%H:%M:%S}  {summary}")
    for problem in outcome.problems:
        output.note(options, f"          {output.plain(problem)}")
