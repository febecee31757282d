"""Show differences: added lines green, removed lines red, and the words that differ stronger."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

from knapper.cli.output import plain

_COLOURS: Final = {"removed": "red", "added": "green"}
_SIGNS: Final = {"removed": "-", "added": "+"}
_UNENDED: Final = "\\ No newline at end of file"


def unified(text: str) -> str:
    """Colour what ``diff -u`` writes."""
    return "\n".join(_line(row) for row in plain(text.replace("\r", "")).removesuffix("\n").split("\n"))


def _line(row: str) -> str:
    if row.startswith(("--- ", "+++ ")):
        return click.style(row, bold=True)
    match row[:1]:
        case "-":
            return click.style(row, fg="red")
        case "+":
            return click.style(row, fg="green")
        case "@":
            return click.style(row, fg="cyan")
        case _:
            return row


def words(marks: Iterable[Sequence[str]]) -> str:
    """Show two texts line by line, the old one first, from marks such as ``["removed", "text"]``."""
    every = [(mark[0], mark[1]) for mark in marks]
    is_mixed = any(side == "same" for side, _ in every)
    return "\n".join(row for side in ("removed", "added") for row in _side(every, side, is_mixed=is_mixed))


def _side(marks: Iterable[tuple[str, str]], side: str, *, is_mixed: bool) -> Iterator[str]:
    rows: list[list[str]] = [[]]
    for own, text in marks:
        if own not in {"same", side}:
            continue
        first, *rest = plain(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        strong = is_mixed and own == side
        _put(rows[-1], first, side, strong=strong)
        for piece in rest:
            rows.append([])
            _put(rows[-1], piece, side, strong=strong)
    is_unended = bool(rows[-1])
    if not is_unended:
        rows.pop()
    sign = click.style(_SIGNS[side], fg=_COLOURS[side])
    yield from (sign + "".join(row) for row in rows)
    if is_unended:
        yield _UNENDED


def _put(row: list[str], text: str, side: str, *, strong: bool) -> None:
    if text:
        row.append(click.style(text, fg=_COLOURS[side], bold=strong or None, underline=strong or None))
