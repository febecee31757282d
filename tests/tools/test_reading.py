"""Reading: paging by characters, sections, lines, and what can go wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.errors import BadInput, NotFound, RefusedError
from knapper.tools import files, reading
from knapper.tools.shapes import Answer
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "---\na: 1\n---\n# One\r\n\r\nÄ text 🙂.\n\n## Two\n\nmore\nlast"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Note.md": NOTE, "Clippings/Web.md": "theirs\n", ".git/config": "x"})


def test_a_note_that_fits_comes_whole_and_unaltered(vault: Opener) -> None:
    with vault.open() as context:
        read = reading.read_file(context, "Note.md")

    assert read["content"] == NOTE
    assert (read["truncated"], read["total_chars"], read["start_line"], read["end_line"]) == (False, len(NOTE), 1, 11)
    assert "next_offset" not in read


def cut_marker(first: object, stop: object, total: int) -> str:
    return f"\n\n[cut here: characters {first} to {stop} of {total}; read on with offset {stop}]"


@pytest.mark.parametrize("read", [reading.read_file, reading.fetch_note])
def test_pages_joined_without_their_markers_are_the_note(vault: Opener, read: Callable[..., Answer]) -> None:
    pieces: list[str] = []
    offset: Any = 0

    with vault.open() as context:
        while offset is not None:
            page = read(context, "Note.md", offset, 7)
            offset = page.get("next_offset")
            marker = cut_marker(page["offset"], offset, len(NOTE))
            is_marked = offset is not None and read is reading.read_file
            assert str(page["content"]).endswith(marker) is is_marked
            pieces.append(str(page["content"]).removesuffix(marker))

    assert "".join(pieces) == NOTE


def test_a_cut_section_ends_with_the_marker_and_a_whole_one_does_not(vault: Opener) -> None:
    with vault.open() as context:
        cut = reading.read_file(context, "Note.md", 0, 8, heading="## Two", line_numbers=True)
        whole = reading.read_file(context, "Note.md", heading="## Two")
        text = str(whole["content"])

    assert cut["content"] == f"8: ## Two\n9: \n\n\n[cut here: characters 0 to 8 of {len(text)}; read on with offset 8]"
    assert text == "## Two\n\nmore\nlast"


@given(text=st.text(alphabet="ab\n\r🙂", max_size=40), first=st.integers(1, 9))
def test_numbered_lines_without_their_numbers_are_the_text(text: str, first: int) -> None:
    rows = reading.number_lines(text, first)

    bare = rows
    for number in range(first, first + 50):
        bare = bare.replace(f"{number}: ", "", 1)
    assert bare == text


@pytest.mark.parametrize("offset", range(7))
def test_a_stretch_that_begins_within_a_line_ending_has_the_numbers_of_the_file(tmp_path: Path, offset: int) -> None:
    vault = opened.vault(tmp_path, {"a.md": "ab\r\ncd\r\nef\r\n"})
    with vault.open() as context:
        page = reading.read_file(context, "a.md", offset, line_numbers=True)

    assert (page["start_line"], page["end_line"]) == (1 + (offset > 3), 3)
    assert str(page["content"]).endswith("3: ef\r\n")


def test_a_part_of_a_section_that_begins_within_a_line_ending_has_the_numbers_of_the_file(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"a.md": "# A\r\n\r\ntext\r\n"})
    with vault.open() as context:
        part = reading.read_file(context, "a.md", heading="# A[4:]", line_numbers=True)

    assert part["content"] == "1: \n2: \r\n3: text\r\n"


def test_lines_are_numbered_as_in_the_file(vault: Opener) -> None:
    with vault.open() as context:
        page = reading.read_file(context, "Note.md", 15, 8, line_numbers=True)
        lines = reading.read_lines(context, "Note.md", 10, 99, line_numbers=True)

    assert page["content"] == "4: One\r\n5: \r\n6: Ä" + cut_marker(15, 23, len(NOTE))
    assert (page["start_line"], page["end_line"]) == (4, 6)
    assert (lines["content"], lines["truncated"]) == ("10: more\n11: last", False)


def test_a_section_is_read_by_its_heading(vault: Opener) -> None:
    with vault.open() as context:
        read = reading.read_file(context, "Note.md", 3, 5, heading="## two")
        with pytest.raises(NotFound) as caught:
            reading.read_file(context, "Note.md", heading="## Three")

    assert (read["content"], read["start_line"], read["total_chars"]) == (
        "Two\n\n" + cut_marker(3, 8, 17),
        8,
        17,
    )
    assert caught.value.code == "heading_not_found"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("Missing.md", NotFound),
        ("../x.md", RefusedError),
        ("/etc/passwd", RefusedError),
        (".git/config", NotFound),
        ("", BadInput),
        ("a\0b", BadInput),
    ],
)
def test_a_path_that_cannot_be_read_is_told(vault: Opener, path: str, error: type[Exception]) -> None:
    with vault.open() as context, pytest.raises(error):
        reading.read_file(context, path)


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, 0), (0, 2_000_000)])
def test_a_stretch_that_cannot_be_one_is_refused(vault: Opener, offset: int, length: int) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        reading.read_file(context, "Note.md", offset, length)


def test_an_offset_beyond_the_end_is_empty(vault: Opener) -> None:
    with vault.open() as context:
        read = reading.read_file(context, "Note.md", 9_999)

    assert (read["content"], read["truncated"]) == ("", False)


def test_a_line_that_is_not_there_is_told(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(BadInput) as caught:
        reading.read_lines(context, "Note.md", 12, 13)

    assert caught.value.code == "no_such_line"


def test_what_is_no_text_is_refused(vault: Opener) -> None:
    (vault.root / "a.png").write_bytes(b"\x89PNG\0\0")

    with vault.open() as context, pytest.raises(BadInput) as caught:
        reading.read_file(context, "a.png")

    assert caught.value.code == "not_text"


def test_an_absolute_path_into_the_vault_is_read(vault: Opener) -> None:
    with vault.open() as context:
        assert reading.read_file(context, str(vault.root / "Note.md"))["path"] == "Note.md"


def test_a_client_that_reads_foreign_text_only_proposes_from_then_on(vault: Opener) -> None:
    with vault.open("mcp") as context:
        before = files.append_to_file(context, "Note.md", "x")
        read = reading.read_file(context, "Clippings/Web.md")
        after = files.append_to_file(context, "Note.md", "y")
    with vault.open("cli") as context:
        reading.read_file(context, "Clippings/Web.md")
        person = files.append_to_file(context, "Note.md", "z")

    assert read["foreign"] is True
    assert (before["status"], after["status"], person["status"]) == ("applied", "proposed", "applied")
