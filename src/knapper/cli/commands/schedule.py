"""Let agents work by themselves: daily, weekly, or when a folder has changed."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

import click

from knapper import app
from knapper.agents import stages as stored_schedules
from knapper.agents.stages import Schedule, ScheduleStore
from knapper.app import Hub, schedules
from knapper.app.open_clients import OpenClients
from knapper.app.schedules import ScheduleRunner
from knapper.cli import options, output, setup
from knapper.cli.options import AgentName, GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.server import addresses


class ScheduleOptions(TypedDict):
    """The options that ``add`` and ``edit`` share; None for what isn't given."""

    daily: bool
    weekly: str | None
    changed: str | None
    at: str | None
    tokens: int | None
    minutes: int | None
    results: str | None
    max_open: int | None
    client: str | None
    may_apply: bool | None


class NewScheduleOptions(ScheduleOptions):
    """The options of ``add``."""

    name: str


class ScheduleEditOptions(ScheduleOptions):
    """The options of ``edit``."""

    agent: str | None


def _time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say when a schedule is due, but for the time of the day."""
    return options.decorate(
        command,
        click.option("--daily", is_flag=True, help="Every day."),
        click.option("--weekly", metavar="DAY", help="Every week on this day, such as sunday."),
        click.option(
            "--changed", metavar="FOLDER", type=options.TEXT, help="When notes below this folder have changed."
        ),
    )


def _run_options(command: Callable[..., Any], *, has_defaults: bool) -> Callable[..., Any]:
    """Add the options of each run: its limits, the place of its report, and whose rules hold for it."""
    usual = stored_schedules

    def option(name: str, default: str | int, help_text: str, **more: Any) -> Callable[..., Any]:  # noqa: ANN401 - click's
        return click.option(
            name, default=default if has_defaults else None, show_default=has_defaults, help=help_text, **more
        )

    waiting_help = "Do nothing while so many of its proposals wait for review."
    client_help = "Client whose rules hold for it, beside those of the agent."
    reports_help = "Folder for the reports; empty for none."
    return options.decorate(
        command,
        option("--tokens", usual.DEFAULT_TOKENS, "Most tokens of one run.", type=click.IntRange(*usual.TOKEN_RANGE)),
        option("--minutes", usual.DEFAULT_MINUTES, "Most time of one run.", type=click.IntRange(*usual.MINUTE_RANGE)),
        option("--results", usual.DEFAULT_RESULTS, reports_help, metavar="FOLDER", type=options.TEXT),
        option("--max-open", usual.DEFAULT_MAX_OPEN, waiting_help, type=click.IntRange(*usual.OPEN_RANGE)),
        option("--client", usual.DEFAULT_CLIENT, client_help, metavar="NAME"),
    )


def _read_fields(own: ScheduleOptions) -> dict[str, Any]:
    """Return the fields of a schedule that the options say."""
    fields: dict[str, Any] = {
        "folder": own["changed"],
        "max_tokens": own["tokens"],
        "max_minutes": own["minutes"],
        "results": own["results"],
        "max_open": own["max_open"],
        "client": own["client"],
        "may_apply": own["may_apply"],
        "at": None if own["at"] is None else stored_schedules.parse_time(own["at"]),
        "weekday": None if own["weekly"] is None else stored_schedules.parse_weekday(own["weekly"]),
    }
    if own["daily"]:
        fields["cadence"] = "daily"
    elif own["weekly"] is not None or own["changed"] is not None:
        fields["cadence"] = "changed" if own["weekly"] is None else "weekly"
    return {field: value for field, value in fields.items() if value is not None}


@click.group(
    "schedule",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap schedule add weekly-review --weekly sunday --at 18:00", "every week"),
        ("knap schedule", "what is scheduled, and what became of it"),
        ("knap schedule run weekly-review", "now, and wait for it"),
        ("knap schedule pause weekly-review", "until `knap schedule resume weekly-review`"),
        ("knap schedule edit weekly-review --at 7:30", "at another time"),
        ("knap schedule remove weekly-review", "its proposals and reports stay"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Let agents work by themselves while the server runs.

    `knap serve`, or the service, looks at the schedules twice a minute. What a schedule's agent writes waits as a
    proposal, and while too many of them wait, it does nothing. Times that were missed are caught up once.
    """
    return None if ctx.invoked_subcommand else ctx.invoke(listed)


