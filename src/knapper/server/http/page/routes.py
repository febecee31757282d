"""Serve the page, and sign browsers in to it: ``POST /page/session`` takes the code of an address that is good once."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from knapper import __version__
from knapper.errors import BadInput, RefusedError
from knapper.server import replies
from knapper.server.http.app import Mount
from knapper.server.http.page import door, files
from knapper.server.http.page.door import Door
from knapper.server.http.page.seats import SEAT_S, Seats

PATH: Final = "/"
FILES: Final = "/page/"
SESSION: Final = "/page/session"
_INDEX: Final = "index.html"

Endpoint = Callable[[Request], Awaitable[Response]]


def mount(seats: Seats, vaults: Sequence[str] = ()) -> Mount:
    """Make what answers at ``/`` and below ``/page/``.

    Args:
        seats: Who was let in.
        vaults: Names of the vaults that can be chosen; the first is the usual one.
    """
    served = files.load()

    async def index(request: Request) -> Response:
        return files.reply(served, _INDEX, request)

    async def file(request: Request) -> Response:
        return files.reply(served, request.path_params["name"], request)

    routes = [
        Route(PATH, index, methods=["GET"], include_in_schema=False),
        Route(SESSION, _signing_in(seats, vaults), methods=["POST"], include_in_schema=False),
        Route(SESSION, _standing(seats, vaults), methods=["GET"], include_in_schema=False),
        Route(SESSION, _signing_out(seats), methods=["DELETE"], include_in_schema=False),
        Route(f"{FILES}{{name:path}}", file, methods=["GET"], include_in_schema=False),
    ]
    return Mount(routes=routes, open_paths=frozenset({PATH, FILES}), middleware=(Middleware(Door, seats=seats),))


def _signing_in(seats: Seats, vaults: Sequence[str]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        code = _code(await request.body())
        if not door.is_own(request):
            raise RefusedError("only the server's own page signs in", hint="open it at its own address")
        seat = seats.redeem(code)
        if seat is None:
            raise RefusedError(
                "this address was used before, or is too old",
                hint="`knap token page` prints a new one",
                code="unauthorized",
            )
        answer = replies.Json({**_shown(vaults), "key": seat.key})
        answer.set_cookie(
            door.cookie_name(request),
            seat.cookie,
            max_age=SEAT_S,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    return endpoint


def _standing(seats: Seats, vaults: Sequence[str]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        seat = door.seat_of(request)
        if seat is None or not door.is_own(request) or not seats.knows(seat):
            raise RefusedError(
                "this browser isn't signed in", hint="`knap token page` prints an address", code="unauthorized"
            )
        return replies.Json(_shown(vaults))

    return endpoint


def _signing_out(seats: Seats) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        seat = door.seat_of(request)
        if seat is not None and door.is_own(request):
            seats.end(seat)
        answer = replies.Json({"success": True})
        answer.delete_cookie(door.cookie_name(request), path="/", httponly=True, samesite="strict")
        return answer

    return endpoint


def _shown(vaults: Sequence[str]) -> dict[str, object]:
    return {"success": True, "vaults": [*vaults], "version": __version__}


def _code(body: bytes) -> str:
    """Read the code.

    Raises:
        BadInput: The body isn't ``{"code": "…"}``.
    """
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    code = cast("dict[str, object]", said).get("code") if isinstance(said, dict) else None
    if not isinstance(code, str) or not code:
        raise BadInput("signing in needs a code", hint='send {"code": "…"}', code="invalid_json")
    return code
