"""List, save and delete choices of notes and rules under names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.pipeline import store
from knapper.errors import RefusedError
from knapper.server import auth, replies
from knapper.server.http import arguments, operations
from knapper.server.http.arguments import VAULT
from knapper.server.http.ask.document import PRESET, PRESET_TAKES
from knapper.server.http.operations import Shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.app.tasks.desk import Desk
    from knapper.jsontypes import JSONValue
    from knapper.server.http.arguments import Given, Take
    from knapper.server.http.ask.tasks import Tasks
    from knapper.server.http.calling import Endpoint

    Work = Callable[[Desk, str, Given], dict[str, JSONValue]]
    """Does what a route is for, with the preset's name."""

_PATH: Final = "/presets"
_ONE: Final = "/presets/{name:path}"


def shown(tasks: Tasks) -> tuple[Shown, ...]:
    """List the routes."""
    put: tuple[Take, ...] = (*PRESET_TAKES, VAULT)
    tag, by_vault = "presets", (VAULT,)
    said = "What is left out is as by default. One of the same name, in whatever case, is replaced."
    one = operations.answer({"preset": PRESET})
    every = operations.answer({"results": {"type": "array", "items": dict(PRESET)}})
    gone = operations.answer({"deleted": {"type": "string"}})
    return (
        Shown("GET", _PATH, tag, "List presets.", _endpoint(tasks, by_vault, _list), "", by_vault, every),
        Shown("PUT", _ONE, tag, "Save a preset.", _endpoint(tasks, put, _save), said, put, one),
        Shown("DELETE", _ONE, tag, "Delete a preset.", _endpoint(tasks, by_vault, _delete), "", by_vault, gone),
    )


def _endpoint(tasks: Tasks, takes: tuple[Take, ...], work: Work) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = await arguments.read(request, takes)
        desk = await tasks.desk(auth.client_of(request.scope), given.text("vault"))
        name = str(request.path_params.get("name", ""))
        return replies.Json({"success": True, **await tasks.work(lambda: work(desk, name, given))})

    return endpoint


def _list(desk: Desk, _: str, __: Given) -> dict[str, JSONValue]:
    rows: list[JSONValue] = [one.as_dict() for one in desk.presets()]
    return {"results": rows}


def _save(desk: Desk, name: str, given: Given) -> dict[str, JSONValue]:
    _check(desk)
    said: dict[str, JSONValue] = {"name": name}
    for part in ("scope", "rules", "toggles"):
        said[part] = given.object(part).plain()
    said["added"] = [*(given.texts("added") or ())]
    return {"preset": desk.save(store.read_preset(said)).as_dict()}


def _delete(desk: Desk, name: str, _: Given) -> dict[str, JSONValue]:
    _check(desk)
    desk.opened.presets.delete(name)
    return {"deleted": name}


def _check(desk: Desk) -> None:
    """See that a client may change what others use, too: nobody has to accept it."""
    grants = desk.client.grants
    if grants.is_read_only:
        raise RefusedError("this client only reads", hint="the owner's configuration says so", code="read_only")
    if not grants.is_person and desk.room.context("").writer.mine().tainted:
        hint = "a person can save it: `knap presets save`, or the page"
        raise RefusedError("this client has read text that others wrote", hint=hint, code="tainted")
