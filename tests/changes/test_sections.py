import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import positions, splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import Ambiguous, KnapError, NotFound
from knapper.vault import parser
from tests.changes import generated, writing
from tests.vault import cases

ACTS = {
    "replace": positions.replace_section,
    "body": positions.replace_section_body,
    "append": positions.append_to_section,
    "prepend": positions.prepend_to_section,
}


def act(note: Snapshot, target: str, text: str) -> Splice:
    word, _, heading = target.partition(" ")
    if word == "strict":
        return positions.append_to_section(note, heading, text, strict=True)
    return ACTS[word](note, heading, text)


@pytest.mark.parametrize(("raw", "wanted"), cases.load("section_edits"))
def test_section_edits(raw: bytes, wanted: str) -> None:
    assert writing.played(raw, wanted, act) == wanted


def test_a_heading_that_stands_twice_is_named_with_its_lines_and_paths() -> None:
    note = splices.take_snapshot(b"# A\n## Log\n# B\n## Log\n")
    with pytest.raises(Ambiguous, match="in lines 2, 4") as caught:
        positions.find_section(note, "## log")

    assert caught.value.details == {"lines": [2, 4], "paths": ["# A > ## Log", "# B > ## Log"]}


def test_headings_with_one_path_are_left_to_line_numbers() -> None:
    with pytest.raises(Ambiguous) as caught:
        positions.find_section(splices.take_snapshot(b"# A\n# A\n"), "# A")

    assert "line numbers" in caught.value.hint


def test_a_missing_heading_is_answered_with_the_nearest() -> None:
    note = splices.take_snapshot(b"# Meeting notes\n# Recipes\n## Meeting\n")
    with pytest.raises(NotFound) as caught:
        positions.find_section(note, "## Meeting note")

    assert caught.value.hint.startswith("nearest: '# Meeting notes' (line 1)")


def test_a_note_without_headings_says_so() -> None:
    with pytest.raises(NotFound) as caught:
        positions.find_section(splices.take_snapshot(b"text\n"), "# A")

    assert caught.value.hint == "the note has no headings"


def test_a_path_may_be_a_list() -> None:
    note = splices.take_snapshot(b"# A\n## Log\n# B\n## Log\n")

    assert positions.find_section(note, ["# B", "## Log"]).line == 4


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"---\na: 1\n---\ntext\n", b"---\na: 1\n---\n\nnew\n\ntext\n"),
        (b"---\na: 1\n---\n\ntext\n", b"---\na: 1\n---\n\nnew\n\ntext\n"),
        (b"---\na: 1\n---\n", b"---\na: 1\n---\n\nnew\n"),
        (b"---\na: 1\n---", b"---\na: 1\n---\n\nnew"),
        (b"text", b"new\n\ntext"),
        (b"", b"new\n"),
        (b"\xef\xbb\xbftext\r\n", b"\xef\xbb\xbfnew\r\n\r\ntext\r\n"),
    ],
)
def test_text_goes_after_the_frontmatter_between_blank_lines(raw: bytes, wanted: bytes) -> None:
    assert writing.result(raw, lambda note: positions.insert_after_frontmatter(note, "new")) == wanted


@pytest.mark.parametrize(("raw", "wanted"), [(b"a", b"a\nnew"), (b"a\n", b"a\nnew\n"), (b"", b"new\n")])
def test_text_is_appended_to_the_file(raw: bytes, wanted: bytes) -> None:
    assert writing.result(raw, lambda note: positions.append_to_file(note, "new")) == wanted


@given(generated.notes(), st.sampled_from(sorted(ACTS)), st.sampled_from(["## Two", "# One", "### Three", "Setext"]))
def test_a_section_edit_leaves_every_other_heading_where_it_was(raw: bytes, word: str, heading: str) -> None:
    note = splices.take_snapshot(raw)
    try:
        section = positions.find_section(note, heading)
        splice = ACTS[word](note, heading, "fresh text")
    except KnapError:
        return
    after = splices.merge(raw, [splice])

    assert section.start <= splice.start <= splice.stop <= section.stop
    assert after.startswith(raw[: splice.start])
    assert after.endswith(raw[splice.stop :])
    assert b"fresh text" in after
    if word != "replace":
        assert (
            titles(after)[: titles(raw).index(section.title) + 1] == titles(raw)[: titles(raw).index(section.title) + 1]
        )
        assert titles(after).count(section.title) == titles(raw).count(section.title)


def titles(raw: bytes) -> list[str]:
    return [section.title for section in parser.parse_note(raw).sections]


@given(generated.notes(), st.sampled_from(["## Two", "# One", "### Three"]))
def test_a_section_that_is_replaced_by_itself_changes_nothing_and_says_so(raw: bytes, heading: str) -> None:
    note = splices.take_snapshot(raw)
    try:
        section = positions.find_section(note, heading)
    except KnapError:
        return
    text = note.decode(section.start, section.stop)
    with pytest.raises(KnapError) as caught:
        positions.replace_section(note, heading, text)

    assert caught.value.code == "no_change"
