"""Several vaults behind one server: chosen by name, each by its own rules."""

import contextlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from knapper.app import Hub, open_hub
from knapper.app.open_clients import OpenClients
from knapper.config import ClientSettings, Vault
from knapper.errors import NotFound, SetupError
from knapper.server.http import feed, indexing
from knapper.server.mcp.resources import ResourceProvider
from knapper.server.mcp.session import Caller, McpSession
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.vault import access
from tests.index import worlds
from tests.server import apps
from tests.server.apps import World


@pytest.fixture
def client(tmp_path: Path) -> Generator[TestClient]:
    """Serve two vaults; the second one hides a folder that the first one shows."""
    found = apps.settings(tmp_path, {"Diary/a.md": "a zebra at home\n"})
    other = worlds.fill(tmp_path / "other", {"Diary/a.md": "a zebra at work\n", "b.md": "a zebra\n"}).resolve()
    vaults = (found.vault, Vault(name="w", path=other, hidden=("Diary/",)))
    with (
        open_hub(replace(found, vaults=vaults)) as hub,
        World(hub=hub, settings=hub.settings, root=found.vault.path).client() as client,
    ):
        yield client


def test_every_tool_takes_a_vault_where_there_are_several(client: TestClient) -> None:
    tools: list[dict[str, Any]] = client.get("/tools").json()["results"]

    assert len(tools) > 50
    assert [tool["name"] for tool in tools if "vault" not in tool["parameters"]["properties"]] == []


def test_what_one_vault_hides_another_shows(client: TestClient) -> None:
    def read(vault: str) -> int:
        return client.post("/tools/read_file", json={"path": "Diary/a.md", "vault": vault}).status_code

    def found(vault: str) -> list[str]:
        answer = client.post("/tools/search_vault", json={"query": "zebra", "vault": vault}).json()
        return sorted(hit["source"] for hit in cast("list[dict[str, str]]", answer["results"]))

    assert (read("v"), read("w")) == (200, 404)
    assert (found("v"), found("w")) == (["Diary/a.md"], ["b.md"])
    assert client.get("/notes/Diary/a.md?vault=w").status_code == 404


@pytest.fixture
def bound(tmp_path: Path) -> Generator[Hub]:
    """Open three vaults, to one of which the client of HTTP is bound, and the client of MCP to another."""
    found = apps.settings(tmp_path, {"a.md": "a zebra at home\n"})
    paths = {name: worlds.fill(tmp_path / name, {"b.md": f"a zebra in {name}\n"}).resolve() for name in ("w", "x")}
    vaults = (found.vault, *(Vault(name=name, path=path) for name, path in paths.items()))
    clients = (
        ClientSettings(grants=access.default_grants("http"), vaults=("w",)),
        ClientSettings(grants=access.default_grants("mcp"), vaults=("x", "v")),
    )
    with open_hub(replace(found, vaults=vaults, clients=clients)) as hub:
        yield hub


def test_a_client_opens_only_the_vaults_that_it_is_bound_to(bound: Hub) -> None:
    with World(hub=bound, settings=bound.settings, root=bound.settings.vault.path).client() as client:
        own = client.post("/tools/read_file", json={"path": "b.md"})
        other = client.post("/tools/read_file", json={"path": "b.md", "vault": "x"})
        missing = client.post("/tools/read_file", json={"path": "b.md", "vault": "y"})

    assert own.json()["content"].startswith("a zebra in w")
    assert (other.status_code, missing.status_code) == (404, 404)
    assert other.json()["error"].replace("'x'", "'y'") == missing.json()["error"]
    assert "x" not in other.json()["hint"].replace("exist", "")


def test_a_client_without_a_binding_opens_all(bound: Hub) -> None:
    assert bound.names_for("cli") == ("v", "w", "x")
    assert bound.names_for("mcp") == ("v", "x")


def test_chats_tasks_and_runs_keep_to_the_binding_too(bound: Hub) -> None:
    with contextlib.closing(OpenClients(bound)) as opened:
        for open_it in (opened.chats, opened.pipelines, opened.runs):
            with pytest.raises(NotFound, match="no vault 'x'"):
                open_it("http", "x")


def test_an_agent_that_works_for_a_client_reaches_no_other_vault(bound: Hub) -> None:
    context = bound.open_as_agent("w", "", ("http",))

    assert context.scripting.open_vault("w").vault == "w"
    with pytest.raises(NotFound, match="no vault 'v'"):
        context.scripting.open_vault("v")
    with pytest.raises(NotFound, match="no vault 'x'"):
        bound.open_as_agent("x", "", ("http",))


def test_the_only_client_of_a_hub_hears_of_no_other_vault(bound: Hub) -> None:
    with open_hub(bound.settings, client="mcp") as hub:
        assert hub.vaults == ("v", "x")
        assert "'w'" not in str(hub.table.parameters(hub.table.find("read_file")))

    with pytest.raises(SetupError, match="may open none"):
        open_hub(replace(bound.settings, vaults=bound.settings.vaults[:1]), client="http")


def test_the_news_of_another_vault_are_not_told_to_a_bound_client(bound: Hub) -> None:
    threads = WorkerThreads(1)
    try:
        service = feed.FeedService(bound, threads, StopSignal(), ())
        own = service.open("http", "w")
        with pytest.raises(NotFound, match="no vault 'x'") as refused:
            service.open("http", "x")
    finally:
        threads.close()

    assert service.open("http", "") is own
    assert "w" in refused.value.hint
    assert "v" not in refused.value.hint.split(": ")[-1]


def test_the_index_of_another_vault_is_not_refreshed_for_a_bound_client(bound: Hub) -> None:
    threads, stop = WorkerThreads(1), StopSignal()
    world = World(hub=bound, settings=bound.settings, root=bound.settings.vault.path)
    try:
        with world.client(None, indexing.mount_index(bound, threads, stop)) as client:
            other = client.post("/index", json={"vault": "x"})
            missing = client.post("/index", json={"vault": "y"})
    finally:
        threads.close()

    assert (other.status_code, other.json()["code"]) == (404, missing.json()["code"])
    assert other.json()["error"].replace("'x'", "'y'") == missing.json()["error"]


@pytest.mark.anyio
async def test_resources_are_those_of_the_client_and_a_start_asks_for_none(bound: Hub) -> None:
    def nobody() -> Caller:
        raise RuntimeError("no request is being answered")

    own = ResourceProvider(bound.vaults, McpSession(hub=bound, identify=lambda: Caller("mcp")))
    starting = ResourceProvider(bound.vaults, McpSession(hub=bound, identify=nobody))

    assert [str(one.uri).count("://w/") for one in await own.list_resources()] == [0, 0]
    assert await starting.get_tasks() == []
