"""Carry out larger tasks, and look after them."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypedDict, Unpack, cast

import click

from knapper import app
from knapper.agents.run import export, runs
from knapper.agents.run.records import Limits, Order, Run
from knapper.app import runs as opening
from knapper.app.runs import TaskRuns
from knapper.changes.writer import Asked
from knapper.cli import options, output, running, settings, writing
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import runs as rendered
from knapper.errors import BadInput
from knapper.tools import answers
from knapper.tools.sandboxes import Profile
from knapper.vault.outline import JSONValue

START = "start"
_VALUED = frozenset({"-v", "--vault", "--config", "--env-file"})


class Allowed(TypedDict):
    """Hold the options that say how much a run may take."""

    depth: int | None
    nodes: int | None
    minutes: float | None
    tokens: int | None
    cents: int | None
    parallel: int | None


class Given(Allowed):
    """Hold the options of a new run."""

    strategy: str
    model: str
    no_code_mode: bool
    profile: Profile
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]
    fresh: bool


class Going(Allowed):
    """Hold the options of a run that goes on."""

    replay: str
    model: str
    fs_read: tuple[str, ...]
    net_allow: tuple[str, ...]


class Tasks(click.Group):
    """Take what isn't the name of a subcommand for a task."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        if args and not {"-h", "--help"} & set(args[:1]) and _first(args) not in self.commands:
            args = [START, *args]
        return super().parse_args(ctx, args)


@click.group(
    "run",
    cls=Tasks,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ('knap run "Compare our three suppliers"', "an answer, made of parts, with citations"),
        ('knap run "Plan the move" --strategy planning', "split and done in this way"),
        ('knap run "Find all notes about React" --no-code-mode', "retrieved by search, without scripts"),
        ("knap run list", "the last ones first"),
        ("knap run trace tree ID", "how its answer came to be"),
        ("knap run resume ID --replay stale", "again where notes have changed"),
    ),
)
@options.shared
def command() -> None:
    """Carry out a larger task over the notes, part by part.

    The task is split where that helps. Each part finds its own notes and answers with citations; one answer is made of
    them. What is done isn't paid again: a run that was stopped goes on, and the same part over the same notes comes
    from a cache.
    """


