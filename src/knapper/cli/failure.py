"""Tell a person, or a program, why a command failed."""

import json
import os
import sys
from typing import Final, TextIO

import click

from knapper.cli import codes, next_steps
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.errors import BadInput, KnapError, StorageError

_OF_A_VAULT: Final = frozenset({"index", "watch", "serve", "status", "doctor"})
"""Commands to which many give the vault's folder, since they take nothing else."""

SPACES: Final = "quote a folder whose name holds spaces: knap --vault 'My Notes' index"


def report(error: KnapError, *, as_json: bool) -> ExitCode:
    """Print an error: as text on the error stream, as JSON on the output stream.

    Returns:
        The exit code that tells it, also where nobody reads that stream.
    """
    error.hint = next_steps.of(error.hint)
    try:
        _print(error, as_json=as_json)
    except BrokenPipeError:
        leave_streams()
    except OSError:  # a full disk, to which the output goes
        leave_streams(sys.stdout)
        _print_or_leave(error)
    return codes.of(error)


def _print_or_leave(error: KnapError) -> None:
    try:
        _print(error, as_json=False)
    except OSError:  # and so does the error stream
        leave_streams()


def _print(error: KnapError, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(error.as_dict(), ensure_ascii=False, indent=2))
        return
    from knapper.cli import output  # noqa: PLC0415 - 50 ms that only an error should cost

    click.echo(output.plain(f"error: {error.message}"), err=True)
    if error.hint:
        click.echo(output.plain(f"hint: {error.hint}"), err=True)


def of(error: KnapError | click.ClickException | OSError) -> KnapError:
    """Give the error of ours that one of ours, the parser's or the system's stands for."""
    if isinstance(error, KnapError):
        return error
    return of_usage(error) if isinstance(error, click.ClickException) else of_system(error)


def of_usage(error: click.ClickException) -> KnapError:
    """Turn the parser's error into one of ours."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        group = error.ctx
        known = ", ".join(error.ctx.command.list_commands(group))
        hint = f"one of {known}; `{group.command_path} --help` tells of each"
        return BadInput(f"`{group.command_path}` alone does nothing", hint=hint, code="usage")
    hint = f"`{ctx.command_path if ctx else 'knap COMMAND'} --help` shows how it is used"
    text = error.format_message().strip()
    if ctx and ctx.info_name in _OF_A_VAULT and "unexpected extra argument" in text:
        has_vault = bool(ctx.ensure_object(Options).vault)
        hint = SPACES if has_vault else f"the vault is named before it: `knap --vault FOLDER {ctx.info_name}`"
    return BadInput(f"{text[:1].lower()}{text[1:]}".rstrip("."), hint=hint, code="usage")


def of_system(error: OSError) -> KnapError:
    """Turn an error of the system that nobody foresaw into one of ours."""
    where = f"{error.filename}: " if error.filename else ""
    return StorageError(f"{where}{error.strerror or error}", hint="`knap doctor` checks folders, permissions and space")


def of_database(error: Exception) -> KnapError:
    """Turn a damaged or unreadable database's error into one of ours; what is no file's fault is raised again."""
    from knapper.index import database  # noqa: PLC0415 - 30 ms that only such an error should cost

    found = database.as_storage_error(error)
    if found is None:
        raise error
    return found


def interrupted(*, as_json: bool) -> ExitCode:
    """Say in one line that the person ended the command."""
    text = "interrupted; nothing is broken, and the same command goes on from here"
    try:
        if as_json:
            click.echo(json.dumps({"success": False, "error": text, "code": "interrupted"}))
        else:
            click.echo(f"\n{text}", err=True)
    except OSError:  # Ctrl-C ends whoever reads the output, too
        leave_streams()
    return ExitCode.INTERRUPTED


def leave_streams(*streams: TextIO) -> None:
    """Let what is still buffered go nowhere, so that nobody tries again at the end; both streams if none is named.

    Source: Python's documentation of signal, "Note on SIGPIPE".
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (sys.stdout, sys.stderr):
        _ = os.dup2(nowhere, stream.fileno())
