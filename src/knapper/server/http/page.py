"""Serve the web page, sign browsers in to it, and authenticate its calls."""

import gzip
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from knapper import __version__
from knapper.errors import BadInput, NotFound, RefusedError
from knapper.jsontypes import is_object, loads, object_or_empty
from knapper.server import security
from knapper.server.credentials import SESSION_MAX_AGE_S, BrowserSession, BrowserSessions
from knapper.server.http.app import Mount
from knapper.server.http.binding import BoundRoute
from knapper.server.security import FindToken

PAGE_FOLDER: Final = Path(__file__).parents[2] / "data" / "page"
"""What the build of `ui/` leaves: the files, and a manifest that names each."""
BUILD_COMMAND: Final = "scripts/page build"
_MANIFEST: Final = "manifest.json"
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
_FILE_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)
_HASHED_FOLDER: Final = "assets/"
_FOREVER: Final = "public, max-age=31536000, immutable"
_CONTENT_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "media-src blob:",  # and so is a recording
    "frame-src 'self'",  # the frame that draws diagrams, which is sandboxed
    "img-src 'self' blob:",  # an image of the vault is fetched with the key, and shown from memory
    "font-src 'self'",
    "manifest-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types knapper-worker",  # makes the worker's own address, and no other
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
_FRAME_POLICY: Final = (
    "default-src 'none'",
    "style-src 'unsafe-inline'",  # diagrams carry styles of their own
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    "sandbox allow-scripts",
)
_WORKER_FILE: Final = "worker.js"
"""Shows the page that says that the server can't be reached; it may do so at all addresses."""
_SCRIPT_HASH: Final = re.compile(r"sha256-[A-Za-z0-9+/]{43}=", re.ASCII)


def frame_headers(script: str) -> dict[str, str]:
    """Return the headers of a frame that the page shows.

    It runs the one script that it holds, without an origin, a network or a way to the page.

    Args:
        script: The script's hash, as a content policy names it.
    """
    headers = {name: value for name, value in PAGE_HEADERS.items() if name != "x-frame-options"}
    return {**headers, "content-security-policy": "; ".join((f"script-src '{script}'", *_FRAME_POLICY))}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file that the build left."""

    path: Path
    kind: str
    tag: str
    """Its ETag, without quotes."""
    has_gzip: bool
    """Whether it lies compressed in the folder, with the suffix ``.gz``, and only so."""
    script: str
    """The hash of the only script of a frame; empty for files of the page itself."""
    is_hashed: bool
    """Whether its name changes with its content, so that a browser never needs to ask again."""


class PageFiles:
    """The files of the built page; no other file is ever sent."""

    def __init__(self, folder: Path = PAGE_FOLDER) -> None:
        """Look below *folder*; where nothing was built, there is no file."""
        self._folder = folder
        self._built_at = 0
        self._files: Mapping[str, PageFile] = {}
        self._contents: dict[Path, bytes] = {}

    @property
    def is_built(self) -> bool:
        """Return whether there is a page; rebuilt, it is found anew."""
        self._load()
        return _INDEX_FILE in self._files

    def find(self, name: str) -> PageFile | None:
        """Return a file by its path below the folder; None if the build left none of that name."""
        return self._files.get(name)

    def read(self, file: PageFile, *, compressed: bool) -> bytes:
        """Return a file's bytes, which are read once.

        Args:
            file: The file.
            compressed: Whether they are wanted with gzip, which not every file has.

        Raises:
            OSError: It can't be read; also where it isn't what gzip made.
        """
        path = file.path.with_name(f"{file.path.name}.gz") if file.has_gzip else file.path
        if path not in self._contents:
            self._contents[path] = path.read_bytes()
        content = self._contents[path]
        return gzip.decompress(content) if file.has_gzip and not compressed else content

    def _load(self) -> None:
        manifest = self._folder / _MANIFEST
        try:
            built_at = manifest.stat().st_mtime_ns
            if built_at == self._built_at:
                return
            rows = object_or_empty(object_or_empty(loads(manifest.read_bytes())).get("files"))
            files: dict[str, PageFile] = {}
            for name, row in ((name, object_or_empty(row)) for name, row in rows.items()):
                kind, script = _MEDIA_TYPES.get(Path(name).suffix), str(row.get("script", ""))
                if kind is not None and _FILE_NAME.fullmatch(name):
                    files[name] = PageFile(
                        path=self._folder / name,
                        kind=kind,
                        tag=str(row["sha256"])[:32],
                        has_gzip=bool(row["gzip"]),
                        script=script if _SCRIPT_HASH.fullmatch(script) else "",
                        is_hashed=name.startswith(_HASHED_FOLDER),
                    )
            self._files = files
            self._built_at = built_at if rows else 0  # one that names no files is read again
        except (OSError, ValueError, LookupError):
            self._built_at, self._files = 0, {}
        self._contents = {}


def file_reply(files: PageFiles, name: str, request: Request) -> Response:
    """Reply with a file, or 304 if the client's copy is current.

    Raises:
        NotFound: The page has no such file.
    """
    file = files.find(name)
    if file is None:
        raise NotFound("the page has no such file", hint="the page itself is at /")
    compressed = file.has_gzip and "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{file.tag}{"-gzip" if compressed else ""}"'
    headers = {**(frame_headers(file.script) if file.script else PAGE_HEADERS), "etag": tag, "vary": "accept-encoding"}
    if file.is_hashed:
        headers["cache-control"] = _FOREVER
    if name == _WORKER_FILE:
        headers["service-worker-allowed"] = PAGE_PATH
    if compressed:
        headers["content-encoding"] = "gzip"
    sent_tags = {
        sent_tag.strip().removeprefix("W/") for sent_tag in request.headers.get("if-none-match", "").split(",")
    }
    if tag in sent_tags:
        return Response(status_code=304, headers=headers)
    return Response(files.read(file, compressed=compressed), media_type=file.kind, headers=headers)


def missing_reply() -> Response:
    """Reply that the page wasn't built, and how it is."""
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Knapper</title></head><body><h1>Knapper</h1>'
        "<p>The server runs, but its page wasn't built when it was installed: npm's registry or Node 22 couldn't be "
        f"reached.</p><p>In a clone of the source, run <code>{BUILD_COMMAND}</code> and reload this page; elsewhere, "
        "install Knapper again when there is a network. The command line, MCP and the HTTP API work without it.</p>"
        "</body></html>"
    )
    return Response(text, status_code=503, media_type=_MEDIA_TYPES[".html"], headers=PAGE_HEADERS)


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


