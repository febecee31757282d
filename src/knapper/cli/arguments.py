"""Read arguments that are text of a note, and so may begin as an option does."""

import re
from typing import Final

import click

_TEXT: Final = re.compile(r"-+\s")
_MARK: Final = "\0"
"""Stands before such a text while options are read; no argument of a process can hold it."""


class TextCommand(click.Command):
    """Take ``- a list item`` and ``---`` with lines below it for text, and not for options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        marked = [f"{_MARK}{arg}" if _TEXT.match(arg) else arg for arg in args]
        rest = super().parse_args(ctx, marked)
        ctx.params = {name: _bare(value) for name, value in ctx.params.items()}
        return rest


def _bare(value: object) -> object:
    if isinstance(value, str):
        return value.removeprefix(_MARK)
    if isinstance(value, tuple):
        return tuple(map(_bare, value))  # pyright: ignore[reportUnknownArgumentType]
    return value
