"""Carry out larger tasks, and look after them."""

import re
from itertools import takewhile
from typing import Final, Unpack

import click

from knapper.cli import options
from knapper.cli.options import GlobalOptions, RunResumeOptions, RunStartOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput

START = "start"
_FEW: Final = 2
"""Most words of a mistyped command, such as ``statsu ID``; a task in words has more, or stands in quotes."""
_ID: Final = re.compile(r"r\d{6}-")
"""What the ids of runs begin with."""


class DefaultCommandGroup(click.Group):
    """A group that reads an unknown subcommand as a task."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        if not args:
            known = ", ".join(self.list_commands(ctx))
            hint = f'quote it: `knap run "Plan the move"`; or one of {known}'
            raise BadInput("no task is given", hint=hint, code="usage")
        first = _first_argument(args)
        if not {"-h", "--help"} & set(args[:1]) and first not in self.commands:
            words = list(takewhile(lambda arg: not arg.startswith("-"), args))
            hint = self._guess_command(words) if words[:1] == [first] and len(words) <= _FEW else ""
            if hint:
                hint += f" A task of one word is begun by `knap run start {first}`"
                raise BadInput(f"there is no command 'knap run {first}'", hint=hint, code="no_command")
            args = [START, *args]
        return super().parse_args(ctx, args)

    def _guess_command(self, words: list[str]) -> str:
        """Return a hint with the command that words may mean, rather than a task; empty for none."""
        is_with_id = len(words) == _FEW and _ID.match(words[1])
        guess = options.guess_command if is_with_id or len(words) == 1 else options.did_you_mean
        return guess(words[0], self.commands, "")


@click.group(
    "run",
    cls=DefaultCommandGroup,
    epilog=options.examples(
        ('knap run "Compare our three suppliers"', "an answer combined from parts, with citations"),
        ('knap run "Plan the move" --strategy planning', "with this strategy"),
        ('knap run "Find all notes about React" --no-code-mode', "retrieved by search, without scripts"),
        ("knap run list", "newest first"),
        ("knap run trace tree ID", "how it reached its answer"),
        ("knap run resume ID --replay stale", "repeat where notes have changed"),
    ),
)
@options.shared_options
def command() -> None:
    """Run a larger task over the notes, split into parts.

    The task is split where that helps. Each part finds its own notes and answers with citations; the parts are combined
    into one answer. Finished work isn't paid for twice: a stopped run can be resumed, and a part whose notes haven't
    changed is taken from a cache.
    """


@command.command(START)
@click.argument("task", nargs=-1, required=True, type=options.TEXT)
@click.option(
    "--strategy", default="", metavar="NAME", help="Strategy for splitting the task; see `knap run strategies`."
)
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option("--no-code-mode", is_flag=True, help="Retrieve by search instead of scripts.")
@click.option(
    "--profile",
    type=click.Choice(["strict", "local", "extended"]),
    default="strict",
    show_default=True,
    help="What else scripts may read: folders (local), also pages of hosts (extended).",
)
@click.option("--fresh", is_flag=True, help="Don't use the cache.")
@click.option("--also", multiple=True, metavar="VAULT", help="Another vault to search, by name; repeatable.")
@options.run_limit_options
@options.pass_options
def start(global_options: GlobalOptions, task: tuple[str, ...], **own: Unpack[RunStartOptions]) -> ExitCode:
    """Start a run; `knap run TASK` does the same."""
    return _import_runs().start_run(global_options, " ".join(task), own)


@command.command("resume")
@click.argument("run_id", metavar="ID")
@click.option(
    "--replay",
    default="",
    metavar="stale|NODE",
    help="Repeat the nodes whose notes have changed (stale), or one node and all below it.",
)
@click.option("--model", default="", metavar="NAME", help="Another model for the remaining work.")
@options.run_limit_options
@options.pass_options
def resume(global_options: GlobalOptions, run_id: str, **own: Unpack[RunResumeOptions]) -> ExitCode:
    """Resume a run; finished work isn't paid for again."""
    return _import_runs().resume_run(global_options, run_id, own)


@command.command("status")
@click.argument("run_id", metavar="ID")
@options.pass_options
def status(global_options: GlobalOptions, run_id: str) -> ExitCode:
    """Show the state of a run, and its answer if there is one."""
    return _import_runs().show_status(global_options, run_id)


@command.command("list")
@options.limit_option(20, 1_000)
@options.pass_options
def listed(global_options: GlobalOptions, number: int) -> ExitCode:
    """List runs, newest first."""
    return _import_runs().list_runs(global_options, number)


@command.command("strategies")
@options.pass_options
def strategies(global_options: GlobalOptions) -> ExitCode:
    """List the available strategies.

    Your own strategies are files in the folder `strategies` beside the configuration file.
    """
    return _import_runs().list_strategies(global_options)


@command.group("trace")
@options.shared_options
def trace() -> None:
    """Show how a run reached its answer."""


@trace.command("tree")
@click.argument("run_id", metavar="ID")
@options.pass_options
def trace_tree(global_options: GlobalOptions, run_id: str) -> ExitCode:
    """Show a run's nodes: states, scores, citations and tokens."""
    return _import_runs().show_tree(global_options, run_id)


@trace.command("node")
@click.argument("run_id", metavar="ID")
@click.argument("node_id", metavar="NODE")
@options.pass_options
def trace_node(global_options: GlobalOptions, run_id: str, node_id: str) -> ExitCode:
    """Show one node: its scripts, scores, sources, answer and tokens."""
    return _import_runs().show_node(global_options, run_id, node_id)


@command.command("export")
@click.argument("run_id", metavar="ID")
@click.argument("path", type=options.TEXT)
@click.option("-y", "--yes", is_flag=True, help="Write at once instead of proposing.")
@options.pass_options
def save(global_options: GlobalOptions, run_id: str, path: str, *, yes: bool) -> ExitCode:
    """Propose a run's answer as a note or a folder.

    PATH is a note if it ends in .md, else a folder that also contains the answers of the parts.
    """
    return _import_runs().save_answer(global_options, run_id, path, yes=yes)


@command.command("cancel")
@click.argument("run_id", metavar="ID")
@options.pass_options
def cancel(global_options: GlobalOptions, run_id: str) -> ExitCode:
    """Cancel a running run, in any process.

    Finished work is kept.
    """
    return _import_runs().cancel_run(global_options, run_id)


@command.command("delete")
@click.argument("run_id", metavar="ID")
@options.pass_options
def delete(global_options: GlobalOptions, run_id: str) -> ExitCode:
    """Delete a run; exported notes stay and can be undone."""
    return _import_runs().delete_run(global_options, run_id)


def _import_runs():
    from knapper.cli import runs  # noqa: PLC0415 - 2 s that `knap run --help` needn't cost

    return runs


def _first_argument(args: list[str]) -> str:
    """Return the first argument that is neither a shared option nor its value."""
    rest = iter(args)
    for arg in rest:
        if arg in options.WITH_VALUE:
            _ = next(rest, "")
        elif arg not in {"--json", "-q", "--quiet", "--no-color"}:
            return arg
    return ""
