"""Say which requests of a batch can't be carried out, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from knapper.changes import requests
from knapper.changes.requests import Request
from knapper.errors import CallerError, KnapError
from knapper.jsontypes import JSONValue

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Hold one of them."""

    number: int
    """From 0, in the order given."""
    error: KnapError


def row(failure: Failure) -> dict[str, JSONValue]:
    """Shape a failure as every surface shows it."""
    error = failure.error
    return {"request": failure.number, "error": error.message, "code": error.code, "hint": error.hint}


def rows(failures: Sequence[Failure], asked: Sequence[Request]) -> JSONValue:
    """Shape failures as an error's details list them: with the path that each is about.

    Args:
        failures: Some requests of the batch.
        asked: The batch.
    """
    return [{"path": requests.subject(asked[one.number]), **row(one)} for one in failures]


def of_all(failures: Sequence[Failure], asked: Sequence[Request]) -> KnapError:
    """Make the error of a batch of which nothing can be carried out.

    Args:
        failures: One at least.
        asked: The batch.

    Returns:
        What is wrong with the only request, or an error whose ``details["failures"]`` lists each with path, code and
        hint. Its code is theirs where they have the same, else ``batch_failed``.
    """
    errors = [one.error for one in failures]
    if len(asked) == 1:
        return errors[0]
    codes, hints = ({error.code for error in errors}, {error.hint for error in errors})
    return _kind(errors)(
        _message(failures, asked),
        hint=hints.pop() if len(hints) == 1 else "each failure has a hint of its own",
        code=codes.pop() if len(codes) == 1 else "batch_failed",
        details={"failures": rows(failures, asked)},
    )


def _kind(errors: Sequence[KnapError]) -> type[KnapError]:
    """Tell who must act: whoever does for every one of them, else the caller."""
    shared = (kind for kind in type(errors[0]).__mro__ if all(isinstance(error, kind) for error in errors))
    kind = next(shared, KnapError)
    return kind if issubclass(kind, KnapError) and kind is not KnapError else CallerError


def _message(failures: Sequence[Failure], asked: Sequence[Request]) -> str:
    messages = {one.error.message for one in failures}
    if len(messages) == 1:
        return messages.pop()
    told = [f"{requests.subject(asked[one.number])}: {one.error.message}" for one in failures[:_SHOWN]]
    more = len(failures) - len(told)
    return f"nothing of {len(asked)} requests can be done: {'; '.join(told)}" + (f"; and {more} more" if more else "")
