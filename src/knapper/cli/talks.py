"""Hold what a chat at the terminal goes on with."""

import asyncio
from dataclasses import dataclass

from knapper.agents.chat import Chat, Tell
from knapper.agents.conversations import Said
from knapper.agents.events import Done
from knapper.agents.sessions.records import Session
from knapper.app.chats import Chats
from knapper.cli import conversing, output
from knapper.cli.options import Options


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
