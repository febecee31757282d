"""Let no web page elsewhere drive the server: Host and Origin are checked on every request, and CORS is for a list."""

import ipaddress
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.config.sections.server import Server
from knapper.errors import BadInput, KnapError, RefusedError, SetupError
from knapper.server import replies

_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_HEADERS: Final = (
    "authorization, content-type, if-none-match, last-event-id, x-request-id, "
    "mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"
)
_EXPOSED: Final = "ETag, Retry-After, X-Request-ID, Mcp-Session-Id"
_MAX_AGE_S: Final = "600"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Say by which names the server may be called, and from which origins."""

    hosts: frozenset[str]
    """Names and addresses without a port, lower case."""
    any_address: bool
    """Whether any IP address may stand for the server; a rebound name can't."""
    origins: frozenset[str]

    def knows(self, host: str) -> bool:
        """Tell whether a Host header means this server."""
        name = _name(host)
        if name is None:
            return False
        return name in self.hosts or is_loopback(name) or (self.any_address and _address(name) is not None)

    def trusts(self, origin: str, host: str) -> bool:
        """Tell whether a page of an origin may call: the server's own, or a listed one."""
        return self.is_listed(origin) or origin.lower() in {f"http://{host}", f"https://{host}"}

    def is_listed(self, origin: str) -> bool:
        """Tell whether the owner lists an origin."""
        return origin.lower() in self.origins


def rules(server: Server) -> Rules:
    """Make the rules of a server.

    Raises:
        SetupError: It would listen at more than loopback without a token that the owner has set.
    """
    if not is_loopback(server.host) and not server.token:
        raise SetupError(
            f"the server isn't started at {server.host}, which other machines can reach, without a token of yours",
            hint="set server.token, or KNAP_TOKEN, to what `knap token new` prints; or leave --host out",
            code="token_needed",
        )
    return Rules(
        hosts=frozenset({server.host.lower().strip("[]"), *server.hosts}),
        any_address=not is_loopback(server.host),
        origins=frozenset(server.origins),
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    address = _address(host.strip("[]"))
    return address.is_loopback if address else host.lower() == "localhost"


class Guard:
    """Refuse requests under a foreign name or from a foreign page, and answer CORS; middleware in plain ASGI."""

    def __init__(self, app: ASGIApp, *, rules: Rules) -> None:
        """Stand before *app*."""
        self.app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        refusal = self._refusal(headers)
        if refusal is not None:
            await replies.failure(refusal)(scope, receive, send)
        elif scope["method"] == "OPTIONS" and origin and "access-control-request-method" in headers:
            await _preflight(origin, headers, is_listed=self._rules.is_listed(origin))(scope, receive, send)
        elif origin and self._rules.is_listed(origin):
            await self.app(scope, receive, _opened(send, origin))
        else:
            await self.app(scope, receive, send)

    def _refusal(self, headers: Headers) -> KnapError | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or len(origins) > 1:
            return BadInput("the request needs one Host, and one Origin at most", code="bad_request")
        host = hosts[0].lower()
        if not self._rules.knows(host):
            return RefusedError(
                "this server isn't called so",
                hint="call it by its address, or list the name in server.hosts",
                code="host_refused",
            )
        if origins and not self._rules.trusts(origins[0], host):
            return RefusedError(
                "web pages of this origin may not call the server",
                hint="list the origin in server.origins if you trust its pages",
                code="origin_refused",
            )
        return None


def _preflight(origin: str, headers: Headers, *, is_listed: bool) -> Response:
    said = {"vary": "Origin"}
    if is_listed:
        said |= {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": _METHODS,
            "access-control-allow-headers": _HEADERS,
            "access-control-max-age": _MAX_AGE_S,
        }
        if headers.get("access-control-request-private-network") == "true":
            said["access-control-allow-private-network"] = "true"
    return Response(status_code=204, headers={**replies.HEADERS, **said})


def _opened(send: Send, origin: str) -> Send:
    async def opened(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = _EXPOSED
            replies.add_header(headers, "vary", "Origin")
        await send(message)

    return opened


def _name(host: str) -> str | None:
    """Take the port off: ``[::1]:8000`` is ``::1``; None for what is no host."""
    if host.startswith("["):
        inner, bracket, rest = host[1:].partition("]")
        return inner if bracket and _is_port(rest) else None
    name, colon, port = host.partition(":")
    return name if name and _is_port(colon + port) else None


def _is_port(text: str) -> bool:
    return not text or (text.startswith(":") and text[1:].isascii() and text[1:].isdigit())


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
