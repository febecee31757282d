"""Show notes that were found, and what is known of one."""

import json
from collections.abc import Iterator, Mapping
from typing import Final, cast

import click

from knapper.cli.output import plain
from knapper.cli.render import listings, outcomes
from knapper.cli.render.amounts import count
from knapper.cli.render.outcomes import Row

_WIDTH: Final = 10
_LINKS: Final = 10
"""Links either way that are named."""


def notes(answer: Row) -> str:
    """Give each note a line: its path, and the fields that were asked for."""
    rows = outcomes.rows(answer, "results")
    return listings.more([_note(row) for row in rows], answer) if rows else ""


def about(answer: Row) -> str:
    """Lay out what is known of a note."""
    return "\n".join([click.style(_line(answer["path"]), fg="green", bold=True), *_facts(answer), *_outline(answer)])


def _note(row: Row) -> str:
    fields = [f"{plain(name)}: {_value(value)}" for name, value in row.items() if name not in {"path", "foreign"}]
    return "  ".join([click.style(_line(row["path"]), fg="green"), *fields])


def _facts(answer: Row) -> Iterator[str]:
    tasks = cast("Mapping[str, int]", answer["tasks"])
    yield _fact("size", f"{answer['size']:,} bytes, {count(cast('int', answer['lines']), 'line')}")
    for name in ("created", "modified"):
        if answer.get(name):
            yield _fact(name, _line(answer[name]))
    for name in ("aliases", "tags"):
        if answer[name]:
            yield _fact(name, ", ".join(map(_line, cast("list[object]", answer[name]))))
    for name, value in cast("Mapping[str, object]", answer["properties"]).items():
        if name.casefold() not in {"aliases", "tags"}:
            yield _fact(f"{plain(name)}", _value(value))
    if tasks["total"]:
        yield _fact("tasks", f"{tasks['open']} open of {tasks['total']}")
    yield from _links("links in", answer["links_in"])
    yield from _links("links out", answer["links_out"])
    for problem in outcomes.rows(answer, "problems") if answer.get("problems") else ():
        yield _fact("problem", f"{_line(problem['message'])} (line {problem['line']})")


def _links(name: str, told: object) -> Iterator[str]:
    links = cast("Mapping[str, object]", told)
    if not links["total"]:
        return
    ends = [_end(each) for each in cast("list[object]", links["results"])]
    named = list(dict.fromkeys(ends))[:_LINKS]
    left = cast("int", links["total"]) - len(ends) + len(set(ends)) - len(named)
    yield _fact(name, ", ".join(named) + (f" and {left} more" if left > 0 else ""))


def _end(link: object) -> str:
    if not isinstance(link, Mapping):
        return _line(link)
    row = cast("Row", link)
    return _line(row["leads_to"]) if row["leads_to"] else f"{_line(row['target'])} (nothing there)"


def _outline(answer: Row) -> Iterator[str]:
    rows = outcomes.rows(answer, "outline")
    if rows:
        width = len(str(rows[-1]["line"]))
        yield ""
        yield from (f"{row['line']:>{width}}  {_line(row['heading'])}" for row in rows)
    left = cast("int", answer["headings"]) - len(rows)
    if left:
        yield f"and {left} more headings"


def _fact(name: str, value: str) -> str:
    return f"{name:<{_WIDTH}}{'' if len(name) < _WIDTH else ' '}{value}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, cast("list[object]", value)))
    return "-" if value is None else _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _line(text: object) -> str:
    return plain(str(text)).replace("\n", " ").replace("\t", " ")
