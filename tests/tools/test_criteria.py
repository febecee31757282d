"""Notes by property, day and folder: the documented shapes, and what they answer from."""

import os
from pathlib import Path
from typing import Any, Literal

import pytest

from knapper.errors import BadInput, KnapError, NotFound, RefusedError
from knapper.tools import search
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Open.md": "---\nstatus: open\nDate: 2023-08-10\ncompany: '[[Acme Corp]]'\n---\n",
    "Done.md": "---\nstatus: done and open\ndate: '[[2023-08-11]]'\ncompany: ['[[Acme Corp]]', Other]\n---\n",
    "Work/List.md": "---\nStatus: [Open, later]\nDATE: [[2023-08-12]]\n---\n",
    "Work/One.md": "---\nstatus: [open]\ncount: 12\n---\n",
    "Work/Deep/None.md": "---\nstatus:\n---\ntext\n",
    "Work/picture.png": "",
    "Café/Menu.md": "soup\n",
    "Secret/Diary.md": "---\nstatus: open\nDate: 2023-08-10\n---\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.fixture
def partly(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Secret/",))


@pytest.mark.parametrize(
    ("value", "match_type", "found"),
    [
        ("open", "contains", ["Done.md", "Open.md", "Secret/Diary.md", "Work/List.md", "Work/One.md"]),
        ("OPEN", "equals", ["Open.md", "Secret/Diary.md", "Work/One.md"]),
        ("ope", "contains", ["Done.md", "Open.md", "Secret/Diary.md"]),
        ("op", "contains", ["Done.md", "Open.md", "Secret/Diary.md"]),
        ("later", "contains", ["Work/List.md"]),
        ("nothing", "contains", []),
        ('o"p*', "contains", []),
    ],
)
def test_a_property_is_asked_for_a_part_or_as_a_whole(
    vault: Opener, value: str, match_type: Literal["contains", "equals"], found: list[str]
) -> None:
    with vault.open() as context:
        answer = search.list_files_by_frontmatter(context, "status", value, match_type)

    assert (answer["success"], answer["results"], answer["total"]) == (True, found, len(found))
    assert (answer["limit"], answer["offset"]) == (100, 0)


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("company", "Acme Corp", ["Done.md", "Open.md"]),
        ("count", "12", ["Work/One.md"]),
        ("Company", "acme", ["Open.md"]),
        ("missing", "x", []),
    ],
)
def test_links_and_numbers_are_found_by_what_they_say(vault: Opener, field: str, value: str, found: list[str]) -> None:
    with vault.open() as context:
        assert search.list_files_by_frontmatter(context, field, value)["results"] == found


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        ("2023-08-10", "2023-08-10", ["Open.md", "Secret/Diary.md"]),
        ("2023-08-11", "2023-08-12", ["Done.md", "Work/List.md"]),
        ("2023-08-13", "2023-09-01", []),
    ],
)
def test_a_note_was_made_on_the_day_that_it_says(vault: Opener, first: str, last: str, found: list[str]) -> None:
    with vault.open() as context:
        assert search.search_by_date_range(context, first, last, "created")["results"] == found


def test_a_note_that_says_no_day_was_made_when_its_file_was(vault: Opener) -> None:
    file = vault.root / "Café/Menu.md"
    os.utime(file, (1_000_000_000, 1_000_000_000))

    with vault.open() as context:
        made = search.search_by_date_range(context, "2001-09-08", "2001-09-10", "created")
        saved = search.search_by_date_range(context, "2001-09-08", "2001-09-10")
        os.utime(file, (1_100_000_000, 1_100_000_000))
        touched = search.search_by_date_range(context, "2004-11-08", "2004-11-10")

    assert made["results"] == saved["results"] == touched["results"] == ["Café/Menu.md"]


