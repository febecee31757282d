"""Start commands quickly, and end them quietly where Ctrl-C comes while modules are imported."""

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Generator
from types import FrameType
from typing import Final

_USUAL_THRESHOLDS: Final = gc.get_threshold()
_SHORT_COMMAND_THRESHOLDS: Final = (100_000, 20, 100)
"""Imports make some 300,000 objects and no garbage: with Python's own thresholds, a tenth of a command's time went to
looking through them."""
EXIT_CODE: Final = 130
"""As shells have it for what Ctrl-C ended; `knapper.cli.output.ExitCode.INTERRUPTED`."""


def collect_little_garbage() -> None:
    """Let this process collect hardly any garbage, as it imports much and ends soon."""
    gc.set_threshold(*_SHORT_COMMAND_THRESHOLDS)
    _ = atexit.register(gc.freeze)  # or Python takes 10 to 30 ms to look through all objects at the end, for nothing


def collect_garbage_as_usual() -> None:
    """Let a command that goes on for long collect garbage by Python's own rules, except what it has imported.

    Call it when the imports are done.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLDS)


@contextlib.contextmanager
def exiting_at_once() -> Generator[None]:
    """Exit on Ctrl-C within the block, without a traceback.

    An interrupt within an import may come out as any other error, or be swallowed by a callback of the import's own
    locks. Nothing may be open that has to be closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGINT, _exit_now)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error came of an interrupt, such as one within the creation of a class."""
    return _find_interrupt(error) is not None


def notes_of(error: BaseException) -> list[str]:
    """Return what is to be said of the interrupt that an error came of, such as a change that was made before it."""
    interrupt = _find_interrupt(error)
    return [*interrupt.__notes__] if interrupt is not None and hasattr(interrupt, "__notes__") else []


def _find_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


def _exit_now(number: int, frame: FrameType | None) -> None:
    del number, frame
    is_json = "--json" in sys.argv
    text = '{"success": false, "error": "interrupted", "code": "interrupted"}' if is_json else "\ninterrupted"
    with contextlib.suppress(OSError):  # Ctrl-C ends whoever reads the output, too
        _ = os.write(1 if is_json else 2, f"{text}\n".encode())
    os._exit(EXIT_CODE)
