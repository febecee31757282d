"""Errors that reach a person or a model; the class says who must act.

The tree::

    KnapError
    ├── CallerError      the caller can fix the call
    │   ├── BadInput     an argument can't be used as it is
    │   ├── NotFound     no such note, heading, block, line, proposal
    │   └── Ambiguous    several things fit where one is wanted
    ├── SetupError       the person must configure or install something
    ├── RefusedError     the policy says no
    ├── ConflictError    the note changed in the meantime, or another process holds it
    └── StorageError     disk, permission, or a damaged state file
"""

from collections.abc import Mapping
from typing import Final

_DATA_ERRORS: Final = (ArithmeticError, AssertionError, LookupError, MemoryError, OSError, RuntimeError, ValueError)


class KnapError(Exception):
    """An error with a stable code, what went wrong, and what to try next.

    ``NotFound("no note 'Foo.md'", hint="nearest: 'Food.md'").as_dict()`` gives
    ``{"success": False, "error": …, "code": "not_found", "hint": …}``.
    """

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        """Build an error.

        Args:
            message: The thing, the place and the cause, in one sentence.
            hint: The next step: nearest names, candidates, a command; empty if there is none.
            code: A code narrower than the class's own.
            details: Facts for machines, such as ``{"current_hash": "…"}``; JSON values only.
        """
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code
        self.details: dict[str, object] = dict(details or {})

    def as_dict(self) -> dict[str, object]:
        """Return the error as every surface shows it."""
        shape: dict[str, object] = {"success": False, "error": self.message, "code": self.code}
        if self.hint:
            shape["hint"] = self.hint
        return {**self.details, **shape}


class CallerError(KnapError):
    """An error that the caller can fix by changing the call."""

    code = "caller_error"


class BadInput(CallerError):
    """An argument can't be used as it is."""

    code = "bad_input"


class NotFound(CallerError):
    """A named thing doesn't exist."""

    code = "not_found"


class Ambiguous(CallerError):
    """Several things match where one is wanted."""

    code = "ambiguous"


class SetupError(KnapError):
    """The person must configure or install something."""

    code = "setup"


class RefusedError(KnapError):
    """The policy doesn't allow the call."""

    code = "refused"


class ConflictError(KnapError):
    """A note changed in the meantime, or another process holds a resource that the call needs."""

    code = "conflict"


class StorageError(KnapError):
    """The disk, a permission or a damaged state file prevents the call."""

    code = "storage"


def raised_by(error: Exception, *libraries: str) -> bool:
    """Return whether a library failed because of data, files or the machine, and not because of a wrong call of ours.

    For libraries that raise `Exception` itself, or errors that have no root of their own.

    Args:
        error: The exception that the library raised.
        libraries: The packages whose errors count, such as ``onnxruntime``; Python's own for data always do.
    """
    error_class = type(error)
    return (
        error_class is Exception
        or error_class.__module__.partition(".")[0] in libraries
        or isinstance(error, _DATA_ERRORS)
    )