@command.command("list", epilog=options.examples(("knap schedule list --json", "for programs")))
@options.pass_options
def listed(global_options: GlobalOptions) -> ExitCode:
    """List the schedules, when each is due, and what became of it."""
    with _open_store(global_options) as (_, store):
        stored = store.all()
    now = stored_schedules.wall_clock()
    rows = [one.as_dict(now) for one in stored]
    answer: dict[str, object] = {"success": True, "results": rows, "total": len(rows)}
    text = "\n".join(_line(one) for one in stored)
    return output.print_listing(
        global_options, answer, text, nothing="nothing is scheduled; `knap schedule add` schedules"
    )


@command.command(
    "add",
    epilog=options.examples(
        ("knap schedule add weekly-review --weekly sunday --at 18:00", "every week"),
        ("knap schedule add weekly-review --daily --name nightly --at 3:00", "every night, under another name"),
        ("knap schedule add weekly-review --changed Inbox", "once notes in a folder have changed, and rest again"),
        ("knap schedule add weekly-review --daily --tokens 50000 --max-open 5", "within tighter limits"),
    ),
)
@click.argument("agent", metavar="AGENT", type=AgentName())
@_time_options
@click.option("--at", default="18:00", metavar="TIME", show_default=True, help="Time of the day, by the local clock.")
@click.option("--name", default="", metavar="NAME", help="Name of the schedule.  [default: the agent's]")
@partial(_run_options, has_defaults=True)
@click.option("--apply", "may_apply", is_flag=True, help="Apply what the rules of agent and client both allow.")
@options.pass_options
def add(global_options: GlobalOptions, agent: str, **own: Unpack[NewScheduleOptions]) -> ExitCode:
    """Add a schedule: daily, weekly, or when a folder has changed."""
    own["weekly"], own["changed"] = own["weekly"] or None, own["changed"] or None
    if sum([own["daily"], bool(own["weekly"]), bool(own["changed"])]) != 1:
        raise BadInput("it isn't clear when it is due", hint="give one of --daily, --weekly DAY, --changed FOLDER")
    with _open_store(global_options) as (hub, store):
        setup.note_unknown_client(global_options, hub.settings, own["client"] or "")
        fields, vault = _read_fields(own), hub.vaults[0]
        blank = Schedule(
            name=own["name"] or agent, agent=agent, cadence="weekly", handled=stored_schedules.wall_clock()
        )
        schedule = replace(blank, **fields)
        added = store.add(schedules.prepare(hub, schedule, vault, "cli"))
        code = _print_schedule(global_options, added, "added")
        if not hub.settings.model.name:
            output.note(global_options, "no model is set, and it needs one: `knap setup`")
        if addresses.find_server(hub.settings.state_dir) is None:
            output.note(global_options, "no server runs, which does the work: `knap serve` or `knap service install`")
        return code


@command.command(
    "edit",
    epilog=options.examples(
        ("knap schedule edit weekly-review --weekly friday --at 7:30", "at another time"),
        ("knap schedule edit nightly --tokens 50000 --propose", "within tighter limits"),
    ),
)
@click.argument("name", type=options.TEXT)
@click.option("--agent", type=AgentName(), help="Another agent.")
@_time_options
@click.option("--at", metavar="TIME", help="Time of the day, by the local clock.")
@partial(_run_options, has_defaults=False)
@click.option(
    "--apply/--propose", "may_apply", default=None, help="Apply what the rules of agent and client both allow, or not."
)
@options.pass_options
def edit(global_options: GlobalOptions, name: str, **own: Unpack[ScheduleEditOptions]) -> ExitCode:
    """Change a schedule.

    What isn't named stays. By another time, it is due from now on.
    """
    if sum([own["daily"], own["weekly"] is not None, own["changed"] is not None]) > 1:
        raise BadInput("it isn't clear when it is due", hint="give one of --daily, --weekly DAY, --changed FOLDER")
    fields = _read_fields(own) | ({} if own["agent"] is None else {"agent": own["agent"]})
    if not fields:
        raise BadInput("nothing is to be changed", hint="`knap schedule edit --help` lists the options", code="usage")
    with _open_store(global_options) as (hub, store):
        changed = schedules.edit(hub, store, hub.vaults[0], "cli", name, lambda one: replace(one, **fields))
        return _print_schedule(global_options, changed, "changed")


