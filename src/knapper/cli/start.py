"""Start the command line; Ctrl-C ends it quietly even while it is still being imported."""

import atexit
import gc
import sys
from typing import Final, NoReturn

_USUAL_THRESHOLDS: Final = gc.get_threshold()
_SHORT_COMMAND_THRESHOLDS: Final = (100_000, 20, 100)
"""Imports make some 300,000 objects and no garbage: with Python's own thresholds, a tenth of a command's time went to
looking through them."""


def main() -> NoReturn:
    """Run the program with this process's arguments, and exit with its code."""
    gc.set_threshold(*_SHORT_COMMAND_THRESHOLDS)
    _ = atexit.register(gc.freeze)  # or Python takes 10 to 30 ms to look through them all at the end, for nothing
    if sys.argv[1:2] == ["__complete"]:  # a shell waits for it at every Tab: before all other imports
        from knapper.cli.completion import answering  # noqa: PLC0415 - see above

        answering.main(sys.argv[2:])
        sys.exit(0)
    from knapper.cli import interrupts  # noqa: PLC0415 - see above

    with interrupts.exiting_at_once():
        from knapper.cli import main as program  # noqa: PLC0415 - an interrupt of its imports is handled here

    program.main()


def collect_garbage_as_usual() -> None:
    """Let a command that goes on for long collect garbage by Python's own rules, except what it has imported.

    Call it when the imports are done.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLDS)
