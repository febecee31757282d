"""Name the exit codes."""

from enum import IntEnum

from knapper.errors import CallerError, ConflictError, KnapError, RefusedError, SetupError, StorageError


class ExitCode(IntEnum):
    """Tell scripts how a command ended."""

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


_OF_ERRORS = (
    (CallerError, ExitCode.USAGE),
    (SetupError, ExitCode.SETUP),
    (RefusedError, ExitCode.REFUSED),
    (ConflictError, ExitCode.CONFLICT),
    (StorageError, ExitCode.STORAGE),
)


def of(error: KnapError) -> ExitCode:
    """Give the exit code of an error."""
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), ExitCode.USAGE)
