"""Pair devices over HTTP, and show and revoke them: ``/pair``, ``/pair/codes``, ``/clients``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from knapper import __version__
from knapper.config.paired import MAX_DEVICE_CHARS, MAX_NAME_CHARS
from knapper.errors import RefusedError
from knapper.server import credentials, security
from knapper.server.addresses import PRODUCT
from knapper.server.http import binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import INTEGER, STRING
from knapper.server.security import API_CLIENT, MCP_CLIENT, PAGE_CLIENT, RequestBuckets
from knapper.vault import access
from knapper.vault.access import Capability, ClientKind, EditableScope, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from knapper.app import Hub
    from knapper.config.paired import PairedClient, PairedClients
    from knapper.jsontypes import JSONValue
    from knapper.server.credentials import PairingCodes
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import WorkerThreads

Credential = Literal["own", "api", "page", "none"]
TRIES_PER_MINUTE: Final = 10
"""Codes that may be tried on one server, right or wrong and by whomever: they are short enough to type."""
PAIR_PATH: Final = "/pair"
_CODES_PATH: Final = "/pair/codes"
_CLIENTS_PATH: Final = "/clients"
_TAG: Final = "clients"
_CREATED: Final = 201
_NULLABLE: Final[Mapping[str, Any]] = {"type": ["string", "null"]}
_PAIR_PARAMETERS: Final = (
    Parameter(name="code", doc="As `knap connect` or the page shows it.", required=True, maximum=100),
    Parameter(name="name", doc="What the client is to be called; a number is added to a taken name.", maximum=200),
    Parameter(name="device", doc="What the device is, for the list of clients.", maximum=200),
)
_CODE_PARAMETERS: Final = (
    VAULT_PARAMETER,
    Parameter(name="name", doc="What the client is to be called; the device says it where it is left out."),
    Parameter(name="address", doc="Where the device finds the server; the page's own address where it is left out."),
)
_PAIRED_CONTENT: Final = openapi.json_content(
    {
        "name": {"type": "string", "maxLength": MAX_NAME_CHARS + 4},
        "vault": STRING,
        "token": {"type": "string", "description": "Told this once; it goes with each request as a bearer token."},
        "product": {"const": PRODUCT},
        "version": STRING,
        "instance": {"type": "string", "description": "The server's, as in `/health`."},
    }
)
_CODE_CONTENT: Final = openapi.type_content(
    credentials.Invitation,
    qr={
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": "^[01]+$"},
        "description": "The link as a QR code, a row a text, 1 for dark; null for an address without HTTPS.",
    },
)
_CLIENT_SCHEMA: Final = openapi.object_schema(
    {
        "name": STRING,
        "device": {"type": "string", "maxLength": MAX_DEVICE_CHARS},
        "vault": STRING,
        "paired": {"type": "string", "description": "When, with the zone."},
        "made_by": {"enum": ["cli", "page"], "description": "Where its code was made."},
        "last_used": {**_NULLABLE, "description": "When it was last there, to the minute."},
        "revoked": {**_NULLABLE, "description": "When; null while it is good."},
    }
)


class RightsRow(TypedDict):
    """What a program may see and change."""

    is_read_only: bool
    capabilities: list[Capability]
    scope: EditableScope
    """Which notes it may change."""
    small: Outcome
    """What becomes of a change to one exact place."""
    large: Outcome
    """What becomes of any other change."""
    max_files: int
    """How many files it may change at once without a person's word."""
    write: list[str]
    """Patterns of what it may change; empty for all."""
    read_only: list[str]
    """Patterns of what it may not change."""
    read: list[str]
    """Patterns of what it may read; empty for all."""
    hidden: list[str]
    """Patterns of what it isn't shown."""
    vaults: list[str]
    """Vaults that it may open; empty for all."""


class ProgramRow(TypedDict):
    """A client that isn't a paired device."""

    name: str
    kind: ClientKind
    is_configured: bool
    """Whether the configuration says what it may do."""
    credential: Credential
    """What it shows to the server: a token of its own, that of the API, the page's, or none."""
    last_used: str | None
    """When it last called, since the server's start."""
    rights: RightsRow


