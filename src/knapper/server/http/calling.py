"""Answer a request by calling the tool that its route shows."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from knapper.app import Hub
from knapper.jsontypes import JSONValue
from knapper.server import auth, kinds, leaving, replies
from knapper.server.http import faces
from knapper.server.http.faces import Face
from knapper.server.stopping import Stop
from knapper.server.threads import Threads
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Hold what routes need."""

    hub: Hub
    threads: Threads

    async def call(self, client: str, tool: str, given: dict[str, object]) -> Answer:
        """Call a tool on a client's behalf, in a thread.

        Raises:
            KnapError: As the tool says, or too much waits already.
        """
        hub, cancelling = self.hub, Stop()

        def opened(vault: str) -> Context:
            return replace(hub.context(client=client, vault=vault), on_cancel=cancelling.on)

        kind = kinds.of(hub.table, hub.table.find(tool), given)
        try:
            return await self.threads.run(kind, lambda: hub.table.call(tool, given, opened))
        except asyncio.CancelledError:
            cancelling.tell()
            raise

    async def answer(self, face: Face, request: Request) -> Answer:
        """Call the tool of a route with what the request says.

        Raises:
            KnapError: The request can't be read, or the tool fails.
        """
        given = await faces.arguments(face, request, self.properties(face))
        return await leaving.unless_gone(request.receive, self.call(auth.client_of(request.scope), face.tool, given))

    def properties(self, face: Face) -> dict[str, JSONValue]:
        """Give the parameters of a route's tool by name."""
        table = self.hub.table
        return cast("dict[str, JSONValue]", table.parameters(table.find(face.tool))["properties"])


def plain(serving: Serving, face: Face) -> Endpoint:
    """Make what answers a route with its tool's answer."""

    async def endpoint(request: Request) -> Response:
        return replies.Json(await serving.answer(face, request))

    return endpoint
