"""Show what became of a script."""

import json
import shlex
from collections.abc import Mapping
from typing import Final

import click

from knapper.cli import output
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.tools.context import ScriptExit, ScriptResult

_CODES: Final[Mapping[ScriptExit, ExitCode]] = {
    "ok": ExitCode.OK,
    "syntax": ExitCode.USAGE,
    "refused": ExitCode.REFUSED,
}


def show(options: Options, outcome: ScriptResult, vault: str) -> None:
    """Print the result, and on the error stream what was printed, what went wrong, and what waits.

    Args:
        options: Say how.
        outcome: What became of the script.
        vault: The chosen one; what waits in another is named with it.
    """
    if outcome.stdout:
        output.note(options, output.plain(outcome.stdout.rstrip("\n")))
    if outcome.ok:
        output.write(options, output.plain(json.dumps(outcome.result, ensure_ascii=False, indent=2)))
    else:
        click.echo(output.plain(f"error: the script ended with {outcome.kind}: {outcome.error}"), err=True)
    for one in outcome.proposals:
        where = "" if one.vault == vault else f" -v {shlex.quote(one.vault)}"
        output.note(options, f"waits for your word: `knap edits show {one.id}{where}`")
    told = f"{outcome.wall_s:.2f} s, {outcome.calls} calls"
    output.note(options, f"{told}, {outcome.peak_mb:.0f} MB" if outcome.peak_mb else told)


def code(outcome: ScriptResult) -> ExitCode:
    """Give the exit code that tells it."""
    return _CODES.get(outcome.kind, ExitCode.NOTHING)
