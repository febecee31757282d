"""Render changes, proposals and lists of tags, links and paths."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import click

from knapper.cli import output
from knapper.cli.output import one_line, plain, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from knapper.app.history import Entry, EntryKind, HistoryPage
    from knapper.tools.shapes.read import (
        BacklinkPage,
        BrokenLinkPage,
        LinkRow,
        OutlinkPage,
        PagePosition,
        PathPage,
        TagPage,
    )
    from knapper.tools.shapes.write import (
        ChangeList,
        PendingBlockList,
        ProposalAnswer,
        ProposalFile,
        ProposalHunk,
        ProposalList,
        ProposalRow,
        RejectionResult,
        RequestFailure,
        RuleRefusal,
        UndoConflict,
        UndoResult,
        WriteResult,
        WrittenFile,
    )

_MAX_LINKS: Final = 20
"""Rewritten links that are shown one by one."""
_MAX_FILES: Final = 50
_MAX_STEP_NOTES: Final = 3
"""Notes of a step of the history, and changes that it took back, that are named."""
_KIND_COLOURS: Final[dict[EntryKind, str]] = {
    "asked": "cyan",
    "proposed": "yellow",
    "accepted": "green",
    "changed": "green",
    "rejected": "red",
    "undone": "red",
}


def render_outcome(answer: WriteResult, *, takes_yes: bool = False) -> str:
    """Format it for a person.

    Args:
        answer: From a tool that writes.
        takes_yes: What was asked for would be done at once with ``--yes``.
    """
    match answer["status"]:
        case "planned":
            why = f"; it would wait as a proposal: {one_line(answer['reason'])}" if "reason" in answer else ""
            end = [f"nothing was changed: this is a dry run{why}"]
            lines = [*_diffs(answer.get("files", ())), *_touched_lines(answer), *end]
        case "proposed":
            why = f": {one_line(answer['reason'])}" if "reason" in answer else ""
            command = one_line(answer.get("review_command", ""))
            lines = [
                *_touched_lines(answer),
                f"nothing is changed yet; proposal {answer.get('proposal_id')} waits{why}",
                f"`{command}` shows it and takes your word{'; so does --yes' if takes_yes else ''}",
            ]
        case _:
            change = answer.get("change_id")
            end = [f"change {change}; `knap undo {change}` takes it back"]
            lines = [*_touched_lines(answer), *end] if change else ["nothing had to change"]
    return "\n".join(lines)


def render_undo(answer: UndoResult, *, fails: bool) -> str:
    """Format what an undo restored, or would restore.

    Args:
        answer: From the tool that undoes.
        fails: It was only planned, and can't be done as it is.
    """
    names = ", ".join(answer["undone"])
    left = (f"left     {one_line(row['path'])}: {_describe_problem(row)}" for row in answer.get("left", ()))
    # A skipped file once, however many changes would have touched it.
    lines = [*_file_lines(answer["files"]), *dict.fromkeys(left)]
    if answer["status"] == "planned":
        end = "this would fail as it is" if fails else "nothing was changed: this is a dry run"
        return "\n".join([*_diffs(answer["files"]), *lines, f"{end}; it would undo {names}"])
    change = answer.get("change_id")
    return "\n".join([*lines, f"undone: {names}", f"change {change}; `knap undo {change}` brings it back"])


def _describe_problem(row: UndoConflict) -> str:
    problem, later = one_line(row["problem"]), row.get("later", ())
    return f"{problem} (undo first: {', '.join(later)})" if later else problem


def render_failure(row: RequestFailure | RuleRefusal) -> str:
    """Format a failure for the error stream."""
    path, advice = row.get("path"), row.get("hint")
    where = f"{path}: " if path and path not in row["error"] else ""
    hint = f"\nhint: {output.command_hint(advice)}" if advice else ""
    return plain(f"error: {where}{row['error']}{hint}")


def render_file(row: WrittenFile) -> str:
    """Format one line per file: ``moved  A.md -> B/A.md``."""
    target = f" -> {one_line(row['target'])}" if "target" in row else ""
    return f"{row['action']:<8} {one_line(row['path'])}{target}"


def _diffs(rows: Sequence[WrittenFile]) -> Iterator[str]:
    for row in rows:
        if "diff" in row:
            yield output.colour_diff(row["diff"])
        if row.get("diff_truncated"):
            yield f"{one_line(row['path'])}: the rest of the difference is too long to be shown"


def _file_lines(rows: Sequence[WrittenFile]) -> Iterator[str]:
    yield from (render_file(row) for row in rows[:_MAX_FILES])
    if len(rows) > _MAX_FILES:
        yield f"and {pluralize(len(rows) - _MAX_FILES, 'more file')}"


def _touched_lines(answer: WriteResult) -> Iterator[str]:
    """List the files of a change, and the links that follow it."""
    yield from _file_lines(answer.get("files", ()))
    if "hidden_files" in answer:
        yield f"and {answer['hidden_files']} that aren't shown"
    link_rows = answer.get("links_rewritten", ())
    if link_rows:
        yield f"{pluralize(len(link_rows), 'link')} rewritten:"
    for row in link_rows[:_MAX_LINKS]:
        old, new = click.style(one_line(row["old"]), fg="red"), click.style(one_line(row["new"]), fg="green")
        yield f"  {one_line(row['path'])}:{row['line']}  {old} -> {new}"
    if len(link_rows) > _MAX_LINKS:
        yield f"  and {len(link_rows) - _MAX_LINKS} more: --json lists all"


_MAX_CHANGE_FILES: Final = 5
"""Files of a change that are named."""


def render_tags(answer: TagPage) -> str:
    """Format one line per tag: the number of notes, and the name."""
    tag_rows = answer["results"]
    width = max((len(str(row["notes"])) for row in tag_rows), default=0)
    lines = [f"{row['notes']:>{width}}  {click.style(one_line('#' + row['tag']), fg='green')}" for row in tag_rows]
    return join_with_remainder(lines, answer, len(tag_rows))


def render_backlinks(answer: BacklinkPage) -> str:
    """Format one line per link to a note: ``Plan.md:7  [[Garden]]``; the note's own links are marked."""
    lines = [
        f"{_link_location(row)}  {_link_text(row)}{' (its own)' if row.get('self_link') else ''}"
        for row in answer["links"]
    ]
    return join_with_remainder(lines, answer, len(answer["results"]))


