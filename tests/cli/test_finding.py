"""Finding notes by words, in an order of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from knapper.cli import main


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault in which one note holds the word, and others only what is near to it."""
    (tmp_path / "Garden.md").write_text("# Garden\n\nThe garden in May.\n", encoding="utf-8")
    (tmp_path / "Zinnias.md").write_text("Flowers and vegetables in beds.\n", encoding="utf-8")
    (tmp_path / "Tax.md").write_text("Receipts of the year.\n", encoding="utf-8")
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], vault: Path, *args: str) -> list[str]:
    main.run(["-v", str(vault), "find", *args, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return [row["path"] for row in answer["results"]]


def test_notes_that_are_only_near_in_meaning_come_last(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ranked = found(capsys, vault, "garden")

    assert (ranked[0], len(ranked)) == ("Garden.md", 3)


def test_in_another_order_only_notes_that_hold_a_word_stand(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, vault, "garden", "--sort=-title") == ["Garden.md"]
