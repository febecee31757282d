"""Give each request an id, and log a line about it that holds nothing of notes, and no key."""

import logging
import re
import secrets
import time
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.server import auth, statuses

HEADER: Final = "x-request-id"
LOG: Final = logging.getLogger("knapper.server.requests")
_ID: Final = "knapper.request"
_GOOD_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NOUN: Final = re.compile(r"/([a-z_]{1,40})(?=/|$)")
_VERBS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


def id_of(scope: Scope) -> str:
    """Give the id of a request; empty where none was given."""
    return str(scope.get("state", {}).get(_ID, ""))


class Trace:
    """Name each request, and tell how it ended; middleware in plain ASGI, before all others."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before *app*."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the client's own id is kept where it is a plain one."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _GOOD_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})[_ID] = name
        status = statuses.BROKEN  # what a client gets of an error that nobody foresaw
        is_answered = False
        began = time.monotonic()

        async def marked(message: Message) -> None:
            nonlocal status, is_answered
            if message["type"] == "http.response.start":
                status, is_answered = message["status"], True
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        try:
            await self.app(scope, receive, marked)
            status = status if is_answered else statuses.GONE
        finally:
            took_ms = round((time.monotonic() - began) * 1000)
            who = auth.client_of(scope) if auth.is_known(scope) else "-"
            LOG.info("%s %s %s %s %d %d ms", name, who, _verb(scope), _where(scope), status, took_ms)


def _verb(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _VERBS else "?"


def _where(scope: Scope) -> str:
    """Tell the route, where there is one: a path may name a note, or hold whatever somebody sends."""
    route = scope.get("route")
    path: object = getattr(route, "path_format", None) or getattr(route, "path", None)
    if isinstance(path, str):
        return path
    noun = _NOUN.match(scope["path"])
    return f"/{noun.group(1)}…" if noun else "/…"
