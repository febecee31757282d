"""Run `knap`: find the command in the table, import it alone, and turn errors into messages and exit codes."""

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, NoReturn, TextIO

import click

from knapper import __version__
from knapper.cli import options, output, start
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput, KnapError, StorageError

_VAULT_COMMANDS: Final = frozenset({"index", "watch", "serve", "status", "doctor"})
"""Commands to which many give the vault's folder, since they take nothing else."""

_QUERY_COMMANDS: Final = frozenset({"search", "find", "ask"})
"""Commands whose argument is a query, in which ``-word`` excludes a word."""

QUOTING_HINT: Final = "quote a folder whose name holds spaces: knap --vault 'My Notes' index"


def report_error(error: KnapError, *, as_json: bool) -> ExitCode:
    """Print an error: as text on the error stream, as JSON on the output stream.

    Returns:
        The error's exit code, even if nobody reads the stream.
    """
    error.hint = output.command_hint(error.hint)
    try:
        _print_error(error, as_json=as_json)
    except BrokenPipeError:
        discard_output()
    except OSError:  # a full disk, to which the output goes
        discard_output(sys.stdout)
        try:
            _print_error(error, as_json=False)
        except OSError:  # and so does the error stream
            discard_output()
    return output.exit_code(error)


def _print_error(error: KnapError, *, as_json: bool) -> None:
    if as_json:
        click.echo(output.dump_json(error.as_dict()))
        return
    click.echo(output.plain(f"error: {error.message}"), err=True)
    if error.hint:
        click.echo(output.plain(f"hint: {error.hint}"), err=True)


_ELSEWHERE: Final = {
    "knap tags": "`knap info NOTE` shows a note's tags, and `knap props NOTE append tags TAG` adds one",
    "knap sessions": "`knap sessions` alone lists them",
    "knap links": "`knap links out NOTE` lists a note's links, `knap links in NOTE` those to it",
    "knap config": "`knap config` alone shows every setting",
    "knap models": "`knap models` alone lists them",
    "knap token": "`knap token` alone shows where it is stored",
}
"""What a group is taken for, and which commands do that."""
_VAULTS_HINT: Final = "`knap config` shows the vaults, `knap setup --vault FOLDER` adds one, and --vault NAME picks one"
_LISTING_IDS: Final = {
    "knap edits": "`knap edits` lists the ids",
    "knap sessions": "`knap sessions` lists the ids",
    "knap run": "`knap run list` lists the ids",
}
"""Where the id that a command of a group needs is found."""
_NUMBER_OPTIONS: Final = frozenset({"--limit", "--number", "--max", "--max-results", "--top", "--top-k"})
"""What other programs call ``-n``."""
_NO_COMMANDS: Final = {"vault": _VAULTS_HINT, "vaults": _VAULTS_HINT}
"""What isn't a command, and which commands do that; by its spelling, another one is near."""
_NO_CHOICE: Final = re.compile(r"'([^']*)' is not one of")
_NUMBER: Final = re.compile(r"-\d+")
_VALID_NUMBER: Final = re.compile(r"is not a valid (integer|float)(?: range)?")
_NUMBER_NAMES: Final = {"integer": "isn't a whole number", "float": "isn't a number"}


def to_knap_error(
    error: KnapError | click.ClickException | ImportError | OSError | UnicodeEncodeError, args: Sequence[str] = ()
) -> KnapError:
    """Return an error of ours, of the parser, of a missing extra, of the system or of a text as one of ours."""
    if isinstance(error, KnapError):
        return error
    if isinstance(error, ImportError):
        return from_import_error(error)
    if isinstance(error, UnicodeEncodeError):
        return from_text_error(error, args)
    return from_usage_error(error, args) if isinstance(error, click.ClickException) else from_os_error(error)


def from_usage_error(error: click.ClickException, args: Sequence[str] = ()) -> KnapError:
    """Turn the parser's error into one of ours.

    Args:
        error: The parser's error.
        args: The program's arguments, for an error that doesn't know its command.
    """
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx and isinstance(error, click.exceptions.NoSuchCommand) and isinstance(ctx.command, click.Group):
        return _unknown_command(error.command_name, ctx, ctx.command)
    text = _VALID_NUMBER.sub(lambda kind: _NUMBER_NAMES[kind[1]], " ".join(error.format_message().split()))
    if ctx and isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(ctx.command, click.Group):
        text = f"`{ctx.command_path}` alone does nothing"
    hint = _hint_usage(error, ctx, text) if ctx else f"`{_command_path(args)} --help` shows the usage"
    word = _NO_CHOICE.search(text)
    if word and isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
        hint = options.did_you_mean(word[1], map(str, error.param.type.choices), hint)
    return BadInput(f"{text[:1].lower()}{text[1:]}".rstrip("."), hint=hint, code="usage")


