"""The OpenAPI document says of chats and sessions what is so."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from knapper.server.http.app import Mount
from tests.agents.scripted import Model
from tests.server import apps, chats
from tests.server.test_document import CHECKS, references

PATHS = {
    "/chat": {"post"},
    "/chat/stream": {"post"},
    "/chat/{turn_id}/events": {"get"},
    "/chat/{turn_id}/cancel": {"post"},
    "/sessions": {"get", "post"},
    "/sessions/{session_id}": {"get", "patch", "delete"},
    "/sessions/{session_id}/chat": {"post"},
    "/sessions/{session_id}/chat/stream": {"post"},
    "/sessions/{session_id}/fork": {"post"},
    "/sessions/{session_id}/clear": {"post"},
    "/sessions/{session_id}/export": {"post"},
}
UNHEALTHY = [HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow]


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
    assert all(name.startswith("#/components/schemas/") for name in references(described))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    found: list[str] = []
    with apps.world(tmp_path) as world, world.client(None, chatting(world)) as client:
        session = client.post("/chat", json={"message": "hello"}).json()
        headers = {"authorization": f"Bearer {world.token()}", "host": "127.0.0.1"}
        schema: Any = schemathesis.openapi.from_asgi("/openapi.json", client.app, headers=headers)
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path not in PATHS:
                continue
            strategy = operation.as_strategy(generation_mode=mode)

            @settings(max_examples=25, database=None, phases=[Phase.generate], suppress_health_check=UNHEALTHY)
            @given(case=strategy)
            def ask(case: Any) -> None:  # noqa: ANN401 - its class is generic in what it doesn't say
                if "session_id" in case.path_parameters:
                    case.path_parameters["session_id"] = session["session_id"]
                response = case.call(headers=headers, session=None)
                try:
                    case.validate_response(response, checks=CHECKS)
                except FailureGroup as group:
                    found.extend(f"{case.method} {case.path} {case.body}: {one}" for one in group.exceptions)

            ask()

    assert found == []