def make_token_finder(sessions: BrowserSessions) -> FindToken:
    """Create the function that gives calls of a signed-in browser the page's token."""

    def find(scope: Scope) -> str:
        headers = Headers(scope=scope)
        if "cookie" not in headers or KEY_HEADER not in headers:
            return ""
        request = Request(scope)
        session = session_of_request(request)
        is_let_in = session is not None and is_same_origin(request) and sessions.is_signed_in(session)
        return sessions.token if is_let_in else ""

    return find


PAGE_PATH: Final = "/"
APP_PATH: Final = "/app/"
"""What the page's own addresses begin with, such as ``/app/notes/PATH``: the API has ``/notes/PATH`` already."""
FILES_PATH: Final = "/page/"
SESSION_PATH: Final = "/page/session"
_INDEX_FILE: Final = "index.html"

Endpoint = Callable[[Request], Awaitable[Response]]


def mount_page(sessions: BrowserSessions, vaults: Sequence[str] = ()) -> Mount:
    """Create the mount for ``/``, ``/app/`` and ``/page/``.

    Args:
        sessions: The signed-in browsers.
        vaults: Names of the vaults to choose from; the first is the default.
    """
    page_files = PageFiles()
    _ = page_files.is_built

    async def index(request: Request) -> Response:
        if not page_files.is_built:
            return missing_reply()
        return file_reply(page_files, _INDEX_FILE, request)

    async def file(request: Request) -> Response:
        return file_reply(page_files, request.path_params["name"], request)

    async def show_session(request: Request) -> Response:
        session = session_of_request(request)
        if session is None or not is_same_origin(request) or not sessions.is_signed_in(session):
            raise RefusedError(
                "this browser isn't signed in", hint="`knap token page` prints an address", code="unauthorized"
            )
        return security.JsonReply(_page_info(vaults))

    async def sign_out(request: Request) -> Response:
        session = session_of_request(request)
        if session is not None and is_same_origin(request):
            sessions.end(session)
        answer = security.JsonReply({"success": True})
        answer.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="strict")
        return answer

    routes = [
        Route(PAGE_PATH, index, methods=["GET"], include_in_schema=False),
        BoundRoute("GET", f"{APP_PATH}{{address:path}}", index),  # a note's name may hold a line's end
        Route(SESSION_PATH, _make_sign_in(sessions, vaults), methods=["POST"], include_in_schema=False),
        Route(SESSION_PATH, show_session, methods=["GET"], include_in_schema=False),
        Route(SESSION_PATH, sign_out, methods=["DELETE"], include_in_schema=False),
        Route(f"{FILES_PATH}{{name:path}}", file, methods=["GET"], include_in_schema=False),
    ]
    return Mount(
        routes=routes,
        open_paths=frozenset({PAGE_PATH, APP_PATH, FILES_PATH}),
        find_token=make_token_finder(sessions),
    )


def _make_sign_in(sessions: BrowserSessions, vaults: Sequence[str]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        try:
            body_value: object = json.loads(body)
        except (ValueError, RecursionError):
            body_value = None
        code = body_value.get("code") if is_object(body_value) else None
        if not isinstance(code, str) or not code:
            raise BadInput("signing in needs a code", hint='send {"code": "…"}', code="invalid_json")
        if not is_same_origin(request):
            raise RefusedError("only the server's own page signs in", hint="open it at its own address")
        session = sessions.redeem(code)
        if session is None:
            raise RefusedError(
                "this address was used before, or is too old",
                hint="`knap token page` prints a new one",
                code="unauthorized",
            )
        answer = security.JsonReply({**_page_info(vaults), "key": session.key})
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


def _page_info(vaults: Sequence[str]) -> dict[str, object]:
    return {"success": True, "vaults": [*vaults], "version": __version__}
