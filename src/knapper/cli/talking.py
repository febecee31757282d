"""Carry out a chat at the terminal: read lines, have each answered or obeyed, until there are no more."""

import asyncio

from knapper import app
from knapper.agents.sessions.store import Session
from knapper.app import chats
from knapper.app.chats import VaultChats
from knapper.cli import chat_orders, lines, output, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.talks import Talk
from knapper.errors import BadInput

_WELCOME = "{model} on the vault '{vault}'. /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat."


def talk(said: Options, *, model: str, note: str, session: str, new: bool) -> ExitCode:
    """Talk until the person ends it.

    Args:
        said: The shared options.
        model: The model's name; empty for the configured one.
        note: The note that it is about; empty for none.
        session: The session to go on in; empty for the note's last one.
        new: Begin a new session.

    Raises:
        BadInput: JSON is wanted.
        SetupError: The model can't answer.
        NotFound: There is no such session, or no such note.
    """
    if said.as_json:
        raise BadInput("a chat isn't told as JSON", hint="`knap ask --json` answers one question", code="usage")
    found = settings.read(said)
    with app.open_hub(found, only=True) as hub, chats.open_chats(hub) as opened, asyncio.Runner() as runner:
        chat = opened.chat(model)
        going = Talk(
            said=said,
            chats=opened,
            chat=chat,
            session=_session(opened, session, note, new=new),
            note=note,
            runner=runner,
        )
        output.note(said, _WELCOME.format(model=chat.name, vault=opened.vault))
        return _go_on(going)


def _session(opened: VaultChats, session: str, note: str, *, new: bool) -> Session:
    if note:
        _ = opened.conversations.context_of("").view.path(note)  # so that a mistyped one begins no session of its own
    if session:
        return opened.store.get(session)
    return opened.store.begin(file=note) if new else opened.conversations.route(note)


def _go_on(talk: Talk) -> ExitCode:
    """Read lines until there are no more; a program is told how the last one ended."""
    code = ExitCode.OK
    with lines.history(talk.chats.conversations.folder / "chat_history"):
        while (text := lines.read("> ")) is not None:
            if not text.strip():
                continue
            if text.startswith("/"):
                if not chat_orders.obey(talk, text):
                    break
                continue
            code = talk.reply(text)
    return ExitCode.OK if lines.is_terminal() else code
