"""Begin turns of chats, find them again, and end them with the server."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from knapper.agents.sessions import locks
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.server.http.ongoing import Ongoing
from knapper.server.threads import Threads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from knapper.agents.background import JobEventSink, TurnJob
    from knapper.agents.chat.turn import ChatConfig
    from knapper.agents.sessions.store import Session
    from knapper.app.chatting import Chatting, Room


_THREADS: Final = 8
"""For looking up sessions and opening models; never for tools, so that slow ones hold no chat up."""
T = TypeVar("T")


class Talks:
    """Hold the chats of one server; used from its event loop."""

    def __init__(self, open_chatting: Callable[[], Chatting]) -> None:
        """Begin without any.

        Args:
            open_chatting: Opens what holds them; called once, in a thread, when the first client wants it.
        """
        self._open = open_chatting
        self._chatting: Chatting | None = None
        self._lock = threading.Lock()
        self._threads = Threads(_THREADS)
        self.ongoing = Ongoing()

    async def work(self, work: Callable[[], T]) -> T:
        """Do something that blocks in a thread."""
        return await self._threads.run("read", work)

    async def room(self, client: str, vault: str) -> Room:
        """Give a client's room in a vault.

        Raises:
            KnapError: It can't be opened.
        """
        return await self.work(lambda: self._all().room(client, vault))

    async def begin(self, room: Room, text: str, active_file: str, session_id: str = "") -> TurnJob:
        """Begin to answer a message.

        Args:
            room: Of who says it.
            text: The message.
            active_file: The note that the person looks at; empty for none.
            session_id: The session; empty for the open note's.

        Raises:
            BadInput: The message is empty.
            NotFound: There is no such session.
            ConflictError: It answers another message (code ``session_busy``).
            SetupError: There is no model.
            StorageError: The server stops (code ``stopping``).
            KnapError: The note is hidden, or too many turns go on.
        """
        from knapper.agents.chat.conversations import SessionMessage  # noqa: PLC0415 - a server without chats needn't pay for models

        if not text.strip():
            raise BadInput("the message is empty", hint="say something")

        def prepare() -> tuple[Session, ChatConfig]:
            room.check(active_file)
            if session_id:
                return room.store.get(session_id), room.chat()
            chat = room.chat()  # first, so that where no model is set up, no session is begun
            return room.session(active_file), chat

        session, chat = await self.work(prepare)
        if running(room, session.id) is not None:
            raise busy()
        said = SessionMessage(text=text, active_file=active_file.strip())

        def work(tell: JobEventSink) -> Coroutine[object, object, object]:
            return room.conversations.reply(chat, session.id, said, tell)

        return self.ongoing.begin(room.turns, session.id, work, text)

    def find(self, client: str, turn_id: str) -> TurnJob:
        """Find a client's turn by its id, or the latest one of a session by that.

        Raises:
            NotFound: There is none, it ended long ago, or it is another client's (code ``no_turn``).
        """
        for room in self._chatting.rooms(client) if self._chatting else ():
            try:
                return room.turns.find(turn_id)
            except NotFound:
                continue
        hint = "the session holds what came of turns that ended"
        raise NotFound("there is no such turn", hint=hint, code="no_turn")

    def end(self) -> None:
        """Begin no more turns, and cancel those that go on, saying why."""
        self.ongoing.end()

    async def shut(self) -> None:
        """End all turns, wait until what there is, is kept, and close the sessions."""
        await self.ongoing.shut()
        if self._chatting is not None:
            await asyncio.to_thread(self._chatting.close)
        self._threads.close()

    def _all(self) -> Chatting:
        with self._lock:
            if self._chatting is None:
                self._chatting = self._open()
            return self._chatting


def running(room: Room, session_id: str) -> TurnJob | None:
    """Give the turn that goes on in a session, if one does."""
    return next((turn for turn in room.turns.going_on() if turn.about == session_id), None)


def busy() -> ConflictError:
    """Say that a session answers another message."""
    return ConflictError(
        "the session is answering another message",
        hint="wait for it, cancel it, or take another session",
        code="session_busy",
    )


@asynccontextmanager
async def quiet(talks: Talks, room: Room, session_id: str) -> AsyncGenerator[None]:
    """Let no turn go on in a session meanwhile.

    Raises:
        NotFound: There is no such session.
        ConflictError: One goes on (code ``session_busy``).
    """
    _ = await talks.work(lambda: room.store.get(session_id))
    if running(room, session_id) is not None:
        raise busy()
    async with locks.lock_session(room.conversations.folder, session_id, wait_s=0):
        yield
