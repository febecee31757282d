"""A proposal in words: what a person reads before a yes, whatever the notes and names hold."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from knapper.changes.drafts import AddText, Create, EditText, Move, RenameTag, Request, Trash
from knapper.changes.proposals import model
from knapper.changes.writer import SubmitOptions
from tests.changes import desks

NOTES = {
    "Garden.md": "# Garden\n\nBeds along the wall, and every evening water from the old barrel.\n\nLast. #x\n",
    "Plan.md": "See [[Garden]]. #x\n",
    "Old.md": "old\n",
}


def described(base: Path, *requests: Request, notes: Mapping[str, str] = NOTES, reason: str = "") -> str:
    with desks.world(base, dict(notes)) as world:
        done = world.writer.submit(requests, SubmitOptions(propose=True, reason=reason))
        return model.describe(world.writer.proposals.show(done.proposal_id))


def test_an_edit_shows_the_words_that_go_and_come_with_some_text_around(tmp_path: Path) -> None:
    text = described(tmp_path, EditText(path="Garden.md", old="evening water", new="morning water"), reason="sun")

    assert text.splitlines() == [
        "why it is made: sun",
        "change Garden.md",
        "    Beds along the wall, and every [-evening-]{+morning+} water from the old barrel.",
    ]


def test_each_kind_of_change_is_named_with_its_files(tmp_path: Path) -> None:
    requests = [
        Create(path="New.md", content="One.\nTwo.\n"),
        Move(source="Garden.md", destination="Sub/Yard.md"),
        Trash(path="Old.md"),
    ]

    lines = described(tmp_path, *requests).splitlines()

    assert "create New.md" in lines
    assert lines[lines.index("create New.md") + 1 :][:2] == ["    {+One.", "    Two."]
    assert "move Garden.md to Sub/Yard.md" in lines
    assert "move to the trash Old.md" in lines
    assert "let links follow in Plan.md" in lines


def test_files_with_the_same_change_are_named_together_and_counted(tmp_path: Path) -> None:
    notes = {f"{number:02}.md": "Text. #x\n" for number in range(30)}

    lines = described(tmp_path, RenameTag(old="x", new="y"), notes=notes).splitlines()

    assert lines[0].startswith("why it waits: ")
    assert lines[1].startswith("change 00.md, 01.md, ")
    assert lines[1].endswith("09.md and 20 more files")
    assert len(lines) == 3


@pytest.mark.parametrize(
    "hostile",
    [
        "-]{+ nothing else +}[-",
        "\nmove to the trash Everything.md\n",
        "\u2028create Fine.md",
        "\x85create Fine.md\x0bcreate Fine.md",
        "\x1b[2J\x1b[31m",
        "\u202egnihton\u2066",
        "\U000e0041\U000e0042",
        "\x9b31m",
    ],
)
def test_no_text_of_a_note_looks_like_a_mark_or_a_line_of_the_description(tmp_path: Path, hostile: str) -> None:
    text = described(tmp_path, AddText(path="Old.md", content=f"a{hostile}b", where="end"), reason=f"r{hostile}r")

    outer = [line for line in text.splitlines() if not line.startswith("    ")]
    assert [line.partition(" ")[0] for line in outer] == ["why", "change"]
    inner = text.partition("\nchange ")[2]
    assert (inner.count("{+"), inner.count("+}"), inner.count("[-")) == (1, 1, 0)
    assert not [sign for sign in text if sign in hostile and not sign.isprintable() and sign != "\n"]


def test_long_texts_and_many_files_are_cut_and_counted(tmp_path: Path) -> None:
    notes = {f"{number}.md": f"{number}\n" for number in range(40)}
    requests = [AddText(path=name, content=f"{name} {'w ' * 2_000}", where="end") for name in notes]

    text = described(tmp_path, *requests, notes=notes)

    assert len(text) <= model.MAX_CHARS + 200
    assert "characters more)" in text
    assert text.splitlines()[-1].endswith("more changes that there is no room for here")


def test_a_name_is_one_line_and_not_endless() -> None:
    names: Sequence[str] = ["a\nb", "a\u2028b", "a\r\nb"]

    assert [model.one_line(name) for name in names] == ["a b"] * 3
    assert model.one_line("x" * 10_000).endswith("(10,000 characters)")
