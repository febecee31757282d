"""The OpenAPI document: complete, true, and held to by every answer."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
import schemathesis.checks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks
from starlette.testclient import TestClient

from tests.server import apps

of_any: Any = schemathesis.checks  # their types aren't complete
of_openapi: Any = checks
CHECKS = [
    of_any.not_a_server_error,
    of_openapi.status_code_conformance,
    of_openapi.content_type_conformance,
    of_openapi.response_headers_conformance,
    of_openapi.response_schema_conformance,
]
UNHEALTHY = [HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow]


@pytest.fixture
def client(tmp_path: Path) -> Generator[TestClient]:
    with apps.world(tmp_path) as world, world.client() as client:
        yield client


def references(value: object) -> Generator[str]:
    if isinstance(value, dict):
        rows = cast("dict[str, object]", value)
        if isinstance(name := rows.get("$ref"), str):
            yield name
        for one in rows.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from references(one)


def test_every_tool_and_noun_is_described_and_every_reference_leads_somewhere(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    tools = [row["name"] for row in client.get("/tools").json()["results"]]

    assert {f"/tools/{name}" for name in tools} <= set(described["paths"])
    assert {"/health", "/notes/{path}", "/proposals/{proposal_id}/accept"} <= set(described["paths"])
    for name in references(described):
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


def test_a_tool_takes_in_the_document_what_it_takes_in_the_table(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    shown = {row["name"]: row for row in client.get("/tools").json()["results"]}

    body = described["paths"]["/tools/edit_file"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == shown["edit_file"]["parameters"]
    note = described["paths"]["/notes/{path}"]["get"]["parameters"]
    assert [one["in"] for one in note if one["name"] == "path"] == ["path"]


def broken_words(world: apps.World, mode: GenerationMode, *, cases: int) -> list[str]:
    """Ask every operation with generated arguments; gives what broke the document's word."""
    found: list[str] = []
    headers = {"authorization": f"Bearer {world.token()}", "host": "127.0.0.1"}
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", world.app(), headers=headers)
    for result in schema.get_all_operations():
        ask = _asking(result.ok().as_strategy(generation_mode=mode), headers, found)
        with contextlib.suppress(Unsatisfiable):  # what takes nothing can't be given anything wrong
            settings(max_examples=cases, database=None, phases=[Phase.generate], suppress_health_check=UNHEALTHY)(ask)()
    return found


def _asking(cases: st.SearchStrategy[Any], headers: Mapping[str, str], found: list[str]) -> Callable[[], None]:
    @given(case=cases)
    def ask(case: Any) -> None:  # noqa: ANN401 - its class is generic in what it doesn't say
        response = case.call(headers=headers)
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            found.extend(f"{case.method} {case.path} {case.body}: {one}" for one in group.exceptions)

    return ask


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world:
        script = {"code": "__result__ = 1"}  # so that the sandbox is there: it is prepared once
        first = world.hub.table.answer("run_script", script, lambda _: world.hub.context(client="http"))
        found = broken_words(world, mode, cases=25)

    assert first["result"] == 1
    assert found == []
