"""Several vaults behind one server: chosen by name, each by its own rules."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from knapper.app import open_hub
from knapper.config import Vault
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