@command.command("remove", epilog=options.examples(("knap schedule remove nightly", "its proposals and reports stay")))
@click.argument("name", type=options.TEXT)
@options.pass_options
def remove(global_options: GlobalOptions, name: str) -> ExitCode:
    """Remove a schedule."""
    with _open_store(global_options) as (_, store):
        store.remove(name)
    fields: Mapping[str, object] = {"name": name, "removed": True}
    return output.print_result(global_options, fields, f"{output.plain(name)} removed")


@command.command(
    "pause",
    epilog=options.examples(("knap schedule pause nightly", "until `knap schedule resume nightly`")),
)
@click.argument("name", type=options.TEXT)
@options.pass_options
def pause(global_options: GlobalOptions, name: str) -> ExitCode:
    """Pause a schedule."""
    with _open_store(global_options) as (_, store):
        return _print_schedule(global_options, store.change(name, lambda one: replace(one, is_paused=True)), "paused")


@command.command(
    "cancel",
    epilog=options.examples(("knap schedule cancel nightly", "what it has proposed so far, is kept")),
)
@click.argument("name", type=options.TEXT)
@options.pass_options
def cancel(global_options: GlobalOptions, name: str) -> ExitCode:
    """Cancel the run of a schedule.

    It may be at work in the server or elsewhere. What it has by then is kept, and its next time comes as usual.
    """
    with _open_store(global_options) as (_, store):
        return _print_schedule(global_options, store.cancel(name), "cancelled")


@command.command(
    "resume",
    epilog=options.examples(("knap schedule resume nightly", "what was missed meanwhile isn't caught up")),
)
@click.argument("name", type=options.TEXT)
@options.pass_options
def resume(global_options: GlobalOptions, name: str) -> ExitCode:
    """Resume a schedule.

    What it missed while it was paused isn't caught up.
    """
    with _open_store(global_options) as (hub, store):
        changed = schedules.edit(hub, store, hub.vaults[0], "cli", name, lambda one: replace(one, is_paused=False))
        return _print_schedule(global_options, changed, "resumed")


@command.command("run", epilog=options.examples(("knap schedule run nightly", "now, whether it is due or paused")))
@click.argument("name", type=options.TEXT)
@options.pass_options
def run_now(global_options: GlobalOptions, name: str) -> ExitCode:
    """Run a schedule now, as the server would, and wait for it."""

    async def work(hub: Hub, store: ScheduleStore) -> Schedule:
        with closing(OpenClients(hub)) as opened:
            return await ScheduleRunner(clients=opened).run(store, hub.vaults[0], name)

    with _open_store(global_options) as (hub, store):
        _ = store.find(name)
        ended = asyncio.run(work(hub, store))
    code = _print_schedule(global_options, ended, "ran")
    return ExitCode.FAILED if ended.last is not None and ended.last.state == "failed" else code


@contextmanager
def _open_store(global_options: GlobalOptions) -> Generator[tuple[Hub, ScheduleStore]]:
    with app.open_hub(setup.read_settings(global_options), only=True) as hub:
        yield hub, schedules.open_schedules(hub)


def _print_schedule(global_options: GlobalOptions, schedule: Schedule, word: str) -> ExitCode:
    text = f"{word}: {_line(schedule)}"
    return output.print_result(global_options, {"schedule": schedule.as_dict(stored_schedules.wall_clock())}, text)


def _line(schedule: Schedule) -> str:
    """Return a schedule in one line, and what became of it in another one."""
    due = schedule.next_at(stored_schedules.wall_clock())
    following = "paused" if schedule.is_paused else f"next {due:%Y-%m-%d %H:%M}" if due else "waits for a change"
    line = output.plain(f"{schedule.name}: {schedule.agent}, {schedule.describe()}; {following}")
    last = schedule.last
    if last is None:
        return line
    parts = [f"{last.at:%Y-%m-%d %H:%M} {last.state}"]
    parts += [f"{last.proposals} proposed"] if last.proposals else []
    parts += [f"{last.changes} applied, `knap undo --run {last.session_id}` takes it back"] if last.changes else []
    parts += [part for part in (last.note, last.reason) if part]
    return f"{line}\n  {output.plain('; '.join(parts))}"
