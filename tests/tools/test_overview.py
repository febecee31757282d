"""Looking around: previews, names, folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.errors import NotFound
from knapper.tools import notes
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Home.md": "---\naliases: [Start]\nDescription: Where all begins.\n---\n# Home\n\nWelcome.\n",
    "Work/Plan.md": "#work\n",
    "Work/Old/Done.md": "#work/old\n",
    "work.md": "no folder\n",
    "Clippings/Web.md": "---\ndescription: theirs\n---\nTheirs.\n",
    "Files/a.png": "",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


def test_notes_are_listed_with_how_they_begin_and_others_text_is_not_shown(vault: Opener) -> None:
    with vault.open("mcp") as context:
        answer: Mapping[str, Any] = notes.list_notes(context)
        tainted = context.writer.taints.is_tainted("mcp")

    rows = {row["path"]: row for row in answer["results"]}
    assert (rows["Home.md"]["preview"], rows["Home.md"]["title"]) == ("# Home Welcome.", "Home")
    assert rows["Clippings/Web.md"]["foreign"] is True
    assert "preview" not in rows["Clippings/Web.md"]
    assert (answer["total"], tainted) == (5, False)


def test_a_folders_notes_are_listed_at_any_depth(vault: Opener) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = notes.list_notes(context, "Work", 1)
        with pytest.raises(NotFound):
            notes.list_notes(context, "Play")

    assert ([row["path"] for row in answer["results"]], answer["total"]) == (["Work/Old/Done.md"], 2)


def test_all_notes_are_named_with_what_they_say_of_themselves(vault: Opener) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = notes.view_all_notes(context)

    assert answer["results"] == [
        {"path": "Clippings/Web.md", "title": "Web", "foreign": True},
        {"path": "Home.md", "title": "Home", "aliases": ["Start"], "description": "Where all begins."},
        {"path": "Work/Old/Done.md", "title": "Done"},
        {"path": "Work/Plan.md", "title": "Plan"},
        {"path": "work.md", "title": "work"},
    ]


def test_a_description_of_spaces_alone_is_left_out(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Plan.md": '---\ndescription: "  "\n---\n'})
    with vault.open() as context:
        answer: Mapping[str, Any] = notes.view_all_notes(context)

    assert answer["results"] == [{"path": "Plan.md", "title": "Plan"}]


def test_a_folder_is_explored(vault: Opener) -> None:
    with vault.open() as context:
        top: Mapping[str, Any] = notes.explore_vault(context)
        work: Mapping[str, Any] = notes.explore_vault(context, "work")

    assert top["folders"] == [{"path": "Clippings", "notes": 1}, {"path": "Work", "notes": 2}]
    assert [row["path"] for row in top["results"]] == ["Home.md", "work.md"]
    assert (work["folder"], work["folders"]) == ("Work", [{"path": "Work/Old", "notes": 1}])
    assert [row["path"] for row in work["results"]] == ["Work/Plan.md"]


def test_a_tags_notes_are_found_at_any_depth(vault: Opener) -> None:
    with vault.open() as context:
        every: Mapping[str, Any] = notes.explore_vault(context, tag="#work")
        nested: Mapping[str, Any] = notes.explore_vault(context, "Work", "work/old")

    assert [row["path"] for row in every["results"]] == ["Work/Old/Done.md", "Work/Plan.md"]
    assert ([row["path"] for row in nested["results"]], nested["tag"]) == (["Work/Old/Done.md"], "work/old")
