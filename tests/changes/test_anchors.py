import pytest

from knapper.changes.text import positions
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.vault import parser
from tests.changes import writing


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"# Old\ntext\n", b"# New\ntext\n"),
        (b"#   Old   ##  \r\ntext\r\n", b"#   New   ##  \r\ntext\r\n"),
        (b"  # Old ^id-1\n", b"  # New ^id-1\n"),
        (b"Old\n===\n", b"New\n===\n"),
        (b"# Old", b"# New"),
        (b"\xef\xbb\xbf# Old", b"\xef\xbb\xbf# New"),
    ],
)
def test_a_headings_text_is_changed_and_nothing_beside_it(raw: bytes, wanted: bytes) -> None:
    assert writing.result(raw, lambda note: positions.rename_heading(note, "# old", "New")) == wanted


def test_a_setext_heading_of_several_lines_becomes_one_line() -> None:
    assert writing.result(b"a\nb\n---\nc\n", lambda note: positions.rename_heading(note, "a b", "N")) == b"N\n---\nc\n"


def test_a_heading_without_text_gets_one() -> None:
    raw = b"#\ntext\n"
    after = writing.result(raw, lambda note: positions.rename_heading(note, "#", "New"))

    assert after == b"# New\ntext\n"


@pytest.mark.parametrize("title", ["", "  ", "a\nb", "New #", "New ^id", "Old"])
def test_what_would_not_be_that_heading_is_refused(title: str) -> None:
    with pytest.raises(BadInput):
        writing.result(b"# Old\ntext\n", lambda note: positions.rename_heading(note, "# Old", title))


@pytest.mark.parametrize("title", ["- item", "> quote", "# x"])
def test_a_setext_heading_does_not_become_another_block(title: str) -> None:
    with pytest.raises(BadInput):
        writing.result(b"Old\n---\n", lambda note: positions.rename_heading(note, "Old", title))


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"text ^old\n", b"text ^new-1\n"),
        (b"- item ^Old\n- other ^x\n", b"- item ^new-1\n- other ^x\n"),
        (b"| a |\n|---|\n\n^old", b"| a |\n|---|\n\n^new-1"),
    ],
)
def test_a_blocks_id_is_changed(raw: bytes, wanted: bytes) -> None:
    after = writing.result(raw, lambda note: positions.rename_block(note, "^old", "^new-1"))

    assert after == wanted
    assert "new-1" in {one.name for one in parser.parse_note(after).block_ids}


def test_an_id_in_code_is_no_id() -> None:
    with pytest.raises(NotFound, match=r"no block \^old"):
        writing.result(b"```\na ^old\n```\n", lambda note: positions.rename_block(note, "old", "new"))


@pytest.mark.parametrize("new", ["", "a b", "a_b", "é", "other", "old"])
def test_an_id_that_cannot_be_is_refused(new: str) -> None:
    with pytest.raises(BadInput):
        writing.result(b"a ^old\n\nb ^other\n", lambda note: positions.rename_block(note, "old", new))


def test_an_id_that_stands_twice_is_refused_with_its_lines() -> None:
    with pytest.raises(Ambiguous, match="lines 1, 3"):
        writing.result(b"a ^x\n\nb ^x\n", lambda note: positions.rename_block(note, "x", "y"))


def test_a_heading_with_a_very_long_run_of_spaces_is_renamed() -> None:
    raw = b"# a" + b" " * 200_000 + b"b\n"

    assert writing.result(raw, lambda note: positions.rename_heading(note, "# a b", "New")) == b"# New\n"


def test_a_heading_asked_for_with_a_very_long_run_of_spaces_isnt_there() -> None:
    with pytest.raises(NotFound):
        writing.result(b"# a\n", lambda note: positions.rename_heading(note, "b" + " " * 200_000 + "c", "New"))
