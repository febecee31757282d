"""Look after conversations."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from knapper import app
from knapper.agents.sessions import store as sessions_store
from knapper.agents.sessions.store import NamedSession, SessionStore
from knapper.app import Hub, clients, schedules
from knapper.cli import options, output, setup, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.tools import files


@click.group(
    "sessions",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap sessions", "newest first"),
        ("knap sessions show ID", "its messages"),
        ("knap sessions export ID Chats/Garden.md", "as a note"),
        ("knap chat --session ID", "continue one"),
    ),
)
@options.limit_option(20, 1_000)
@options.shared_options
@click.pass_context
def command(ctx: click.Context, number: int) -> ExitCode | None:
    """List, show, export and manage chat sessions."""
    if ctx.invoked_subcommand:
        return None
    global_options = ctx.ensure_object(GlobalOptions)
    with app.open_hub(setup.read_settings(global_options), only=True) as hub, schedules.open_sessions(hub) as opened:
        newest, total = clients.list_sessions(opened, limit=number)
        listed = [(one.as_dict(), opened[client].is_locked(one.id), client) for client, one in newest]
    rows = [{**row, "busy": is_busy, "client": client or None} for row, is_busy, client in listed]
    answer: dict[str, object] = {"success": True, "results": rows, "total": total, "limit": number, "offset": 0}
    text = "\n".join(_session_line(row, is_busy=is_busy, client=client) for row, is_busy, client in listed)
    return output.print_listing(
        global_options,
        answer,
        text,
        nothing="no conversation here yet; `knap chat` begins one, and the page and the plugin list their own",
    )


@command.command("show")
@click.argument("session", metavar="ID")
@options.pass_options
def show(global_options: GlobalOptions, session: str) -> ExitCode:
    """Show the messages of a session."""
    with _open_store(global_options, session) as (_, _, store):
        record, turns = store.get(session), store.turns(session)
    fields = {**record.as_dict(), "turns": [turn.as_dict() for turn in turns]}
    return output.print_result(
        global_options, fields, output.plain(sessions_store.write_session_markdown(record, turns)).rstrip("\n")
    )


@command.command("export")
@click.argument("session", metavar="ID")
@click.argument("path", type=options.TEXT)
@options.pass_options
def save(global_options: GlobalOptions, session: str, path: str) -> ExitCode:
    """Export a session as a new note."""
    with _open_store(global_options, session) as (hub, _, store):
        text = sessions_store.write_session_markdown(store.get(session), store.turns(session))
        return writing.report_changes(global_options, files.create_file(hub.context(client="cli"), path, text))


@command.command("rename")
@click.argument("session", metavar="ID")
@click.argument("name", type=options.TEXT)
@options.pass_options
def rename(global_options: GlobalOptions, session: str, name: str) -> ExitCode:
    """Rename a session."""
    with _open_store(global_options, session) as (_, _, store):
        return _print_session(global_options, store.rename(session, name).as_dict())


@command.command("fork")
@click.argument("session", metavar="ID")
@click.option("--upto", type=click.IntRange(1), default=None, metavar="N", help="Copy only the first N messages.")
@options.pass_options
def fork(global_options: GlobalOptions, session: str, upto: int | None) -> ExitCode:
    """Start a new session from a copy of another one."""
    with _open_store(global_options, session) as (hub, client, store):
        return _print_session(global_options, clients.fork(hub, store, session, upto, client=client).as_dict())


@command.command("clear")
@click.argument("session", metavar="ID")
@options.pass_options
def clear(global_options: GlobalOptions, session: str) -> ExitCode:
    """Restart a session without its history.

    Earlier messages are kept but no longer sent to a model.
    """
    with _open_store(global_options, session) as (_, _, store):
        return _print_session(global_options, store.clear(session).as_dict())


@command.command("delete")
@click.argument("session", metavar="ID")
@options.pass_options
def delete(global_options: GlobalOptions, session: str) -> ExitCode:
    """Delete a session.

    Changes made to notes stay and can be undone.
    """
    with _open_store(global_options, session) as (_, _, store):
        store.delete(session)
    return output.print_result(global_options, {"id": session, "deleted": True}, f"{session} deleted")


@contextmanager
def _open_store(options: GlobalOptions, session: str) -> Generator[tuple[Hub, str, SessionStore]]:
    """Open the sessions among which one is, with the name of the client that a schedule works for, if they are its."""
    with (
        app.open_hub(setup.read_settings(options), only=True) as hub,
        schedules.open_sessions(hub, session) as opened,
    ):
        ((client, kept),) = opened.items()
        yield hub, client, kept


def _print_session(options: GlobalOptions, row: NamedSession) -> ExitCode:
    return output.print_result(options, row, _session_line(row))


def _session_line(row: NamedSession, *, is_busy: bool = False, client: str = "") -> str:
    about = f"  {output.plain(row['active_file'])}" if row["active_file"] else ""
    name = output.plain(row["name"] or "nothing said yet").replace("\n", " ")
    moment = changes.format_time(row["updated"])
    busy = click.style("  … at work", fg="cyan") if is_busy else ""
    busy += f"  for {output.plain(client)}" if client else ""
    head = f"{click.style(row['id'], fg='yellow')}  {moment}"
    return f"{head}  {output.pluralize(row['turns'], 'message')}{busy}{about}  {name}"