def _unknown_command(name: str, ctx: click.Context, group: click.Group) -> BadInput:
    """Return the error about a subcommand that a group doesn't have, with the nearest one."""
    hint = options.guess_command(name, group.list_commands(ctx), _list_commands(ctx, group))
    return BadInput(f"there is no command '{ctx.command_path} {name}'", hint=hint, code="no_command")


def _list_commands(ctx: click.Context, group: click.Group) -> str:
    """Return a hint with the subcommands of a group, and with the commands that do what may be expected of it."""
    usual = f"`{ctx.command_path} --help` describes each"
    return f"one of {', '.join(group.list_commands(ctx))}; {_ELSEWHERE.get(ctx.command_path, usual)}"


def _hint_usage(error: click.ClickException, ctx: click.Context, text: str) -> str:
    """Return the next step after a command was called in a way that it can't be."""
    usage = f"`{ctx.command_path} --help` shows the usage"
    if isinstance(ctx.command, click.Group) and isinstance(error, click.exceptions.NoArgsIsHelpError):
        return _list_commands(ctx, ctx.command)
    if hint := _hint_parameter(error, ctx, usage):
        return hint
    if ctx.parent is not ctx.find_root():
        return usage
    if "unexpected extra argument" in text:
        return _hint_extra_argument(ctx, usage)
    is_word = isinstance(error, click.NoSuchOption) and not error.option_name.startswith("--")
    if ctx.info_name in _QUERY_COMMANDS and is_word:
        path = ctx.command_path
        begins = f"where it begins with a dash, put -- before it: `{path} -- '-winter tree'`"
        return f"to exclude a word, quote the whole query: `{path} 'tree -winter'`; {begins}; {usage}"
    return usage


def _hint_parameter(error: click.ClickException, ctx: click.Context, usage: str) -> str:
    """Return what to do about an id that is missing or an option that isn't there; empty where nothing is known."""
    if isinstance(error, click.MissingParameter):
        is_id = error.param is not None and error.param.metavar == "ID"
        return _LISTING_IDS.get(ctx.parent.command_path, "") if is_id and ctx.parent else ""
    if not isinstance(error, click.NoSuchOption):
        return ""
    if _NUMBER.fullmatch(error.option_name):
        return f"to give {error.option_name} as a value, put -- before the arguments; {usage}"
    return f"-n says how many; {usage}" if error.option_name in _NUMBER_OPTIONS and _takes_number(ctx) else ""


def _takes_number(ctx: click.Context) -> bool:
    return any("-n" in param.opts and param.name == "number" for param in ctx.command.params)


def _hint_extra_argument(ctx: click.Context, usage: str) -> str:
    if ctx.info_name in _VAULT_COMMANDS:
        has_vault = bool(ctx.ensure_object(GlobalOptions).vault)
        return QUOTING_HINT if has_vault else f"name the vault first: `knap --vault FOLDER {ctx.info_name}`"
    if ctx.info_name == "history":
        return f"a note or folder is named by --note PATH; {usage}"
    if ctx.info_name == "read":
        return f"it reads one note, or a part of it by --section HEADING; {usage}"
    return usage


def _command_path(args: Sequence[str]) -> str:
    """Return the command that arguments name, such as ``knap edits show``; ``knap COMMAND`` if they name none."""
    path, command, previous = "knap", knap, ""
    for arg in args:
        below = command.get_command(click.Context(command), arg) if isinstance(command, click.Group) else None
        if below is not None and previous not in options.WITH_VALUE:
            path, command = f"{path} {arg}", below
        previous = arg
    return path if command is not knap else "knap COMMAND"


def from_import_error(error: ImportError) -> KnapError:
    """Turn the absence of an extra's package into one of ours; other errors are raised again."""
    from knapper import extras  # noqa: PLC0415 - only such an error should cost it

    problem = extras.explain_import(error)
    if problem is None:
        raise error
    return problem


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes of an argument that aren't text; files may be called so, what is stored may not."""


def from_text_error(error: UnicodeEncodeError, args: Sequence[str]) -> KnapError:
    """Turn the error about an argument that can't be stored as text into one of ours; others are raised again."""
    broken = next((one for one in args if _SURROGATE.search(one)), None)
    if broken is None:
        raise error
    return BadInput(f"the argument '{broken}' isn't valid Unicode", hint="give it as UTF-8 text")


def from_os_error(error: OSError) -> KnapError:
    """Turn an unexpected error of the system into one of ours."""
    where = f"{error.filename}: " if error.filename else ""
    return StorageError(f"{where}{error.strerror or error}", hint="`knap doctor` checks folders, permissions and space")


