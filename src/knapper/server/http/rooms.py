"""Mount what goes on in clients' rooms: chats with their sessions, and tasks with their presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.server import imports
from knapper.server.http import ongoing, operations
from knapper.server.http.app import Mount
from knapper.server.http.ask import presets
from knapper.server.http.ask import routes as ask
from knapper.server.http.ask.tasks import Tasks
from knapper.server.http.chat import routes as chat
from knapper.server.http.chat import sessions
from knapper.server.http.chat.turns import Talks

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.app import Hub
    from knapper.app.chatting import Chatting
    from knapper.server.stopping import Stop


def mount(hub: Hub, stop: Stop, open_chatting: Callable[[], Chatting] | None = None) -> Mount:
    """Make what answers below ``/chat``, ``/sessions``, ``/ask`` and ``/presets``.

    Args:
        hub: The vaults; it stays open, and is the caller's to close.
        stop: Told when the server stops; turns end then.
        open_chatting: Opens what holds the chats; None for what the configuration says.
    """
    talks = Talks(open_chatting or (lambda: _configured(hub)))
    tasks = Tasks(talks)

    async def shut() -> None:
        await tasks.shut()
        await talks.shut()

    shown = (*chat.shown(talks), *sessions.shown(talks), *ask.shown(tasks), *presets.shown(tasks))
    return Mount(routes=[*map(operations.route, shown)], lifespan=ongoing.lifespan(stop, talks.end, shut))


def _configured(hub: Hub) -> Chatting:
    with imports.ALONE:
        from knapper.app.chatting import Chatting  # noqa: PLC0415 - 2 s that a server without chats needn't wait for

    return Chatting(hub)
