"""Read input of a command: text of a note, a file or the standard input, times, and filters of notes."""

from __future__ import annotations

import datetime as dt
import re
import sys
from typing import TYPE_CHECKING, Any, Final, TypedDict

import click

from knapper.cli import options, output
from knapper.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.cli.options import GlobalOptions
    from knapper.tools.context import NoteFilters

_NOTE_TEXT: Final = re.compile(r"-+\s")
_TEXT_MARK: Final = "\0"
"""Stands before such a text while options are read; no argument of a process can hold it."""


class TextCommand(click.Command):
    """A command that reads ``- a list item`` and ``---`` with lines below it as text, not as options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        marked = [f"{_TEXT_MARK}{arg}" if _NOTE_TEXT.match(arg) else arg for arg in args]
        rest = super().parse_args(ctx, marked)
        ctx.params = {name: _unmark(value) for name, value in ctx.params.items()}
        return rest


def _unmark(value: object) -> object:
    if isinstance(value, str):
        return value.removeprefix(_TEXT_MARK)
    if isinstance(value, tuple):
        return tuple(map(_unmark, value))  # pyright: ignore[reportUnknownArgumentType]
    return value


STDIN = "-"
_BOM = "\ufeff"
"""What some shells put before all that they pipe."""


def read_text(options: GlobalOptions, text: str, *, required: bool = False) -> str:
    """Return an argument unchanged; ``-`` means standard input without its byte-order mark.

    Args:
        options: The shared ones.
        text: The argument.
        required: Refuse empty input, so that a failed program doesn't erase the text that it should replace.

    Raises:
        BadInput: The standard input isn't UTF-8, or it is empty and *required* is set.
    """
    if text != STDIN:
        return text
    piped = strip_bom(_read_stdin(options))
    if required and not piped:
        hint = "see whether what should have written there failed; '' in the place of - stands for no text"
        raise BadInput("the standard input holds nothing", hint=hint, code="no_input")
    return piped


def read_file(options: GlobalOptions, name: str) -> str:
    """Return a file's text with its line endings and byte-order mark; ``-`` means standard input.

    Raises:
        NotFound: There is no such file.
        BadInput: It isn't UTF-8.
    """
    if name == STDIN:
        return _read_stdin(options)
    from pathlib import Path  # noqa: PLC0415 - 5 ms that a command which reads no file shouldn't cost

    try:
        return _decode(Path(name).read_bytes(), name)
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file '{name}'", hint="name a file, or - for the standard input") from None


def strip_bom(text: str) -> str:
    """Remove a byte-order mark."""
    return text.removeprefix(_BOM)


def _read_stdin(options: GlobalOptions) -> str:
    from knapper.vault import files  # noqa: PLC0415 - needed for input alone

    if sys.stdin.isatty():
        output.note(options, "type the text; Ctrl-D on a line of its own ends it")
    raw = getattr(sys.stdin, "buffer", None)
    if raw is None:
        return sys.stdin.read()
    data = raw.read(
        files.DEFAULT_MAX_BYTES + 1
    )  # a stream without an end would take all memory, and Ctrl-C wouldn't be heard
    if len(data) > files.DEFAULT_MAX_BYTES:
        message = f"the standard input holds more than {files.DEFAULT_MAX_BYTES:,} bytes"
        raise BadInput(message, hint="give less at once", code="too_large")
    return _decode(data, "the standard input")


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"{where} isn't UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
        raise BadInput(message, hint="convert it to UTF-8 first", code="not_utf8") from None


_TIME_AGO: Final = re.compile(r"(?P<number>\d{1,6}) ?(?P<unit>[smhdw])")
_TIME_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(text: str, *, now: dt.datetime | None = None) -> dt.datetime:
    """Read a day, a time, or how long ago: ``2026-01-31``, ``2026-01-31T18:30``, ``2h``; without a zone it is local.

    Args:
        text: As written.
        now: The present; None for the clock's.

    Raises:
        BadInput: It is none.
    """
    try:
        if ago := _TIME_AGO.fullmatch(text.strip()):
            return (now or dt.datetime.now(dt.UTC)) - dt.timedelta(**{_TIME_UNITS[ago["unit"]]: int(ago["number"])})
        return dt.datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        hint = "write it like 2026-01-31, 2026-01-31T18:30, or 2h for two hours ago"
        raise BadInput(f"'{text}' is no time", hint=hint, code="invalid_time") from None


class FilterOptions(TypedDict):
    """The values of the filter options."""

    exclude_folder: tuple[str, ...]
    tag: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    property_test: tuple[str, ...]
    since: str
    until: str
    created_since: str
    created_until: str


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the filter options, except the folder, of which some commands take one and some several."""
    texts: dict[str, Any] = {"type": options.TEXT, "multiple": True}
    day: dict[str, Any] = {"type": options.DAY, "default": "", "metavar": "DAY"}
    tests = "name, !name, name=value, name!=value, name~part or name!~part; repeatable."
    return options.decorate(
        command,
        click.option("--exclude-folder", metavar="FOLDER", help="Exclude this folder; repeatable.", **texts),
        click.option(
            "--tag", metavar="TAG", help="Only notes with this tag or one nested below it; repeatable.", **texts
        ),
        click.option("--exclude-tag", metavar="TAG", help="Exclude notes with this tag; repeatable.", **texts),
        click.option("--property", "property_test", metavar="TEST", help=tests, **texts),
        click.option("--since", help="Only notes modified on this day or later.", **day),
        click.option("--until", help="Only notes modified on this day or before.", **day),
        click.option("--created-since", help="Only notes created on this day or later.", **day),
        click.option("--created-until", help="Only notes created on this day or before.", **day),
    )


def filter_arguments(filters: FilterOptions) -> NoteFilters:
    """Return the filter as tools take it."""
    return {
        "exclude_folders": filters["exclude_folder"],
        "tags": filters["tag"],
        "exclude_tags": filters["exclude_tag"],
        "properties": filters["property_test"],
        "modified_from": filters["since"],
        "modified_to": filters["until"],
        "created_from": filters["created_since"],
        "created_to": filters["created_until"],
    }
