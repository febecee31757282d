"""Build tool answers: results of changes, pages of lists, and the taint of untrusted content, which is passed on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar, cast

from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context, Rights
from knapper.tools.shapes import MAX_RESULTS, Answer
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.changes.drafts import LinkRewrite, Request
    from knapper.changes.proposals.taint import Reader, Taints
    from knapper.changes.writer import Submission
    from knapper.index.catalog import CatalogEntry
    from knapper.tools.shapes.read import Page
    from knapper.tools.shapes.write import ReviewFields, ReviewPlaces, RewrittenLink, WriteResult, WrittenFile
    from knapper.vault.parser import Note


RowT = TypeVar("RowT")

MAX_DIFF_CHARS: Final = 200_000
"""Most characters of the diffs of one answer, all files together."""
MAX_OFFSET = 1_000_000_000
"""Largest offset of a page."""
_FIRST_FIELDS: Final = (
    "path",
    "hash",
    "message",
    "change_id",
    "proposal_id",
    "review_command",
    "review_url",
    "reason",
)
"""The most important fields of an answer about a change, after its status."""
_LEFT_OUT_IF_EMPTY: Final = (
    "reason",
    "change_id",
    "proposal_id",
    "files",
    "hidden_files",
    "failures",
    "refusals",
    "links_rewritten",
    "notes",
)
CHANGE_FIELDS = frozenset({"success", "status", *_FIRST_FIELDS, "files", "hidden_files", "links_rewritten", "notes"})
"""The fields that say what becomes of a change; what else a tool answers is its own."""


def as_json(answer: Mapping[str, object]) -> Answer:
    """Return a tool's typed answer, or an error's fields, as the surfaces pass it on.

    A TypedDict is the JSON object that it describes, and an error's details are JSON; the checker can't see it as such.
    """
    return cast("Answer", answer)


def mark_if_foreign(context: Context, note: Note) -> bool:
    """Return whether others wrote a note; if so, taint the client, which from now on only proposes changes.

    A note in which an edit of a tainted client waits taints as well, though nobody else wrote the note.
    """
    block = note.outline.frontmatter
    is_foreign = _check_and_mark(context, note.path, block.values if block else {})
    if is_foreign or not note.may_have_pending or context.rights.grants.is_person:
        return is_foreign
    from knapper.vault import pending  # noqa: PLC0415 - most notes have no such edits

    block_ids = [block.id for block in pending.find_pending(note.raw, note.outline) if block.id]
    proposal = context.writer.proposals.note_blocks.find_tainted(block_ids) if block_ids else ""
    if proposal:
        mark_tainted(context, f"proposal {proposal}")
    return False


def is_foreign_note(context: Context, note: Note) -> bool:
    """Return whether others wrote a note, without tainting the client."""
    block = note.outline.frontmatter
    return context.view.policy.is_foreign(note.path, block.values if block else {})


def mark_foreign_paths(context: Context, paths: Iterable[NotePath]) -> frozenset[NotePath]:
    """Return which of some notes others wrote, by their properties in the index; taint the client if there are any."""
    distinct = list(dict.fromkeys(paths))
    properties = context.index.store.properties_with_address(distinct)  # no others make a note a foreign one
    return frozenset(path for path in distinct if _check_and_mark(context, path, properties.get(path, {})))


def is_foreign_entry(context: Context, entry: CatalogEntry) -> bool:
    """Return whether others wrote a note, or the target if it is a link, without tainting the client."""
    policy = context.view.policy
    targets = (entry.path, entry.target) if entry.target else (entry.path,)
    return any(policy.is_foreign(target, entry.properties) for target in targets)


def mark_shown_paths(context: Context, paths: Iterable[str]) -> None:
    """Taint the client if others wrote one of the notes whose text an answer or an error shows."""
    if context.rights.grants.is_person:
        return
    for path in dict.fromkeys(paths):
        # Nothing can have been shown of a note that can't be read.
        with contextlib.suppress(KnapError):
            _ = mark_if_foreign(context, context.view.read_head(context.view.locate(path)))


def mark_tainted(context: Context, source: str) -> None:
    """Record that the client has read untrusted content; a person is never tainted.

    Args:
        context: The vault, as the client sees it.
        source: The note or address that was read.
    """
    if context.mark_foreign is not None:
        context.mark_foreign(source)
        return
    rights = context.rights
    if not rights.grants.is_person:
        _ = rights.taints.mark(rights.grants.client, _run_of(context), source)


def _check_and_mark(context: Context, path: NotePath, properties: Mapping[str, JSONValue]) -> bool:
    is_foreign = context.view.policy.is_foreign(path, properties)
    if is_foreign:
        mark_tainted(context, path)
    return is_foreign


def submit_one(context: Context, request: Request) -> WriteResult:
    """Submit one request, and return the answer with the file's path and current hash.

    Raises:
        KnapError: It can't be carried out, or is refused.
    """
    submission = _submit(context, [request])
    answer = _submission_answer(context, submission)
    file = next((file for file in submission.files if file.action != "linked"), None)
    answer["path"] = _subject_path(request)
    if file is not None:
        is_done = submission.status == "applied"
        answer["path"] = (file.target or file.path) if is_done or file.action == "created" else file.path
        answer["hash"] = file.after_hash if is_done else file.before_hash  # what it is now
    return _order_fields(answer)


def submit_several(context: Context, requests: Sequence[Request]) -> WriteResult:
    """Submit independent requests: those that succeed form one change or proposal, and failures are listed.

    Raises:
        BadInput: There are no requests.
        KnapError: None of them can be carried out.
    """
    if not requests:
        raise BadInput("nothing is asked for", hint="name at least one file")
    submission = _submit(context, requests)
    answer = _submission_answer(context, submission)
    for failure, reported in zip(answer.get("failures", []), submission.failures, strict=True):
        failure["path"] = _subject_path(requests[reported.number])
    refused = {number for refusal in submission.refusals for number in refusal.requests}
    carried_out = len(requests) - len({one.number for one in submission.failures} | refused)
    counted = f"{submission.status}: {carried_out} of {len(requests)}"
    answer["message"] = f"{counted}; {answer.get('message')}" if submission.status == "proposed" else counted
    return _order_fields(answer)


def _subject_path(request: Request) -> str:
    """Return the path that a request is about; empty for a tag."""
    from knapper.changes.drafts import subject  # noqa: PLC0415 - 20 ms that a search needn't pay for

    return subject(request)


def _submit(context: Context, requests: Sequence[Request]) -> Submission:
    """Submit requests; diffs, and errors that quote a note, count as reading it."""
    paths = [path for request in requests if (path := _subject_path(request))]
    try:
        submission = context.writer.submit(requests, context.submit_options)
    except KnapError:
        # The error may quote the note, so that the client has read it although nothing was written.
        mark_shown_paths(context, paths)
        raise
    # The diff of a new file shows only what the client wrote itself; an earlier version makes it a read.
    shown_paths = [
        path for file in submission.files if file.diff and file.before_hash for path in (file.path, file.place)
    ]
    mark_shown_paths(context, [*shown_paths, *(paths if submission.failures else ())])
    return submission


def paginate(rows: Sequence[RowT], limit: int, offset: int) -> Page[RowT]:
    """Return one page of a whole list.

    Raises:
        BadInput: The limit or the offset is out of its range.
    """
    check_page(limit, offset)
    return page_of(rows[offset : offset + limit], len(rows), limit, offset)


def page_of(rows: Sequence[RowT], total: int, limit: int, offset: int) -> Page[RowT]:
    """Return the rows of a page with its position, and ``next_offset`` where more follow."""
    answer: Page[RowT] = {
        "success": True,
        "results": list(rows),
        "total": total,
        "limit": limit,
        "offset": offset,
    }
    if offset + len(rows) < total:
        answer["next_offset"] = offset + len(rows)
    return answer


def check_page(limit: int, offset: int) -> None:
    """Check the limit and the offset of a page.

    Raises:
        BadInput: One of them is out of its range.
    """
    if not 1 <= limit <= MAX_RESULTS:
        raise BadInput(f"limit is {limit}", hint=f"give 1 to {MAX_RESULTS}")
    check_offset(offset)


def check_offset(offset: int) -> None:
    """Check an offset into a list or a text.

    Raises:
        BadInput: It is negative, or too large.
    """
    if not 0 <= offset <= MAX_OFFSET:
        raise BadInput(f"offset is {offset}", hint=f"give 0 to {MAX_OFFSET}")


def review_fields(context: Context, proposal_id: str) -> ReviewFields:
    """Return what an answer says of a proposal: that nothing has changed yet, and where a person decides on it."""
    command, url = context.review.command(proposal_id), context.review.url(proposal_id)
    page = f", and so does {url}" if url else ""
    message = (
        f"nothing has changed yet: the proposal {proposal_id} waits for a person's yes; "
        f"`{command}` shows it and takes the answer{page}"
    )
    return {"message": message, **place_fields(context, proposal_id)}


def place_fields(context: Context, proposal_id: str) -> ReviewPlaces:
    """Return where a person decides on a proposal."""
    places: ReviewPlaces = {"review_command": context.review.command(proposal_id)}
    if url := context.review.url(proposal_id):
        places["review_url"] = url
    return places


def confirmed_answer(submission: Submission) -> WriteResult:
    """Return the answer about a proposal that a person approved, with the path and hash of its only named file."""
    answer = write_result(submission)
    answer["message"] = "the person said yes, and it is applied"
    named = [file for file in submission.files if file.action != "linked"]
    if len(named) == 1:
        answer["path"], answer["hash"] = named[0].place, named[0].after_hash
    return _order_fields(answer)


def write_result(submission: Submission) -> WriteResult:
    """Return the outcome of a batch of requests in the shape that every surface shows; empty parts are left out."""
    answer: WriteResult = {"success": submission.status != "refused", "status": submission.status}
    if len(submission.files) == 1 and submission.status == "applied":
        file = submission.files[0]
        answer["path"], answer["hash"] = file.place, file.after_hash
    rows: list[WrittenFile] = [
        {
            "path": report.path,
            "action": report.action,
            "target": report.target or "",
            "before_hash": report.before_hash or "",
            "hash": report.after_hash or "",
            "diff": report.diff,
        }
        for report in submission.files
    ]
    answer = {
        **answer,
        "reason": submission.reason,
        "change_id": submission.change_id,
        "proposal_id": submission.proposal_id,
        "files": cut_diffs([without_empty_parts(row) for row in rows]),
        "hidden_files": submission.hidden,
        "failures": [
            {"request": one.number, "error": one.error.message, "code": one.error.code, "hint": one.error.hint}
            for one in submission.failures
        ],
        "refusals": [
            {"path": one.path, "error": one.reason, "code": one.code, "hint": one.hint} for one in submission.refusals
        ],
        "links_rewritten": rewritten_links(submission.rewritten),
        "notes": list(submission.notices),
    }
    for name in _LEFT_OUT_IF_EMPTY:
        if not answer.get(name):
            del answer[name]
    return answer


def rewritten_links(rewritten: Iterable[LinkRewrite]) -> list[RewrittenLink]:
    """Return the links that follow a move in the shape that every surface shows."""
    return [{"path": one.path, "line": one.line, "old": one.old, "new": one.new} for one in rewritten]


def without_empty_parts(row: WrittenFile) -> WrittenFile:
    """Return a file of an answer without the parts that are empty."""
    for name in ("target", "before_hash", "hash", "diff"):
        if not row.get(name):
            del row[name]
    return row


def cut_diffs(rows: Sequence[WrittenFile]) -> list[WrittenFile]:
    """Return the files of an answer with as much of their diffs as it shows; what is cut has ``diff_truncated``."""
    from knapper.changes.text import diff  # noqa: PLC0415 - a search needn't pay for what writes

    left, shown_rows = MAX_DIFF_CHARS, [row.copy() for row in rows]
    for row in shown_rows:
        if len(row.get("diff", "")) > left:
            row["diff"], row["diff_truncated"] = diff.cut_unified(row.get("diff", ""), left), True
        left -= len(row.get("diff", ""))
        if not row.get("diff"):
            row.pop("diff", None)
    return shown_rows


def _submission_answer(context: Context, submission: Submission) -> WriteResult:
    answer = write_result(submission)
    if submission.status == "applied" and not submission.change_id:
        answer["message"] = "nothing had to change"
    if submission.status == "proposed":
        return {**answer, **review_fields(context, submission.proposal_id)}
    return answer


def _order_fields(answer: WriteResult) -> WriteResult:
    """Put the most important fields first."""
    leading: WriteResult = {"success": answer["success"], "status": answer["status"]}
    for name in _FIRST_FIELDS:
        value = answer.get(name)
        if value is not None:
            leading[name] = value
    if answer.get("hash") is None:
        _ = answer.pop("hash", None)
    return {**leading, **answer}


def within_session(context: Context, session_id: str) -> Context:
    """Return the vault for a run that goes on in a session, whose turns it is told of and which keeps its own.

    Args:
        context: The vault, as the run sees it.
        session_id: The session's id; empty for none.
    """
    if not session_id:
        return context
    return _with_taints(context, lambda taints, client: taints.within(_reader(client, session_id)))


def within_caller(context: Context, caller: Context) -> Context:
    """Return the vault for a run that an agent or a script begins in a run of its own, and whose answer it hears."""
    client, run = caller.rights.grants.client, _run_of(caller)
    return _with_taints(context, lambda taints, _: taints.shared_with(_reader(client, run)))


def begin_run(context: Context) -> None:
    """Let a run that begins or goes on take over the taint of its session and of the client that it works for.

    Raises:
        StorageError: That can't be stored.
    """
    rights = context.rights
    rights.taints.begin(rights.grants.client, _run_of(context))


def end_run(context: Context) -> None:
    """Let those who hear of a run's answer take over what it has read.

    Raises:
        StorageError: That can't be stored.
    """
    rights = context.rights
    rights.taints.end(rights.grants.client, _run_of(context))


def taint_copier(context: Context, session_id: str) -> Callable[[str], None]:
    """Return a function that gives a copy of a session, by its id, the session's taint.

    Args:
        context: The vault, as the session's agent sees it.
        session_id: The session to copy.
    """
    rights = context.rights
    return lambda copy_id: rights.taints.copy(session_id, _reader(rights.grants.client, copy_id))


def mark_if_derived(context: Context, runs: Iterable[str]) -> None:
    """Taint a client that is shown what came of runs or sessions in which foreign text was read.

    Args:
        context: The vault, as the client sees it.
        runs: The ids of the runs and sessions.
    """
    rights = context.rights
    if rights.grants.is_person:
        return
    for run in runs:
        if rights.taints.keeps(run):
            mark_tainted(context, f"what came of {run}")
            return


def _with_taints(context: Context, link: Callable[[Taints, str], Taints]) -> Context:
    def linked() -> Rights:
        rights = context.rights
        return replace(rights, taints=link(rights.taints, rights.grants.client))

    def open_other(name: str) -> Context:
        return _with_taints(context.scripting.open_vault(name), link)

    scripting = replace(context.scripting, open_vault=open_other)
    return replace(context, open_rights=linked, scripting=scripting)


def _run_of(context: Context) -> str:
    return context.submit_options.run if context.submit_options else ""


def _reader(client: str, run: str) -> Reader:
    from knapper.changes.proposals.taint import Reader  # noqa: PLC0415 - a search needn't pay for what writes

    return Reader(client=client, run=run)
