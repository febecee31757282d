"""Links, tags and moves: shapes, order, stretches, and what a client doesn't see."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.config import ClientSettings
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.tools import files, links, notes
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Garden.md": "# Garden\n\nSee [[Shed|the shed]] and [[shed#Paint]], ![[Shed^b1]], [x](Shed.md), [[Gone]].\n",
    "Plan.md": "---\nrelated: '[[Garden]]'\n---\n`[[Shed]]` #home #Home/Yard\n",
    "Shed.md": "# Shed\n\n## Paint\n\nGreen. ^b1\n\n[self](#Paint) https://example.com\n",
    "Alone.md": "#home\n",
    "Secret/Diary.md": "[[Garden]] [[Alone]] #secret\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.fixture
def partly(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Secret/",))


def test_backlinks_of_every_form_count_and_those_in_code_do_not(vault: Opener) -> None:
    with vault.open() as context:
        found: Mapping[str, Any] = links.find_backlinks(context, "shed")

    assert (found["results"], found["total"], found["exists"]) == (["Garden.md"], 1, True)
    assert [(row["kind"], row["line"]) for row in found["links"]] == [
        ("wikilink", 3),
        ("wikilink", 3),
        ("embed", 3),
        ("markdown", 3),
    ]
    assert found["links"][1]["headings"] == ["Paint"]


@pytest.mark.parametrize("name", ["Garden", "garden.md", "[[Garden]]", "GARDEN#x"])
def test_a_note_is_named_in_any_way(vault: Opener, name: str) -> None:
    with vault.open() as context:
        assert links.find_backlinks(context, name)["results"] == ["Plan.md", "Secret/Diary.md"]


@pytest.mark.parametrize("name", ["Big\xa0shed", "Big shed", "Yard/Big\xa0Shed.md"])
def test_a_note_with_a_wide_space_in_its_name_is_named_with_any(tmp_path: Path, name: str) -> None:
    vault = opened.vault(tmp_path, {"Yard/Big\xa0shed.md": "", "Plan.md": "[[Big shed]] [[Big\xa0shed]]"})
    with vault.open() as context:
        found: Mapping[str, Any] = links.find_backlinks(context, name)

    assert (found["results"], found["notes_of_that_name"]) == (["Plan.md"], ["Yard/Big\xa0shed.md"])


def test_a_name_without_note_finds_the_links_that_want_it(vault: Opener) -> None:
    with vault.open() as context:
        found = links.find_backlinks(context, "gone")

    assert (found["results"], found["exists"]) == (["Garden.md"], False)


def test_a_link_of_a_note_to_itself_is_a_backlink_and_marked(tmp_path: Path) -> None:
    notes = {"A.md": "# A\n\n[[A]] and [[#A]] and [up](#A)\n", "B.md": "[[A]]\n", "C.md": "[[#C]]\n"}
    with opened.vault(tmp_path, notes).open() as context:
        found: Mapping[str, Any] = links.find_backlinks(context, "A")
        alone = links.find_backlinks(context, "C")
        out: Mapping[str, Any] = links.find_outlinks(context, "A.md")
        info: dict[str, Any] = opened.call(context, "note_info", path="A.md")

    assert found["results"] == ["A.md", "B.md"]
    assert [(row["path"], row.get("self_link", False)) for row in found["links"]] == [("A.md", True), ("B.md", False)]
    assert alone["results"] == []
    assert [row["self_link"] for row in out["links"]] == [True]
    assert info["links_in"] == {"total": 2, "results": ["A.md", "B.md"]}


def test_backlinks_are_found_by_a_title_or_alias_and_with_links_that_use_it_as_a_target(tmp_path: Path) -> None:
    notes = {
        "Deep/A.md": "---\naliases: Nick\n---\n# Some title\n",
        "B.md": "[[A]]\n",
        "C.md": "[[Nick]]\n",
        "Secret/N.md": "---\naliases: Nick\n---\n[[A]]\n",
    }
    with opened.vault(tmp_path, notes).open(
        ClientSettings(grants=access.default_grants("guest"), hidden=("Secret/",))
    ) as context:
        by_alias, by_title = (links.find_backlinks(context, name) for name in ("nick", "some TITLE"))

    assert (by_alias["results"], by_alias["notes_of_that_name"]) == (["B.md", "C.md"], ["Deep/A.md"])
    assert (by_title["results"], by_title["exists"]) == (["B.md"], True)


def test_a_list_comes_in_stretches(vault: Opener) -> None:
    with vault.open() as context:
        first = links.find_backlinks(context, "Garden", 1)
        second = links.find_backlinks(context, "Garden", 1, 1)

    assert (first["results"], first["total"], first["next_offset"]) == (["Plan.md"], 2, 1)
    assert (second["results"], second.get("next_offset")) == (["Secret/Diary.md"], None)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (1, -1), (100_000, 0)])
def test_a_stretch_that_cannot_be_one_is_refused(vault: Opener, limit: int, offset: int) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        links.find_backlinks(context, "Garden", limit, offset)


def test_a_name_is_needed(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        links.find_backlinks(context, "[[]]")


def test_outlinks_are_names_each_once_with_where_they_lead(vault: Opener) -> None:
    with vault.open() as context:
        found: Mapping[str, Any] = links.find_outlinks(context, "garden.md")
        itself = links.find_outlinks(context, "Shed.md")

    assert (found["path"], found["results"]) == ("Garden.md", ["Gone", "Shed", "Shed.md"])
    assert {row["target"]: row["leads_to"] for row in found["links"]}["Gone"] is None
    assert itself["results"] == []


@pytest.mark.parametrize(("path", "error"), [("No.md", NotFound), ("../a.md", RefusedError)])
def test_outlinks_of_what_is_not_there_are_an_error(vault: Opener, path: str, error: type[Exception]) -> None:
    with vault.open() as context, pytest.raises(error):
        links.find_outlinks(context, path)


def test_broken_links_and_orphans_are_listed(vault: Opener) -> None:
    (vault.root / "Lost.md").write_text("text\n", encoding="utf-8")

    with vault.open() as context:
        broken: Mapping[str, Any] = links.broken_links(context)
        elsewhere = links.broken_links(context, "Secret")
        alone = links.orphans(context)

    assert [(row["path"], row["line"], row["target"]) for row in broken["results"]] == [("Garden.md", 3, "Gone")]
    assert elsewhere["total"] == 0
    assert alone["results"] == ["Lost.md"]


@pytest.mark.parametrize("path", ["Garden.md", "Garden", "garden.md", "/", "", " "])
def test_broken_links_are_those_of_a_note_or_folder_however_it_is_named(vault: Opener, path: str) -> None:
    with vault.open() as context:
        assert links.broken_links(context, path)["total"] == 1


@pytest.mark.parametrize("path", ["Gardn.md", "Gardn", "Secrt", "Secret", "Secret/Diary.md"])
def test_broken_links_of_what_is_not_there_are_an_error(partly: Opener, path: str) -> None:
    with partly.open() as context, pytest.raises(NotFound) as caught:
        links.broken_links(context, path)

    assert path in caught.value.message
    assert ("Garden.md" in caught.value.hint) == path.startswith("Gardn")
    assert "Secret" not in caught.value.hint


def test_broken_links_out_of_the_vault_are_refused(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(RefusedError):
        links.broken_links(context, "../elsewhere")


def test_hidden_files_show_through_nowhere(partly: Opener) -> None:
    (partly.root / "Ask.md").write_text("[[Diary]]\n", encoding="utf-8")

    with partly.open() as context:
        assert links.find_backlinks(context, "Garden")["results"] == ["Plan.md"]
        assert links.find_backlinks(context, "Diary")["exists"] is False
        broken: Any = links.broken_links(context)["results"]
        assert [row["target"] for row in broken] == ["Diary", "Gone"]
        assert links.orphans(context)["results"] == ["Alone.md", "Ask.md"]
        assert [row["tag"] for row in notes.list_tags(context)["results"]] == ["home", "Home/Yard"]
        with pytest.raises(NotFound):
            links.find_outlinks(context, "Secret/Diary.md")


@pytest.mark.parametrize("name", ["Diary", "Secret/Diary", "Nothing"])
def test_a_link_to_a_hidden_note_is_listed_as_one_to_a_note_that_is_not_there(vault: Opener, name: str) -> None:
    (vault.root / "Ask.md").write_text("[[Diary]] [[Secret/Diary]] [[Nothing]]\n", encoding="utf-8")

    with vault.open(ClientSettings(grants=access.default_grants("guest"), hidden=("Secret/",))) as context:
        found: Mapping[str, Any] = links.find_backlinks(context, name)

    assert (found["results"], found["exists"]) == (["Ask.md"], False)
    assert [(row["target"], row["leads_to"]) for row in found["links"]] == [(name, None)]


def test_tags_are_counted_by_note(vault: Opener) -> None:
    with vault.open() as context:
        every = notes.list_tags(context)
        some = notes.list_tags(context, "#home/")

    assert every["results"] == [
        {"tag": "home", "notes": 2},
        {"tag": "Home/Yard", "notes": 1},
        {"tag": "secret", "notes": 1},
    ]
    assert some["results"] == [{"tag": "Home/Yard", "notes": 1}]


def test_a_renamed_tag_waits_as_a_proposal_unless_its_notes_are_named(vault: Opener) -> None:
    with vault.open() as context:
        named = notes.rename_tag(context, "#home", "house", ["Plan.md"])
        every = notes.rename_tag(context, "home", "house")
        with pytest.raises(NotFound) as missing:
            notes.rename_tag(context, "nothing", "house")
        with pytest.raises(BadInput):
            notes.rename_tag(context, "secret", "not a tag")

    assert (named["status"], every["status"]) == ("applied", "proposed")
    assert "the list of tags" in missing.value.hint  # a client that knows no command line can go on
    assert "#house #house/Yard" in vault.text("Plan.md")


def test_a_move_lists_the_links_that_follow(vault: Opener) -> None:
    with vault.open() as context:
        done: Mapping[str, Any] = files.move_file(context, "Shed.md", "Buildings/Garden shed.md")

    assert (done["status"], done["path"]) == ("applied", "Buildings/Garden shed.md")
    assert {row["path"] for row in done["links_rewritten"]} == {"Garden.md"}
    assert "[[Garden shed|the shed]] and [[Garden shed#Paint]], ![[Garden shed^b1]]" in vault.text("Garden.md")
    assert "`[[Shed]]`" in vault.text("Plan.md")


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("No.md", "X.md", "not_found"),
        ("Shed.md", "Garden.md", "exists"),
        ("Shed.md", "../X.md", "outside_vault"),
        ("../X.md", "Y.md", "outside_vault"),
        ("Shed.md", ".git/X.md", "hidden"),
        ("Secret", "Secret/Inner", "into_itself"),
        ("Shed.md", "Shed.md", "no_change"),
    ],
)
def test_a_move_that_cannot_be_made_is_refused(vault: Opener, source: str, destination: str, code: str) -> None:
    with vault.open() as context, pytest.raises(KnapError) as caught:
        files.move_file(context, source, destination)

    assert caught.value.code == code
    assert vault.text("Shed.md") == NOTES["Shed.md"]


def test_several_moves_go_on_after_a_failure(vault: Opener) -> None:
    wanted = [
        {"source": "Shed.md", "destination": "B/Shed.md"},
        {"source": "No.md", "destination": "B/No.md"},
        {"source": "Alone.md", "destination": "Garden.md"},
    ]

    with vault.open() as context:
        done: Mapping[str, Any] = files.batch_move_files(context, wanted)

    assert (done["status"], done["message"]) == ("applied", "applied: 1 of 3")
    assert [(row["path"], row["code"]) for row in done["failures"]] == [("No.md", "not_found"), ("Alone.md", "exists")]
    assert vault.text("Alone.md") == NOTES["Alone.md"]


@pytest.mark.parametrize("item", [{"source": "Shed.md"}, {"from": "a", "to": "b"}, {}])
def test_an_item_that_is_no_move_is_refused(vault: Opener, item: dict[str, str]) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        files.batch_move_files(context, [item])


def test_several_files_go_to_the_trash_as_one_change(vault: Opener) -> None:
    (vault.root / ".obsidian").mkdir()
    (vault.root / ".obsidian/app.json").write_text('{"trashOption": "local"}', encoding="utf-8")

    with vault.open() as context:
        done: Mapping[str, Any] = files.delete_files(context, ["Shed.md", "Alone.md", "No.md"])

    assert [row["action"] for row in done["files"]] == ["trashed", "trashed"]
    assert [row["path"] for row in done["failures"]] == ["No.md"]
    assert not (vault.root / "Shed.md").exists()


def test_nothing_is_overwritten_by_a_restored_name(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(ConflictError):
        files.move_file(context, "Shed.md", "Alone.md")
