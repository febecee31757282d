"""Check each request (origin, token, rate, body size) in ASGI middleware, and reply in JSON, also with errors."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.config import Settings
from knapper.config.paired import PairedClient, PairedClients, hash_token
from knapper.config.sections import ANY_LOCAL_PAGE, ServerSettings
from knapper.errors import (
    BadInput,
    CallerError,
    ConflictError,
    KnapError,
    NotFound,
    RefusedError,
    SetupError,
    StorageError,
)
from knapper.jsontypes import is_object, is_sequence
from knapper.server import addresses, credentials

BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
REQUEST_TIMEOUT: Final = 408
CONFLICT: Final = 409
CONTENT_TOO_LARGE: Final = 413
UNSUPPORTED_MEDIA_TYPE: Final = 415
UNPROCESSABLE_CONTENT: Final = 422
TOO_MANY_REQUESTS: Final = 429
CLIENT_CLOSED_REQUEST: Final = 499
"""Nobody hears it: the client has closed its connection. It stands in the log alone."""
INTERNAL_SERVER_ERROR: Final = 500
SERVICE_UNAVAILABLE: Final = 503

_STATUS_BY_CODE: Final = {
    "bad_request": BAD_REQUEST,
    "invalid_json": BAD_REQUEST,
    "not_an_object": BAD_REQUEST,
    "invalid_text": BAD_REQUEST,
    "unauthorized": UNAUTHORIZED,
    "method_not_allowed": METHOD_NOT_ALLOWED,
    "too_slow": REQUEST_TIMEOUT,
    "too_large": CONTENT_TOO_LARGE,
    "wrong_content_type": UNSUPPORTED_MEDIA_TYPE,
    "too_many_requests": TOO_MANY_REQUESTS,
    "client_gone": CLIENT_CLOSED_REQUEST,
    "internal": INTERNAL_SERVER_ERROR,
    "busy": SERVICE_UNAVAILABLE,
    "stopping": SERVICE_UNAVAILABLE,
    "vault_missing": SERVICE_UNAVAILABLE,  # such as a disk that is mounted later
}
"""Codes of this surface's own, but for ``vault_missing``, and for ``invalid_json``, which means the same elsewhere."""
_STATUS_BY_CLASS: Final[tuple[tuple[type[KnapError], int], ...]] = (
    (NotFound, NOT_FOUND),
    (CallerError, UNPROCESSABLE_CONTENT),
    (SetupError, FORBIDDEN),  # asking again doesn't help until the owner has changed the configuration
    (RefusedError, FORBIDDEN),
    (ConflictError, CONFLICT),
    (StorageError, SERVICE_UNAVAILABLE),
)
DOCUMENTED_STATUSES: Final = {
    BAD_REQUEST: "The request can't be read.",
    UNAUTHORIZED: "The token is missing or wrong.",
    FORBIDDEN: "The policy, the configuration or the request's origin doesn't allow it.",
    NOT_FOUND: "There is no such thing, or the client doesn't see it.",
    CONFLICT: "Something changed meanwhile, or is there already.",
    CONTENT_TOO_LARGE: "The request is too large.",
    UNSUPPORTED_MEDIA_TYPE: "The body isn't JSON.",
    UNPROCESSABLE_CONTENT: "An argument can't be used as it is.",
    TOO_MANY_REQUESTS: "The client asks too often; `Retry-After` says when to go on.",
    SERVICE_UNAVAILABLE: "The server has too much to do, stops, or can't use its disk or the vault's folder.",
}
"""What each documented error status means, for every route that takes a token."""


def status_of(error: KnapError) -> int:
    """Return the status of an error; its code decides before its class."""
    by_code = _STATUS_BY_CODE.get(error.code)
    if by_code is not None:
        return by_code
    return next((status for kind, status in _STATUS_BY_CLASS if isinstance(error, kind)), UNPROCESSABLE_CONTENT)


REPLY_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What every reply of the API says to browsers."""
_RETRY_AFTER_S: Final = "1"


def render_json(content: object) -> bytes:
    """Write a plain JSON value; lone surrogates become JSON escapes, and NaN and infinity become null."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_replace_nonfinite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate \udc80 is written \udc80: that is JSON


