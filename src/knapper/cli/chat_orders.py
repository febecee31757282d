"""Carry out what a person orders in a chat with a slash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.agents.sessions import store as sessions_store
from knapper.cli import decisions, lines, output
from knapper.cli.render import outcomes, waiting
from knapper.errors import KnapError
from knapper.tools import files, journal, proposals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from knapper.cli.talks import Talk
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context


HELP: Final = """\
/help            this list
/model [NAME]    the model that answers, or another one
/edits           what waits for your word in this session, to be accepted or rejected
/undo            take back what was last changed in this session
/clear           begin anew; what was said isn't sent to the model again
/save [PATH]     keep the conversation as a note
/exit            end the chat"""


def obey(talk: Talk, text: str) -> bool:
    """Carry out an order; tells whether the chat goes on."""
    name, _, rest = text[1:].partition(" ")
    if name in {"exit", "quit", "q"}:
        return False
    order = _ORDERS.get(name)
    if order is None:
        output.note(talk.said, f"there is no /{output.plain(name)}; /help lists what there is")
        return True
    try:
        order(talk, rest.strip())
    except KnapError as error:
        output.error(error.message, error.hint)
    return True


def _help(talk: Talk, rest: str) -> None:
    del rest
    output.write(talk.said, HELP)


def _model(talk: Talk, name: str) -> None:
    if name:
        talk.chat = talk.chats.chat(name)
    output.write(talk.said, talk.chat.name)


def _edits(talk: Talk, rest: str) -> None:
    del rest
    with _person(talk) as context:
        found = proposals.list_proposals(context, "open")
        rows = [row for row in outcomes.rows(found, "results") if row.get("run") == talk.session.id]
        if not rows:
            output.note(talk.said, "nothing waits in this session; `knap edits` lists all that waits")
        for row in rows:
            if lines.is_terminal():
                decisions.review(talk.said, context, str(row["id"]))
            else:
                output.write(talk.said, waiting.proposal(proposals.show_proposal(context, str(row["id"]))))


def _undo(talk: Talk, rest: str) -> None:
    del rest
    with _person(talk) as context:
        changed = _last_change(talk, context)
        if not changed:
            output.note(talk.said, "nothing was changed in this session that isn't undone")
            return
        output.write(talk.said, outcomes.text(journal.undo_change(context, changed)))


def _last_change(talk: Talk, context: Context) -> str:
    """Find the last change of the session that holds: one of the model's, or one that the person let it make."""
    made = outcomes.rows(journal.list_changes(context, run=talk.session.id), "results")
    return next((str(row["id"]) for row in made if not row.get("undone") and not row.get("undoes")), "")


def _clear(talk: Talk, rest: str) -> None:
    del rest
    talk.session = talk.chats.store.clear(talk.session.id)
    output.note(talk.said, "begun anew")


def _save(talk: Talk, path: str) -> None:
    store = talk.chats.store
    session = store.get(talk.session.id)
    turns = store.turns(session.id)
    if not turns:
        output.note(talk.said, "nothing was said yet")
        return
    path = path or sessions_store.export_path(session, turns)
    with _person(talk) as context:
        answer: Mapping[str, JSONValue] = files.create_file(
            context, path, sessions_store.write_session_markdown(session, turns)
        )
    output.write(talk.said, outcomes.text(answer))


def _person(talk: Talk) -> Context:
    """Open the vault as the person at the terminal, who may accept and undo."""
    return talk.chats.hub.context(client="cli", vault=talk.chats.vault)


_ORDERS: Final[Mapping[str, Callable[[Talk, str], None]]] = {
    "help": _help,
    "model": _model,
    "edits": _edits,
    "undo": _undo,
    "clear": _clear,
    "save": _save,
}
