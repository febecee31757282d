"""The OpenAPI document says of chats and sessions what is so."""

from pathlib import Path

import pytest
from schemathesis.generation import GenerationMode

from knapper.server.http.app import Mount
from tests.agents.scripted import Model
from tests.server import apps, chats, contracts

PATHS = {
    "/chat": {"post"},
    "/chat/stream": {"post"},
    "/chat/{turn_id}/events": {"get"},
    "/chat/{turn_id}/cancel": {"post"},
    "/sessions": {"get", "post"},
    "/sessions/{session_id}": {"get", "patch", "delete"},
    "/sessions/{session_id}/chat": {"post"},
    "/sessions/{session_id}/chat/stream": {"post"},
    "/sessions/{session_id}/trace": {"get"},
    "/sessions/{session_id}/fork": {"post"},
    "/sessions/{session_id}/clear": {"post"},
    "/sessions/{session_id}/export": {"post"},
}


def chatting(world: apps.World) -> Mount:
    return chats.mounted(world.hub, world.stop, Model([["Hi."]]).open)


def test_every_route_is_described_with_its_errors_and_a_name_of_its_own(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, chatting(world)) as client:
        described = client.get("/openapi.json").json()

    shown = {path: set(described["paths"][path]) for path in described["paths"] if path in PATHS}
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert shown == PATHS
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert "502" in described["paths"]["/chat"]["post"]["responses"]
    assert "text/event-stream" in described["paths"]["/chat/stream"]["post"]["responses"]["200"]["content"]
    for path in PATHS:
        for one in described["paths"][path].values():
            assert {"200", "400", "401", "404", "409", "422", "503"} <= set(one["responses"])
    assert all(name.startswith("#/components/schemas/") for name in contracts.references(described))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world, world.client(None, chatting(world)) as client:
        session = client.post("/chat", json={"message": "hello"}).json()
        contract = contracts.of_app(client.app, world.token(), PATHS, {"session_id": session["session_id"]})
        found = contracts.broken_words(contract, mode)

    assert found == []
