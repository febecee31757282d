"""List, read, rename, fork, clear, export and delete a client's own conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.sessions import locks
from knapper.server import auth, replies
from knapper.server.http import arguments
from knapper.server.http.arguments import VAULT, Take
from knapper.server.http.chat import turns
from knapper.server.http.chat.document import MESSAGE, SESSION
from knapper.server.http.operations import Shown, answer, listed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from knapper.agents.sessions.store import Exchange, Session
    from knapper.app.chatting import Room
    from knapper.jsontypes import JSONValue
    from knapper.server.http.arguments import Given
    from knapper.server.http.calling import Endpoint
    from knapper.server.http.chat.turns import Talks

    Work = Callable[[Talks, Room, str, Given], Awaitable[dict[str, JSONValue]]]
    """Does what a route is for, in a room, with the session of the path."""

_PATH: Final = "/sessions"
_ONE: Final = "/sessions/{session_id}"
_LIMIT: Final = Take(name="limit", doc="How many at most; 50 where it is left out.", kind="count", most=500)
_OFFSET: Final = Take(name="offset", doc="How many are passed over.", kind="count", most=1_000_000_000)
_FILE: Final = Take(name="active_file", doc="The note that it is about.")
_TITLE: Final = Take(name="title", doc="Its name, 1 to 200 characters.", most=200)
_NEW_TITLE: Final = Take(name="title", doc="Its new name, 1 to 200 characters.", needed=True, most=200)
_UPTO: Final = Take(
    name="upto", doc="The last turn that is taken over; all are, where it is left out.", kind="count", most=10**9
)
_NOTE: Final = Take(name="path", doc="Of the new note; one below Chats/ where it is left out.")
_USUAL: Final = 50


def shown(talks: Talks) -> tuple[Shown, ...]:
    """List the routes."""

    def of(work: Work, *takes: Take) -> Endpoint:
        return _endpoint(talks, work, (*takes, VAULT))

    one = answer({"session": SESSION})
    tag, page = "sessions", (_LIMIT, _OFFSET, VAULT)
    latest = "Turns are counted from the oldest; without an offset the latest ones come."
    whole = {**listed("messages", MESSAGE)}
    whole["application/json"]["schema"]["properties"]["session"] = dict(SESSION)
    written = answer({"status": {"enum": ["applied", "proposed"]}})
    gone = answer({"deleted": {"type": "string"}})
    return (
        Shown("GET", _PATH, tag, "List sessions.", of(_list, *page[:2]), "", page, listed("results", SESSION)),
        Shown("POST", _PATH, tag, "Begin a session.", of(_begin, _TITLE, _FILE), "", (_TITLE, _FILE, VAULT), one),
        Shown("GET", _ONE, tag, "Read a session.", of(_read, *page[:2]), latest, page, whole),
        Shown("PATCH", _ONE, tag, "Rename a session.", of(_rename, _NEW_TITLE), "", (_NEW_TITLE, VAULT), one),
        Shown("POST", f"{_ONE}/fork", tag, "Go on elsewhere.", of(_fork, _UPTO), "", (_UPTO, VAULT), one),
        Shown("POST", f"{_ONE}/clear", tag, "Begin anew.", of(_clear), "", (VAULT,), one),
        Shown("POST", f"{_ONE}/export", tag, "Write it as a note.", of(_export, _NOTE), "", (_NOTE, VAULT), written),
        Shown("DELETE", _ONE, tag, "Delete a session.", of(_delete), "", (VAULT,), gone),
    )


def _endpoint(talks: Talks, work: Work, takes: Sequence[Take]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = await arguments.read(request, takes)
        room = await talks.room(auth.client_of(request.scope), given.text("vault"))
        session = str(request.path_params.get("session_id", ""))
        return replies.Json({"success": True, **await work(talks, room, session, given)})

    return endpoint


async def _list(talks: Talks, room: Room, _: str, given: Given) -> dict[str, JSONValue]:
    limit, offset = given.count("limit", _USUAL), given.count("offset", 0)
    found, total = await talks.work(lambda: room.store.list(limit=limit, offset=offset))
    return {"results": [*await _shapes(talks, room, *found)], "total": total, "limit": limit, "offset": offset}


async def _begin(talks: Talks, room: Room, _: str, given: Given) -> dict[str, JSONValue]:
    file, title = given.text("active_file"), given.text("title")

    def begin() -> Session:
        room.check(file)
        return room.store.begin(file=file.strip(), name=title)

    return await _one(talks, room, await talks.work(begin))


async def _read(talks: Talks, room: Room, session_id: str, given: Given) -> dict[str, JSONValue]:
    session, kept = await talks.work(lambda: (room.store.get(session_id), room.store.turns(session_id)))
    limit = given.count("limit", _USUAL)
    offset = given.count("offset", max(len(kept) - limit, 0))
    said = [one for turn in kept[offset : offset + limit] for one in _messages(turn)]
    where: dict[str, JSONValue] = {"total": len(kept), "limit": limit, "offset": offset}
    return {**await _one(talks, room, session), "messages": [*said], **where}


async def _rename(talks: Talks, room: Room, session_id: str, given: Given) -> dict[str, JSONValue]:
    return await _one(talks, room, await talks.work(lambda: room.store.rename(session_id, given.text("title"))))


async def _fork(talks: Talks, room: Room, session_id: str, given: Given) -> dict[str, JSONValue]:
    upto = given.count("upto", -1)
    made = await talks.work(lambda: room.store.fork(session_id, upto=None if upto < 0 else upto))
    return await _one(talks, room, made)


async def _clear(talks: Talks, room: Room, session_id: str, _: Given) -> dict[str, JSONValue]:
    async with turns.quiet(talks, room, session_id):
        cleared = await talks.work(lambda: room.store.clear(session_id))
    return await _one(talks, room, cleared)


async def _export(talks: Talks, room: Room, session_id: str, given: Given) -> dict[str, JSONValue]:
    return dict(await talks.work(lambda: room.export(session_id, given.text("path"))))


async def _delete(talks: Talks, room: Room, session_id: str, _: Given) -> dict[str, JSONValue]:
    async with turns.quiet(talks, room, session_id):
        await talks.work(lambda: room.conversations.delete(session_id))
    return {"deleted": session_id}


async def _one(talks: Talks, room: Room, session: Session) -> dict[str, JSONValue]:
    (shape,) = await _shapes(talks, room, session)
    return {"session": shape}


async def _shapes(talks: Talks, room: Room, *found: Session) -> list[dict[str, JSONValue]]:
    folder = room.conversations.folder
    shown = [_shape(talks, room, one) for one in found]
    quiet = [str(row["id"]) for row in shown if not row["busy"]]
    elsewhere = await talks.work(lambda: {one for one in quiet if locks.is_session_locked(folder, one)})
    return [{**row, "busy": row["busy"] or row["id"] in elsewhere} for row in shown]


def _shape(talks: Talks, room: Room, session: Session) -> dict[str, JSONValue]:
    """Shape a session with what goes on in it here, as far as that needs no look at the disk."""
    turn, task = turns.running(room, session.id), talks.ongoing.within(session.id)
    shape = session.as_dict()
    going_on: dict[str, JSONValue] = {
        "running": turn and turn.id,
        "task": task and task.about,
        "busy": turn is not None or task is not None,
    }
    return {"id": session.id, "title": shape.pop("name"), **shape, **going_on}


def _messages(turn: Exchange) -> list[dict[str, JSONValue]]:
    shape = turn.as_dict()
    both = {"number": shape["number"], "at": shape["at"]}
    asked: dict[str, JSONValue] = {"content": turn.question, **both, "active_file": shape["active_file"]}
    answered: dict[str, JSONValue] = {"content": str(turn.outcome.get("answer", "")), **both}
    return [{"role": "user", **asked}, {"role": "assistant", **answered, "outcome": shape["outcome"]}]