def _limited(function: click.decorators.FC) -> click.decorators.FC:
    """Give a command the options that say how much a run may take."""
    decorators = (
        click.option("--depth", type=int, metavar="N", help="Levels of subtasks at most."),
        click.option("--nodes", type=int, metavar="N", help="Nodes at most."),
        click.option("--minutes", type=float, metavar="N", help="How long it may take."),
        click.option("--tokens", type=int, metavar="N", help="Tokens at most; 0 for no limit."),
        click.option(
            "--cents", type=int, metavar="N", help="What it may cost, where prices are known; 0 for no limit."
        ),
        click.option("--parallel", type=int, metavar="N", help="Nodes that are worked on at the same time."),
        click.option("--fs-read", multiple=True, metavar="ROOT", help="A folder that scripts may read."),
        click.option("--net-allow", multiple=True, metavar="HOST", help="A host that scripts may get pages from."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


@command.command(START, context_settings=options.CONTEXT)
@click.argument("task", nargs=-1, required=True, type=options.TEXT)
@click.option("--strategy", default="", metavar="NAME", help="How it is split and done; `knap run strategies` lists.")
@click.option("--model", default="", metavar="NAME", help="The model, such as ollama:qwen3.")
@click.option("--no-code-mode", is_flag=True, help="Retrieve by search, not by scripts.")
@click.option(
    "--profile",
    type=click.Choice(["strict", "local", "extended"]),
    default="strict",
    show_default=True,
    help="What else scripts may read: folders (local), and pages of hosts (extended).",
)
@click.option("--fresh", is_flag=True, help="Take nothing from the cache.")
@_limited
@options.shared
@click.pass_obj
def start(said: Options, task: tuple[str, ...], **own: Unpack[Given]) -> ExitCode:
    """Carry out a task; `knap run TASK` is the same."""
    found = settings.read(said)
    order = Order(
        task=" ".join(task),
        strategy=own["strategy"] or found.runs.strategy,
        code_mode=found.runs.code_mode and not own["no_code_mode"],
        profile=own["profile"],
        fresh=own["fresh"],
        limits=_limits(opening.limits(found), own),
    )
    with _opened(said) as opened, asyncio.Runner() as runner:
        person = running.Person() if running.is_attended(said) else None
        engine = opened.engine(own["model"], person=person, roots=own["fs_read"], hosts=own["net_allow"])
        if order.code_mode and not opened.is_ready():
            output.note(said, "preparing the sandbox; this is done once and takes some seconds")
        run = runs.begin(engine, order)
        screen = running.Screen(said)
        code = running.carry_out(said, runner, runs.carry_out(engine, run.id, screen.tell), screen)
        return _told(said, opened, run.id, code)


@command.command("resume", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@click.option(
    "--replay",
    default="",
    metavar="stale|NODE",
    help="Do again what read notes that have changed, or one node and all below it.",
)
@click.option("--model", default="", metavar="NAME", help="Another model; what is done stays.")
@_limited
@options.shared
@click.pass_obj
def resume(said: Options, run_id: str, **own: Unpack[Going]) -> ExitCode:
    """Go on with a run; what is done already isn't paid again."""
    with _opened(said) as opened, asyncio.Runner() as runner:
        run = opened.runs.show(run_id).run
        person = running.Person() if running.is_attended(said) else None
        model = own["model"] or run.model
        engine = opened.engine(model, person=person, roots=own["fs_read"], hosts=own["net_allow"])
        screen = running.Screen(said)
        limits = _limits(run.order.limits, own)
        work = runs.carry_out(engine, run.id, screen.tell, replay=own["replay"], limits=limits)
        return _told(said, opened, run.id, running.carry_out(said, runner, work, screen))


@command.command("status", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@options.shared
@click.pass_obj
def status(said: Options, run_id: str) -> ExitCode:
    """Tell how a run stands, and its answer if there is one."""
    with _opened(said) as opened:
        found = opened.runs.show(run_id).as_dict()
    if said.as_json:
        output.write_json({"success": True, **found})
    else:
        output.write(said, rendered.run(found))
        if found["answer"]:
            output.write(said, "")
            running.show(said, str(found["answer"]))
    return ExitCode.OK


@command.command("list", context_settings=options.CONTEXT)
@options.number(20, 1_000)
@options.shared
@click.pass_obj
def listed(said: Options, number: int) -> ExitCode:
    """List runs, the last begun first."""
    with _opened(said) as opened:
        found, total = opened.runs.runs(limit=number)
    rows: list[JSONValue] = [run.brief() for run in found]
    text = "\n".join(rendered.line(cast("Mapping[str, JSONValue]", row)) for row in rows)
    answer = answers.stretch(rows, total, number, 0)
    return output.listing(said, answer, text, nothing="nothing was run yet")


@command.command("strategies", context_settings=options.CONTEXT)
@options.shared
@click.pass_obj
def strategies(said: Options) -> ExitCode:
    """List the strategies; your own are files in the folder `strategies` beside the configuration file."""
    known = opening.strategies(settings.read(said)).all()
    rows: list[JSONValue] = [one.as_dict() for one in known]
    text = "\n".join(f"{one.name:<12}  {one.summary}{' (your own)' if one.own else ''}" for one in known)
    return output.listing(said, answers.stretch(rows, len(rows), len(rows), 0), text, nothing="there are none")


@command.group("trace", context_settings=options.CONTEXT)
@options.shared
def trace() -> None:
    """Show how a run's answer came to be."""


@trace.command("tree", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@options.shared
@click.pass_obj
def trace_tree(said: Options, run_id: str) -> ExitCode:
    """Show a run's nodes: states, scores, citations and tokens."""
    with _opened(said) as opened:
        found = opened.runs.show(run_id).as_dict()
    if said.as_json:
        output.write_json({"success": True, **found})
    else:
        output.write(said, rendered.tree(cast("list[Mapping[str, JSONValue]]", found["nodes"])))
    return ExitCode.OK


@trace.command("node", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@click.argument("node_id", metavar="NODE")
@options.shared
@click.pass_obj
def trace_node(said: Options, run_id: str, node_id: str) -> ExitCode:
    """Show one node: its scripts, scores, sources, answer and tokens."""
    with _opened(said) as opened:
        found = opened.runs.node(run_id, node_id).as_dict()
    if said.as_json:
        output.write_json({"success": True, **found})
    else:
        output.write(said, rendered.node(found))
    return ExitCode.OK


@command.command("export", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@click.argument("path", type=options.TEXT)
@click.option("-y", "--yes", is_flag=True, help="Your word: write it at once.")
@options.shared
@click.pass_obj
def save(said: Options, run_id: str, path: str, *, yes: bool) -> ExitCode:
    """Propose a run's answer as a note (PATH ends in .md), or with its parts' answers in a folder."""
    with _opened(said) as opened:
        shown = opened.runs.show(run_id)
        if not shown.run.answer:
            raise BadInput(f"the run {shown.run.id} has no answer yet", hint=f"`knap run resume {shown.run.id}`")
        asked = Asked(run=shown.run.id, propose=not yes, person_word=yes, reason=f"run {shown.run.id}")
        context = opened.hub.context(client="cli", asked=asked)
        return writing.tell(said, answers.several(context, export.requests(shown.run, shown.nodes, path)))


@command.command("cancel", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@options.shared
@click.pass_obj
def cancel(said: Options, run_id: str) -> ExitCode:
    """End a run that goes on, in whichever process; what is done is kept."""
    with _opened(said) as opened:
        run = opened.runs.show(run_id).run
        asked = opened.runs.cancel(run.id)
    if said.as_json:
        output.write_json({"success": True, "id": run.id, "cancelling": asked})
    else:
        output.write(said, f"{run.id} is being ended" if asked else f"{run.id} doesn't go on: {run.state}")
    return ExitCode.OK if asked else ExitCode.NOTHING


@command.command("delete", context_settings=options.CONTEXT)
@click.argument("run_id", metavar="ID")
@options.shared
@click.pass_obj
def delete(said: Options, run_id: str) -> ExitCode:
    """Forget a run; what was exported stays, and can be undone."""
    with _opened(said) as opened:
        run = opened.runs.show(run_id).run
        opened.runs.delete(run.id)
    if said.as_json:
        output.write_json({"success": True, "id": run.id, "deleted": True})
    else:
        output.write(said, f"{run.id} deleted")
    return ExitCode.OK


@contextmanager
def _opened(said: Options) -> Generator[TaskRuns]:
    with app.open_hub(settings.read(said)) as hub, opening.open_runs(hub) as opened:
        yield opened


def _told(said: Options, opened: TaskRuns, run_id: str, code: ExitCode) -> ExitCode:
    if said.as_json:
        found = opened.runs.show(run_id)
        output.write_json({"success": _has_answer(found.run), **found.as_dict()})
    return code


def _has_answer(run: Run) -> bool:
    return run.state in {"complete", "partial"}


def _limits(usual: Limits, own: Allowed) -> Limits:
    """Give a run's limits, where options say otherwise than usual."""
    said: dict[str, float | int] = {}
    for name in ("depth", "nodes", "tokens", "cents", "parallel"):
        value = own[name]
        if value is not None:
            said[name] = value
    if own["minutes"] is not None:
        said["seconds"] = own["minutes"] * 60
    return replace(usual, **said)


def _first(args: list[str]) -> str:
    """Give the first argument that is no option of all commands, nor a value of one."""
    rest = iter(args)
    for arg in rest:
        if arg in _VALUED:
            _ = next(rest, "")
        elif arg not in {"--json", "-q", "--quiet", "--no-color"}:
            return arg
    return ""
