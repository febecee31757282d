"""Hold what a chat at the terminal goes on with."""

import asyncio
from dataclasses import dataclass

from knapper.agents.chat.conversations import SessionMessage
from knapper.agents.chat.turn import ChatConfig, EventSink
from knapper.agents.events import Done
from knapper.agents.sessions.store import Session
from knapper.app.chats import VaultChats
from knapper.cli import conversing, output
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options


@dataclass(slots=True, kw_only=True)
class Talk:
    """Hold what a chat at the terminal goes on with."""

    said: Options
    chats: VaultChats
    chat: ChatConfig
    session: Session
    note: str
    runner: asyncio.Runner

    def reply(self, text: str) -> ExitCode:
        """Have a message answered; gives the exit code that tells how that ended."""

        async def work(tell: EventSink) -> Done:
            told = SessionMessage(text=text, active_file=self.note)
            return await self.chats.conversations.reply(self.chat, self.session.id, told, tell)

        screen = conversing.screen(self.said)
        finished = conversing.answer(self.runner, work, screen)
        if screen.error is not None:
            output.error(screen.error.error, screen.error.hint)
        return conversing.code(screen) if finished else ExitCode.INTERRUPTED