def render_outlinks(answer: OutlinkPage) -> str:
    """Format one line per link of a note: its place, text and target."""
    lines: list[str] = []
    for row in answer["links"]:
        if row["leads_to"] is None:
            target = click.style("nothing", fg="red")
        else:
            candidates = row.get("also_fits")
            also = f" (also fits {pluralize(len(candidates), 'other file')})" if candidates else ""
            target = one_line(row["leads_to"]) + also
        lines.append(f"{row['line']}  {_link_text(row)} -> {target}")
    return join_with_remainder(lines, answer, len(answer["results"]))


def render_broken_links(answer: BrokenLinkPage) -> str:
    """Format one line per broken link."""
    lines = [f"{_link_location(row)}  {_link_text(row)}" for row in answer["results"]]
    return join_with_remainder(lines, answer, len(lines))


def render_paths(answer: PathPage) -> str:
    """Format one line per path."""
    return join_with_remainder(list(map(one_line, answer["results"])), answer, len(answer["results"]))


def render_changes(answer: ChangeList) -> str:
    """Format changes: id, time, client and reason, with the files below."""
    blocks: list[str] = []
    for row in answer["results"]:
        marks = " (undone)" if row.get("undone") else ""
        undoes = row.get("undoes")
        if undoes:
            more = len(undoes) - _MAX_STEP_NOTES
            rest = f" and {pluralize(more, 'more change')}" if more > 0 else ""
            marks += f" (undo of {', '.join(undoes[:_MAX_STEP_NOTES])}{rest})"
        lines = [f"{click.style(row['id'], fg='yellow')}  {format_time(row['at'])}  {row['client']}{marks}"]
        if "reason" in row and not undoes:
            lines.append(f"    {one_line(row['reason'])}")
        files = row["files"]
        lines += [f"    {render_file(file)}" for file in files[:_MAX_CHANGE_FILES]]
        if len(files) > _MAX_CHANGE_FILES:
            lines.append(f"    and {pluralize(len(files) - _MAX_CHANGE_FILES, 'more file')}")
        if "hidden_files" in row:
            lines.append(f"    and {row['hidden_files']} that aren't shown")
        blocks.append("\n".join(lines))
    return join_with_remainder(blocks, answer, len(blocks))