def from_database_error(error: Exception) -> KnapError:
    """Turn a damaged or unreadable database's error into one of ours; other errors are raised again."""
    from knapper.index import database  # noqa: PLC0415 - 30 ms that only such an error should cost

    translated = database.as_storage_error(error)
    if translated is None:
        raise error
    return translated


def report_interrupt(error: BaseException, *, as_json: bool) -> ExitCode:
    """Print in one line that the command was interrupted, and what it had done already."""
    rest = "; ".join(start.notes_of(error)) or "running the same command again continues the work"
    text = f"interrupted; nothing is damaged, and {rest}"
    try:
        if as_json:
            click.echo(json.dumps({"success": False, "error": text, "code": "interrupted"}))
        else:
            click.echo(f"\n{text}", err=True)
    except OSError:  # Ctrl-C ends whoever reads the output, too
        discard_output()
    return ExitCode.INTERRUPTED


def discard_output(*streams: TextIO) -> None:
    """Redirect streams to the null device, so that buffered output isn't written again at exit; by default both.

    Source: Python's documentation of signal, "Note on SIGPIPE".
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (sys.stdout, sys.stderr):
        _ = os.dup2(nowhere, stream.fileno())


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, and its line in the overview."""

    name: str
    group: str
    summary: str

    @property
    def module(self) -> str:
        """Return the module that has the command."""
        return f"knapper.cli.commands.{self.name}"


COMMANDS: Final = (
    CommandEntry("setup", "Start", "Set up Knapper in one go."),
    CommandEntry("index", "Find", "Build or update the search index."),
    CommandEntry("search", "Find", "Search passages by words and by meaning."),
    CommandEntry("find", "Find", "List notes by folder, tag, property, date and words."),
    CommandEntry("ask", "Find", "Answer a question from the notes."),
    CommandEntry("agent", "Find", "Set an agent to work that has a task of its own."),
    CommandEntry("schedule", "Find", "Let agents work by themselves while the server runs."),
    CommandEntry("run", "Find", "Run a larger task over the notes, split into parts."),
    CommandEntry("chat", "Find", "Chat with a model about the notes."),
    CommandEntry("sessions", "Find", "List, show, export and manage chat sessions."),
    CommandEntry("presets", "Find", "List, show, save and delete presets for `knap ask`."),
    CommandEntry("watch", "Find", "Keep the index up to date as notes change."),
    CommandEntry("read", "Notes", "Show a note or a part of it."),
    CommandEntry("open", "Notes", "Open a note in Obsidian or in your editor."),
    CommandEntry("info", "Notes", "Show a note's properties, links, tags and outline."),
    CommandEntry("new", "Notes", "Create a note."),
    CommandEntry("write", "Notes", "Replace a whole note, or create it."),
    CommandEntry("edit", "Notes", "Change text in a note."),
    CommandEntry("section", "Notes", "Change the section under a heading."),
    CommandEntry("props", "Notes", "Show and change the properties of notes."),
    CommandEntry("tags", "Notes", "List and rename tags."),
    CommandEntry("links", "Notes", "Show incoming, outgoing and broken links, and notes without links."),
    CommandEntry("move", "Notes", "Move or rename notes, files and folders, and update links."),
    CommandEntry("rm", "Notes", "Move files to the trash, or restore them."),
    CommandEntry("history", "Changes", "List what was asked, found, proposed and done, by pieces of work."),
    CommandEntry("edits", "Changes", "List, show, accept and reject proposed changes."),
    CommandEntry("log", "Changes", "List changes: what, by whom and why."),
    CommandEntry("undo", "Changes", "Undo changes, byte for byte."),
    CommandEntry("trust", "Changes", "Show clients restricted to proposals, and lift the restriction."),
    CommandEntry("serve", "Serve", "Serve vaults over HTTP to browsers, programs and MCP clients."),
    CommandEntry("service", "Serve", "Run the server in the background from login on."),
    CommandEntry("connect", "Serve", "Make a code that pairs Obsidian with the server."),
    CommandEntry("clients", "Serve", "List, show and revoke paired devices."),
    CommandEntry("plugin", "Serve", "Install the Obsidian plugin into a vault."),
    CommandEntry("token", "Serve", "Show where the server's token is stored, and create tokens."),
    CommandEntry("mcp", "Serve", "Serve vaults to an MCP client over standard input and output."),
    CommandEntry("tools", "Serve", "List or describe the tools that agents and clients can call."),
    CommandEntry("tool", "Serve", "Call a tool with JSON arguments."),
    CommandEntry("script", "Serve", "Run a Python script over the vault in a sandbox."),
    CommandEntry("status", "Check", "Show the state of the index."),
    CommandEntry("doctor", "Check", "Check the installation and the vault, and suggest fixes."),
    CommandEntry("models", "Check", "Show which language models are configured and reachable."),
    CommandEntry("config", "Check", "Show every setting and where it comes from."),
    CommandEntry("completion", "Check", "Complete commands, notes, tags and ids in your shell."),
    CommandEntry("e5", "Check", "Make a transformer for search across languages."),
    CommandEntry("eval", "Check", "Measure how well search finds judged notes."),
    CommandEntry("bench", "Check", "Measure how well a model carries out tasks."),
)
"""Every command; the overview lists groups in the order of their first entry here."""


