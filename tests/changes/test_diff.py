import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import diff
from knapper.errors import BadInput
from tests.changes import generated


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    before = draw(generated.notes())
    after = draw(st.one_of(generated.edits(before), generated.notes()))
    return before, after


@given(pairs())
def test_all_hunks_make_the_new_state_and_none_leaves_the_old(pair: tuple[bytes, bytes]) -> None:
    before, after = pair
    found = diff.diff_hunks(before, after)

    assert diff.apply_hunks(before, found) == after
    assert diff.apply_hunks(before, ()) == before
    assert len({hunk.id for hunk in found}) == len(found)
    assert bool(found) == (before != after)


@given(pairs(), st.data())
def test_chosen_hunks_change_their_lines_and_no_others(pair: tuple[bytes, bytes], data: st.DataObject) -> None:
    before, after = pair
    found = diff.diff_hunks(before, after)
    chosen = [hunk for hunk in found if data.draw(st.booleans())]
    state = diff.apply_hunks(before, chosen)

    assert len(state) == len(before) + sum(len(hunk.new) - len(hunk.old) for hunk in chosen)
    for hunk in found:
        assert before[hunk.start :].startswith(hunk.old)


@given(pairs())
def test_the_words_of_a_hunk_join_to_both_sides(pair: tuple[bytes, bytes]) -> None:
    for hunk in diff.diff_hunks(*pair):
        marks = hunk.words

        assert "".join(mark.text for mark in marks if mark.side != "added").encode() == hunk.old
        assert "".join(mark.text for mark in marks if mark.side != "removed").encode() == hunk.new


def test_a_hunk_names_its_lines_on_both_sides() -> None:
    one, two = diff.diff_hunks(b"a\nb\nc\n", b"A\nb\nx\nc\n")

    assert (one.old_start_line, one.old, one.new_start_line, one.new) == (1, b"a\n", 1, b"A\n")
    assert (two.old_start_line, two.old, two.new_start_line, two.new) == (3, b"", 3, b"x\n")


def test_paragraphs_that_change_beside_each_other_can_be_chosen_alone() -> None:
    assert [hunk.new for hunk in diff.diff_hunks(b"a\n\nb\n", b"A\n\nB\n")] == [b"A\n", b"B\n"]


def test_an_id_is_bound_to_place_and_text() -> None:
    ids = {
        diff.diff_hunks(before, after)[0].id
        for before, after in [(b"a\n", b"b\n"), (b"a\n", b"c\n"), (b"x\na\n", b"x\nb\n"), (b"aa\n", b"b\n")]
    }

    assert len(ids) == 4


def test_a_hunk_can_be_applied_alone() -> None:
    found = diff.diff_hunks(b"a\nb\nc\n", b"A\nb\nC\n")

    assert diff.apply_hunks(b"a\nb\nc\n", found[1:]) == b"a\nb\nC\n"


@pytest.mark.parametrize(
    ("before", "after", "text", "wanted"),
    [
        (b"a\r\nb\r\n", b"a\r\nB\r\n", "1\n2", b"a\r\n1\r\n2\r\n"),
        (b"a\nb", b"a\nB", "1\n2\n", b"a\n1\n2"),
        (b"a\nb\n", b"a\n", "mine", b"a\nmine\n"),
        (b"a\nb\n", b"a\nB\n", "", b"a\n"),
        (b"a\n", b"a\nb\n", "x\n\n", b"a\nx\n\n"),
    ],
)
def test_an_edited_hunk_puts_its_own_text_in_place(before: bytes, after: bytes, text: str, wanted: bytes) -> None:
    (hunk,) = diff.diff_hunks(before, after)
    edited = diff.edit_hunk(hunk, text)

    assert diff.apply_hunks(before, [edited]) == wanted
    assert edited.id != hunk.id


def test_hunks_of_another_state_are_refused() -> None:
    (hunk,) = diff.diff_hunks(b"a\n" * 10, b"a\n" * 9 + b"b\n")

    with pytest.raises(BadInput):
        diff.apply_hunks(b"a\n", [hunk])


