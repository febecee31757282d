"""The OpenAPI document says of runs what is so."""

from pathlib import Path

import pytest
from schemathesis.generation import GenerationMode

from tests.agents.run_world import Brain
from tests.server import contracts, running

PATHS = {
    "/runs": {"get", "post"},
    "/runs/options": {"get"},
    "/runs/{run_id}": {"get", "delete"},
    "/runs/{run_id}/nodes/{node_id}": {"get"},
    "/runs/{run_id}/events": {"get"},
    "/runs/{run_id}/notes": {"get"},
    "/runs/{run_id}/stale": {"get"},
    "/runs/{run_id}/resume": {"post"},
    "/runs/{run_id}/cancel": {"post"},
    "/runs/{run_id}/export": {"post"},
    "/runs/{run_id}/checkpoints/{checkpoint_id}": {"post"},
}
BEGIN = {"/runs", "/runs/{run_id}/resume"}


def test_every_route_is_described_with_its_errors_and_a_name_of_its_own(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain()) as (client, _):
        described = client.get("/openapi.json").json()

    shown = {path: set(described["paths"][path]) for path in described["paths"] if path.startswith("/runs")}
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert shown == PATHS
    assert len({one["operationId"] for one in operations}) == len(operations)
    for path in PATHS:
        for verb, one in described["paths"][path].items():
            good = "202" if verb == "post" and path in BEGIN else "200"
            assert {good, "400", "401", "403", "404", "409", "422", "503"} <= set(one["responses"])
            assert ("200" in one["responses"]) == (good == "200")
    stream = described["paths"]["/runs/{run_id}/events"]["get"]
    assert "text/event-stream" in stream["responses"]["200"]["content"]
    assert "Last-Event-ID" in [one["name"] for one in stream["parameters"]]
    assert all(name.startswith("#/components/schemas/") for name in contracts.references(described))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with running.serving(tmp_path, Brain()) as server, server.client() as client:
        contract = contracts.of_server(server.address, server.tokens["api"], PATHS, {"run_id": running.done(client)})
        found = contracts.broken_words(contract, mode, cases=20)

    assert found == []