def format_time(text: str) -> str:
    """Format a time in the local zone."""
    return f"{dt.datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def join_with_remainder(lines: Sequence[str], page: PagePosition, results: int) -> str:
    """Join the lines of a page with some results, and add how many more there are."""
    remaining = page["total"] - page["offset"] - results
    return "\n".join([*lines, *([f"and {remaining} more: -n shows them"] if remaining > 0 else [])])


def _link_location(row: LinkRow) -> str:
    return f"{click.style(one_line(row['path']), fg='green')}:{row['line']}"


def _link_text(row: LinkRow) -> str:
    """Write a link short: target, heading or block."""
    fragment = "".join(f"#{heading}" for heading in row.get("headings", ()))
    fragment += f"#^{row['block']}" if "block" in row else ""
    target = one_line(f"{row['target']}{fragment}")
    match row["kind"]:
        case "embed":
            return f"![[{target}]]"
        case "markdown":
            return f"[]({target})"
        case "image":
            return f"![]({target})"
        case _:
            return f"[[{target}]]"


def render_proposals(answer: ProposalList) -> str:
    """Format proposals: id, time, client, subject, and why each is pending."""
    blocks: list[str] = []
    for row in answer["results"]:
        more = f" and {pluralize(row['files'] - 1, 'more file')}" if row["files"] > 1 else ""
        states = ", ".join(f"{number} {state}" for state, number in row["items"].items())
        lines = [f"{_proposal_head(row)} ({states})", f"    {one_line(row['path'])}{more}", *_reason_lines(row)]
        blocks.append("\n".join(lines))
    return join_with_remainder(blocks, answer, len(blocks))


def _proposal_head(row: ProposalRow | ProposalAnswer) -> str:
    head = f"{click.style(row['id'], fg='yellow')}  {format_time(row['created'])}  {row['client']}"
    return f"{head}  {row['status'].replace('_', ' ')}"


def _reason_lines(row: ProposalRow | ProposalAnswer, rejection: str = "") -> Iterator[str]:
    if "reason" in row:
        yield f"    {one_line(row['reason'])}"
    if "why" in row:
        yield f"    it waits because {one_line(row['why'])}"
    if row.get("tainted"):
        yield "    who proposed it had read untrusted content"
    if rejection:
        yield f"    rejected: {one_line(rejection)}"
    if "undone" in row:
        part = "a part of what was accepted was" if row["undone"] == "part" else "what was accepted was"
        yield f"    {part} undone" + "".join(f" by {one}" for one in row.get("undone_by", ()))


def render_proposal(details: ProposalAnswer) -> str:
    """Format a proposal: client and reason, then each file with its hunks."""
    status = details["status"].replace("_", " ")
    until = f", until {format_time(details['expires'])}" if status in {"open", "stale"} else ""
    lines = [f"{_proposal_head(details)}{until}"]
    if "decided_at" in details:
        by = f" by {one_line(details['decided_by'])}" if "decided_by" in details else ""
        lines.append(f"    {status} on {format_time(details['decided_at'])}{by}")
    lines += _reason_lines(details, details.get("rejection", ""))
    for row in details["files"]:
        lines += ["", render_file_head(row), *render_file_body(row)]
    return "\n".join(lines)


def render_rejection(answer: RejectionResult) -> str:
    """Format the outcome of a rejection, or of its dry run."""
    if answer["status"] != "planned":
        return f"proposal {answer['id']}: {answer['status'].replace('_', ' ')}"
    files, hunks = answer.get("files", ()), answer.get("hunks", ())
    lines = [f"would be rejected: {one_line(', '.join(files))}"] if files else []
    lines += [f"hunks: {', '.join(hunks)}"] if hunks else []
    return "\n".join([*lines, "nothing was changed: this is a dry run"])


def render_file_head(row: ProposalFile) -> str:
    """Format a file of a proposal, and what would happen to it."""
    target = f" -> {one_line(row['target'])}" if "target" in row else ""
    what = "links" if row["follows"] else row["kind"]
    return click.style(f"{row['number']}  {what}  {one_line(row['path'])}{target}", bold=True) + _state_suffix(row)