_REVOKED_CONTENT: Final = openapi.json_content({"revoked": dict(_CLIENT_SCHEMA)})
_LISTED_CONTENT: Final = openapi.json_content(
    {
        "results": {"type": "array", "items": dict(_CLIENT_SCHEMA)},
        "total": INTEGER,
        "programs": {
            "type": "array",
            "items": ProgramRow,
            "description": "Clients that aren't paired devices, with their rights; empty for a paired device.",
        },
    }
)
_BUILT_IN_TOKENS: Final[Mapping[str, Credential]] = {API_CLIENT: "api", MCP_CLIENT: "api", PAGE_CLIENT: "page"}


class PairingService:
    """The codes and paired clients of one server; safe to use from any thread."""

    def __init__(self, hub: Hub, codes: PairingCodes, instance: str, buckets: RequestBuckets | None = None) -> None:
        """Start with no tries.

        Args:
            hub: The vaults that are served.
            codes: Those of the state folder.
            instance: The server's.
            buckets: Counts the tries; None for the usual number.
        """
        self._hub = hub
        self._codes = codes
        self._instance = instance
        self._buckets = buckets or RequestBuckets(TRIES_PER_MINUTE)

    @property
    def clients(self) -> PairedClients:
        """Return the paired clients."""
        return self._hub.settings.paired

    def take_try(self) -> float:
        """Count a try; return 0, or the seconds until the next is allowed."""
        return self._buckets.take(PAIR_PATH)

    def pair(self, args: RequestArguments) -> dict[str, JSONValue]:
        """Exchange a code for a client and its token.

        Raises:
            RefusedError: The code isn't good.
            BadInput: It is for a vault that isn't served here, or too many clients are paired.
            StorageError: The client can't be stored.
        """
        folders = {str(vault.path) for vault in self._hub.vault_folders}
        offer = self._codes.redeem(args.text("code"), folders)
        if offer is None:
            raise credentials.unknown_code_error()
        client, token = credentials.pair(self._hub.settings, offer, args.text("name"), args.text("device"))
        return {
            "name": client.name,
            "vault": client.vault,
            "token": token,
            "product": PRODUCT,
            "version": __version__,
            "instance": self._instance,
        }

    def make_code(self, args: RequestArguments, own_address: str) -> dict[str, JSONValue]:
        """Create a code for a vault.

        Raises:
            NotFound: No such vault is served.
            BadInput: The address isn't one, or the name has nothing that can be shown.
            SetupError: The server doesn't answer by that address.
            StorageError: The code can't be stored.
        """
        name = self._hub.name_for(PAGE_CLIENT, args.text("vault"))
        vault = next(vault for vault in self._hub.vault_folders if vault.name == name)
        address = credentials.check_address(self._hub.settings, args.text("address") or own_address)
        offer = credentials.offer_vault(vault, args.text("name"), PAGE_CLIENT)
        return credentials.Invitation(code=self._codes.new(offer), address=address, offer=offer).as_dict()

    def list_clients(self, client: str, seen: Mapping[str, float]) -> Mapping[str, object]:
        """Return the paired clients: all for the page, with programs and their rights, and for a paired one itself.

        Args:
            client: Who asks.
            seen: When clients last called, by name.
        """
        rows = [
            each.as_dict(self.clients.last_used(each))
            for each in self.clients.list_all()
            if client in {PAGE_CLIENT, each.name}
        ]
        programs = self._list_programs(seen) if client == PAGE_CLIENT else []
        return {"results": rows, "total": len(rows), "programs": programs}

    def _list_programs(self, seen: Mapping[str, float]) -> list[ProgramRow]:
        settings = self._hub.settings
        configured = {client.name for client in settings.clients}
        known = dict.fromkeys([*access.CLIENT_KINDS, *configured])
        rows: list[ProgramRow] = []
        for name in known:
            client, seen_at = settings.client(name), seen.get(name)
            last_used = None if seen_at is None else datetime.fromtimestamp(seen_at, UTC).isoformat(timespec="seconds")
            grants = client.grants
            rows.append(
                {
                    "name": client.name,
                    "kind": grants.kind,
                    "is_configured": name in configured,
                    "credential": "own" if client.token_hash else _BUILT_IN_TOKENS.get(client.name, "none"),
                    "last_used": last_used,
                    "rights": {
                        "is_read_only": grants.is_read_only,
                        "capabilities": [*sorted(grants.capabilities)],
                        "scope": grants.editable,
                        "small": grants.small,
                        "large": grants.large,
                        "max_files": grants.max_files,
                        "write": [*grants.write],
                        "read_only": [*grants.read_only],
                        "read": [*client.read],
                        "hidden": [*client.hidden],
                        "vaults": [*client.vaults],
                    },
                }
            )
        return rows

    def revoke(self, name: str) -> PairedClient:
        """Revoke a client; raises as `PairedClients.revoke` does."""
        return self.clients.revoke(name)


