"""Tell who asks, by the token that is shown; without one nothing but open paths is answered."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from knapper.config import Settings
from knapper.errors import RefusedError, SetupError
from knapper.server import replies, tokens

API: Final = "http"
PAGE: Final = "page"
MCP: Final = "mcp"
MCP_PATH: Final = "/mcp"
_CLIENT: Final = "knapper.client"
_SCHEME: Final = "bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Hold which token stands for which client; only hashes are kept."""

    clients: Mapping[bytes, str]
    """The client's name, by the SHA-256 of its token."""
    persons: frozenset[str] = frozenset({PAGE})
    """Clients whose word is a person's; behind the protocol for models sits none."""

    def client(self, token: str) -> str | None:
        """Tell whose token it is; None for nobody's. Every known token is compared, in constant time."""
        shown = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found: str | None = None
        for known, name in self.clients.items():
            if hmac.compare_digest(known, shown):
                found = name
        return found


def keys(settings: Settings) -> Keys:
    """Gather the tokens: the API's and the page's, which are made where there are none, and those of named clients.

    Raises:
        StorageError: A token can't be read or written.
        SetupError: Two clients have the same token.
    """
    api = settings.server.token or tokens.read_or_make(settings.state_dir, "api")
    hashes = [(API, tokens.hash_of(api)), (PAGE, tokens.hash_of(tokens.read_or_make(settings.state_dir, "page")))]
    hashes += [(client.name, client.token_hash) for client in settings.clients if client.token_hash]
    clients: dict[bytes, str] = {}
    for name, digest in hashes:
        raw = bytes.fromhex(digest.removeprefix("sha256:"))
        if raw in clients:
            raise SetupError(
                f"the clients '{clients[raw]}' and '{name}' have the same token",
                hint="give each a token of its own: `knap token new` makes one",
                code="config_invalid",
            )
        clients[raw] = name
    persons = {client.name for client in settings.clients if client.grants.is_person}
    return Keys(clients=clients, persons=frozenset({PAGE, *persons}))


def client_of(scope: Scope) -> str:
    """Tell which client asks; the gate has seen its token.

    Raises:
        RefusedError: The request came by no gate.
    """
    name = scope.get("state", {}).get(_CLIENT)
    if not isinstance(name, str):
        raise _nobody("no client is known for this request")
    return name


def is_known(scope: Scope) -> bool:
    """Tell whether it is known who asks; nobody is asked on open paths."""
    return isinstance(scope.get("state", {}).get(_CLIENT), str)


def set_client(scope: Scope, name: str) -> None:
    """Note who asks."""
    scope.setdefault("state", {})[_CLIENT] = name


class Gate:
    """Let in whoever shows a token, and note who that is; middleware in plain ASGI."""

    def __init__(self, app: ASGIApp, *, keys: Keys, open_paths: frozenset[str]) -> None:
        """Stand before *app*; paths that end in ``/`` open all below them."""
        self.app = app
        self._keys = keys
        self._open = frozenset(path for path in open_paths if not path.endswith("/") or path == "/")
        self._open_below = tuple(sorted(path for path in open_paths if path.endswith("/") and path != "/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http" or self._is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        refusal = self._admit(scope)
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await replies.failure(refusal)(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        return path in self._open or bool(self._open_below and path.startswith(self._open_below))

    def _admit(self, scope: Scope) -> RefusedError | None:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != _SCHEME or not token.strip():
            return _nobody("a token is needed")
        name = self._keys.client(token.strip())
        if name is None:
            return _nobody("the token isn't known here")
        is_mcp = scope["path"] == MCP_PATH or scope["path"].startswith(f"{MCP_PATH}/")
        if is_mcp and name in self._keys.persons:
            return RefusedError(
                "a person's key isn't for MCP clients", hint="give them the API's token", code="person_key_refused"
            )
        set_client(scope, MCP if is_mcp and name == API else name)
        return None


def _nobody(problem: str) -> RefusedError:
    return RefusedError(
        problem,
        hint="send it as 'Authorization: Bearer TOKEN'; `knap token` tells where it lies",
        code="unauthorized",
    )
