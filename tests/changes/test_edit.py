import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import replacement, splices
from knapper.errors import Ambiguous, BadInput, KnapError, NotFound
from tests.changes import generated


def replaced(raw: bytes, old: str, new: str, *, count: int = 1) -> bytes:
    return splices.merge(raw, replacement.replace_text(splices.take_snapshot(raw), old, new, count=count).splices)


def test_the_one_place_where_the_text_stands_is_changed() -> None:
    assert replaced(b"one two\nthree\n", "two\nthree", "2\n3") == b"one 2\n3\n"


def test_text_that_stands_several_times_is_refused_with_its_lines() -> None:
    with pytest.raises(Ambiguous, match="occurs 3 times, in lines 1, 2") as caught:
        replaced(b"a a\na\n", "a", "b")

    assert caught.value.details == {"lines": [1, 1, 2]}
    assert "expected, 3" in caught.value.hint


def test_the_expected_number_of_places_is_changed() -> None:
    assert replaced(b"a a\na\n", "a", "b", count=3) == b"b b\nb\n"


@pytest.mark.parametrize("count", [2, 4])
def test_another_number_than_expected_is_refused(count: int) -> None:
    with pytest.raises(Ambiguous, match=f"and not {count} times"):
        replaced(b"a a\na\n", "a", "b", count=count)


@pytest.mark.parametrize(("text", "old"), [("ab ", "ab"), ("\u2019ab ", "'ab")])
def test_of_more_than_a_thousand_places_none_is_changed(text: str, old: str) -> None:
    raw = (text * 1_001).encode()

    with pytest.raises(Ambiguous, match="more than 1,000 times"):
        replaced(raw, old, "x", count=1_000)
    with pytest.raises(BadInput, match="1,000 are the most"):
        replaced(raw, old, "x", count=1_001)


@pytest.mark.parametrize("old", ["  item", "\nitem"])
def test_a_very_long_run_of_spaces_is_searched_once_and_not_from_each_space(old: str) -> None:
    with pytest.raises(NotFound):
        replaced(b"a" + b" " * 100_000 + b"b\n", old, "x")


def test_places_that_overlap_count_as_several() -> None:
    with pytest.raises(Ambiguous):
        replaced(b"aaa", "aa", "b")
    with pytest.raises(BadInput, match="overlap"):
        replaced(b"aaa", "aa", "b", count=2)


@pytest.mark.parametrize(
    ("raw", "old", "differences"),
    [
        ("say \u201chi\u201d", 'say "hi"', ("quotes",)),
        ('say "hi"', "say \u00abhi\u00bb", ("quotes",)),
        ("it\u2019s", "it's", ("quotes",)),
        ("a \u2014 b", "a - b", ("dashes",)),
        ("a\u00a0b", "a b", ("spaces",)),
        ("a  b", "a b", ("spaces",)),
        ("a  \nb", "a\nb", ("spaces",)),
        ("a\nb", "a  \nb", ("spaces",)),
        ("a\nb", "a\nb ", ("spaces",)),
        ("a\r\nb", "a\nb", ("line endings",)),
        ("a\rb", "a\nb", ("line endings",)),
        ("wait\u2026", "wait...", ("ellipsis",)),
        ("cafe\u0301", "caf\u00e9", ("accents",)),
        ("caf\u00e9", "cafe\u0301", ("accents",)),
    ],
)
def test_text_in_another_spelling_is_found_and_reported(raw: str, old: str, differences: tuple[str, ...]) -> None:
    note = splices.take_snapshot(f"<{raw}>".encode())
    found = replacement.replace_text(note, old, "NEW")

    assert splices.merge(note.raw, found.splices) == b"<NEW>"
    assert (found.normalised, found.differences) == (True, differences)


def test_text_as_given_wins_over_another_spelling() -> None:
    found = replacement.replace_text(splices.take_snapshot("it\u2019s it's".encode()), "it's", "x")

    assert [(splice.start, splice.stop) for splice in found.splices] == [(7, 11)]
    assert (found.normalised, found.differences) == (False, ())


def test_another_spelling_has_to_be_unique_too() -> None:
    with pytest.raises(Ambiguous):
        replaced("it\u2019s it\u2018s".encode(), "it's", "x")


def test_code_in_backticks_is_not_taken_for_quotes() -> None:
    with pytest.raises(NotFound):
        replaced(b"`a`", "'a'", "x")


def test_new_text_takes_the_notes_line_endings() -> None:
    assert replaced(b"a\r\nb\r\n", "b", "1\n2\r\n3\r4") == b"a\r\n1\r\n2\r\n3\r\n4\r\n"


def test_where_endings_are_mixed_lines_that_stay_keep_theirs() -> None:
    assert replaced(b"a\r\nb\nc\r\n", "a\r\nb\nc", "a\nx\nb\nc") == b"a\r\nx\r\nb\nc\r\n"


