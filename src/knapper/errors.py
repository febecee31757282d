"""Name every error that reaches a person or a model, and who must act on it.

The tree::

    KnapError
    ├── CallerError      the caller can mend the call
    │   ├── BadInput     an argument can't be used as it is
    │   ├── NotFound     no such note, heading, block, line, proposal
    │   └── Ambiguous    several things fit where one is wanted
    ├── SetupError       the person must configure or install something
    ├── RefusedError     the policy says no
    ├── ConflictError    the note changed meanwhile, or another process holds it
    └── StorageError     disk, permission, or a damaged state file
"""

from collections.abc import Mapping
from typing import Final

_DATA_ERRORS: Final = (ArithmeticError, AssertionError, LookupError, MemoryError, OSError, RuntimeError, ValueError)


class KnapError(Exception):
    """Carry a stable code, what went wrong, and what to try next.

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
        """Make an error.

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
        """Shape the error as every surface shows it."""
        shape: dict[str, object] = {"success": False, "error": self.message, "code": self.code}
        if self.hint:
            shape["hint"] = self.hint
        return {**self.details, **shape}


class CallerError(KnapError):
    """Say that the caller can mend the call."""

    code = "caller_error"


class BadInput(CallerError):
    """Say that an argument can't be used as it is."""

    code = "bad_input"


class NotFound(CallerError):
    """Say that a named thing isn't there."""

    code = "not_found"


class Ambiguous(CallerError):
    """Say that several things fit where one is wanted."""

    code = "ambiguous"


class SetupError(KnapError):
    """Say that the person must configure or install something."""

    code = "setup"


class RefusedError(KnapError):
    """Say that the policy refuses."""

    code = "refused"


class ConflictError(KnapError):
    """Say that a note changed meanwhile, or that another process holds what is needed."""

    code = "conflict"


class StorageError(KnapError):
    """Say that the disk, a permission or a state file stands in the way."""

    code = "storage"


def raised_by(error: Exception, *libraries: str) -> bool:
    """Return whether a library found fault with data, files or the machine; a wrong call of ours is none of these.

    For libraries that raise `Exception` itself, or errors that have no root of their own.

    Args:
        error: What came out of the library.
        libraries: The packages whose errors count, such as ``onnxruntime``; Python's own for data always do.
    """
    error_class = type(error)
    return (
        error_class is Exception
        or error_class.__module__.partition(".")[0] in libraries
        or isinstance(error, _DATA_ERRORS)
    )
