"""Talk with a model over HTTP: ``POST /chat`` answers at once, ``POST /chat/stream`` as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.errors import SetupError
from knapper.server import auth, replies
from knapper.server.http import arguments, ongoing, outcomes
from knapper.server.http.arguments import VAULT, Take
from knapper.server.http.chat import answers, document
from knapper.server.http.operations import Shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from knapper.agents.background import TurnJob
    from knapper.server.http.calling import Endpoint
    from knapper.server.http.chat.turns import Talks


_FILE: Final = Take(
    name="active_file",
    doc="The note that the person looks at: it tells which session goes on, and what 'this note' means.",
)
_MESSAGE: Final = Take(name="message", doc="What the person says.", needed=True, most=200_000)
_OLD_ID: Final = Take(name="session_id", doc="Taken, and not used: the active file alone tells the session.")
_BY_FILE: Final = (_MESSAGE, _OLD_ID, _FILE, VAULT)
_BY_ID: Final = (_MESSAGE, _FILE, VAULT)


def shown(talks: Talks) -> tuple[Shown, ...]:
    """List the routes."""
    by_file = "The session is the active file's: the same file goes on, another one has another session."
    by_id = "The session is the one in the path, whichever file is open."
    again = "After `Last-Event-ID`, or from the beginning. A session's id stands for its latest turn."
    one, summary = "/sessions/{session_id}", ("Answer a message.", "Answer a message as it happens.")
    stops, stream = "Stop a turn; what there is, is kept.", document.STREAM
    whole, live = _asking(talks, _whole), _asking(talks, _live)
    return (
        Shown("POST", "/chat", "chat", summary[0], whole, by_file, _BY_FILE, document.REPLY),
        Shown("POST", "/chat/stream", "chat", summary[1], live, by_file, _BY_FILE, stream),
        Shown("GET", "/chat/{turn_id}/events", "chat", "Hear a turn again.", _resuming(talks), again, (), stream),
        Shown("POST", "/chat/{turn_id}/cancel", "chat", stops, _cancelling(talks), gives=document.CANCELLED),
        Shown("POST", f"{one}/chat", "sessions", summary[0], whole, by_id, _BY_ID, document.REPLY),
        Shown("POST", f"{one}/chat/stream", "sessions", summary[1], live, by_id, _BY_ID, stream),
    )


def _asking(talks: Talks, answer: Callable[[TurnJob, Request], Awaitable[Response]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session = str(request.path_params.get("session_id", ""))
        given = await arguments.read(request, _BY_ID if session else _BY_FILE)
        try:
            room = await talks.room(auth.client_of(request.scope), given.text("vault"))
            turn = await talks.begin(room, given.text("message"), given.text("active_file"), session)
        except SetupError as error:
            return outcomes.not_set_up(error, request)
        return await answer(turn, request)

    return endpoint


async def _whole(turn: TurnJob, request: Request) -> Response:
    """Wait for the end; whoever asked may have gone, and the turn goes on."""
    _ = await turn.wait()
    return answers.whole(turn, request)


async def _live(turn: TurnJob, request: Request) -> Response:
    return answers.stream(turn, request)


def _resuming(talks: Talks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await arguments.read(request, ())
        turn = talks.find(auth.client_of(request.scope), request.path_params["turn_id"])
        return answers.stream(turn, request)

    return endpoint


def _cancelling(talks: Talks) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await arguments.read(request, ())
        turn = talks.find(auth.client_of(request.scope), request.path_params["turn_id"])
        cancelled, _ = await ongoing.cancel(turn)
        shape = {"turn_id": turn.id, "session_id": turn.about, "cancelled": cancelled, "ended": turn.has_ended}
        return replies.Json({"success": True, **shape})

    return endpoint
