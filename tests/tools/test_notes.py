"""Finding notes: filters joined, order, fields, words, and what a client may not see."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.config import ClientSettings
from knapper.errors import BadInput, NotFound
from knapper.index.search import SearchRequest, SearchResult
from knapper.tools import notes
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Projects/Garden.md": "---\nstatus: open\ndue: 2026-02-01\nrank: 10\naliases: [Yard]\n---\n"
    "# Garden\n\nRoses. #home\n",
    "Projects/Shed.md": "---\nstatus: done\ndue: 2026-01-01\nrank: 9\n---\nRoses and paint. #home/paint\n",
    "Projects/Old/Fence.md": "---\nstatus: open\n---\nWood. #home\n",
    "Ideas.md": "Roses everywhere.\n",
    "Clippings/Web.md": "---\nsource: https://example.com\nstatus: open\n---\nTheir roses.\n",
    "Secret/Plan.md": "---\nstatus: open\n---\nSecret roses. #home\n",
    "plan.canvas": "{}",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Secret/",))


def paths(answer: Mapping[str, Any]) -> list[str]:
    return [row["path"] for row in answer["results"]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["Clippings/Web.md", "Ideas.md", "Projects/Garden.md", "Projects/Old/Fence.md", "Projects/Shed.md"]),
        ({"folder": "projects"}, ["Projects/Garden.md", "Projects/Old/Fence.md", "Projects/Shed.md"]),
        ({"folder": "Projects", "exclude_folders": ["Projects/Old"]}, ["Projects/Garden.md", "Projects/Shed.md"]),
        ({"tags": ["#home"]}, ["Projects/Garden.md", "Projects/Old/Fence.md", "Projects/Shed.md"]),
        ({"tags": ["home"], "exclude_tags": ["home/paint"]}, ["Projects/Garden.md", "Projects/Old/Fence.md"]),
        ({"properties": ["status=open"], "tags": ["home"]}, ["Projects/Garden.md", "Projects/Old/Fence.md"]),
        ({"properties": ["status", "status!=open"]}, ["Projects/Shed.md"]),
        ({"properties": ["!status"]}, ["Ideas.md"]),
        ({"properties": ["due~2026-0", "due!~2026-02"]}, ["Projects/Shed.md"]),
        ({"properties": ["source~example.com"]}, ["Clippings/Web.md"]),
        ({"modified_to": "2001-01-01"}, []),
        ({"query": "paint"}, ["Projects/Shed.md"]),
        ({"query": "roses", "tags": ["home"], "sort": "title"}, ["Projects/Garden.md", "Projects/Shed.md"]),
    ],
)
def test_all_that_is_asked_must_hold(vault: Opener, asked: dict[str, Any], found: list[str]) -> None:
    with vault.open() as context:
        answer = notes.find_notes(context, **asked)

    assert (paths(answer), answer["total"]) == (found, len(found))


@pytest.mark.parametrize(("sort", "said"), [("due", False), ("-rank", False), ("modified", False), ("modifed", True)])
def test_a_property_to_sort_by_that_no_note_has_is_told(vault: Opener, sort: str, *, said: bool) -> None:
    with vault.open() as context:
        answer: Any = notes.find_notes(context, sort=sort)

    assert answer["total"] == 5
    assert [note for note in answer.get("notes", []) if f"property '{sort}' to sort by" in note] == (
        [f"no note has the property '{sort}' to sort by; what every note has: path, title, created, modified, size"]
        if said
        else []
    )


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("rank", ["Shed", "Garden", "Fence"]),
        ("-rank", ["Garden", "Shed", "Fence"]),
        ("due", ["Shed", "Garden", "Fence"]),
        ("-title", ["Shed", "Garden", "Fence"]),
        ("title", ["Fence", "Garden", "Shed"]),
        ("-path", ["Shed", "Fence", "Garden"]),
        ("-size", ["Garden", "Shed", "Fence"]),
    ],
)
def test_notes_are_sorted_and_what_lacks_the_property_comes_last(vault: Opener, sort: str, found: list[str]) -> None:
    with vault.open() as context:
        answer: Any = notes.find_notes(context, folder="Projects", sort=sort)

    assert [row["title"] for row in answer["results"]] == found


def test_the_fields_that_were_asked_for_are_shown(vault: Opener) -> None:
    with vault.open() as context:
        wanted = ["title", "folder", "tags", "aliases", "preview", "Status", "nothing", "size"]
        row: Any = notes.find_notes(context, properties=["rank=10"], fields=wanted)["results"]
        plain: Any = notes.find_notes(context, properties=["rank=10"])["results"]

    assert row == [
        {
            "path": "Projects/Garden.md",
            "title": "Garden",
            "folder": "Projects",
            "tags": ["home"],
            "aliases": ["Yard"],
            "preview": "# Garden Roses. #home",
            "Status": "open",
            "nothing": None,
            "size": len(NOTES["Projects/Garden.md"]),
        }
    ]
    assert list(plain[0]) == ["path", "title", "modified"]


def test_a_query_puts_the_best_match_first(vault: Opener) -> None:
    with vault.open() as context:
        answer = notes.find_notes(context, "garden roses", limit=1)

    assert (paths(answer), answer["next_offset"]) == (["Projects/Garden.md"], 1)


def test_a_hidden_note_is_not_shown_where_the_index_is_made_anew_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = opened.vault(tmp_path, {"a.md": "alpha", "c.md": "alpha"})
    with vault.open(ClientSettings(grants=access.default_grants("mcp"), hidden=("b.md",))) as context:
        search = context.index.search

        def search_and_make_anew(question: SearchRequest) -> SearchResult:
            found = search(question)
            (vault.root / "c.md").rename(vault.root / "b.md")
            context.index.refresh(full=True)
            return found

        monkeypatch.setattr(context.index, "search", search_and_make_anew)
        answer = notes.find_notes(context, "alpha")

    assert paths(answer) == ["a.md"]


def test_total_counts_all_that_pass_beyond_the_stretch(vault: Opener) -> None:
    with vault.open() as context:
        page = notes.find_notes(context, limit=2, offset=4)
        beyond = notes.find_notes(context, limit=2, offset=40)
        guest = notes.find_notes(context, "secret", tags=["home"])

    assert (page["total"], len(paths(page)), page.get("next_offset")) == (5, 1, None)
    assert (beyond["total"], beyond["results"]) == (5, [])
    assert guest["total"] == 0


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"folder": "Nowhere"}, NotFound),
        ({"folder": "Secret"}, NotFound),
        ({"properties": ["=x"]}, None),
        ({"properties": ["!"]}, BadInput),
        ({"modified_from": "yesterday"}, BadInput),
        ({"limit": 1_001}, BadInput),
        ({"fields": [""]}, BadInput),
        ({"tags": ["x"] * 51}, BadInput),
        ({"sort": "\ud800"}, BadInput),
    ],
)
def test_what_cannot_be_asked_is_refused(vault: Opener, asked: dict[str, Any], error: type[Exception] | None) -> None:
    with vault.open() as context:
        if error is None:
            assert notes.find_notes(context, **asked)["total"] == 0
            return
        with pytest.raises(error):
            notes.find_notes(context, **asked)


def test_showing_what_others_wrote_counts_as_reading_it_and_naming_it_does_not(vault: Opener) -> None:
    with vault.open("mcp") as context:
        named = notes.find_notes(context, folder="Clippings")
        before = context.writer.taints.is_tainted("mcp")
        shown: Any = notes.find_notes(context, folder="Clippings", fields=["preview"])["results"]
        after = context.writer.taints.is_tainted("mcp")

    assert paths(named) == ["Clippings/Web.md"]
    assert (before, after, shown[0]["foreign"]) == (False, True, True)
