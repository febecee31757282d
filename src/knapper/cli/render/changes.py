"""Render changes, proposals and lists of tags, links and paths."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import click

from knapper.cli import output
from knapper.cli.output import one_line, plain
from knapper.cli.render import formatting
from knapper.cli.render.formatting import pluralize

_MAX_LINKS: Final = 20
"""Rewritten links that are shown one by one."""
_MAX_FILES: Final = 50

AnswerRow = Mapping[str, object]


def render_outcome(answer: AnswerRow, *, takes_yes: bool = False) -> str:
    """Format it for a person.

    Args:
        answer: From a tool that writes.
        takes_yes: What was asked for would be done at once with ``--yes``.
    """
    match answer["status"]:
        case "planned":
            lines = [*_planned_lines(answer)]
        case "proposed":
            lines = [*_proposed_lines(answer, takes_yes=takes_yes)]
        case _:
            lines = [*_applied_lines(answer)]
    return "\n".join(lines)


def render_undo(answer: AnswerRow, *, fails: bool) -> str:
    """Format what an undo restored, or would restore.

    Args:
        answer: From the tool that undoes.
        fails: It was only planned, and can't be done as it is.
    """
    names = ", ".join(map(str, cast("Sequence[str]", answer["undone"])))
    if answer["status"] == "planned":
        lines = [formatting.colour_diff(str(row["diff"])) for row in get_rows(answer, "files") if row.get("diff")]
        lines += [*_file_lines(answer), *_skipped_lines(answer)]
        end = "this would fail as it is" if fails else "nothing was changed: this is a dry run"
        return "\n".join([*lines, f"{end}; it would undo {names}"])
    change = answer["change_id"]
    lines = [*_file_lines(answer), *_skipped_lines(answer), f"undone: {names}"]
    return "\n".join([*lines, f"change {change}; `knap undo {change}` brings it back"])


def _skipped_lines(answer: AnswerRow) -> Iterator[str]:
    """List each skipped file once, however many changes would have touched it."""
    lines = (
        f"left     {one_line(str(row['path']))}: {one_line(str(row['problem']))}" for row in get_rows(answer, "left")
    )
    yield from dict.fromkeys(lines)


def render_failure(row: AnswerRow) -> str:
    """Format a failure for the error stream."""
    where = f"{row['path']}: " if row.get("path") and str(row["path"]) not in str(row["error"]) else ""
    hint = f"\nhint: {output.command_hint(str(row['hint']))}" if row.get("hint") else ""
    return plain(f"error: {where}{row['error']}{hint}")


def render_file(row: AnswerRow) -> str:
    """Format one line per file: ``moved  A.md -> B/A.md``."""
    target = f" -> {row['target']}" if row.get("target") else ""
    return f"{row['action']:<8} {one_line(str(row['path']))}{one_line(target)}"


def _applied_lines(answer: AnswerRow) -> Iterator[str]:
    if not answer.get("change_id"):
        yield "nothing had to change"
        return
    yield from _file_lines(answer)
    yield from _link_lines(answer)
    change = answer["change_id"]
    yield f"change {change}; `knap undo {change}` takes it back"


def _proposed_lines(answer: AnswerRow, *, takes_yes: bool) -> Iterator[str]:
    yield from _file_lines(answer)
    yield from _link_lines(answer)
    name = answer["proposal_id"]
    why = f": {answer['reason']}" if answer.get("reason") else ""
    yield f"nothing is changed yet; proposal {name} waits{one_line(str(why))}"
    command = one_line(str(answer["review_command"]))
    yield f"`{command}` shows it and takes your word{'; so does --yes' if takes_yes else ''}"


def _planned_lines(answer: AnswerRow) -> Iterator[str]:
    yield from (formatting.colour_diff(str(row["diff"])) for row in get_rows(answer, "files") if row.get("diff"))
    yield from _file_lines(answer)
    yield from _link_lines(answer)
    why = f"; it would wait as a proposal: {answer['reason']}" if answer.get("reason") else ""
    yield f"nothing was changed: this is a dry run{one_line(str(why))}"


def _file_lines(answer: AnswerRow) -> Iterator[str]:
    file_rows = get_rows(answer, "files")
    yield from (render_file(row) for row in file_rows[:_MAX_FILES])
    if len(file_rows) > _MAX_FILES:
        yield f"and {pluralize(len(file_rows) - _MAX_FILES, 'more file')}"
    if answer.get("hidden_files"):
        yield f"and {answer['hidden_files']} that aren't shown"


def _link_lines(answer: AnswerRow) -> Iterator[str]:
    link_rows = get_rows(answer, "links_rewritten")
    if link_rows:
        yield f"{pluralize(len(link_rows), 'link')} rewritten:"
    for row in link_rows[:_MAX_LINKS]:
        old, new = (
            click.style(one_line(str(row[side])), fg=colour) for side, colour in (("old", "red"), ("new", "green"))
        )
        yield f"  {one_line(str(row['path']))}:{row['line']}  {old} -> {new}"
    if len(link_rows) > _MAX_LINKS:
        yield f"  and {len(link_rows) - _MAX_LINKS} more: --json lists all"


def get_rows(answer: AnswerRow, name: str) -> Sequence[AnswerRow]:
    """Return a list of rows of an answer; empty if it has none."""
    return cast("Sequence[AnswerRow]", answer.get(name, ()))


def get_names(row: AnswerRow, name: str) -> Sequence[str]:
    """Return a list of texts; empty if there is none."""
    values = row.get(name)
    return [str(one) for one in cast("Sequence[object]", values)] if isinstance(values, list) else []


_MAX_CHANGE_FILES: Final = 5
"""Files of a change that are named."""


def render_tags(answer: AnswerRow) -> str:
    """Format one line per tag: the number of notes, and the name."""
    tag_rows = get_rows(answer, "results")
    width = max((len(str(row["notes"])) for row in tag_rows), default=0)
    return join_with_remainder(
        [f"{row['notes']:>{width}}  {click.style(one_line('#' + str(row['tag'])), fg='green')}" for row in tag_rows],
        answer,
    )


def render_backlinks(answer: AnswerRow) -> str:
    """Format one line per link to a note: ``Plan.md:7  [[Garden]]``; the note's own links are marked."""
    lines = [
        f"{_link_location(row)}  {_link_text(row)}{' (its own)' if row.get('self_link') else ''}"
        for row in get_rows(answer, "links")
    ]
    return join_with_remainder(lines, answer)


