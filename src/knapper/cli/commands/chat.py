"""Talk with a model about the notes."""

import asyncio
from dataclasses import dataclass
from typing import TypedDict, Unpack

import click

from knapper import app
from knapper.agents.chat import Chat, Tell
from knapper.agents.conversations import Said
from knapper.agents.events import Done
from knapper.agents.sessions.records import Session
from knapper.app import chats
from knapper.app.chats import Chats
from knapper.cli import chat_orders, conversing, lines, options, output, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options

_WELCOME = "{model} on the vault '{vault}'. /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat."


class Given(TypedDict):
    """Hold the command's own options."""

    model: str
    note: str
    session: str
    new: bool


@dataclass(slots=True, kw_only=True)
class Talk:
    """Hold what a chat at the terminal goes on with."""

    said: Options
    chats: Chats
    chat: Chat
    session: Session
    note: str
    runner: asyncio.Runner

    def reply(self, text: str) -> bool:
        """Have a message answered; tells whether the answer wasn't stopped."""

        async def work(tell: Tell) -> Done:
            told = Said(text=text, active_file=self.note)
            return await self.chats.conversations.reply(self.chat, self.session.id, told, tell)

        screen = conversing.screen(self.said)
        finished = conversing.answer(self.runner, work, screen)
        if screen.error:
            output.note(self.said, f"error: {screen.error.error}")
            if screen.error.hint:
                output.note(self.said, f"hint: {screen.error.hint}")
        return finished


@click.command(
    "chat",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap chat", "go on where you were"),
        ("knap chat --note Projects/Garden.md", "about one note"),
        ("knap chat --model ollama:qwen3 --new", "another model, from the beginning"),
    ),
)
@click.option("--model", default="", metavar="NAME", help="The model, such as ollama:qwen3.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="The note that it is about.")
@click.option("--session", default="", metavar="ID", help="Go on in this session.")
@click.option("--new", is_flag=True, help="Begin a new session.")
@options.shared
@click.pass_obj
def command(said: Options, **own: Unpack[Given]) -> ExitCode:
    """Talk with a model about the notes.

    What it changes waits for your word. Each note has a session of its own, and so has the vault as a whole.
    """
    found = settings.read(said)
    with app.open_hub(found, only=True) as hub, chats.open_chats(hub) as opened, asyncio.Runner() as runner:
        chat = opened.chat(own["model"])
        talk = Talk(
            said=said,
            chats=opened,
            chat=chat,
            session=_session(opened, own),
            note=own["note"],
            runner=runner,
        )
        output.note(said, _WELCOME.format(model=chat.name, vault=opened.vault))
        return _go_on(talk)


def _session(opened: Chats, own: Given) -> Session:
    if own["session"]:
        return opened.store.get(own["session"])
    if own["new"]:
        return opened.store.begin(file=own["note"])
    return opened.conversations.route(own["note"])


def _go_on(talk: Talk) -> ExitCode:
    """Read lines until there are no more."""
    failed = False
    with lines.history(talk.chats.conversations.folder / "chat_history"):
        while (text := lines.read("> ")) is not None:
            if not text.strip():
                continue
            if text.startswith("/"):
                if not chat_orders.obey(talk, text):
                    break
                continue
            failed = not talk.reply(text) and not lines.is_terminal()
    return ExitCode.INTERRUPTED if failed else ExitCode.OK
