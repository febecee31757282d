"""What there is to know about a note."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.errors import NotFound
from knapper.tools import notes
from knapper.vault import parser
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = """---
aliases: [Yard]
tags: [home]
Date: 2023-08-11
---
# Garden

[[Shed]] [[Gone]] #Home #plants

## Tasks

- [ ] weed
- [x] water
"""
NOTES = {
    "Garden.md": NOTE,
    "Shed.md": "[[Garden]]\n",
    "Plan.md": "[[Garden|it]] ![[Garden#Tasks]]\n",
    "Empty.md": "",
    "Broken.md": "---\na: [\n---\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


def test_a_note_is_told_about(vault: Opener) -> None:
    with vault.open() as context:
        answer: Mapping[str, Any] = notes.note_info(context, "garden.md")

    assert (answer["path"], answer["title"], answer["kind"]) == ("Garden.md", "Garden", "note")
    assert (answer["hash"], answer["size"]) == (parser.content_hash(NOTE.encode()), len(NOTE))
    assert (answer["created"], answer["aliases"], answer["tags"]) == ("2023-08-11", ["Yard"], ["home", "plants"])
    assert answer["properties"] == {"aliases": ["Yard"], "tags": ["home"], "Date": "2023-08-11"}
    assert answer["outline"] == [
        {"heading": "# Garden", "line": 6, "end_line": 13},
        {"heading": "## Tasks", "line": 10, "end_line": 13},
    ]
    assert answer["tasks"] == {
        "total": 2,
        "open": 1,
        "results": [{"state": " ", "text": "weed", "line": 12}, {"state": "x", "text": "water", "line": 13}],
    }
    assert answer["links_in"] == {"total": 2, "results": ["Plan.md", "Shed.md"]}
    assert answer["links_out"] == {
        "total": 2,
        "results": [
            {"target": "Shed", "line": 8, "leads_to": "Shed.md"},
            {"target": "Gone", "line": 8, "leads_to": None},
        ],
    }


def test_an_empty_note_and_one_that_cannot_be_read_whole_are_told_about(vault: Opener) -> None:
    with vault.open() as context:
        empty: Mapping[str, Any] = notes.note_info(context, "Empty.md")
        broken: Mapping[str, Any] = notes.note_info(context, "Broken.md")

    assert (empty["lines"], empty["outline"], empty["tags"]) == (0, [], [])
    assert [row["code"] for row in broken["problems"]] == ["invalid_yaml"]


def test_a_missing_note_is_told_with_the_nearest(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(NotFound, match=r"Gardn\.md"):
        notes.note_info(context, "Gardn.md")