def render_outlinks(answer: AnswerRow) -> str:
    """Format one line per link of a note: its place, text and target."""
    lines = [f"{row['line']}  {_link_text(row)} -> {_link_target(row)}" for row in get_rows(answer, "links")]
    return join_with_remainder(lines, answer)


def render_broken_links(answer: AnswerRow) -> str:
    """Format one line per broken link."""
    return join_with_remainder(
        [f"{_link_location(row)}  {_link_text(row)}" for row in get_rows(answer, "results")], answer
    )


def render_paths(answer: AnswerRow) -> str:
    """Format one line per path."""
    return join_with_remainder([one_line(path) for path in get_names(answer, "results")], answer)


def render_changes(answer: AnswerRow) -> str:
    """Format changes: id, time, client and reason, with the files below."""
    return join_with_remainder([_render_change(row) for row in get_rows(answer, "results")], answer)


def format_time(text: str) -> str:
    """Format a time in the local zone."""
    return f"{dt.datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def join_with_remainder(lines: Sequence[str], answer: AnswerRow) -> str:
    """Join the lines of a list, and add how many more there are."""
    remaining = _number_field(answer, "total") - _number_field(answer, "offset") - len(get_rows(answer, "results"))
    return "\n".join([*lines, *([f"and {remaining} more: -n shows them"] if remaining > 0 else [])])


def _number_field(answer: AnswerRow, name: str) -> int:
    value = answer[name]
    return value if isinstance(value, int) else 0


def _link_location(row: AnswerRow) -> str:
    return f"{click.style(one_line(str(row['path'])), fg='green')}:{row['line']}"


def _link_text(row: AnswerRow) -> str:
    """Write a link short: target, heading or block."""
    fragment = "".join(f"#{heading}" for heading in get_names(row, "headings"))
    fragment += f"#^{row['block']}" if row.get("block") else ""
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


def _link_target(row: AnswerRow) -> str:
    if row.get("leads_to") is None:
        return click.style("nothing", fg="red")
    candidates = get_names(row, "also_fits")
    also = f" (also fits {pluralize(len(candidates), 'other file')})" if candidates else ""
    return one_line(str(row["leads_to"])) + also


def _render_change(row: Mapping[str, object]) -> str:
    marks = [" (undone)"] if row.get("undone") else []
    undoes = get_names(row, "undoes")
    if undoes:
        marks.append(f" (undo of {', '.join(undoes)})")
    files = get_rows(row, "files")
    head = f"{click.style(str(row['id']), fg='yellow')}  {format_time(str(row['at']))}  {row['client']}{''.join(marks)}"
    lines = [f"    {render_file(file)}" for file in files[:_MAX_CHANGE_FILES]]
    if len(files) > _MAX_CHANGE_FILES:
        lines.append(f"    and {pluralize(len(files) - _MAX_CHANGE_FILES, 'more file')}")
    if row.get("hidden_files"):
        lines.append(f"    and {row['hidden_files']} that aren't shown")
    why = [f"    {one_line(str(row['reason']))}"] if row.get("reason") and not undoes else []
    return "\n".join([head, *why, *lines])


