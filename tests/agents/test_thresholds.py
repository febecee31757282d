"""What counts as a good enough retrieval is the owner's setting, and a run goes by it."""

from pathlib import Path

import pytest
from pydantic_ai.models.test import TestModel

from knapper import config
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.app import runs
from knapper.app.hub import Hub
from knapper.codemode.tasks import Thresholds
from knapper.config.sections import RunSettings
from knapper.errors import SetupError
from tests.index import worlds

SAID = """
[runs]
min_context_chars = 500
min_citations = 3
low_score_percent = 60
low_confidence_percent = 0
regens_per_node = 2
regens_per_run = 9
"""


def test_the_defaults_are_those_of_the_document() -> None:
    assert runs.read_thresholds(RunSettings()) == Thresholds(
        min_context_chars=2_000,
        min_citations=2,
        low_score=0.45,
        low_confidence=0.5,
        regens_per_node=1,
        regens_per_run=5,
    )


def test_a_run_goes_by_the_owners_thresholds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = worlds.fill(tmp_path / "v", {"A.md": "# A\n"})
    file = tmp_path / "config.toml"
    file.write_text(SAID, encoding="utf-8")
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state"))
    settings = config.load({"default_vault": str(vault)}, config_file=str(file))
    with Hub(settings) as hub, runs.open_runs(hub) as opened:
        engine = opened.engine_of(TestModel(), "scripted")

    expected = Thresholds(
        min_context_chars=500, min_citations=3, low_score=0.6, low_confidence=0, regens_per_node=2, regens_per_run=9
    )
    assert engine.thresholds == expected
    assert isinstance(engine.retrieve, VaultRetriever)
    assert engine.retrieve.thresholds == expected


@pytest.mark.parametrize("said", ["low_score_percent = 101", "min_citations = 0", "min_context_chars = 0"])
def test_a_threshold_that_nothing_could_meet_or_divide_by_is_an_error(tmp_path: Path, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[runs]\n{said}\n", encoding="utf-8")

    with pytest.raises(SetupError):
        _ = config.load({}, config_file=str(file))
