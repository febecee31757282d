"""Show what waits for a person's word: proposals, their hunks, and blocks in notes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import click

from knapper.cli.output import line
from knapper.cli.render import diffs, listings, outcomes
from knapper.cli.render.amounts import count
from knapper.cli.render.outcomes import Row


def listing(answer: Row) -> str:
    """Give each proposal its id, time and client, what it is about, and why it waits."""
    return listings.more(["\n".join(_summary(row)) for row in outcomes.rows(answer, "results")], answer)


def _summary(row: Row) -> Iterator[str]:
    more = f" and {count(_number(row, 'files') - 1, 'more file')}" if _number(row, "files") > 1 else ""
    head = f"{click.style(str(row['id']), fg='yellow')}  {listings.moment(str(row['created']))}  {row['client']}"
    states = ", ".join(f"{number} {state}" for state, number in cast("Mapping[str, int]", row["items"]).items())
    yield f"{head}  {str(row['status']).replace('_', ' ')} ({states})"
    yield f"    {line(str(row['path']))}{more}"
    yield from _whys(row)


def _whys(row: Row) -> Iterator[str]:
    if row.get("reason"):
        yield f"    {line(str(row['reason']))}"
    if row.get("why"):
        yield f"    it waits because {line(str(row['why']))}"
    if row.get("tainted"):
        yield "    who proposed it had read text that others wrote"
    if row.get("rejection"):
        yield f"    rejected: {line(str(row['rejection']))}"
    if row.get("undone"):
        part = "a part of what was accepted was" if row["undone"] == "part" else "what was accepted was"
        yield f"    {part} undone" + "".join(f" by {one}" for one in cast("Sequence[str]", row.get("undone_by", ())))


def proposal(shown: Row) -> str:
    """Lay out a proposal: who and why, then each file with its hunks."""
    head = f"{click.style(str(shown['id']), fg='yellow')}  {listings.moment(str(shown['created']))}  {shown['client']}"
    lines = [f"{head}  {str(shown['status']).replace('_', ' ')}, until {listings.moment(str(shown['expires']))}"]
    lines += _whys(shown)
    for row in outcomes.rows(shown, "files"):
        lines += ["", file_head(row), *file_body(row)]
    return "\n".join(lines)


def rejection(answer: Row) -> str:
    """Say what became of a proposal that was rejected, or what would be rejected of it."""
    if answer["status"] != "planned":
        return f"proposal {answer['id']}: {str(answer['status']).replace('_', ' ')}"
    files, hunks = (cast("Sequence[str]", answer[name]) for name in ("files", "hunks"))
    lines = [f"would be rejected: {line(', '.join(files))}"] if files else []
    lines += [f"hunks: {', '.join(hunks)}"] if hunks else []
    return "\n".join([*lines, "nothing was changed: this is a dry run"])


def file_head(row: Row) -> str:
    """Name a file of a proposal, and what would happen to it."""
    target = f" -> {row['target']}" if row.get("target") else ""
    what = "links" if row.get("follows") else row["kind"]
    return click.style(f"{row['number']}  {what}  {line(str(row['path']))}{line(target)}", bold=True) + _state(row)


def file_body(row: Row) -> Iterator[str]:
    """Show a file's hunks, each with its id, state and words."""
    for one in outcomes.rows(row, "hunks"):
        yield hunk_head(one)
        yield diffs.words(cast("Sequence[Sequence[str]]", one["words"]))


def hunk_head(one: Row) -> str:
    """Name a hunk and its line."""
    edited = " (edited)" if one.get("edited") else ""
    return click.style(f"{one['id']}  line {one['line']}{edited}", fg="cyan") + _state(one)


def _state(row: Row) -> str:
    stale = row.get("stale")
    if row["state"] != "open":
        why = f": {line(str(row['reason']))}" if row.get("reason") else ""
        return f"  [{row['state']}{why}]"
    if isinstance(stale, Mapping):
        return click.style(f"  [stale: {line(str(cast('Row', stale)['message']))}]", fg="yellow")
    return ""


def blocks(answer: Row) -> str:
    """Show the edits that wait in a note."""
    lines: list[str] = []
    for row in outcomes.rows(answer, "results"):
        problem = f"  [{row['problem']}]" if row.get("problem") else ""
        named = line(str(row["id"])) or "a block without id"
        lines.append(click.style(f"{named}  line {row['line']}", fg="cyan") + click.style(problem, fg="yellow"))
        sides = [("removed", str(row["before"])), ("added", str(row["after"]))]
        if not problem:
            lines.append(diffs.words([mark for mark in sides if mark[1]]))
    return "\n".join(lines)


def _number(row: Row, name: str) -> int:
    value = row[name]
    return value if isinstance(value, int) else 0
