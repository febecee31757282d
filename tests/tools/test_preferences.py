"""Preferences: bullet points of one note, of which every other byte stays."""

from pathlib import Path
from typing import Any

import pytest

from knapper.errors import BadInput, ConflictError, NotFound
from knapper.tools import daily, journal
from tests.tools import opened
from tests.tools.opened import Opener

FILE = "Preferences.md"
RICH = (
    "---\ntags:\n- me\n---\r\n# Mine\r\n\r\nI like:\r\n\r\n- one\r\n  - more of one\r\n\r\n* two\r\n\r\n"
    "```\r\n- code\r\n```\r\n> - quoted\r\n\r\n1. first\r\n\r\nend"
)


def make(tmp_path: Path, text: str | None = None) -> Opener:
    return opened.vault(tmp_path, {"a.md": ""} if text is None else {FILE: text})


def listed(vault: Opener) -> list[tuple[int, str, int]]:
    with vault.open() as context:
        rows: Any = daily.list_preferences(context)["results"]
    return [(row["line_number"], row["preference"], row["line"]) for row in rows]


def test_the_first_preference_makes_the_note(tmp_path: Path) -> None:
    vault = make(tmp_path)

    with vault.open() as context:
        done = daily.save_preference(context, "  Be\n brief.  ")

    assert (done["status"], done["path"], done["preference"]) == ("applied", FILE, "Be brief.")
    assert vault.text(FILE) == "- Be brief.\n"


def test_without_any_the_list_is_empty(tmp_path: Path) -> None:
    with make(tmp_path).open() as context:
        told = daily.list_preferences(context)

    assert told == {
        "success": True, "results": [], "total": 0, "path": FILE, "message": "No preferences saved"
    }  # fmt: skip


def test_only_the_notes_own_bullet_points_count(tmp_path: Path) -> None:
    assert listed(make(tmp_path, RICH)) == [(1, "one - more of one", 9), (2, "two", 12)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "- new\n"),
        ("- a", "- a\n- new"),
        ("- a\n", "- a\n- new\n"),
        ("- a\n\n\n", "- a\n- new\n\n\n"),
        ("* a\r\n* b\r\n\r\nend\r\n", "* a\r\n* b\r\n* new\r\n\r\nend\r\n"),
        ("# Title\n", "# Title\n- new\n"),
        ("---\ntags:\n- a\n---\n", "---\ntags:\n- a\n---\n- new\n"),
        ("- a\n  more\n## End\n", "- a\n  more\n- new\n## End\n"),
        (RICH, RICH.replace("* two\r\n", "* two\r\n* new\r\n")),
    ],
)
def test_a_new_one_comes_after_the_last_and_every_byte_stays(tmp_path: Path, before: str, after: str) -> None:
    vault = make(tmp_path, before)

    with vault.open() as context:
        daily.save_preference(context, "new")

    assert vault.text(FILE) == after
    assert "new" in [text for _, text, _ in listed(vault)]


def test_one_that_is_saved_is_not_saved_twice(tmp_path: Path) -> None:
    vault = make(tmp_path, "- a\n- Be brief.\n")

    with vault.open() as context:
        done = daily.save_preference(context, "Be brief.")

    assert (done["status"], done["line_number"], done["message"]) == ("applied", 2, "it is saved already")
    assert vault.text(FILE) == "- a\n- Be brief.\n"


@pytest.mark.parametrize(
    ("number", "after"),
    [
        (1, RICH.replace("- one\r\n  - more of one\r\n", "")),
        (2, RICH.replace("* two\r\n", "")),
    ],
)
def test_removing_takes_one_bullet_point_and_no_other_byte(tmp_path: Path, number: int, after: str) -> None:
    vault = make(tmp_path, RICH)

    with vault.open() as context:
        done = daily.remove_preference(context, number)

    assert (done["status"], done["line_number"]) == ("applied", number)
    assert vault.text(FILE) == after


@pytest.mark.parametrize("number", [0, -1, 3, 10**9])
def test_a_number_out_of_range_is_refused(tmp_path: Path, number: int) -> None:
    vault = make(tmp_path, "- a\n- b\n")

    with vault.open() as context, pytest.raises(BadInput) as caught:
        daily.remove_preference(context, number)

    assert caught.value.code == "out_of_range"
    assert vault.text(FILE) == "- a\n- b\n"


@pytest.mark.parametrize("text", [None, "", "# Title\n1. first\n"])
def test_there_has_to_be_one_to_remove(tmp_path: Path, text: str | None) -> None:
    with make(tmp_path, text).open() as context, pytest.raises(NotFound) as caught:
        daily.remove_preference(context, 1)

    assert caught.value.code == "no_preferences"


def test_a_list_that_is_older_than_the_note_removes_nothing_else(tmp_path: Path) -> None:
    vault = make(tmp_path, "- a\n- b\n")

    with vault.open() as context:
        seen = str(daily.list_preferences(context)["hash"])
        (vault.root / FILE).write_text("- b\n- c\n", encoding="utf-8")
        with pytest.raises(ConflictError):
            daily.remove_preference(context, 1, expected_hash=seen)

    assert vault.text(FILE) == "- b\n- c\n"


@pytest.mark.parametrize("preference", ["", " \n ", "x" * 2_001])
def test_an_empty_or_endless_one_is_refused(tmp_path: Path, preference: str) -> None:
    with make(tmp_path).open() as context, pytest.raises(BadInput):
        daily.save_preference(context, preference)


@pytest.mark.parametrize("client", ["mcp", "http"])
def test_a_program_whose_user_looks_on_saves_and_removes_them_and_can_take_that_back(
    tmp_path: Path, client: str
) -> None:
    vault = make(tmp_path)

    with vault.open(client) as context:
        saved = [daily.save_preference(context, text)["status"] for text in ("Be brief.", "Be kind.")]
        removed = daily.remove_preference(context, 1)
        after = vault.text(FILE)
        _ = journal.undo_change(context, str(removed["change_id"]))

    assert (saved, removed["status"], after) == (["applied", "applied"], "applied", "- Be kind.\n")
    assert vault.text(FILE) == "- Be brief.\n- Be kind.\n"


@pytest.mark.parametrize("client", ["agent", "script"])
@pytest.mark.parametrize("text", [None, "- a\n"])
def test_only_a_persons_word_changes_them_for_agents_and_scripts(tmp_path: Path, client: str, text: str | None) -> None:
    vault = make(tmp_path, text)

    with vault.open(client) as context:
        saved = daily.save_preference(context, "Obey me.")
        removed = daily.remove_preference(context, 1)["status"] if text else "proposed"

    assert (saved["status"], removed) == ("proposed", "proposed")
    assert not (vault.root / FILE).exists() if text is None else vault.text(FILE) == text


def test_another_spelling_of_the_name_is_the_same_note(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"preferences.md": "- a\n"})

    with vault.open() as context:
        daily.save_preference(context, "b")
    with vault.open("agent") as context:
        guarded = daily.save_preference(context, "c")

    assert vault.text("preferences.md") == "- a\n- b\n"
    assert guarded["status"] == "proposed"
