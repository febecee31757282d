"""Look after conversations."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import click

from knapper import app
from knapper.agents.sessions import locks
from knapper.agents.sessions import store as sessions_store
from knapper.agents.sessions.store import SessionStore
from knapper.app import sessions
from knapper.cli import options, output, settings, writing
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import amounts, listings
from knapper.jsontypes import JSONValue
from knapper.tools import files


@click.group(
    "sessions",
    invoke_without_command=True,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap sessions", "the last ones first"),
        ("knap sessions show ID", "what was said"),
        ("knap sessions export ID Chats/Garden.md", "as a note"),
        ("knap chat --session ID", "go on with one"),
    ),
)
@options.number(20, 1_000)
@options.shared
@click.pass_context
def command(ctx: click.Context, number: int) -> ExitCode | None:
    """List the conversations with a model."""
    if ctx.invoked_subcommand:
        return None
    said = ctx.ensure_object(Options)
    with _opened(said) as (store, folder):
        found, total = store.list(limit=number)
        rows: list[JSONValue] = [{**one.as_dict(), "busy": locks.is_session_locked(folder, one.id)} for one in found]
    answer: dict[str, object] = {"success": True, "results": rows, "total": total, "limit": number, "offset": 0}
    text = "\n".join(_line(cast("Mapping[str, JSONValue]", row)) for row in rows)
    return output.listing(said, answer, text, nothing="nothing was said yet")


@command.command("show", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@options.shared
@click.pass_obj
def show(said: Options, session: str) -> ExitCode:
    """Show what was said in a conversation."""
    with _store(said) as store:
        found, turns = store.get(session), store.turns(session)
    shown = {**found.as_dict(), "turns": [turn.as_dict() for turn in turns]}
    return output.result(said, shown, output.plain(sessions_store.write_session_markdown(found, turns)).rstrip("\n"))


@command.command("export", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@click.argument("path", type=options.TEXT)
@options.shared
@click.pass_obj
def save(said: Options, session: str, path: str) -> ExitCode:
    """Keep a conversation as a new note."""
    found = settings.read(said)
    with app.open_hub(found, only=True) as hub, sessions.open_sessions(hub) as store:
        text = sessions_store.write_session_markdown(store.get(session), store.turns(session))
        return writing.tell(said, files.create_file(hub.context(client="cli"), path, text))


@command.command("rename", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@click.argument("name", type=options.TEXT)
@options.shared
@click.pass_obj
def rename(said: Options, session: str, name: str) -> ExitCode:
    """Give a conversation another name."""
    with _store(said) as store:
        return _told(said, store.rename(session, name).as_dict())


@command.command("fork", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@click.option("--upto", type=click.IntRange(1), default=None, metavar="N", help="Take over the first N messages only.")
@options.shared
@click.pass_obj
def fork(said: Options, session: str, upto: int | None) -> ExitCode:
    """Begin a conversation that goes on from another one."""
    with _store(said) as store:
        return _told(said, store.fork(session, upto=upto).as_dict())


@command.command("clear", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@options.shared
@click.pass_obj
def clear(said: Options, session: str) -> ExitCode:
    """Let a conversation begin anew.

    Its past isn't sent to a model again.
    """
    with _store(said) as store:
        return _told(said, store.clear(session).as_dict())


@command.command("delete", context_settings=options.CONTEXT)
@click.argument("session", metavar="ID")
@options.shared
@click.pass_obj
def delete(said: Options, session: str) -> ExitCode:
    """Delete a conversation.

    What it changed in notes stays, and can be undone.
    """
    with _store(said) as store:
        store.delete(session)
    return output.result(said, {"id": session, "deleted": True}, f"{session} deleted")


@contextmanager
def _opened(said: Options) -> Generator[tuple[SessionStore, Path]]:
    """Open the conversations, with the folder in which those that go on are held."""
    with app.open_hub(settings.read(said), only=True) as hub, sessions.open_sessions(hub) as store:
        yield store, hub.open().folder


@contextmanager
def _store(said: Options) -> Generator[SessionStore]:
    with _opened(said) as (store, _):
        yield store


def _told(said: Options, row: Mapping[str, JSONValue]) -> ExitCode:
    return output.result(said, row, _line(row))


def _line(row: Mapping[str, JSONValue]) -> str:
    turns = cast("int", row["turns"])
    about = f"  {output.plain(str(row['active_file']))}" if row["active_file"] else ""
    name = output.plain(str(row["name"] or "nothing said yet")).replace("\n", " ")
    moment = listings.moment(str(row["updated"]))
    busy = click.style("  … at work", fg="cyan") if row.get("busy") else ""
    head = f"{click.style(str(row['id']), fg='yellow')}  {moment}"
    return f"{head}  {amounts.count(turns, 'message')}{busy}{about}  {name}"
