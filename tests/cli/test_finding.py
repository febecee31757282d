"""Finding notes by words, in an order of one's own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from knapper.cli import main
from tests.cli import asking


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


def test_notes_that_are_only_near_in_meaning_come_last_and_others_not_at_all(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(capsys, vault, "garden") == ["Garden.md", "Zinnias.md"]


@pytest.mark.parametrize("command", ["find", "search", "ask"])
def test_a_query_without_a_match_ends_with_one_and_offers_the_nearest_apart(
    command: str, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["-v", str(vault), command, "violin", "pupils"])
    printed = capsys.readouterr()
    offered = printed.err.splitlines()

    assert (code, printed.out) == (1, "")
    assert offered[:2] == ["nothing found", "nearest in meaning, which may have nothing to do with it:"]
    assert any(line.startswith("  Garden.md") for line in offered)


@pytest.mark.parametrize("command", ["find", "search", "ask"])
def test_for_programs_the_nearest_are_no_results(command: str, vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["-v", str(vault), command, "violin", "pupils", "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert (code, answer["results"]) == (1, [])
    assert "Garden.md" in [row.get("path") or row["source"] for row in answer["nearest"]]
    assert main.run(["-v", str(vault), command, "garden", "--json"]) == 0
    assert "nearest" not in json.loads(capsys.readouterr().out)


def test_an_offered_name_cannot_act_on_the_terminal(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Zinnias.md").rename(vault / "Zin\x1b[2Jnias\nnothing.md")
    for command in ("find", "search"):
        assert main.run(["-v", str(vault), command, "violin", "pupils"]) == 1
        err = capsys.readouterr().err
        assert "\x1b" not in err
        assert not any(line.startswith("nothing.md") for line in err.splitlines())


def test_one_text_in_two_folders_is_shown_once_with_both_places(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("old", "new"):
        (vault / folder).mkdir()
        (vault / folder / "Kerosene.md").write_text("Lamps burn kerosene.\n", encoding="utf-8")
    code = main.run(["-v", str(vault), "search", "kerosene"])

    assert (code, capsys.readouterr().out.splitlines()) == (
        0,
        ["new/Kerosene.md:1", "  also in old/Kerosene.md:1", "  Lamps burn kerosene."],
    )


def test_in_another_order_only_notes_that_hold_a_word_stand(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, vault, "garden", "--sort=-title") == ["Garden.md"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--tag", "hom"], ["note: no note has the tag #hom: the list of tags (`knap tags`) has the others"]),
        (
            ["--tag", "#home/yar"],
            ["note: no note has the tag #home/yar: the list of tags (`knap tags`) has the others"],
        ),
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


def test_a_listing_imports_no_arrays(vault: Path) -> None:
    assert main.run(["-v", str(vault), "index", "--quiet"]) == 0
    code = "import sys; from knapper.cli import main; main.run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run(
        [sys.executable, "-c", code, "-v", str(vault), "find", "--no-server", "--quiet"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        env=asking.process_variables(),
    )

    assert ended.stdout.split() == ["Garden.md", "Tax.md", "Zinnias.md"]
    assert "numpy" not in ended.stderr.split()


def test_the_facts_of_a_note_stand_below_each_other_also_beside_longer_names(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"---\ndescription: Two beds\n{'long' * 10}: true\n---\n# Shed\n"
    (vault / "Shed.md").write_text(text, encoding="utf-8")
    main.run(["-v", str(vault), "info", "Shed"])
    facts = capsys.readouterr().out.splitlines()[1:6]

    assert [line.split()[0] for line in facts] == ["size", "created", "modified", "description", "long" * 10]
    assert {len(line) - len(line.partition(" ")[2].lstrip()) for line in facts[:4]} == {len("description ")}
    assert facts[4] == f"{'long' * 10} true"
