"""A server of several vaults names to each client only its own, in whatever describes the server."""

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from fastmcp import Client
from starlette.testclient import TestClient

from knapper.app import Hub, open_hub
from knapper.config import ClientSettings, Vault
from knapper.config.paired import hash_token
from knapper.server import credentials
from knapper.server import lifecycle as mcp
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession, ToolListing
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.vault import access
from tests.index import worlds
from tests.server import apps
from tests.server.apps import World

pytestmark = pytest.mark.timeout(120)
NAMES: Final = ("garden", "workshop", "laboratory")
TWO: Final = "t" * 43
"""The token of a client that is bound to two vaults; the API's own is bound to one."""
ALL: Final = "a" * 43
"""The token of a client that is bound to none."""
_HEADERS: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def hub(tmp_path: Path) -> Generator[Hub]:
    found = apps.settings(tmp_path)
    vaults = tuple(
        Vault(name=name, path=worlds.fill(tmp_path / name, {"a.md": f"{name}\n"}).resolve()) for name in NAMES
    )
    clients = (
        # What shows the API's token is called mcp there, and http elsewhere.
        ClientSettings(grants=access.default_grants("http"), vaults=("workshop",)),
        ClientSettings(grants=access.default_grants("mcp"), vaults=("workshop",)),
        ClientSettings(
            grants=access.default_grants("two", "http"),
            vaults=("garden", "workshop"),
            token_hash=hash_token(TWO),
        ),
        ClientSettings(grants=access.default_grants("all", "http"), token_hash=hash_token(ALL)),
    )
    with open_hub(replace(found, choice=vaults[0], vaults=vaults, clients=clients)) as opened:
        yield opened


@pytest.fixture
def server(hub: Hub) -> Generator[TestClient]:
    threads = WorkerThreads(4)
    world = World(hub=hub, settings=hub.settings, root=hub.settings.vault.path)
    with world.client(None, mcp.mount_mcp(hub, threads, StopSignal())) as client:
        yield client
    threads.close()


def tokens(hub: Hub) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Give each client's token, with the vaults that it may hear of."""
    api = credentials.read_or_make_token(hub.settings.state_dir, "api")
    return {"one": (api, NAMES[1:2]), "two": (TWO, NAMES[:2]), "all": (ALL, NAMES)}


def result(response: Any) -> dict[str, Any]:  # noqa: ANN401 - the test client's
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(lines[-1] if lines else response.text)["result"]


def modern(server: TestClient, token: str, method: str, **params: object) -> dict[str, Any]:
    named = {"mcp-name": str(params["name"])} if "name" in params else {}
    headers = {**_HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": method, **named}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    return result(server.post("/mcp", json=body, headers={**headers, "authorization": f"Bearer {token}"}))


@dataclass(frozen=True)
class Modern:
    """The protocol without sessions."""

    server: TestClient
    token: str

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        return modern(self.server, self.token, method, **params)


class Legacy:
    """A session of the protocol with a handshake."""

    def __init__(self, server: TestClient, token: str) -> None:
        self._server, self.headers = server, {**_HEADERS, "authorization": f"Bearer {token}"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        answer = server.post("/mcp", json=body, headers=self.headers)
        self.hello = result(answer)
        self.headers |= {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        return result(self._server.post("/mcp", json=body, headers=self.headers))


def told(shown: object) -> set[str]:
    """Name the vaults that a text or an answer names."""
    text = json.dumps(shown)
    return {name for name in NAMES if name in text}


LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
FIND: Final = {"name": "find_tool", "arguments": {"query": "read a note"}}
BAD_VAULT: Final = {"name": "read_file", "arguments": {"path": "a.md", "vault": "nowhere"}}
NO_TEXT: Final = {"name": "read_file", "arguments": {"path": "a.md", "vault": 5}}
BAD_PROMPT: Final = "weekly_review"


def test_over_mcp_a_client_hears_of_its_own_vaults_alone(hub: Hub, server: TestClient) -> None:
    for token, own in (*tokens(hub).values(), *tokens(hub).values()):  # twice: what is kept for one is no other's
        session = Legacy(server, token)
        assert told(session.hello["instructions"]) == set(own)
        assert told(modern(server, token, "server/discover")["instructions"]) == set(own)
        for ask in (session.ask, Modern(server, token).ask):
            for method in LISTS:
                assert told(ask(method)) <= set(own), method
            tools = ask("tools/list")["tools"]
            enums = {tuple(one["inputSchema"]["properties"].get("vault", {}).get("enum", ())) for one in tools}
            assert enums - {()} == ({own} if len(own) > 1 else set())  # a short definition leaves them to the first
            assert told(ask("tools/call", **FIND)) <= set(own)
            assert told(ask("tools/call", **BAD_VAULT)) <= set(own)
            assert told(ask("tools/call", **NO_TEXT)) <= set(own)


def test_prompts_take_the_vaults_of_who_asks(hub: Hub, server: TestClient) -> None:
    for token, own in tokens(hub).values():
        session = Legacy(server, token)
        (prompt,) = [one for one in session.ask("prompts/list")["prompts"] if one["name"] == BAD_PROMPT]
        names = [argument["name"] for argument in prompt["arguments"]]
        assert ("vault" in names) == (len(own) > 1)
        for vault in NAMES:
            body = {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "prompts/get",
                "params": {"name": BAD_PROMPT, "arguments": {"vault": vault}},
            }
            answer = server.post("/mcp", json=body, headers=session.headers).text
            is_own = vault in own and len(own) > 1
            assert ('"result"' in answer) is is_own, (own, vault, answer)
            assert {name for name in NAMES if name in answer} - {vault} <= set(own)


def test_over_http_a_client_hears_of_its_own_vaults_alone(hub: Hub, server: TestClient) -> None:
    for token, own in (*tokens(hub).values(), *tokens(hub).values()):
        headers = {"authorization": f"Bearer {token}"}
        tools = server.get("/tools", headers=headers).json()
        document = server.get("/openapi.json", headers=headers)
        found = server.post("/tools/find_tool", json={"query": "read a note"}, headers=headers).json()
        number = server.post("/tools/read_file", json={"path": "a.md", "vault": 5}, headers=headers).json()

        assert told(tools) == told(document.json()) == (set(own) if len(own) > 1 else set())
        assert document.headers["content-type"] == "application/json"
        assert told(found) <= set(own)
        assert told(number) <= set(own)
        assert number["code"] == "bad_arguments"
        called = server.post(
            "/tools/read_file", json={"path": "a.md", "vault": next(iter(own))}, headers=headers
        ).json()
        assert called["content"].strip() == next(iter(own))


def test_the_document_is_for_those_who_have_a_token(server: TestClient) -> None:
    assert server.get("/openapi.json", headers={"authorization": ""}).status_code == 401


@pytest.mark.anyio
async def test_a_client_that_may_open_none_hears_of_none(hub: Hub) -> None:
    settings = replace(
        hub.settings, clients=(ClientSettings(grants=access.default_grants("mcp"), vaults=("elsewhere",)),)
    )
    with open_hub(settings) as other:
        session = McpSession(hub=other, identify=lambda: Caller("mcp"))
        async with Client(build_server(session, ToolListing(choice="essential"))) as client:
            tools = [tool.model_dump(mode="json") for tool in await client.list_tools()]
            hello = client.initialize_result

    assert told(tools) == set()
    assert hello is None or told(hello.instructions) == set()
