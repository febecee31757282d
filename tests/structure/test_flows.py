"""Hold how many modules a request runs through: who follows one has to read no more."""

from pathlib import Path

import pytest

from bench import flows
from bench.places import Places


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "search",
        "MCP edit",
        "HTTP accept",
        "scout run",
        "script",
        "turn of an open chat",
        "round of an open scout",
        "node of an open run",
    ],
)
def test_a_request_runs_through_few_modules(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KNAP_STATE_DIR")  # the flows have a folder of their own for it
    flow = flows.measure(Places(data=tmp_path, cache=tmp_path), name)

    assert len(flow.modules) <= flows.GOALS[name], sorted(flow.modules)
