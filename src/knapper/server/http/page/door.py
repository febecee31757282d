"""Let calls of the page in by its cookie and key; what stands behind sees the page's token, as of any other client."""

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from knapper.server.http.page.seats import Seat, Seats

KEY: Final = "x-knapper-key"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES: Final = frozenset({"same-origin", "none"})


def seat_of(request: Request) -> Seat | None:
    """Give the cookie and the key that a request shows; None where either is missing."""
    cookie, key = request.cookies.get(cookie_name(request), ""), request.headers.get(KEY, "")
    return Seat(cookie=cookie, key=key) if cookie and key else None


def cookie_name(request: Request) -> str:
    """Name the cookie: one for each port, as browsers keep none apart by it."""
    return f"knapper_page_{request.url.port or 0}"


def is_own(request: Request) -> bool:
    """Tell whether the server's own page asks: no other origin, not even one that may call with a token."""
    origin = request.headers.get("origin", "").lower()
    host = request.headers.get("host", "").lower()
    if request.headers.get("sec-fetch-site", "same-origin") not in _OWN_SITES:
        return False
    if not origin:
        return request.method in _SAFE
    return origin in {f"http://{host}", f"https://{host}"}


class Door:
    """Give calls of a browser that was let in the page's token; middleware in plain ASGI, before the gate."""

    def __init__(self, app: ASGIApp, *, seats: Seats) -> None:
        """Stand before *app*."""
        self.app = app
        self._seats = seats
        self._shown = (b"authorization", f"Bearer {seats.token}".encode("latin-1", "replace"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the token where it comes from the page."""
        if scope["type"] == "http" and self._is_let_in(scope):
            scope = {**scope, "headers": [*scope["headers"], self._shown]}
        await self.app(scope, receive, send)

    def _is_let_in(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        if "authorization" in headers or "cookie" not in headers or KEY not in headers:
            return False
        request = Request(scope)
        seat = seat_of(request)
        return seat is not None and is_own(request) and self._seats.knows(seat)