def mount_clients(service: PairingService, hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/pair``, ``/pair/codes`` and ``/clients``.

    Args:
        service: Of this server.
        hub: Whose settings say who is a person.
        threads: Where files are read and written; the caller closes them.
    """
    routes = _ClientRoutes(service=service, hub=hub, threads=threads)
    by_name = f"{_CLIENTS_PATH}/{{name}}"
    pair = openapi.bind_route("POST", PAIR_PATH, _TAG, routes.pair, _PAIR_PARAMETERS, _PAIRED_CONTENT)
    make_code = openapi.bind_route("POST", _CODES_PATH, _TAG, routes.make_code, _CODE_PARAMETERS, _CODE_CONTENT)
    specs = (
        replace(pair, status=_CREATED, is_open=True),
        replace(make_code, status=_CREATED),
        openapi.bind_route("GET", _CLIENTS_PATH, _TAG, routes.list_all, binding.ANY_VAULT, _LISTED_CONTENT),
        openapi.bind_route("DELETE", by_name, _TAG, routes.revoke, binding.ANY_VAULT, _REVOKED_CONTENT),
    )
    return Mount(routes=[*map(openapi.make_route, specs)], open_paths=frozenset({PAIR_PATH}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientRoutes:
    """The handlers of requests about devices and clients."""

    service: PairingService
    hub: Hub
    threads: WorkerThreads

    async def pair(self, _: Request, args: RequestArguments) -> Response | dict[str, JSONValue]:
        """Pair a device.

        Exchanges a code, which is good once within two minutes, for a client of its own. Needs no token.
        """
        wait_s = self.service.take_try()
        if wait_s:
            error = RefusedError(
                "too many codes were tried",
                hint="wait a moment; a code that you didn't try is another program's doing",
                code="too_many_requests",
            )
            return security.error_reply(error, {"retry-after": str(math.ceil(wait_s))})
        return await self.threads.run("write", lambda: self.service.pair(args))

    async def make_code(self, request: Request, args: RequestArguments) -> Mapping[str, object]:
        """Make a code that pairs a device.

        For the page: a paired device can't let others in.
        """
        security.check_owner(self.hub.settings, request.scope, "let other devices in")
        origin = request.headers.get("origin", "")
        own_address = origin if origin.startswith("http") else str(request.base_url).rstrip("/")
        return await self.threads.run("write", lambda: self.service.make_code(args, own_address))

    async def list_all(self, request: Request, _: RequestArguments) -> Mapping[str, object]:
        """List the paired devices, and the other clients with their rights.

        For persons: the page sees all, and what programs may do; a paired device itself.
        """
        security.check_person(self.hub.settings, request.scope, "see the paired devices")
        client = security.client_of(request.scope)
        seen: Mapping[str, float] = dict(request.app.state.seen)
        return await self.threads.run("read", lambda: self.service.list_clients(client, seen))

    async def revoke(self, request: Request, _: RequestArguments) -> dict[str, JSONValue]:
        """Revoke a paired device.

        Its token is good no more, and its streams end. For the page; a paired device may revoke itself.
        """
        name = str(request.path_params["name"])
        security.check_person(self.hub.settings, request.scope, "revoke a paired device")
        if security.client_of(request.scope) == name:
            security.let_last_reply_pass(request.scope)
        else:
            security.check_owner(self.hub.settings, request.scope, "revoke another one")
        client = await self.threads.run("write", lambda: self.service.revoke(name))
        return {"revoked": {**client.as_dict(self.service.clients.last_used(client))}}