def render_proposals(answer: AnswerRow) -> str:
    """Format proposals: id, time, client, subject, and why each is pending."""
    return join_with_remainder(["\n".join(_proposal_lines(row)) for row in get_rows(answer, "results")], answer)


def _proposal_lines(row: AnswerRow) -> Iterator[str]:
    more = (
        f" and {pluralize(_proposal_number(row, 'files') - 1, 'more file')}"
        if _proposal_number(row, "files") > 1
        else ""
    )
    head = f"{click.style(str(row['id']), fg='yellow')}  {format_time(str(row['created']))}  {row['client']}"
    states = ", ".join(f"{number} {state}" for state, number in cast("Mapping[str, int]", row["items"]).items())
    yield f"{head}  {str(row['status']).replace('_', ' ')} ({states})"
    yield f"    {one_line(str(row['path']))}{more}"
    yield from _reason_lines(row)


def _reason_lines(row: AnswerRow) -> Iterator[str]:
    if row.get("reason"):
        yield f"    {one_line(str(row['reason']))}"
    if row.get("why"):
        yield f"    it waits because {one_line(str(row['why']))}"
    if row.get("tainted"):
        yield "    who proposed it had read untrusted content"
    if row.get("rejection"):
        yield f"    rejected: {one_line(str(row['rejection']))}"
    if row.get("undone"):
        part = "a part of what was accepted was" if row["undone"] == "part" else "what was accepted was"
        yield f"    {part} undone" + "".join(f" by {one}" for one in cast("Sequence[str]", row.get("undone_by", ())))


def render_proposal(details: AnswerRow) -> str:
    """Format a proposal: client and reason, then each file with its hunks."""
    head = (
        f"{click.style(str(details['id']), fg='yellow')}  {format_time(str(details['created']))}  {details['client']}"
    )
    lines = [f"{head}  {str(details['status']).replace('_', ' ')}, until {format_time(str(details['expires']))}"]
    lines += _reason_lines(details)
    for row in get_rows(details, "files"):
        lines += ["", render_file_head(row), *render_file_body(row)]
    return "\n".join(lines)


def render_rejection(answer: AnswerRow) -> str:
    """Format the outcome of a rejection, or of its dry run."""
    if answer["status"] != "planned":
        return f"proposal {answer['id']}: {str(answer['status']).replace('_', ' ')}"
    files, hunks = (cast("Sequence[str]", answer[name]) for name in ("files", "hunks"))
    lines = [f"would be rejected: {one_line(', '.join(files))}"] if files else []
    lines += [f"hunks: {', '.join(hunks)}"] if hunks else []
    return "\n".join([*lines, "nothing was changed: this is a dry run"])


def render_file_head(row: AnswerRow) -> str:
    """Format a file of a proposal, and what would happen to it."""
    target = f" -> {row['target']}" if row.get("target") else ""
    what = "links" if row.get("follows") else row["kind"]
    return click.style(
        f"{row['number']}  {what}  {one_line(str(row['path']))}{one_line(target)}", bold=True
    ) + _state_suffix(row)


def render_file_body(row: AnswerRow) -> Iterator[str]:
    """Show a file's hunks, each with its id, state and words."""
    for one in get_rows(row, "hunks"):
        yield render_hunk_head(one)
        yield formatting.render_word_diff(cast("Sequence[Sequence[str]]", one["words"]))


def render_hunk_head(one: AnswerRow) -> str:
    """Format a hunk's id and line."""
    edited = " (edited)" if one.get("edited") else ""
    return click.style(f"{one['id']}  line {one['line']}{edited}", fg="cyan") + _state_suffix(one)


def _state_suffix(row: AnswerRow) -> str:
    stale = row.get("stale")
    if row["state"] != "open":
        why = f": {one_line(str(row['reason']))}" if row.get("reason") else ""
        return f"  [{row['state']}{why}]"
    if isinstance(stale, Mapping):
        return click.style(f"  [stale: {one_line(str(cast('AnswerRow', stale)['message']))}]", fg="yellow")
    return ""


def render_blocks(answer: AnswerRow) -> str:
    """Format the pending edit blocks of a note."""
    lines: list[str] = []
    for row in get_rows(answer, "results"):
        problem = f"  [{row['problem']}]" if row.get("problem") else ""
        named = one_line(str(row["id"])) or "a block without id"
        lines.append(click.style(f"{named}  line {row['line']}", fg="cyan") + click.style(problem, fg="yellow"))
        sides = [("removed", str(row["before"])), ("added", str(row["after"]))]
        if not problem:
            lines.append(formatting.render_word_diff([mark for mark in sides if mark[1]]))
    return "\n".join(lines)


def _proposal_number(row: AnswerRow, name: str) -> int:
    value = row[name]
    return value if isinstance(value, int) else 0