@pytest.mark.parametrize(
    ("first", "last"), [("2023-13-01", "2023-12-01"), ("", "2023-01-01"), ("2023-02-01", "2023-01-31"), ("x", "y")]
)
def test_days_that_are_none_are_refused(vault: Opener, first: str, last: str) -> None:
    with vault.open() as context, pytest.raises(BadInput) as caught:
        search.search_by_date_range(context, first, last)

    assert caught.value.code == "invalid_date"


@pytest.mark.parametrize(
    ("folder", "recursive", "found"),
    [
        ("Work", False, ["Work/List.md", "Work/One.md"]),
        ("Work/", True, ["Work/Deep/None.md", "Work/List.md", "Work/One.md"]),
        ("work/deep", False, ["Work/Deep/None.md"]),
        ("", False, ["Done.md", "Open.md"]),
        ("Cafe\u0301", False, ["Café/Menu.md"]),
    ],
)
def test_a_folders_notes_are_listed(vault: Opener, folder: str, recursive: bool, found: list[str]) -> None:
    with vault.open() as context:
        assert search.search_by_folder(context, folder, recursive)["results"] == found


def test_an_empty_folder_is_no_error_and_a_missing_one_is(partly: Opener) -> None:
    (partly.root / "Empty").mkdir()

    with partly.open() as context:
        empty = search.search_by_folder(context, "Empty")
        with pytest.raises(NotFound) as missing:
            search.search_by_folder(context, "Wrok")
        with pytest.raises(NotFound) as hidden:
            search.search_by_folder(context, "Secret")
        with pytest.raises(RefusedError):
            search.search_by_folder(context, "../elsewhere")

    assert (empty["results"], empty["total"]) == ([], 0)
    assert (missing.value.code, missing.value.details["nearest"]) == ("no_such_folder", ["Work"])
    assert str(hidden.value) == "no folder 'Secret' in the vault"
    assert hidden.value.hint == "explore the vault for its folders"


def test_what_is_hidden_is_neither_listed_nor_counted(partly: Opener) -> None:
    with partly.open() as context:
        answers = [
            search.list_files_by_frontmatter(context, "status", "open"),
            search.search_by_date_range(context, "2023-08-10", "2023-08-10", "created"),
            search.search_by_folder(context, "", recursive=True),
        ]

    assert [answer["total"] for answer in answers] == [4, 1, 6]
    assert "Secret" not in str(answers)


def test_a_list_comes_in_stretches(vault: Opener) -> None:
    with vault.open() as context:
        first = search.search_by_folder(context, "Work", True, 2)
        rest = search.search_by_folder(context, "Work", True, 2, 2)
        beyond = search.search_by_folder(context, "Work", True, 2, 1_000_000)

    assert (first["results"], first["next_offset"]) == (["Work/Deep/None.md", "Work/List.md"], 2)
    assert (rest["results"], rest["total"], rest.get("next_offset")) == (["Work/One.md"], 3, None)
    assert (beyond["results"], beyond["total"]) == ([], 3)


@pytest.mark.parametrize("call", [{"match_type": "like"}, {"limit": 0}, {"offset": -1}, {"field": " "}])
def test_an_argument_out_of_its_range_is_refused(vault: Opener, call: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"field": "status", "value": "open", **call}

    with vault.open() as context, pytest.raises(KnapError):
        search.list_files_by_frontmatter(context, **asked)


def test_a_note_saved_a_moment_ago_is_listed(vault: Opener) -> None:
    with vault.open() as context:
        search.search_by_folder(context, "Work")
        (vault.root / "Work/New.md").write_text("---\nstatus: fresh\n---\n", encoding="utf-8")
        (vault.root / "Work/One.md").unlink()
        found = search.search_by_folder(context, "Work")
        fresh = search.list_files_by_frontmatter(context, "status", "fresh")
        gone = search.list_files_by_frontmatter(context, "count", "12")

    assert found["results"] == ["Work/List.md", "Work/New.md"]
    assert (fresh["results"], gone["results"]) == (["Work/New.md"], [])
