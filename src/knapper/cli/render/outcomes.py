"""Tell what became of what was asked for: a line a file, and the next step."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import click

from knapper.cli import next_steps
from knapper.cli.output import line, plain
from knapper.cli.render import diffs
from knapper.cli.render.amounts import count

_LINKS: Final = 20
"""Rewritten links that are shown one by one."""
_FILES: Final = 50

Row = Mapping[str, object]


def text(answer: Row, *, takes_yes: bool = False) -> str:
    """Say it to a person.

    Args:
        answer: From a tool that writes.
        takes_yes: What was asked for would be done at once with ``--yes``.
    """
    match answer["status"]:
        case "planned":
            lines = [*_planned(answer)]
        case "proposed":
            lines = [*_proposed(answer, takes_yes=takes_yes)]
        case _:
            lines = [*_applied(answer)]
    return "\n".join(lines)


def undone(answer: Row, *, fails: bool) -> str:
    """Say what an undo took back, or would.

    Args:
        answer: From the tool that undoes.
        fails: It was only planned, and can't be done as it is.
    """
    names = ", ".join(map(str, cast("Sequence[str]", answer["undone"])))
    if answer["status"] == "planned":
        lines = [diffs.unified(str(row["diff"])) for row in rows(answer, "files") if row.get("diff")]
        lines += [*_files(answer), *_left(answer)]
        end = "this would fail as it is" if fails else "nothing was changed: this is a dry run"
        return "\n".join([*lines, f"{end}; it would undo {names}"])
    change = answer["change_id"]
    lines = [*_files(answer), *_left(answer), f"undone: {names}"]
    return "\n".join([*lines, f"change {change}; `knap undo {change}` brings it back"])


def _left(answer: Row) -> Iterator[str]:
    """Tell each file that stays, once, however many changes would have touched it."""
    left = (f"left     {line(str(row['path']))}: {line(str(row['problem']))}" for row in rows(answer, "left"))
    yield from dict.fromkeys(left)


def failure(row: Row) -> str:
    """Say what couldn't be done, for the error stream."""
    where = f"{row['path']}: " if row.get("path") and str(row["path"]) not in str(row["error"]) else ""
    hint = f"\nhint: {next_steps.of(str(row['hint']))}" if row.get("hint") else ""
    return plain(f"error: {where}{row['error']}{hint}")


def file(row: Row) -> str:
    """Give a file a line: ``moved  A.md -> B/A.md``."""
    target = f" -> {row['target']}" if row.get("target") else ""
    return f"{row['action']:<8} {line(str(row['path']))}{line(target)}"


def _applied(answer: Row) -> Iterator[str]:
    if not answer.get("change_id"):
        yield "nothing had to change"
        return
    yield from _files(answer)
    yield from _links(answer)
    change = answer["change_id"]
    yield f"change {change}; `knap undo {change}` takes it back"


def _proposed(answer: Row, *, takes_yes: bool) -> Iterator[str]:
    yield from _files(answer)
    yield from _links(answer)
    name = answer["proposal_id"]
    why = f": {answer['reason']}" if answer.get("reason") else ""
    yield f"nothing is changed yet; proposal {name} waits{line(str(why))}"
    yield f"`knap edits review {name}` shows it and takes your word{'; so does --yes' if takes_yes else ''}"


def _planned(answer: Row) -> Iterator[str]:
    yield from (diffs.unified(str(row["diff"])) for row in rows(answer, "files") if row.get("diff"))
    yield from _files(answer)
    yield from _links(answer)
    why = f"; it would wait as a proposal: {answer['reason']}" if answer.get("reason") else ""
    yield f"nothing was changed: this is a dry run{line(str(why))}"


def _files(answer: Row) -> Iterator[str]:
    found = rows(answer, "files")
    yield from (file(row) for row in found[:_FILES])
    if len(found) > _FILES:
        yield f"and {count(len(found) - _FILES, 'more file')}"
    if answer.get("hidden_files"):
        yield f"and {answer['hidden_files']} that aren't shown"


def _links(answer: Row) -> Iterator[str]:
    found = rows(answer, "links_rewritten")
    if found:
        yield f"{count(len(found), 'link')} rewritten:"
    for row in found[:_LINKS]:
        old, new = (click.style(line(str(row[side])), fg=colour) for side, colour in (("old", "red"), ("new", "green")))
        yield f"  {line(str(row['path']))}:{row['line']}  {old} -> {new}"
    if len(found) > _LINKS:
        yield f"  and {len(found) - _LINKS} more: --json lists all"


def rows(answer: Row, name: str) -> Sequence[Row]:
    """Give a list of an answer; empty where it has none."""
    return cast("Sequence[Row]", answer.get(name, ()))


def names(row: Row, name: str) -> Sequence[str]:
    """Give a list of texts; empty where there is none."""
    found = row.get(name)
    return [str(one) for one in cast("Sequence[object]", found)] if isinstance(found, list) else []
