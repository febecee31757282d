"""Show lists: tags, links, changes."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

import click

from knapper.cli.output import line
from knapper.cli.render import outcomes
from knapper.cli.render.amounts import count
from knapper.cli.render.outcomes import Row

_FILES: Final = 5
"""Files of a change that are named."""


def tags(answer: Row) -> str:
    """Give each tag a line: how many notes have it, and its name."""
    found = outcomes.rows(answer, "results")
    width = max((len(str(row["notes"])) for row in found), default=0)
    return more(
        [f"{row['notes']:>{width}}  {click.style(line('#' + str(row['tag'])), fg='green')}" for row in found], answer
    )


def links_in(answer: Row) -> str:
    """Give each link that leads to a note a line: ``Plan.md:7  [[Garden]]``."""
    return more([f"{_place(row)}  {_written(row)}" for row in outcomes.rows(answer, "links")], answer)


def links_out(answer: Row) -> str:
    """Give each link of a note a line: where it stands, what it says, where it leads."""
    lines = [f"{row['line']}  {_written(row)} -> {_end(row)}" for row in outcomes.rows(answer, "links")]
    return more(lines, answer)


def broken(answer: Row) -> str:
    """Give each broken link a line."""
    return more([f"{_place(row)}  {_written(row)}" for row in outcomes.rows(answer, "results")], answer)


def paths(answer: Row) -> str:
    """Give each path a line."""
    return more([line(path) for path in outcomes.names(answer, "results")], answer)


def changes(answer: Row) -> str:
    """Give each change its id, time and client, its files below, and why."""
    return more([_change(row) for row in outcomes.rows(answer, "results")], answer)


def moment(text: str) -> str:
    """Write a time as the clock on the wall shows it."""
    return f"{dt.datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def more(lines: Sequence[str], answer: Row) -> str:
    """Join the lines of a list, and say how many more there are."""
    left = _number(answer, "total") - _number(answer, "offset") - len(outcomes.rows(answer, "results"))
    return "\n".join([*lines, *([f"and {left} more: -n shows them"] if left > 0 else [])])


def _number(answer: Row, name: str) -> int:
    value = answer[name]
    return value if isinstance(value, int) else 0


def _place(row: Row) -> str:
    return f"{click.style(line(str(row['path'])), fg='green')}:{row['line']}"


def _written(row: Row) -> str:
    """Write a link short: target, heading or block."""
    fragment = "".join(f"#{heading}" for heading in outcomes.names(row, "headings"))
    fragment += f"#^{row['block']}" if row.get("block") else ""
    target = line(f"{row['target']}{fragment}")
    match row["kind"]:
        case "embed":
            return f"![[{target}]]"
        case "markdown":
            return f"[]({target})"
        case "image":
            return f"![]({target})"
        case _:
            return f"[[{target}]]"


def _end(row: Row) -> str:
    if row.get("leads_to") is None:
        return click.style("nothing", fg="red")
    fits = outcomes.names(row, "also_fits")
    also = f" (also fits {count(len(fits), 'other file')})" if fits else ""
    return line(str(row["leads_to"])) + also


def _change(row: Mapping[str, object]) -> str:
    marks = [" (undone)"] if row.get("undone") else []
    undoes = outcomes.names(row, "undoes")
    if undoes:
        marks.append(f" (undo of {', '.join(undoes)})")
    files = outcomes.rows(row, "files")
    head = f"{click.style(str(row['id']), fg='yellow')}  {moment(str(row['at']))}  {row['client']}{''.join(marks)}"
    lines = [f"    {outcomes.file(file)}" for file in files[:_FILES]]
    if len(files) > _FILES:
        lines.append(f"    and {count(len(files) - _FILES, 'more file')}")
    if row.get("hidden_files"):
        lines.append(f"    and {row['hidden_files']} that aren't shown")
    why = [f"    {line(str(row['reason']))}"] if row.get("reason") and not undoes else []
    return "\n".join([head, *why, *lines])
