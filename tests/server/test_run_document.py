"""The OpenAPI document says of runs what is so."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from tests.agents.run_world import Brain
from tests.server import running
from tests.server.test_document import CHECKS, references

PATHS = {
    "/runs": {"get", "post"},
    "/runs/options": {"get"},
    "/runs/{run_id}": {"get", "delete"},
    "/runs/{run_id}/nodes/{node_id}": {"get"},
    "/runs/{run_id}/events": {"get"},
    "/runs/{run_id}/stale": {"get"},
    "/runs/{run_id}/resume": {"post"},
    "/runs/{run_id}/cancel": {"post"},
    "/runs/{run_id}/export": {"post"},
    "/runs/{run_id}/checkpoints/{checkpoint_id}": {"post"},
}
BEGIN = {"/runs", "/runs/{run_id}/resume"}
UNHEALTHY = [HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow]


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
    assert all(name.startswith("#/components/schemas/") for name in references(described))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    found: list[str] = []
    with running.serving(tmp_path, Brain()) as server, server.client() as client:
        run_id = running.done(client)
        headers = {"authorization": f"Bearer {server.tokens['api']}"}
        schema: Any = schemathesis.openapi.from_url(f"{server.address}/openapi.json", headers=headers)
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path not in PATHS:
                continue

            @settings(max_examples=20, database=None, phases=[Phase.generate], suppress_health_check=UNHEALTHY)
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:  # noqa: ANN401 - its class is generic in what it doesn't say
                if "run_id" in case.path_parameters and case.method != "DELETE":
                    case.path_parameters["run_id"] = run_id
                response = case.call(headers=headers)
                try:
                    case.validate_response(response, checks=CHECKS)
                except FailureGroup as group:
                    found.extend(f"{case.method} {case.path} {case.body}: {one}" for one in group.exceptions)

            with contextlib.suppress(Unsatisfiable):  # what takes nothing can't be given anything wrong
                ask()

    assert found == []
