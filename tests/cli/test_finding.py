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


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--tag", "hom"], ["note: no note has the tag #hom: list_tags, or `knap tags`, lists them"]),
        (["--tag", "#home/yar"], ["note: no note has the tag #home/yar: list_tags, or `knap tags`, lists them"]),
        (["--property", "statsu=open"], ["note: no note has the property 'statsu'"]),
        (["--property", "statsu~op"], ["note: no note has the property 'statsu'"]),
        (["--property", "statsu"], ["note: no note has the property 'statsu'"]),
        (["--tag", "home", "--property", "status=done"], []),
    ],
    ids=lambda value: " ".join(value)[:20],
)
@pytest.mark.parametrize("command", [["find"], ["search", "garden"]], ids=["find", "search"])
def test_a_mistyped_tag_or_property_is_told_where_nothing_is_found(
    command: list[str], args: list[str], said: list[str], vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / "Home.md").write_text("---\nstatus: open\n---\nThe garden. #home\n", encoding="utf-8")
    code = main.run(["-v", str(vault), *command, *args])

    assert (code, capsys.readouterr().err.splitlines()) == (1, ["nothing found", *said])


@pytest.mark.parametrize("command", [["find"], ["search", "garden"]], ids=["find", "search"])
def test_a_property_that_must_be_missing_may_be_one_that_no_note_has(
    command: list[str], vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["-v", str(vault), *command, "--property", "!nowhere"])

    assert (code, capsys.readouterr().err) == (0, "")
