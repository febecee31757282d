"""Serve the web page, sign browsers in to it, and authenticate its calls."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from knapper import __version__
from knapper.errors import BadInput, NotFound, RefusedError
from knapper.server import replies
from knapper.server.credentials import SESSION_MAX_AGE_S, BrowserSession, BrowserSessions
from knapper.server.http.app import Mount

WEB_FOLDER: Final = Path(__file__).parents[2] / "web"
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_CONTENT_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
PAGE_HEADERS: Final = {
    "cache-control": "no-cache",
    "content-security-policy": "; ".join(_CONTENT_POLICY),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What the page may do in a browser: load its own files, and call its own server; nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file."""

    content: bytes = field(repr=False)
    kind: str
    tag: str
    """Its ETag."""


def load_files(folder: Path = WEB_FOLDER) -> Mapping[str, PageFile]:
    """Read the page's files, by their path below the folder; no other file is ever sent."""
    files: dict[str, PageFile] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _MEDIA_TYPES and path.is_file():
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = PageFile(
                content=content, kind=_MEDIA_TYPES[path.suffix], tag=tag
            )
    return files


def file_reply(files: Mapping[str, PageFile], name: str, request: Request) -> Response:
    """Reply with a file, or 304 if the client's copy is current.

    Raises:
        NotFound: The page has no such file.
    """
    file = files.get(name)
    if file is None:
        raise NotFound("the page has no such file", hint="the page itself is at /")
    headers = {**PAGE_HEADERS, "etag": file.tag}
    sent_tags = {
        sent_tag.strip().removeprefix("W/") for sent_tag in request.headers.get("if-none-match", "").split(",")
    }
    if file.tag in sent_tags:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


KEY_HEADER: Final = "x-knapper-key"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_FETCH_SITES: Final = frozenset({"same-origin", "none"})


def session_of_request(request: Request) -> BrowserSession | None:
    """Return the cookie and the key of a request; None if either is missing."""
    cookie, key = request.cookies.get(cookie_name(request), ""), request.headers.get(KEY_HEADER, "")
    return BrowserSession(cookie=cookie, key=key) if cookie and key else None


def cookie_name(request: Request) -> str:
    """Return the cookie's name: one per port, as browsers don't separate cookies by port."""
    return f"knapper_page_{request.url.port or 0}"


def is_same_origin(request: Request) -> bool:
    """Return whether a request comes from the server's own page, not from another allowed origin."""
    origin = request.headers.get("origin", "").lower()
    host = request.headers.get("host", "").lower()
    if request.headers.get("sec-fetch-site", "same-origin") not in _OWN_FETCH_SITES:
        return False
    if not origin:
        return request.method in _SAFE_METHODS
    return origin in {f"http://{host}", f"https://{host}"}


class PageAuth:
    """ASGI middleware that adds the page's token to calls of a signed-in browser, before authentication."""

    def __init__(self, app: ASGIApp, *, seats: BrowserSessions) -> None:
        """Wrap *app*."""
        self.app = app
        self._seats = seats
        self._shown = (b"authorization", f"Bearer {seats.token}".encode("latin-1", "replace"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the token if it comes from the page."""
        if scope["type"] == "http" and self._is_let_in(scope):
            scope = {**scope, "headers": [*scope["headers"], self._shown]}
        await self.app(scope, receive, send)

    def _is_let_in(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        if "authorization" in headers or "cookie" not in headers or KEY_HEADER not in headers:
            return False
        request = Request(scope)
        session = session_of_request(request)
        return session is not None and is_same_origin(request) and self._seats.is_signed_in(session)


PAGE_PATH: Final = "/"
FILES_PATH: Final = "/page/"
SESSION_PATH: Final = "/page/session"
_INDEX_FILE: Final = "index.html"

Endpoint = Callable[[Request], Awaitable[Response]]


def mount_page(sessions: BrowserSessions, vaults: Sequence[str] = ()) -> Mount:
    """Create the mount for ``/`` and ``/page/``.

    Args:
        sessions: The signed-in browsers.
        vaults: Names of the vaults to choose from; the first is the default.
    """
    page_files = load_files()

    async def index(request: Request) -> Response:
        return file_reply(page_files, _INDEX_FILE, request)

    async def file(request: Request) -> Response:
        return file_reply(page_files, request.path_params["name"], request)

    routes = [
        Route(PAGE_PATH, index, methods=["GET"], include_in_schema=False),
        Route(SESSION_PATH, _make_sign_in(sessions, vaults), methods=["POST"], include_in_schema=False),
        Route(SESSION_PATH, _make_session_status(sessions, vaults), methods=["GET"], include_in_schema=False),
        Route(SESSION_PATH, _make_sign_out(sessions), methods=["DELETE"], include_in_schema=False),
        Route(f"{FILES_PATH}{{name:path}}", file, methods=["GET"], include_in_schema=False),
    ]
    return Mount(
        routes=routes, open_paths=frozenset({PAGE_PATH, FILES_PATH}), middleware=(Middleware(PageAuth, seats=sessions),)
    )


def _make_sign_in(sessions: BrowserSessions, vaults: Sequence[str]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        code = _read_code(await request.body())
        if not is_same_origin(request):
            raise RefusedError("only the server's own page signs in", hint="open it at its own address")
        session = sessions.redeem(code)
        if session is None:
            raise RefusedError(
                "this address was used before, or is too old",
                hint="`knap token page` prints a new one",
                code="unauthorized",
            )
        answer = replies.JsonReply({**_page_info(vaults), "key": session.key})
        answer.set_cookie(
            cookie_name(request),
            session.cookie,
            max_age=SESSION_MAX_AGE_S,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    return endpoint


def _make_session_status(sessions: BrowserSessions, vaults: Sequence[str]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session = session_of_request(request)
        if session is None or not is_same_origin(request) or not sessions.is_signed_in(session):
            raise RefusedError(
                "this browser isn't signed in", hint="`knap token page` prints an address", code="unauthorized"
            )
        return replies.JsonReply(_page_info(vaults))

    return endpoint


def _make_sign_out(sessions: BrowserSessions) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        session = session_of_request(request)
        if session is not None and is_same_origin(request):
            sessions.end(session)
        answer = replies.JsonReply({"success": True})
        answer.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="strict")
        return answer

    return endpoint


def _page_info(vaults: Sequence[str]) -> dict[str, object]:
    return {"success": True, "vaults": [*vaults], "version": __version__}


def _read_code(body: bytes) -> str:
    """Read the code.

    Raises:
        BadInput: The body isn't ``{"code": "…"}``.
    """
    try:
        body_value: object = json.loads(body)
    except (ValueError, RecursionError):
        body_value = None
    code = cast("dict[str, object]", body_value).get("code") if isinstance(body_value, dict) else None
    if not isinstance(code, str) or not code:
        raise BadInput("signing in needs a code", hint='send {"code": "…"}', code="invalid_json")
    return code
