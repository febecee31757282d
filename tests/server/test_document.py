"""The OpenAPI document: complete, true, and held to by every answer."""

import importlib
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.server.http import openapi
from knapper.server.http.app import Mount
from knapper.tools.answers import MAX_OFFSET
from tests import compiled
from tests.server import apps, contracts


@pytest.fixture
def client(tmp_path: Path) -> Generator[TestClient]:
    with apps.world(tmp_path) as world, world.client() as client:
        yield client


def test_every_tool_and_noun_is_described_and_every_reference_leads_somewhere(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    tools = [row["name"] for row in client.get("/tools").json()["results"]]

    assert {f"/tools/{name}" for name in tools} <= set(described["paths"])
    assert {"/health", "/notes/{path}", "/proposals/{proposal_id}/accept"} <= set(described["paths"])
    for name in contracts.references(described):
        assert name.startswith("#/components/schemas/")
        assert name.rpartition("/")[2] in described["components"]["schemas"]


def test_every_operation_has_a_name_of_its_own_and_all_its_error_statuses(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    operations = [one for path in described["paths"].values() for one in path.values()]

    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    for one in operations:
        if one["operationId"] != "get_health":
            assert {"200", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503"} <= set(
                one["responses"]
            )


def test_a_note_that_is_as_the_asker_knows_it_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]
    told = {
        path: (list(one["get"]["responses"]["200"]["headers"]), one["get"]["parameters"][-1]["name"])
        for path, one in described.items()
        if "304" in one.get("get", {"responses": {}})["responses"]
    }

    assert told == {"/notes/{path}": (["ETag"], "If-None-Match")}


def test_a_tool_takes_in_the_document_what_it_takes_in_the_table(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    shown = {row["name"]: row for row in client.get("/tools").json()["results"]}

    body = described["paths"]["/tools/edit_file"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == shown["edit_file"]["parameters"]
    note = described["paths"]["/notes/{path}"]["get"]["parameters"]
    assert [one["in"] for one in note if one["name"] == "path"] == ["path"]


def test_other_requests_are_answered_while_the_document_is_written(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()

    def write(*_: object) -> dict[str, bool]:
        begun.set()
        return {"released": released.wait(5)}

    monkeypatch.setattr(openapi, "make_document", write)
    with ThreadPoolExecutor(1) as pool:
        document = pool.submit(client.get, "/openapi.json")
        assert begun.wait(5)
        health = client.get("/health")
        released.set()

    assert health.status_code == 200
    assert document.result().json() == {"released": True}


def test_a_source_that_an_upgrade_has_removed_leads_to_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "gone_shapes.py"
    text = "from typing_extensions import TypedDict\n\nclass Shape(TypedDict):\n    name: str\n    'Its name.'\n"
    source.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, "gone_shapes", ModuleType("gone_shapes"))  # so that it is forgotten afterwards
    del sys.modules["gone_shapes"]
    content = openapi.type_content(importlib.import_module("gone_shapes").Shape)
    source.unlink()

    async def show(*_: object) -> dict[str, object]:
        return {}

    route = openapi.make_route(openapi.bind_route("GET", "/gone", "x", show, (), content))
    with apps.world(tmp_path) as world, world.client(None, Mount(routes=(route,))) as client:
        refused = client.get("/openapi.json")

    assert (refused.status_code, refused.json()["code"]) == (503, "restart_needed")
    assert refused.json()["error"].startswith("the source of gone_shapes can't be read any more")
    assert "`knap service restart`" in refused.json()["hint"]


def test_the_range_of_a_page_is_described_as_it_is(client: TestClient) -> None:
    ranges = dict(_page_ranges(client.get("/openapi.json").json()))
    tools = {f"/tools/{tool['name']}": tool["parameters"] for tool in client.get("/tools").json()["results"]}
    assert ranges.pop(("/tools/fetch_page", "offset")) == (0, MAX_OFFSET)  # the web is off, which is said first
    wrong: dict[str, list[bool]] = {}
    for (path, name), (least, most) in ranges.items():
        needed = {one: _ARGUMENTS.get(one, "Rain") for one in tools[path].get("required", [])}
        errors = [
            str(client.post(path, json={**needed, name: value}).json().get("error"))
            for value in (least - 1, least, most, most + 1)
        ]
        refused = [error.startswith(f"{name} is ") for error in errors]
        if refused != [True, False, False, True]:
            wrong[f"{path} {name}"] = refused

    assert len(ranges) > 30
    assert wrong == {}


_ARGUMENTS = {"start_date": "2026-01-01", "end_date": "2026-12-31"}


def _page_ranges(document: dict[str, Any]) -> Generator[tuple[tuple[str, str], tuple[int, int]]]:
    for path, operations in document["paths"].items():
        if path.startswith("/tools/"):
            schema = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
            for name, one in schema["properties"].items():
                if "minimum" in one:
                    yield (path, name), (one["minimum"], one["maximum"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(
    tmp_path: Path, code_folder: Path, mode: GenerationMode
) -> None:
    with apps.world(tmp_path) as world:
        compiled.put(code_folder, world.settings.state_dir)
        script = {"code": "__result__ = 1"}  # so that the sandbox is there: it is prepared once
        first = world.hub.table.answer("run_script", script, lambda _: world.hub.context(client="http"))
        found = contracts.broken_words(contracts.of_app(world.app(), world.token()), mode)

    assert first["result"] == 1
    assert found == []
