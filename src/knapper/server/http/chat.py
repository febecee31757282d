"""Talk with a model over HTTP: ``POST /chat`` answers at once, ``POST /chat/stream`` as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import SetupError
from knapper.server import auth, imports, replies
from knapper.server.http import ask, chat_asking, chat_document, chat_replies, chat_stream, ongoing, presets, sessions
from knapper.server.http.app import Mount
from knapper.server.http.ask_tasks import Tasks
from knapper.server.http.chat_asking import VAULT, Take
from knapper.server.http.chat_document import Shown
from knapper.server.http.chat_turns import Talks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from knapper.agents.live import LiveTurn
    from knapper.app import Hub
    from knapper.app.chatting import Chatting
    from knapper.server.http.calling import Endpoint
    from knapper.server.stopping import Stop

_FILE: Final = Take(
    name="active_file",
    doc="The note that the person looks at: it tells which session goes on, and what 'this note' means.",
)
_MESSAGE: Final = Take(name="message", doc="What the person says.", needed=True, most=200_000)
_OLD_ID: Final = Take(name="session_id", doc="Taken, and not used: the active file alone tells the session.")
_BY_FILE: Final = (_MESSAGE, _OLD_ID, _FILE, VAULT)
_BY_ID: Final = (_MESSAGE, _FILE, VAULT)


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

    shown = (*_shown(talks), *sessions.shown(talks), *ask.shown(tasks), *presets.shown(tasks))
    return Mount(routes=[*map(chat_document.route, shown)], lifespan=ongoing.lifespan(stop, talks.end, shut))


def _configured(hub: Hub) -> Chatting:
    with imports.ALONE:
        from knapper.app.chatting import Chatting  # noqa: PLC0415 - 2 s that a server without chats needn't wait for

    return Chatting(hub)


def _shown(talks: Talks) -> tuple[Shown, ...]:
    by_file = "The session is the active file's: the same file goes on, another one has another session."
    by_id = "The session is the one in the path, whichever file is open."
    again = "After `Last-Event-ID`, or from the beginning. A session's id stands for its latest turn."
    one, summary = "/sessions/{session_id}", ("Answer a message.", "Answer a message as it happens.")
    stops, stream = "Stop a turn; what there is, is kept.", chat_document.STREAM
    whole, live = _asking(talks, _whole), _asking(talks, _live)
    return (
        Shown("POST", "/chat", "chat", summary[0], whole, by_file, _BY_FILE, chat_document.REPLY),
        Shown("POST", "/chat/stream", "chat", summary[1], live, by_file, _BY_FILE, stream),
        Shown("GET", "/chat/{turn_id}/events", "chat", "Hear a turn again.", _resuming(talks), again, (), stream),
        Shown("POST", "/chat/{turn_id}/cancel", "chat", stops, _cancelling(talks), gives=chat_document.CANCELLED),
        Shown("POST", f"{one}/chat", "sessions", summary[0], whole, by_id, _BY_ID, chat_document.REPLY),
        Shown("POST", f"{one}/chat/stream", "sessions", summary[1], live, by_id, _BY_ID, stream),
    )


def _asking(talks: Talks, answer: Callable[[LiveTurn, Request], Awaitable[Response]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session = str(request.path_params.get("session_id", ""))
        given = await chat_asking.read(request, _BY_ID if session else _BY_FILE)
        try:
            room = await talks.room(auth.client_of(request.scope), given.text("vault"))
            turn = await talks.begin(room, given.text("message"), given.text("active_file"), session)
        except SetupError as error:
            return chat_replies.not_set_up(error)
        return await answer(turn, request)

    return endpoint


async def _whole(turn: LiveTurn, request: Request) -> Response:
    """Wait for the end; whoever asked may have gone, and the turn goes on."""
    del request
    _ = await turn.wait()
    return chat_replies.whole(turn)


async def _live(turn: LiveTurn, request: Request) -> Response:
    return chat_stream.stream(turn, request)


def _resuming(talks: Talks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await chat_asking.read(request, ())
        turn = talks.find(auth.client_of(request.scope), request.path_params["turn_id"])
        return chat_stream.stream(turn, request)

    return endpoint


def _cancelling(talks: Talks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await chat_asking.read(request, ())
        turn = talks.find(auth.client_of(request.scope), request.path_params["turn_id"])
        cancelled, _ = await ongoing.cancel(turn)
        shape = {"turn_id": turn.id, "session_id": turn.about, "cancelled": cancelled, "ended": turn.has_ended}
        return replies.Json({"success": True, **shape})

    return endpoint
