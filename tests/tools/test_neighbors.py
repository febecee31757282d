"""Following links: direction, depth, walls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.errors import BadInput, NotFound
from knapper.tools import links
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Hub.md": "[[A]] [[B]] [[Gone]] [[Hub#x]] https://example.com\n",
    "A.md": "[[C]] [[Hub]]\n",
    "B.md": "[[Wall/W]]\n",
    "C.md": "[[D]]\n",
    "D.md": "\n",
    "In.md": "[[Hub]]\n",
    "Wall/W.md": "[[Behind]]\n",
    "Behind.md": "\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.mark.parametrize(
    ("direction", "found"),
    [
        ("both", [("A.md", "both"), ("B.md", "out"), ("In.md", "in")]),
        ("out", [("A.md", "out"), ("B.md", "out")]),
        ("in", [("A.md", "in"), ("In.md", "in")]),
    ],
)
def test_neighbors_are_told_with_their_direction(
    vault: Opener, direction: links.LinkDirection, found: list[tuple[str, str]]
) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = links.get_links(context, "Hub.md", direction)

    assert [(row["path"], row["direction"]) for row in answer["results"]] == found
    assert answer["unresolved"] == ([] if direction == "in" else ["Gone"])


@pytest.mark.parametrize(
    ("depth", "found"),
    [
        (1, {"A.md": 1, "B.md": 1, "In.md": 1}),
        (2, {"A.md": 1, "B.md": 1, "In.md": 1, "C.md": 2, "Wall/W.md": 2}),
        (3, {"A.md": 1, "B.md": 1, "In.md": 1, "C.md": 2, "Wall/W.md": 2, "Behind.md": 3, "D.md": 3}),
    ],
)
def test_each_note_is_reached_by_its_shortest_way(vault: Opener, depth: int, found: dict[str, int]) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = links.get_links_recursive(context, "hub.md", depth)

    assert {row["path"]: row["depth"] for row in answer["results"]} == found
    assert [row["depth"] for row in answer["results"]] == sorted(found.values())


def test_what_is_reached_comes_in_stretches(vault: Opener) -> None:
    with vault.open() as context:
        whole: Mapping[str, Any] = links.get_links_recursive(context, "Hub.md", 3)
        first: Mapping[str, Any] = links.get_links_recursive(context, "Hub.md", 3, limit=4)
        rest: Mapping[str, Any] = links.get_links_recursive(context, "Hub.md", 3, limit=4, offset=first["next_offset"])

    assert [*first["results"], *rest["results"]] == whole["results"]
    assert (rest["total"], rest["offset"], "next_offset" in rest) == (7, 4, False)


def test_an_excluded_folder_is_a_wall(vault: Opener) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = links.get_links_recursive(
            context, "Hub.md", 3, direction="out", exclude_folders=["wall"]
        )

    assert {row["path"]: row["via"] for row in answer["results"]} == {
        "A.md": "Hub.md",
        "B.md": "Hub.md",
        "C.md": "A.md",
        "D.md": "C.md",
    }


def test_an_excluded_folder_that_is_not_there_is_told(vault: Opener) -> None:
    with vault.open() as context:
        walled = links.get_links_recursive(context, "Hub.md", 1, exclude_folders=["wall"])
        mistyped = links.get_links_recursive(context, "Hub.md", 1, exclude_folders=["Wal"])

    assert "notes" not in walled
    assert "no folder 'Wal' in the vault" in mistyped.get("notes", [""])[0]


@pytest.mark.parametrize(("depth", "limit"), [(0, 10), (4, 10), (2, 0)])
def test_a_number_out_of_its_range_is_refused(vault: Opener, depth: int, limit: int) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        links.get_links_recursive(context, "Hub.md", depth, limit=limit)


def test_a_missing_note_has_no_neighbors(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(NotFound):
        links.get_links(context, "Gone.md")
