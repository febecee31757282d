"""Shape what tools answer: what became of requests, and stretches of lists."""

from collections.abc import Mapping, Sequence
from typing import cast

from knapper.changes.requests import Request, subject
from knapper.changes.writer import FileReport, Submission
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context

MOST = 1_000
"""Results that one call gives at most."""
FARTHEST = 1_000_000_000
"""Where a stretch may begin at most."""


def one(context: Context, request: Request) -> dict[str, JSONValue]:
    """Carry out one request, and tell the file's path and the hash that it has now.

    Raises:
        KnapError: It can't be carried out, or is refused.
    """
    done = _submit(context, [request])
    told = _shape(done)
    file = next((file for file in done.files if file.action != "linked"), None)
    told["path"] = subject(request)
    if file is not None:
        is_done = done.status == "applied"
        told["path"] = (file.target or file.path) if is_done or file.action == "created" else file.path
        told["hash"] = _hash(file, is_done=is_done)
    return _ordered(told)


def several(context: Context, requests: Sequence[Request]) -> dict[str, JSONValue]:
    """Carry out independent requests: those that can be form one change or proposal, and the others are listed.

    Raises:
        BadInput: There is none.
        KnapError: None of them can be carried out.
    """
    if not requests:
        raise BadInput("nothing is asked for", hint="name at least one file")
    done = _submit(context, requests)
    told = _shape(done)
    failures = cast("list[dict[str, JSONValue]]", told.get("failures", []))
    for failure, known in zip(failures, done.failures, strict=True):
        failure["path"] = subject(requests[known.number])
    refused = {number for refusal in done.refusals for number in refusal.requests}
    made = len(requests) - len({one.number for one in done.failures} | refused)
    told["message"] = f"{done.status}: {made} of {len(requests)}"
    return _ordered(told)


def _submit(context: Context, requests: Sequence[Request]) -> Submission:
    """Hand requests in; differences, and errors that quote a note, count as reading it."""
    asked = [path for request in requests if (path := subject(request))]
    try:
        done = context.writer.submit(requests, context.asked)
    except KnapError:
        foreign.shown(context, asked)
        raise
    told = [path for file in done.files if file.diff and file.before_hash for path in (file.path, file.place)]
    foreign.shown(context, [*told, *(asked if done.failures else ())])
    return done


def page(rows: Sequence[JSONValue], limit: int, offset: int) -> dict[str, JSONValue]:
    """Give a stretch of a whole list.

    Raises:
        BadInput: The stretch can't be one.
    """
    check_page(limit, offset)
    return stretch(rows[offset : offset + limit], len(rows), limit, offset)


def stretch(rows: Sequence[JSONValue], total: int, limit: int, offset: int) -> dict[str, JSONValue]:
    """Give what was cut out of a list already; says where it goes on, if it does."""
    shown: dict[str, JSONValue] = {
        "success": True,
        "results": list(rows),
        "total": total,
        "limit": limit,
        "offset": offset,
    }
    if offset + len(rows) < total:
        shown["next_offset"] = offset + len(rows)
    return shown


def listed(answer: Mapping[str, JSONValue]) -> list[JSONValue]:
    """Give the results of an answer."""
    found = answer["results"]
    return found if isinstance(found, list) else []


def check_page(limit: int, offset: int) -> None:
    """Refuse a stretch that can't be one.

    Raises:
        BadInput: It is none.
    """
    if not 1 <= limit <= MOST:
        raise BadInput(f"limit is {limit}", hint=f"give 1 to {MOST}")
    check_offset(offset)


def check_offset(offset: int) -> None:
    """Refuse what no place in a list or a text can be.

    Raises:
        BadInput: It is below 0, or beyond all that there could be.
    """
    if not 0 <= offset <= FARTHEST:
        raise BadInput(f"offset is {offset}", hint=f"give 0 to {FARTHEST}")


def _shape(done: Submission) -> dict[str, JSONValue]:
    told = done.as_dict()
    if done.status == "applied" and not done.change_id:
        told["message"] = "nothing had to change"
    return told


def _hash(file: FileReport, *, is_done: bool) -> str | None:
    """Tell a file's hash as it is now; what is only planned or proposed hasn't changed it."""
    return file.after_hash if is_done else file.before_hash


def _ordered(told: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """Put what matters most first."""
    first = ("success", "status", "path", "hash", "message", "change_id", "proposal_id", "reason")
    shown = {name: told[name] for name in first if name in told and told[name] is not None}
    return shown | {name: value for name, value in told.items() if name not in first}