def render_file_body(row: ProposalFile) -> Iterator[str]:
    """Show a file's hunks, each with its id, state and words."""
    for one in row["hunks"]:
        yield render_hunk_head(one)
        yield output.render_word_diff(one["words"])


def render_hunk_head(one: ProposalHunk) -> str:
    """Format a hunk's id and line."""
    edited = " (edited)" if one.get("edited") else ""
    return click.style(f"{one['id']}  line {one['line']}{edited}", fg="cyan") + _state_suffix(one)


def _state_suffix(row: ProposalFile | ProposalHunk) -> str:
    if row["state"] != "open":
        why = f": {one_line(row['reason'])}" if "reason" in row else ""
        return f"  [{row['state']}{why}]"
    return click.style(f"  [stale: {one_line(row['stale']['message'])}]", fg="yellow") if "stale" in row else ""


def render_blocks(answer: PendingBlockList) -> str:
    """Format the pending edit blocks of a note."""
    lines: list[str] = []
    for row in answer["results"]:
        problem = f"  [{row['problem']}]" if "problem" in row else ""
        named = one_line(row["id"]) or "a block without id"
        lines.append(click.style(f"{named}  line {row['line']}", fg="cyan") + click.style(problem, fg="yellow"))
        sides = [("removed", row["before"]), ("added", row["after"])]
        if not problem:
            lines.append(output.render_word_diff([mark for mark in sides if mark[1]]))
    return "\n".join(lines)


def render_history(page: HistoryPage) -> str:
    """Format a page of the history by pieces of work, each told from its beginning."""
    from knapper.app import history  # noqa: PLC0415 - commands that only list changes needn't wait for it

    lines: list[str] = []
    for work, steps in history.group_by_work(page.entries):
        ids = {
            "session": {step.session_id for step in steps},
            "run": {step.run_id for step in steps if not step.session_id},
            "task": {step.run_id for step in steps},
            "schedule": {step.schedule for step in steps},
            "proposal": {step.proposal_id for step in steps},
            "change": {made for step in steps for made in (step.change_id, *step.changes)},
        }
        noun = next((noun for noun, named in ids.items() if work in named), "work")
        session = next((step.session_id for step in steps if step.session_id), "")
        in_session = f" in the session {session}" if noun == "task" and session else ""
        lines += [
            "",
            f"{noun} {click.style(one_line(work), fg='yellow')}{in_session}",
            *(line for step in steps for line in _step_lines(step)),
        ]
    if page.next:
        lines += ["", f"and more: `--before {page.next}` shows them"]
    return "\n".join(lines[1:])


def _step_lines(step: Entry) -> Iterator[str]:
    """Format a step: when, what and by whom; then its text; then the notes that it is about."""
    kind = click.style(f"{step.kind:<9}", fg=_KIND_COLOURS.get(step.kind))
    when = "later           " if step.undated else format_time(step.at.isoformat())
    facts = [one_line(step.client), step.schedule, step.proposal_id, step.change_id]
    if step.kind in {"changed", "accepted"}:
        facts = [one_line(step.client), step.change_id]
    outcome = [step.state, f"{step.tokens:,} tokens" if step.tokens else "", one_line(step.model)]
    outcome += [f"${step.cost_usd:.4f}"] if step.cost_usd else []
    outcome += [f"{step.times:,} times"] if step.times else []
    suffix = f"  ({', '.join(filter(None, outcome))})" if any(outcome) else ""
    yield f"  {when}  {kind}  {'  '.join(filter(None, facts))}{suffix}"
    if step.kind == "undone" and step.changes:
        more = len(step.changes) - _MAX_STEP_NOTES
        rest = f" and {pluralize(more, 'more change')}" if more > 0 else ""
        yield f"      takes back {', '.join(step.changes[:_MAX_STEP_NOTES])}{rest}"
    if step.text:
        yield f"      {one_line(step.text)}"
    if step.notes:
        names = [*map(one_line, step.notes[:_MAX_STEP_NOTES])]
        more = step.note_count - len(names)
        rest = f" and {pluralize(more, 'more note')}" if more > 0 else ""
        yield click.style(f"      {', '.join(names)}{rest}", dim=True)