def add_exit_codes(command: click.Command, path: str) -> None:
    """Add what a command's own exit codes mean to its help, and to that of its subcommands, once."""
    if output.TITLE not in (command.epilog or ""):
        command.epilog = f"{command.epilog or ''}{output.help_text(path)}"
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            add_exit_codes(below, f"{path} {name}")


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        del ctx
        return [row.name for row in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        del ctx
        row = next((row for row in COMMANDS if row.name == cmd_name), None)
        if row is None:
            return None
        with start.exiting_at_once():
            command: click.Command = import_module(row.module).command
        add_exit_codes(command, f"knap {cmd_name}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments start with, or raise an error that suggests the nearest one."""
        name, global_options = args[0], ctx.ensure_object(GlobalOptions)
        if not name.startswith("-") and name not in self.list_commands(ctx):
            from pathlib import Path  # noqa: PLC0415 - 5 ms that only a mistake should cost

            is_split_path = bool(global_options.vault) and Path(f"{global_options.vault} {name}").is_dir()
            hint = QUOTING_HINT if is_split_path else _NO_COMMANDS.get(name, "")
            raise BadInput(
                f"there is no command '{name}'",
                code="no_command",
                hint=hint or options.guess_command(name, self.list_commands(ctx), "`knap --help` lists the commands"),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group, from the table alone."""
        del ctx
        for group in dict.fromkeys(row.group for row in COMMANDS):
            with formatter.section(group):
                formatter.write_dl([(row.name, row.summary) for row in COMMANDS if row.group == group])


@click.command(
    cls=LazyGroup,
    name="knap",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},  # which all commands inherit
    epilog=options.examples(
        ("knap --vault ~/Notes index", "read your notes; they aren't changed"),
        ('knap ask "What did we decide about the garden?"', "the passages that answer"),
        ("knap doctor", "when something doesn't work"),
    )
    + output.help_text("knap"),
)
@options.shared_options
@click.version_option(__version__, prog_name="knap", message="%(prog)s %(version)s")
@click.pass_context
def knap(ctx: click.Context) -> None:
    """Search, question and edit a folder of Markdown notes, such as an Obsidian vault."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(args: Sequence[str]) -> int:
    """Run the program and return its exit code; output goes to the standard streams."""
    _set_streams()
    global_options = GlobalOptions()
    try:
        return _invoke(args, global_options)
    except (KeyboardInterrupt, click.Abort) as error:
        return report_interrupt(error, as_json=_wants_json(global_options, args))
    except BrokenPipeError:  # who read the output has enough
        discard_output()
        return ExitCode.OK
    except (KnapError, click.ClickException, ImportError, OSError, UnicodeEncodeError) as error:
        return report_error(to_knap_error(error, args), as_json=_wants_json(global_options, args))
    except _database_error_type() as error:
        return report_error(from_database_error(error), as_json=_wants_json(global_options, args))
    except Exception as error:
        if not start.is_interrupt(error):
            raise
        return report_interrupt(error, as_json=_wants_json(global_options, args))


def main() -> NoReturn:
    """Run the program with this process's arguments, and exit with its code."""
    code = run(sys.argv[1:])
    # Who read no settings has opened nothing that must be closed; Python would take 15 ms to take its modules apart.
    if "knapper.config.loading" not in sys.modules:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python's own way out says so
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def _invoke(args: Sequence[str], options: GlobalOptions) -> int:
    try:
        with knap.make_context("knap", list(args), obj=options) as ctx:
            code = knap.invoke(ctx)
    except click.exceptions.Exit as end:  # --help and --version end so
        code = end.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _database_error_type() -> type[Exception]:
    import sqlite3  # noqa: PLC0415 - 20 ms that only an error should cost: an except clause is read only then

    return sqlite3.DatabaseError


def _wants_json(options: GlobalOptions, args: Sequence[str]) -> bool:
    return options.as_json or "--json" in args


def _set_streams() -> None:
    """Set up the streams for any character on every system; a closed input reads as empty."""
    if sys.stdin is None:  # closed by the parent process
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - as long as we run
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as we run
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
