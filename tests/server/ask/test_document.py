"""The OpenAPI document says of tasks and presets what is so, and whatever is sent is answered or refused in shape."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.server.http import tasks as http_tasks
from knapper.server.http.app import Mount
from tests.properties import scaled
from tests.server import apps, chats, contracts, tasks
from tests.server.test_hostile import check, names, values

PATHS = {
    "/ask": {"post"},
    "/ask/stream": {"post"},
    "/ask/{run_id}/events": {"get"},
    "/ask/{run_id}/cancel": {"post"},
    "/ask/waiting": {"get"},
    "/ask/context": {"post"},
    "/ask/switches": {"put"},
    "/ask/defaults": {"get"},
    "/presets": {"get"},
    "/presets/{name}": {"put", "delete"},
}
LIMITS = settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KNOWN = st.sampled_from([one.name for one in http_tasks.TASK_PARAMETERS] + ["texts", "x"])


def asking(world: apps.World) -> Mount:
    return chats.mounted(world.hub, world.stop, tasks.answering().open)


@pytest.fixture
def client(tmp_path: Path) -> Any:  # noqa: ANN401 - a generator
    with apps.world(tmp_path) as world, world.client(None, asking(world)) as client:
        yield client


def test_every_route_is_described_with_its_errors_and_a_name_of_its_own(client: TestClient) -> None:
    described = client.get("/openapi.json").json()

    shown = {path: set(described["paths"][path]) for path in described["paths"] if path in PATHS}
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert shown == PATHS
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert "502" in described["paths"]["/ask"]["post"]["responses"]
    assert "text/event-stream" in described["paths"]["/ask/stream"]["post"]["responses"]["200"]["content"]
    for path in PATHS:
        for one in described["paths"][path].values():
            assert {"200", "400", "401", "403", "404", "409", "422", "503"} <= set(one["responses"])
    assert all(name.startswith("#/components/schemas/") for name in contracts.references(described))


def test_every_number_has_its_range_in_the_document(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    usual = client.get("/ask/defaults").json()

    body = described["paths"]["/ask"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    numbers = {name: one for name, one in body["properties"].items() if "integer" in one["type"]}
    assert numbers.keys() == {
        "link_depth",
        "token_limit",
        "chat_history_length",
        "rounds",
        "notes",
        "linked_notes",
        "semantic_notes",
        "semantic_similarity",
        "keyword_limit",
        "timeout_s",
        "snippet_limit",
        "fetch_limit",
        "token_budget",
        "orchestrator_steps",
        "orchestrator_tokens",
    }
    for name, one in numbers.items():
        assert usual["ranges"][name] == [one["minimum"], one["maximum"]]


@LIMITS
@given(body=st.dictionaries(KNOWN, values, max_size=6), path=st.sampled_from(["/ask", "/ask/context", "/ask/stream"]))
def test_any_order_of_any_kind(client: TestClient, body: dict[str, object], path: str) -> None:
    found = client.post(path, json=body)

    if found.status_code != 200 or path != "/ask/stream":
        check_reply(found.status_code, found.json())


@LIMITS
@given(note=names, added=st.lists(names, max_size=3), walls=st.lists(names, max_size=3), session=names)
def test_texts_of_any_content(client: TestClient, note: str, added: list[str], walls: list[str], session: str) -> None:
    body = {"task": "x", "note": note, "added": added, "excluded_folders": walls}
    found = [client.post("/ask", json={**body, "session_id": session}), client.post("/ask/context", json=body)]

    for one in found:
        check_reply(one.status_code, one.json())


@LIMITS
@given(
    body=st.dictionaries(st.sampled_from(["scope", "rules", "added", "toggles", "x"]), values, max_size=4), name=names
)
def test_any_preset(client: TestClient, body: dict[str, object], name: str) -> None:
    place = f"/presets/{quote(name, safe='', errors='replace')}"
    put = client.put(place, json=body)
    listed = client.get("/presets")
    gone = client.delete(place)

    assert listed.status_code == 200
    check_reply(put.status_code, put.json())
    check_reply(gone.status_code, gone.json())


def check_reply(status: int, body: dict[str, object]) -> None:
    """A task that ends at once may also say that the owner has to set something up."""
    if status == 503:
        assert body["code"] in {"web_off", "no_model"}
    else:
        check(status, body)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world, world.client(None, asking(world)) as client:
        run_id = client.post("/ask", json={"task": "rain?", "note": "Rain.md"}).json()["run_id"]
        contract = contracts.of_app(client.app, world.token(), PATHS, {"run_id": run_id})
        found = contracts.broken_words(contract, mode)

    assert found == []
