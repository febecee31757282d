"""Embeds of a note that is read, and slices of a section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.errors import NotFound
from knapper.tools import reading
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Note.md": "# Top\n\n![[Other]]\n\n![[Other#Two]] ![[Other#^b1]]\n\n![[a.png]] ![[Gone]] ![[Other#No]] ![[#Top]]\n",
    "Other.md": "---\nx: 1\n---\n# One\n\ntext\n\n## Two\n\nmore\n\nblock ^b1\n",
    "Own.md": "# Slices[1:2]\n\nliteral\n\n# Long\n\n0123456789\n",
    "Foreign.md": "![[Clippings/Web]] ![[Secret/Diary]]\n",
    "Clippings/Web.md": "theirs\n",
    "Secret/Diary.md": "hush\n",
    "a.png": "",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Secret/",))


def test_embeds_come_beside_the_text_which_stays_as_it_is(vault: Opener) -> None:
    with vault.open() as context:
        read: Mapping[str, Any] = reading.read_file(context, "Note.md", expand_embeds=True)
        plain = reading.read_file(context, "Note.md")

    body, _, more = NOTES["Other.md"].partition("---\n# One")
    assert read["content"] == NOTES["Note.md"]
    assert "embeds" not in plain
    assert read["embeds"] == [
        {
            "embed": "![[Other]]",
            "line": 3,
            "path": "Other.md",
            "start_line": 4,
            "end_line": 12,
            "content": "# One" + more,
            "truncated": False,
        },
        {
            "embed": "![[Other#Two]]",
            "line": 5,
            "path": "Other.md",
            "start_line": 8,
            "end_line": 12,
            "content": "## Two\n\nmore\n\nblock ^b1\n",
            "truncated": False,
        },
        {**read["embeds"][2], "embed": "![[Other#^b1]]", "start_line": 12, "end_line": 12},
        {"embed": "![[a.png]]", "line": 7, "path": "a.png", "error": "it isn't a note", "code": "not_a_note"},
        {"embed": "![[Gone]]", "line": 7, "error": "nothing is there", "code": "not_found"},
        {
            "embed": "![[Other#No]]",
            "line": 7,
            "path": "Other.md",
            "error": "it has no such heading",
            "code": "heading_not_found",
        },
        {**read["embeds"][6], "embed": "![[#Top]]", "path": "Note.md", "content": NOTES["Note.md"]},
    ]
    assert read["embeds"][2]["content"].startswith("block")
    assert body.startswith("---")


def test_only_embeds_of_the_stretch_that_is_shown_are_expanded(vault: Opener) -> None:
    with vault.open() as context:
        read: Mapping[str, Any] = reading.read_file(context, "Note.md", 0, 15, expand_embeds=True)

    assert [row["embed"] for row in read["embeds"]] == ["![[Other]]"]


def test_what_is_hidden_is_not_embedded_and_what_others_wrote_counts_as_read(vault: Opener) -> None:
    with vault.open("mcp") as context:
        read: Mapping[str, Any] = reading.read_file(context, "Foreign.md", expand_embeds=True)
        tainted = context.writer.taints.is_tainted("mcp")

    assert [row.get("code", row.get("content")) for row in read["embeds"]] == ["theirs\n", "not_found"]
    assert (read["embeds"][0]["foreign"], tainted) == (True, True)


@pytest.mark.parametrize(
    ("heading", "content", "line"),
    [
        ("# Long[8:12]", "0123", 7),
        ("# Long [8:]", "0123456789\n", 7),
        ("Long[:6]", "# Long", 5),
        ("# Long[-3:-1]", "89", 7),
        ("# Long[90:]", "", 7),
        ("# Slices[1:2]", "# Slices[1:2]\n\nliteral\n\n", 1),
    ],
)
def test_a_slice_of_a_section_is_read(vault: Opener, heading: str, content: str, line: int) -> None:
    with vault.open() as context:
        read = reading.read_file(context, "Own.md", heading=heading)

    assert (read["content"], read["total_chars"]) == (content, len(content))
    if content:
        assert read["start_line"] == line


@pytest.mark.parametrize("heading", ["# None[1:2]", "# Long[a:b]", "# Long[1]", "# Long[-:]"])
def test_a_slice_of_nothing_is_an_error(vault: Opener, heading: str) -> None:
    with vault.open() as context, pytest.raises(NotFound):
        reading.read_file(context, "Own.md", heading=heading)


def test_a_whole_note_is_fetched_in_one_go(vault: Opener) -> None:
    (vault.root / "Long.md").write_text("word " * 30_000, encoding="utf-8")

    with vault.open() as context:
        short = reading.fetch_note(context, "Other.md")
        long = reading.fetch_note(context, "Long.md")

    assert short["content"] == NOTES["Other.md"]
    assert (long["truncated"], long["next_offset"], long["total_chars"]) == (True, 100_000, 150_000)
