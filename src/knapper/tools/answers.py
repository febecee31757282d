"""Build tool answers: results of changes, pages of lists, and marks of text that others wrote."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from knapper.changes.requests import Request, subject
from knapper.changes.writer import FileReport, Submission
from knapper.errors import BadInput, KnapError
from knapper.index.catalog import CatalogEntry
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath


def mark_if_foreign(context: Context, note: Note) -> bool:
    """Tell whether others wrote a note; if so, its reader only proposes changes from now on, unless it is a person."""
    block = note.outline.frontmatter
    return _check_and_mark(context, note.path, block.values if block else {})


def is_foreign_note(context: Context, note: Note) -> bool:
    """Return whether others wrote a note; nobody has read it by that."""
    block = note.outline.frontmatter
    return context.view.policy.is_foreign(note.path, block.values if block else {})


def mark_foreign_paths(context: Context, paths: Iterable[NotePath]) -> frozenset[NotePath]:
    """Return which of some notes others wrote, as the index knows them; see `heard`."""
    distinct = list(dict.fromkeys(paths))
    properties = context.index.store.properties_of(distinct)
    return frozenset(path for path in distinct if _check_and_mark(context, path, properties.get(path, {})))


def is_foreign_entry(context: Context, entry: CatalogEntry) -> bool:
    """Return whether others wrote a note, or what it leads to if it is a link; nobody has read it by that."""
    policy = context.view.policy
    targets = (entry.path, entry.target) if entry.target else (entry.path,)
    return any(policy.is_foreign(target, entry.properties) for target in targets)


def mark_shown_paths(context: Context, paths: Iterable[str]) -> None:
    """Look at notes of which an answer, or an error, shows text; see `heard`."""
    if context.writer.grants.is_person:
        return
    for path in dict.fromkeys(paths):
        with contextlib.suppress(KnapError):  # nothing can be shown of what can't be read
            _ = mark_if_foreign(context, context.view.read_head(path))


def mark_tainted(context: Context, source: str) -> None:
    """Remember that the client has read text that others wrote, unless it is a person.

    Args:
        context: On whose behalf.
        source: The note or address.
    """
    writer = context.writer
    if not writer.grants.is_person:
        run = context.submit_options.run if context.submit_options else ""
        _ = writer.taints.mark(writer.grants.client, run, source)


def _check_and_mark(context: Context, path: NotePath, properties: Mapping[str, JSONValue]) -> bool:
    is_foreign = context.view.policy.is_foreign(path, properties)
    if is_foreign:
        mark_tainted(context, path)
    return is_foreign


MAX_RESULTS = 1_000
"""Results that one call gives at most."""
MAX_OFFSET = 1_000_000_000
"""Where a stretch may begin at most."""


def submit_one(context: Context, request: Request) -> dict[str, JSONValue]:
    """Carry out one request, and tell the file's path and the hash that it has now.

    Raises:
        KnapError: It can't be carried out, or is refused.
    """
    submission = _submit(context, [request])
    answer = _submission_answer(submission)
    file = next((file for file in submission.files if file.action != "linked"), None)
    answer["path"] = subject(request)
    if file is not None:
        is_done = submission.status == "applied"
        answer["path"] = (file.target or file.path) if is_done or file.action == "created" else file.path
        answer["hash"] = _current_hash(file, is_done=is_done)
    return _order_fields(answer)


def submit_several(context: Context, requests: Sequence[Request]) -> dict[str, JSONValue]:
    """Carry out independent requests: those that can be form one change or proposal, and the others are listed.

    Raises:
        BadInput: There is none.
        KnapError: None of them can be carried out.
    """
    if not requests:
        raise BadInput("nothing is asked for", hint="name at least one file")
    submission = _submit(context, requests)
    answer = _submission_answer(submission)
    failures = cast("list[dict[str, JSONValue]]", answer.get("failures", []))
    for failure, reported in zip(failures, submission.failures, strict=True):
        failure["path"] = subject(requests[reported.number])
    refused = {number for refusal in submission.refusals for number in refusal.requests}
    carried_out = len(requests) - len({one.number for one in submission.failures} | refused)
    answer["message"] = f"{submission.status}: {carried_out} of {len(requests)}"
    return _order_fields(answer)


def _submit(context: Context, requests: Sequence[Request]) -> Submission:
    """Hand requests in; differences, and errors that quote a note, count as reading it."""
    paths = [path for request in requests if (path := subject(request))]
    try:
        submission = context.writer.submit(requests, context.submit_options)
    except KnapError:
        mark_shown_paths(context, paths)
        raise
    shown_paths = [
        path for file in submission.files if file.diff and file.before_hash for path in (file.path, file.place)
    ]
    mark_shown_paths(context, [*shown_paths, *(paths if submission.failures else ())])
    return submission


def paginate(rows: Sequence[JSONValue], limit: int, offset: int) -> dict[str, JSONValue]:
    """Return a stretch of a whole list.

    Raises:
        BadInput: The stretch can't be one.
    """
    check_page(limit, offset)
    return page_of(rows[offset : offset + limit], len(rows), limit, offset)


def page_of(rows: Sequence[JSONValue], total: int, limit: int, offset: int) -> dict[str, JSONValue]:
    """Return what was cut out of a list already; says where it goes on, if it does."""
    answer: dict[str, JSONValue] = {
        "success": True,
        "results": list(rows),
        "total": total,
        "limit": limit,
        "offset": offset,
    }
    if offset + len(rows) < total:
        answer["next_offset"] = offset + len(rows)
    return answer


def results_of(answer: Mapping[str, JSONValue]) -> list[JSONValue]:
    """Return the results of an answer."""
    results = answer["results"]
    return results if isinstance(results, list) else []


def check_page(limit: int, offset: int) -> None:
    """Refuse a stretch that can't be one.

    Raises:
        BadInput: It is none.
    """
    if not 1 <= limit <= MAX_RESULTS:
        raise BadInput(f"limit is {limit}", hint=f"give 1 to {MAX_RESULTS}")
    check_offset(offset)


def check_offset(offset: int) -> None:
    """Refuse what no place in a list or a text can be.

    Raises:
        BadInput: It is below 0, or beyond all that there could be.
    """
    if not 0 <= offset <= MAX_OFFSET:
        raise BadInput(f"offset is {offset}", hint=f"give 0 to {MAX_OFFSET}")


def _submission_answer(submission: Submission) -> dict[str, JSONValue]:
    answer = submission.as_dict()
    if submission.status == "applied" and not submission.change_id:
        answer["message"] = "nothing had to change"
    return answer


def _current_hash(file: FileReport, *, is_done: bool) -> str | None:
    """Return a file's hash as it is now; what is only planned or proposed hasn't changed it."""
    return file.after_hash if is_done else file.before_hash


def _order_fields(answer: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """Put what matters most first."""
    first = ("success", "status", "path", "hash", "message", "change_id", "proposal_id", "reason")
    leading = {name: answer[name] for name in first if name in answer and answer[name] is not None}
    return leading | {name: value for name, value in answer.items() if name not in first}