class JsonReply(Response):
    """A JSON reply for any text and number that a note may contain."""

    media_type = "application/json"

    def __init__(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Write *content*, a plain JSON value, or bytes that are JSON, with the headers of every reply."""
        super().__init__(content, status, {**REPLY_HEADERS, **(headers or {})})

    def render(self, content: object) -> bytes:
        """Write the value; see `render_json`."""
        return content if isinstance(content, bytes) else render_json(content)


def error_reply(error: KnapError, headers: Mapping[str, str] | None = None) -> JsonReply:
    """Reply with an error."""
    status = status_of(error)
    extra_headers: dict[str, str] = {}
    if status == UNAUTHORIZED:
        extra_headers["www-authenticate"] = 'Bearer realm="knapper"'
    if status in {TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE}:
        extra_headers["retry-after"] = _RETRY_AFTER_S
    return JsonReply(error.as_dict(), status, {**extra_headers, **(headers or {})})


def add_header(headers: MutableHeaders, name: str, value: str) -> None:
    """Add a value to a header that lists several, such as ``Vary``, unless it is there."""
    present_values = [each_value.strip().lower() for each_value in headers.get(name, "").split(",")]
    if value.lower() not in present_values:
        headers[name] = ", ".join(filter(None, [headers.get(name, ""), value]))


def _replace_nonfinite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {name: _replace_nonfinite(each) for name, each in value.items()}
    return [_replace_nonfinite(each) for each in value] if is_sequence(value) else value


API_CLIENT: Final = "http"
PAGE_CLIENT: Final = "page"
MCP_CLIENT: Final = "mcp"
MCP_PATH: Final = "/mcp"
_CLIENT_KEY: Final = "knapper.client"
_AUTH_SCHEME: Final = "bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTokens:
    """The clients by the hashes of their tokens."""

    clients: Mapping[bytes, str]
    """The client's name, by the SHA-256 of its token."""
    persons: frozenset[str] = frozenset({PAGE_CLIENT})
    """Clients whose word is a person's; behind the protocol for models sits none."""
    paired: PairedClients | None = None
    """Those that come and go while the server runs; all are persons."""
    configured: frozenset[str] = frozenset()
    """Names of the configuration: a paired client of such a name, which the owner gave away later, isn't known."""
    seen: dict[str, float] = field(default_factory=dict[str, float], compare=False)
    """When each client last called since the start; of paired ones, their files tell."""

    def find_client(self, token: str) -> str | None:
        """Return the client of a token; None for an unknown one. Every known token is compared, in constant time."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        client_name: str | None = None
        for known_digest, name in self.clients.items():
            if hmac.compare_digest(known_digest, digest):
                client_name = name
        return client_name

    def find_paired(self, token: str) -> PairedClient | None:
        """Return the paired client of a token; None for an unknown or revoked one."""
        client = self.paired.find_token(token) if self.paired else None
        return None if client is None or client.name in self.configured else client


def load_client_tokens(settings: Settings) -> ClientTokens:
    """Load the tokens: the API's and the page's, created if missing, and those of named clients.

    Raises:
        StorageError: A token can't be read or written.
        SetupError: Two clients have the same token.
    """
    api = settings.server.token or credentials.read_or_make_token(settings.state_dir, "api")
    hashes = [
        (API_CLIENT, hash_token(api)),
        (PAGE_CLIENT, hash_token(credentials.read_or_make_token(settings.state_dir, "page"))),
    ]
    hashes += [(client.name, client.token_hash) for client in settings.clients if client.token_hash]
    clients: dict[bytes, str] = {}
    for name, digest in hashes:
        digest_bytes = bytes.fromhex(digest.removeprefix("sha256:"))
        if digest_bytes in clients:
            raise SetupError(
                f"the clients '{clients[digest_bytes]}' and '{name}' have the same token",
                hint="give each a token of its own: `knap token new` makes one",
                code="config_invalid",
            )
        clients[digest_bytes] = name
    persons = {client.name for client in settings.clients if client.grants.is_person}
    return ClientTokens(
        clients=clients,
        persons=frozenset({PAGE_CLIENT, *persons}),
        paired=settings.paired,
        configured=frozenset(client.name for client in settings.clients),
    )


def client_of(scope: Scope) -> str:
    """Return the authenticated client of a request.

    Raises:
        RefusedError: The request wasn't authenticated.
    """
    name = scope.get("state", {}).get(_CLIENT_KEY)
    if not isinstance(name, str):
        raise _unauthorized("no client is known for this request")
    return name


def check_person(settings: Settings, scope: Scope, what: str) -> None:
    """Check that a request is a person's: from a browser that is signed in to the page, or with a person's own token.

    Raises:
        RefusedError: It is a program's (code ``needs_person``).
    """
    if not settings.client(client_of(scope)).grants.is_person:
        raise RefusedError(
            f"only a person can {what}",
            hint="do it on the page, or with the token of a client of the kind 'person'",
            code="needs_person",
        )


def check_owner(settings: Settings, scope: Scope, what: str) -> None:
    """Check that a request comes from the page: a device that may be lost can't let others in, nor lock them out.

    Raises:
        RefusedError: It is a program's (code ``needs_person``), or a paired device's (code ``needs_owner``).
    """
    check_person(settings, scope, what)
    if client_of(scope) != PAGE_CLIENT:
        raise RefusedError(
            f"a paired device can't {what}", hint="do it on the page, or with `knap clients`", code="needs_owner"
        )


def is_authenticated(scope: Scope) -> bool:
    """Return whether the request is authenticated; open paths aren't."""
    return isinstance(scope.get("state", {}).get(_CLIENT_KEY), str)


def set_client(scope: Scope, name: str) -> None:
    """Record the client of a request."""
    scope.setdefault("state", {})[_CLIENT_KEY] = name


FindToken = Callable[[Scope], str]
"""Returns the token that a request without one stands for, such as a signed-in browser's; empty for none."""


class TokenAuthentication:
    """ASGI middleware that authenticates requests by their token."""

    def __init__(
        self, app: ASGIApp, *, keys: ClientTokens, open_paths: frozenset[str], find_tokens: Sequence[FindToken] = ()
    ) -> None:
        """Wrap *app*; open paths that end in ``/`` include all below them."""
        self.app = app
        self._keys = keys
        self._find_tokens = find_tokens
        self._open = frozenset(path for path in open_paths if not path.endswith("/") or path == "/")
        self._open_below = tuple(sorted(path for path in open_paths if path.endswith("/") and path != "/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path: str = scope.get("path", "")
        is_open = path in self._open or (self._open_below and path.startswith(self._open_below))
        if scope["type"] != "http" or is_open:
            await self.app(scope, receive, send)
            return
        try:
            paired = self._authenticate(scope)
        except RefusedError as refusal:
            await error_reply(refusal)(scope, receive, send)
            return
        if paired is None or self._keys.paired is None:
            await self.app(scope, receive, send)
            return
        self._keys.paired.note_use(paired)
        await _RevocableExchange(self.app, self._keys.paired, paired).run(scope, receive, send)

    def _authenticate(self, scope: Scope) -> PairedClient | None:
        """Record a request's client, and return it if it is a paired one.

        Raises:
            RefusedError: The token is missing or unknown, or isn't for this path.
        """
        header = Headers(scope=scope).get("authorization")
        scheme, _, token = (header or "").partition(" ")
        if header is None:
            scheme, token = _AUTH_SCHEME, next(filter(None, (find(scope) for find in self._find_tokens)), "")
        if scheme.lower() != _AUTH_SCHEME or not token.strip():
            raise _unauthorized("a token is needed")
        name = self._keys.find_client(token.strip())
        paired = self._keys.find_paired(token.strip()) if name is None else None
        if paired is not None:
            name = paired.name
        if name is None:
            raise _unauthorized("the token isn't known here")
        is_mcp = scope["path"] == MCP_PATH or scope["path"].startswith(f"{MCP_PATH}/")
        if is_mcp and (paired is not None or name in self._keys.persons):
            raise RefusedError(
                "a person's key isn't for MCP clients", hint="give them the API's token", code="person_key_refused"
            )
        client = MCP_CLIENT if is_mcp and name == API_CLIENT else name
        self._keys.seen[client] = time.time()
        set_client(scope, client)
        return paired


def _unauthorized(problem: str) -> RefusedError:
    return RefusedError(
        problem,
        hint="send it as 'Authorization: Bearer TOKEN'; `knap token` tells where it lies",
        code="unauthorized",
    )


_REVOKED_LOOK_S: Final = 0.5
"""How soon a stream that has nothing to say ends after its client was revoked."""
_LAST_REPLY_KEY: Final = "knapper.last_reply"


def let_last_reply_pass(scope: Scope) -> None:
    """Let a client that has just revoked itself hear that."""
    scope.setdefault("state", {})[_LAST_REPLY_KEY] = True


_EMPTY_FINAL_BODY: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


class _RevocableExchange:
    """A request of a paired client and its reply, of which nothing is said any more once the client is revoked."""

    def __init__(self, app: ASGIApp, clients: PairedClients, client: PairedClient) -> None:
        self._app = app
        self._clients = clients
        self._client = client
        self._is_started = False
        self._is_complete = False

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; another process may revoke the client meanwhile, so its file is looked at."""

        async def checked(message: Message) -> None:
            is_end = message["type"] == "http.response.body" and not message.get("more_body", False)
            # Whoever was told a length hears the rest of it: that much is one message, sent at once.
            if not (self._is_started and is_end) and not self._may_hear(scope):
                return
            if message["type"] == "http.response.body" and not self._is_started:
                return
            self._is_started, self._is_complete = True, self._is_complete or is_end
            await send(message)

        answer = asyncio.ensure_future(self._app(scope, receive, checked))
        try:
            while not (await asyncio.wait({answer}, timeout=_REVOKED_LOOK_S))[0]:
                if not self._may_hear(scope):
                    _ = answer.cancel()
                    _ = await asyncio.wait({answer})
        finally:
            _ = answer.cancel()
        failure = None if answer.cancelled() else answer.exception()
        if failure is not None and self._may_hear(scope):  # a revoked client sees no vault, so a stream of one fails
            raise failure
        if self._is_complete:
            return
        if self._is_started:
            await send(_EMPTY_FINAL_BODY)
        else:
            await error_reply(_unauthorized("this client was revoked"))(scope, receive, send)

    def _may_hear(self, scope: Scope) -> bool:
        return bool(scope.get("state", {}).get(_LAST_REPLY_KEY)) or self._clients.is_current(self._client)


_CORS_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_CORS_HEADERS: Final = (
    "authorization, content-type, if-none-match, last-event-id, x-request-id, "
    "mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"
)
_EXPOSED_HEADERS: Final = "ETag, Retry-After, X-Request-ID, Mcp-Session-Id"
_CORS_MAX_AGE_S: Final = "600"
_HTTP_PORT: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRules:
    """The host names and origins from which the server may be called."""

    hosts: frozenset[str]
    """Names and addresses without a port, lower case."""
    any_address: bool
    """Whether any IP address may stand for the server; a rebound name can't."""
    origins: frozenset[str]
    has_port_80: bool = False
    """Whether ``http://localhost`` may be the server's own page; elsewhere it is another program's, or an app's."""

    def accepts_host(self, host: str) -> bool:
        """Return whether a Host header means this server."""
        if host.startswith("["):  # ``[::1]:25627`` is ``::1``
            name, bracket, port = host[1:].partition("]")
            is_valid = bool(bracket) and _is_port(port)
        else:
            name, colon, port = host.partition(":")
            is_valid = bool(name) and _is_port(colon + port)
        if not is_valid:
            return False
        return (
            name in self.hosts
            or addresses.is_loopback(name)
            or (self.any_address and addresses.parse_address(name) is not None)
        )

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of an origin may call: the server's own, or a listed one."""
        if origin.lower() == ANY_LOCAL_PAGE and not self.has_port_80:
            return False
        return self.is_listed(origin) or origin.lower() in {f"http://{host}", f"https://{host}"}

    def is_listed(self, origin: str) -> bool:
        """Return whether the owner lists an origin."""
        return origin.lower() in self.origins


def make_origin_rules(server: ServerSettings) -> OriginRules:
    """Build the rules of a server.

    Raises:
        SetupError: It would listen beyond loopback without a token set by the owner.
    """
    addresses.check_guarded(server)
    return OriginRules(
        hosts=frozenset({server.host.lower().strip("[]"), *server.hosts}),
        any_address=not addresses.is_loopback(server.host),
        origins=frozenset(server.origins),
        has_port_80=server.port == _HTTP_PORT,
    )


class OriginCheck:
    """ASGI middleware that refuses foreign host names and origins, and answers CORS."""

    def __init__(self, app: ASGIApp, *, rules: OriginRules) -> None:
        """Wrap *app*."""
        self.app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        refusal = self._refusal(headers)
        if refusal is not None:
            await error_reply(refusal)(scope, receive, send)
        elif scope["method"] == "OPTIONS" and origin and "access-control-request-method" in headers:
            headers_out = {"vary": "Origin"}
            if self._rules.is_listed(origin):
                headers_out |= {
                    "access-control-allow-origin": origin,
                    "access-control-allow-methods": _CORS_METHODS,
                    "access-control-allow-headers": _CORS_HEADERS,
                    "access-control-max-age": _CORS_MAX_AGE_S,
                }
                if headers.get("access-control-request-private-network") == "true":
                    headers_out["access-control-allow-private-network"] = "true"
            await Response(status_code=204, headers={**REPLY_HEADERS, **headers_out})(scope, receive, send)
        elif origin and self._rules.is_listed(origin):

            async def opened(message: Message) -> None:
                if message["type"] == "http.response.start":
                    reply_headers = MutableHeaders(scope=message)
                    reply_headers["access-control-allow-origin"] = origin
                    reply_headers["access-control-expose-headers"] = _EXPOSED_HEADERS
                    add_header(reply_headers, "vary", "Origin")
                await send(message)

            await self.app(scope, receive, opened)
        else:
            await self.app(scope, receive, send)

    def _refusal(self, headers: Headers) -> KnapError | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or len(origins) > 1:
            return BadInput("the request needs one Host, and one Origin at most", code="bad_request")
        host = hosts[0].lower()
        if not self._rules.accepts_host(host):
            return RefusedError(
                "this server isn't called so",
                hint="call it by its address, or list the name in server.hosts",
                code="host_refused",
            )
        if origins and not self._rules.accepts_origin(origins[0], host):
            return RefusedError(
                "web pages of this origin may not call the server",
                hint="list the origin in server.origins if you trust its pages",
                code="origin_refused",
            )
        return None


def _is_port(text: str) -> bool:
    return not text or (text.startswith(":") and text[1:].isascii() and text[1:].isdigit())


_MINUTE_S: Final = 60.0


class RequestBuckets:
    """Token buckets: a minute's requests for each client, refilled evenly."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """Start with full buckets; *per_minute* is at least 1."""
        self._size = float(per_minute)
        self._now = now
        self._levels: dict[str, tuple[float, float]] = {}
        """What is left, and when that was, by client; clients are those of the configuration, so they are few."""

    def take(self, client: str) -> float:
        """Take a request from the bucket; return 0, or the seconds until the next is allowed."""
        now = self._now()
        level, since = self._levels.get(client, (self._size, now))
        level = min(self._size, level + (now - since) * self._size / _MINUTE_S)
        if level < 1:
            self._levels[client] = (level, now)
            return (1 - level) * _MINUTE_S / self._size
        self._levels[client] = (level - 1, now)
        return 0.0


class RateLimit:
    """ASGI middleware that limits a client's rate of requests, after authentication."""

    def __init__(self, app: ASGIApp, *, buckets: RequestBuckets | None) -> None:
        """Wrap *app*; None sets no limit."""
        self.app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with ``Retry-After``."""
        is_counted = scope["type"] == "http" and is_authenticated(scope)
        wait_s = self._buckets.take(client_of(scope)) if self._buckets is not None and is_counted else 0.0
        if not wait_s:
            await self.app(scope, receive, send)
            return
        error = RefusedError(
            "this client asks too often",
            hint="wait a moment; server.requests_per_minute sets the limit",
            code="too_many_requests",
        )
        await error_reply(error, {"retry-after": str(math.ceil(wait_s))})(scope, receive, send)


BODY_TIMEOUT_S: Final = 30.0
_LINGER_S: Final = 2.0


class BodyIntake:
    """ASGI middleware that limits the size and time of a body, with or without a declared length.

    All bodies are JSON, which is read as a whole anyway.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, timeout_s: float = BODY_TIMEOUT_S) -> None:
        """Wrap *app*; the whole body must arrive within *timeout_s*."""
        self.app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose body is within the limits."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            declared = headers.get("content-length", "0")
            if not (declared.isascii() and declared.isdigit()):
                raise BadInput("the length of the body isn't a number", code="bad_request")
            if len(declared) > len(str(self._max_bytes)) or int(declared) > self._max_bytes:
                raise self._too_large()
            try:
                async with asyncio.timeout(self._timeout_s):
                    body = await self._gather(receive)
            except TimeoutError:
                raise CallerError(f"the body didn't come within {self._timeout_s:g} s", code="too_slow") from None
        except CallerError as error:
            # what was sent isn't taken in to its end, so nothing else can come by this connection
            await _refuse_and_drain(error_reply(error, {"connection": "close"}), scope, receive, send)
            return
        if body is not None:
            messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def again() -> Message:
                return messages.pop() if messages else await receive()

            await self.app(scope, again, send)

    async def _gather(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> CallerError:
        return CallerError(
            f"the request is larger than {self._max_bytes:,} bytes",
            hint="send less at once; server.max_body_mb sets the limit",
            code="too_large",
        )


async def _refuse_and_drain(reply: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Reply, and read on for a moment: a client still sending when the connection closes never sees the reply."""

    async def unended(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await reply(scope, receive, unended)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while (await receive()).get("more_body", False):
                pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})
