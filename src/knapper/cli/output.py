"""Print results, notes and errors, and ask the person at the terminal."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import cast

import click

from knapper.cli import codes
from knapper.cli.codes import ExitCode
from knapper.cli.escapes import dump_json, keep_colours, plain
from knapper.cli.options import GlobalOptions


def write(options: GlobalOptions, text: str) -> None:
    """Print a result as text; colours are left out where they aren't wanted or can't be shown."""
    click.echo(keep_colours(text), color=None if sys.stdout.isatty() and wants_colour(options) else False)


def write_json(data: Mapping[str, object]) -> None:
    """Print a result as JSON."""
    click.echo(dump_json(data))


def print_result(options: GlobalOptions, fields: Mapping[str, object], text: str) -> ExitCode:
    """Print a command's result, as JSON for programs or as text for a person.

    Args:
        options: Which of the two, among others.
        fields: The JSON fields, beside ``success``.
        text: The text for a person.
    """
    if options.as_json:
        write_json({"success": True, **fields})
    else:
        write(options, text)
    return ExitCode.OK


def print_answer(options: GlobalOptions, answer: Mapping[str, object], text: str, *, nearest: str = "") -> ExitCode:
    """Print results, and what they may be missing.

    Args:
        options: The shared options.
        answer: A tool's answer; its ``notes`` say what may be missing.
        text: The answer for a person; empty if nothing was found.
        nearest: What is offered if nothing was found; not a result, so on the error stream.

    Returns:
        The exit code for whether something was found.
    """
    if options.as_json:
        write_json(answer)
    elif text:
        write(options, text)
    else:
        note(options, "nothing found")
        if nearest:
            note(options, f"nearest in meaning, which may have nothing to do with it:\n\n{nearest}\n")
    for notice in cast("Sequence[str]", answer.get("notes", ())):
        note(options, f"note: {notice}")
    return ExitCode.OK if answer.get("results") else ExitCode.NOTHING


def print_listing(options: GlobalOptions, answer: Mapping[str, object], text: str, *, nothing: str) -> ExitCode:
    """Print a list, and what it may be missing; an empty list isn't a failure.

    Args:
        options: The shared options.
        answer: A tool's answer.
        text: The list for a person; empty if it has no rows.
        nothing: The text for an empty list.
    """
    if options.as_json:
        write_json(answer)
    elif text:
        write(options, text)
    else:
        note(options, nothing)
    for notice in cast("Sequence[str]", answer.get("notes", ())):
        note(options, f"note: {notice}")
    return ExitCode.OK


def note(options: GlobalOptions, text: str) -> None:
    """Print a remark on the error stream."""
    if not (options.quiet or options.as_json):
        click.echo(keep_colours(text), err=True)


def warn(text: str) -> None:
    """Print a remark that a person must not miss, even with ``--quiet``."""
    click.echo(plain(f"note: {text}"), err=True)


def print_error(message: str, hint: str = "") -> None:
    """Print an error and its hint while the command continues, even with ``--quiet``."""
    click.echo(plain(f"error: {message}"), err=True)
    if hint:
        click.echo(plain(f"hint: {codes.command_hint(hint)}"), err=True)


def wants_colour(options: GlobalOptions) -> bool:
    """Return whether colours are on."""
    from knapper.config import files  # noqa: PLC0415 - 5 ms that only a terminal's colours should cost

    return not options.no_color and files.wants_colour()


def stderr_is_terminal() -> bool:
    """Return whether the error stream is a terminal."""
    return sys.stderr.isatty()


def one_line(text: str) -> str:
    """Show a name or a sentence as one line, so that no part of it looks like our own output."""
    return re.sub(r"[\n\t]", " ", plain(text))


def can_ask() -> bool:
    """Return whether a person can answer: standard input and error are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no. Ctrl-C ends the command.

    Raises:
        Abort: The person ended the command.
    """
    return click.confirm(question, default=False, err=True)
