"""Run the command line; Ctrl-C ends it quietly even while it is still being imported."""

import sys
from typing import NoReturn

from knapper.cli import start


def main() -> NoReturn:
    """Run the program with this process's arguments, and exit with its code."""
    start.collect_little_garbage()
    if sys.argv[1:2] == ["__complete"]:  # a shell waits for it at every Tab: before all other imports
        from knapper.cli.completion import answering  # noqa: PLC0415 - see above

        answering.main(sys.argv[2:])
        sys.exit(0)
    with start.exiting_at_once():
        from knapper.cli import main as program  # noqa: PLC0415 - an interrupt of its imports is handled here

    program.main()


if __name__ == "__main__":
    main()