@given(pairs())
def test_a_unified_diff_makes_the_new_state_with_patch(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[bytes, bytes]
) -> None:
    git = shutil.which("git")
    before, after = pair
    if git is None or b"\r" in before + after or not before or not after or before == after:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "n.md").write_bytes(before)
    text = diff.unified_diff(before, after, "n.md")
    made = subprocess.run(
        [git, "apply", "--whitespace=nowarn", "-"], cwd=folder, input=text.encode(), check=False, capture_output=True
    )

    assert made.returncode == 0, made.stderr
    assert (folder / "n.md").read_bytes() == after


@given(pairs(), st.integers(0, 60))
def test_a_diff_that_is_cut_ends_within_a_hunk(pair: tuple[bytes, bytes], less: int) -> None:
    whole = diff.unified_diff(*pair, "n.md")
    most = len(whole) - 1 - less
    if most < 0:
        return
    cut = diff.cut_unified(whole, most)

    assert len(cut) <= most
    assert whole.startswith(cut)
    if cut:
        head, *rows = cut[cut.rindex("\n@@") + 1 :].removesuffix("\n").split("\n")
        sizes = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", head)
        assert sizes
        wanted = [int(size or 1) for size in sizes.groups()]
        counts = [sum(row[:1] in {" ", mark} for row in rows) for mark in "-+"]
        assert counts != wanted


def test_a_unified_diff_has_context_and_marks_a_missing_last_newline() -> None:
    before = b"".join(b"%d\n" % number for number in range(1, 21))
    text = diff.unified_diff(before + b"end", before.replace(b"\n3\n", b"\nthree\n") + b"end\n", "n.md")

    assert text == (
        "--- a/n.md\n+++ b/n.md\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n"
        "@@ -18,4 +18,4 @@\n 18\n 19\n 20\n-end\n\\ No newline at end of file\n+end\n"
    )


def test_equal_states_have_no_diff() -> None:
    assert (diff.unified_diff(b"a\n", b"a\n", "n.md"), diff.diff_hunks(b"a\n", b"a\n")) == ("", ())


def test_large_files_that_differ_everywhere_are_one_hunk() -> None:
    before = b"".join(b"line %d\n" % number for number in range(60_000))
    after = before.replace(b"\n", b"\r\n")
    (hunk,) = diff.diff_hunks(before, after)

    assert diff.apply_hunks(before, [hunk]) == after
    assert len(hunk.words) == 2


def test_one_line_in_a_large_file_is_one_line() -> None:
    before = b"".join(b"line %d\n" % number for number in range(300_000))
    (hunk,) = diff.diff_hunks(before, before.replace(b"line 150000\n", b"other\n"))

    assert (hunk.old, hunk.new, hunk.old_start_line) == (b"line 150000\n", b"other\n", 150_001)


@pytest.mark.parametrize(
    ("old", "new", "marks"),
    [
        ("one two three", "one 2 three", [("same", "one "), ("removed", "two"), ("added", "2"), ("same", " three")]),
        ("a", "a", [("same", "a")]),
        ("", "a", [("added", "a")]),
        ("a", "", [("removed", "a")]),
        ("", "", []),
        ("abc", "xyz", [("removed", "abc"), ("added", "xyz")]),
        ("I came, saw.", "You went by.", [("removed", "I came, saw."), ("added", "You went by.")]),
    ],
)
def test_words_that_differ_are_marked(old: str, new: str, marks: list[tuple[str, str]]) -> None:
    assert list(diff.compare_words(old, new)) == marks


def test_very_long_texts_are_not_compared_by_words() -> None:
    assert [mark.side for mark in diff.compare_words("a " * 5_000, "a " * 5_000 + "b")] == ["removed", "added"]
    assert [mark.side for mark in diff.compare_words("a" * 300_000, "a" * 300_000 + "b")] == ["removed", "added"]
