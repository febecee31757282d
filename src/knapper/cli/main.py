"""Run `knap`: find the command in the table, import it alone, and turn errors into messages and exit codes."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn, cast

import click

from knapper import __version__
from knapper.cli import failure, options
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.errors import BadInput, KnapError


@dataclass(frozen=True, slots=True)
class Row:
    """Name a command, the module that holds it, and what the overview says about it."""

    name: str
    module: str
    group: str
    summary: str


COMMANDS: Final = (
    Row("index", "knapper.cli.commands.index", "Find", "Read the vault into its index."),
    Row("search", "knapper.cli.commands.search", "Find", "Find passages by words and by meaning."),
    Row("find", "knapper.cli.commands.find", "Find", "Find notes by folder, tag, property, day and words."),
    Row("ask", "knapper.cli.commands.ask", "Find", "Answer a question from the notes."),
    Row("run", "knapper.cli.commands.run", "Find", "Carry out a larger task over the notes, part by part."),
    Row("chat", "knapper.cli.commands.chat", "Find", "Talk with a model about the notes."),
    Row("sessions", "knapper.cli.commands.sessions", "Find", "List the conversations with a model."),
    Row("presets", "knapper.cli.commands.presets", "Find", "List, show, save and delete choices for `knap ask`."),
    Row("watch", "knapper.cli.commands.watch", "Find", "Keep the index up to date while notes are saved."),
    Row("read", "knapper.cli.commands.read", "Notes", "Show a note, or a part of it."),
    Row("info", "knapper.cli.commands.info", "Notes", "Tell about a note all but its text."),
    Row("new", "knapper.cli.commands.new", "Notes", "Make a note."),
    Row("write", "knapper.cli.commands.write", "Notes", "Replace a whole note, or make it."),
    Row("edit", "knapper.cli.commands.edit", "Notes", "Change text in a note."),
    Row("section", "knapper.cli.commands.section", "Notes", "Change what a heading owns."),
    Row("props", "knapper.cli.commands.props", "Notes", "Show and change properties."),
    Row("tags", "knapper.cli.commands.tags", "Notes", "List and rename tags."),
    Row("links", "knapper.cli.commands.links", "Notes", "Show links: in, out, broken, and notes without any."),
    Row("move", "knapper.cli.commands.move", "Notes", "Move notes, other files and folders; links follow."),
    Row("rm", "knapper.cli.commands.rm", "Notes", "Put files into the trash."),
    Row("edits", "knapper.cli.commands.edits", "Changes", "List, show, accept and reject what waits for your word."),
    Row("log", "knapper.cli.commands.log", "Changes", "List what was changed, by whom, and why."),
    Row("undo", "knapper.cli.commands.undo", "Changes", "Take changes back, byte for byte."),
    Row("trust", "knapper.cli.commands.trust", "Changes", "Show who only proposes, and trust them again."),
    Row("serve", "knapper.cli.commands.serve", "Serve", "Serve vaults over HTTP and to MCP clients."),
    Row("token", "knapper.cli.commands.token", "Serve", "Tell where the server's token lies, and make new ones."),
    Row("mcp", "knapper.cli.commands.mcp", "Serve", "Serve the vault to MCP clients."),
    Row("tools", "knapper.cli.commands.tools", "Serve", "List the tools that agents and clients can call."),
    Row("tool", "knapper.cli.commands.tool", "Serve", "Call one of these tools."),
    Row("script", "knapper.cli.commands.script", "Serve", "Run a Python script over the vault, in a sandbox."),
    Row("status", "knapper.cli.commands.status", "Check", "Tell how the vault's index stands."),
    Row("doctor", "knapper.cli.commands.doctor", "Check", "Check that everything works here, and what to do if not."),
    Row("models", "knapper.cli.commands.models", "Check", "Show which language models are set up, and answer."),
    Row("config", "knapper.cli.commands.config", "Check", "Show every setting and where it comes from."),
    Row("eval", "knapper.cli.commands.eval", "Check", "Measure how well search finds judged notes."),
    Row("bench", "knapper.cli.commands.bench", "Check", "Measure what a model does with tasks."),
)
"""Every command; groups stand in the overview in the order in which they first come here."""


class Program(click.Group):
    """Import a command's module only when that command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, as the table has them."""
        del ctx
        return [row.name for row in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        del ctx
        row = next((row for row in COMMANDS if row.name == cmd_name), None)
        return cast("click.Command", import_module(row.module).command) if row else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with, and tell the nearest one where there is none."""
        name, said = args[0], ctx.ensure_object(Options)
        if not name.startswith("-") and name not in self.list_commands(ctx):
            is_cut = bool(said.vault) and Path(f"{said.vault} {name}").is_dir()
            hint = failure.SPACES if is_cut else "`knap --help` lists the commands"
            raise BadInput(
                f"there is no command '{name}'",
                code="no_command",
                hint=hint if is_cut else options.did_you_mean(name, self.list_commands(ctx), hint),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group, from the table alone."""
        del ctx
        for group in dict.fromkeys(row.group for row in COMMANDS):
            with formatter.section(group):
                formatter.write_dl([(row.name, row.summary) for row in COMMANDS if row.group == group])


@click.command(
    cls=Program,
    name="knap",
    invoke_without_command=True,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap --vault ~/Notes index", "read your notes; they aren't changed"),
        ('knap ask "What did we decide about the garden?"', "the passages that answer"),
        ("knap doctor", "when something doesn't work"),
    ),
)
@options.shared
@click.version_option(__version__, prog_name="knap", message="%(prog)s %(version)s")
@click.pass_context
def knap(ctx: click.Context) -> None:
    """Search, question and edit a folder of Markdown notes, such as an Obsidian vault."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(args: Sequence[str]) -> int:
    """Run the program; gives its exit code. Output goes to the standard streams."""
    _set_streams()
    said = Options()
    try:
        return _run(args, said)
    except (KeyboardInterrupt, click.Abort):
        return failure.interrupted(as_json=_wants_json(said, args))
    except BrokenPipeError:  # who read the output has enough
        failure.leave_streams()
        return ExitCode.OK
    except (KnapError, click.ClickException, OSError) as error:
        return failure.report(failure.of(error), as_json=_wants_json(said, args))
    except _database_error() as error:
        return failure.report(failure.of_database(error), as_json=_wants_json(said, args))


def main() -> NoReturn:
    """Run the program on this process's arguments, and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def _run(args: Sequence[str], said: Options) -> int:
    try:
        with knap.make_context("knap", list(args), obj=said) as ctx:
            code = knap.invoke(ctx)
    except click.exceptions.Exit as end:  # --help and --version end so
        code = end.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _database_error() -> type[Exception]:
    import sqlite3  # noqa: PLC0415 - 20 ms that only an error should cost: an except clause is read only then

    return sqlite3.DatabaseError


def _wants_json(said: Options, args: Sequence[str]) -> bool:
    return said.as_json or "--json" in args


def _set_streams() -> None:
    """Print every character that a note or a path may hold, on every system; a closed input is an empty one."""
    if sys.stdin is None:  # it was closed before the program began
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - as long as we run
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the program began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as we run
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
