"""The exit codes, and error hints worded as commands."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from knapper.errors import CallerError, ConflictError, KnapError, RefusedError, SetupError, StorageError


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    OK = 0
    NOTHING = 1
    """Nothing was found, or a check failed."""
    USAGE = 2
    SETUP = 3
    REFUSED = 4
    CONFLICT = 5
    STORAGE = 6
    PARTIAL = 7
    """A run has an answer, though not all of its parts do."""
    FAILED = 8
    """A run has no answer."""
    INTERRUPTED = 130


_CODE_BY_ERROR = (
    (CallerError, ExitCode.USAGE),
    (SetupError, ExitCode.SETUP),
    (RefusedError, ExitCode.REFUSED),
    (ConflictError, ExitCode.CONFLICT),
    (StorageError, ExitCode.STORAGE),
)


def exit_code(error: KnapError) -> ExitCode:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODE_BY_ERROR if isinstance(error, kind)), ExitCode.USAGE)


COMMAND_HINTS: Final[Mapping[str, str]] = {
    "list the sessions": "`knap sessions` lists them",
    "list the proposals for their ids": "`knap edits list --all` lists them",
    "list the open proposals": "`knap edits` lists those that are open",
    "list the journal for its changes": "`knap log` lists them",
    "list the journal for what was changed": "`knap log` lists what was changed",
    "list the journal for what took it back": "`knap log` tells what took it back",
    "list or search the vault for its name": "`knap find` lists the notes",
    "Give the text in content.": "give the text after the heading, or - for the standard input",
}
"""A hint, and what it comes to at a terminal."""


def command_hint(hint: str) -> str:
    """Return a hint worded for the command line."""
    return COMMAND_HINTS.get(hint, hint)