def test_missing_text_is_answered_with_the_passage_most_like_it() -> None:
    with pytest.raises(NotFound) as caught:
        replaced(b"# A\n\nThe quick brown fox\njumps over\nthe lazy dog.\n", "The quick red fox\njumps over", "x")

    assert caught.value.details == {
        "nearest": {"start_line": 3, "end_line": 4, "text": "The quick brown fox\njumps over"}
    }
    assert caught.value.hint.startswith("most like it is lines 3-4")


def test_the_passage_may_lie_inside_a_long_line() -> None:
    raw = b"word " * 300 + b"the price was 40 euro in all" + b" word" * 300
    with pytest.raises(NotFound) as caught:
        replaced(raw, "the price was 50 euro in all", "x")

    assert "has '40' where you gave '50'" in caught.value.hint


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("squeks", ", which has 'squeaks' where you gave 'squeks'"),
        ("Febuary", ", which has 'February' where you gave 'Febuary'"),
        ("appel", ", which has 'apple' where you gave 'appel'"),
        ("tree pe in", ", which has 'tree' where you gave 'tree pe'"),
        ("pe Prune the", ", which has 'Prune' where you gave 'pe'"),
        ("Prune apple tree", ", which has 'Prune the' where you gave 'Prune'"),
        ("The gates squeak", ", which has 'gate' where you gave 'gates'"),
        ("word " * 100 + "not", ", which has 'now' where you gave 'not'"),
    ],
)
def test_the_first_words_that_differ_are_told_whole(asked: str, told: str) -> None:
    raw = b"Prune the apple tree in February.\n\nThe gate squeaks.\n\n" + b"word " * 100 + b"now\n"
    with pytest.raises(NotFound) as caught:
        replaced(raw, asked, "x")

    assert caught.value.hint.endswith(told)


def test_where_nothing_is_like_it_no_passage_is_made_up() -> None:
    with pytest.raises(NotFound) as caught:
        replaced(b"abc\n", "zzzz qqqq", "x")

    assert caught.value.details == {}


@pytest.mark.parametrize(("old", "new", "count"), [("", "x", 1), ("a", "a", 1), ("a", "b", 0), ("\ud800", "x", 1)])
def test_a_call_that_makes_no_sense_is_refused(old: str, new: str, count: int) -> None:
    with pytest.raises(BadInput):
        replaced(b"a\n", old, new, count=count)


def test_an_edit_that_would_change_nothing_says_so() -> None:
    with pytest.raises(BadInput) as caught:
        replaced(b"a\r\nb", "a\nb", "a\r\nb")

    assert caught.value.code == "no_change"


def test_blank_or_very_long_text_is_compared_as_given_only() -> None:
    with pytest.raises(NotFound):
        replaced(b"a\n", "   ", "x")
    with pytest.raises(NotFound):
        replaced(b"a\n", "it's " * 10_000, "x")


@given(generated.notes(), st.data())
def test_only_the_old_text_changes(raw: bytes, data: st.DataObject) -> None:
    text = raw.decode()
    start = data.draw(st.integers(0, len(text)))
    old = text[start : start + data.draw(st.integers(1, 30))]
    try:
        found = replacement.replace_text(splices.take_snapshot(raw), old, "NEW TEXT")
    except KnapError:
        return
    (splice,) = found.splices

    assert not found.normalised
    assert splices.merge(raw, found.splices) == text.replace(old, "NEW TEXT").encode()
    assert raw[splice.start : splice.stop].decode() == old


@given(st.text(st.sampled_from("ab '\u2019-\u2014\n\r\u00a0\u2026.e\u0301\u00e9"), min_size=1, max_size=12))
def test_a_pattern_finds_the_text_it_was_made_of(text: str) -> None:
    raw = f"<{text}>".encode()
    if not text.strip():
        return

    found = replacement.replace_text(splices.take_snapshot(raw), text.replace("\r\n", "\n").replace("\r", "\n"), "X")

    assert splices.merge(raw, found.splices).startswith(b"<")


def test_text_of_a_line_that_is_not_utf8_is_told_why_it_is_not_found() -> None:
    with pytest.raises(NotFound) as caught:
        replaced(b"# T\ncaf\xe9 one\n", "caf\u00e9", "tea")

    assert "line 2, which isn't UTF-8" in caught.value.hint


def test_plain_text_beside_bytes_that_are_not_utf8_has_its_difference_shown() -> None:
    with pytest.raises(NotFound) as caught:
        replaced(b"# T\ncaf\xe9 early summer\n", "early sumer", "x")

    assert "'summer'" in caught.value.hint


def test_a_single_place_is_named_as_one_line() -> None:
    with pytest.raises(Ambiguous, match="occurs once, in line 1, and not 3 times"):
        replaced(b"a\n", "a", "b", count=3)
