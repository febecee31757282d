import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import splices
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, ConflictError


def replacing(start: int, stop: int, new: bytes, rank: int = 0) -> Splice:
    return Splice(start=start, stop=stop, new=new, rank=rank)


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes, list[Splice]]:
    raw = draw(st.binary(max_size=60))
    places = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    spans = zip(places[::2], places[1::2], strict=False)
    made = [replacing(start, stop, draw(st.binary(max_size=5)), rank) for rank, (start, stop) in enumerate(spans)]
    return raw, made


@given(batches(), st.randoms(use_true_random=False))
def test_a_batch_in_any_order_of_submission_gives_one_result(
    batch: tuple[bytes, list[Splice]], chance: random.Random
) -> None:
    raw, made = batch
    shuffled = list(made)
    chance.shuffle(shuffled)

    assert splices.merge(raw, shuffled) == splices.merge(raw, made)


@given(batches())
def test_bytes_outside_the_spans_are_the_same(batch: tuple[bytes, list[Splice]]) -> None:
    raw, made = batch
    merged = splices.merge(raw, made)
    outside = b"".join(raw[i : i + 1] for i in range(len(raw)) if not any(s.start <= i < s.stop for s in made))
    shift = 0
    kept = b""
    done = 0
    for splice in splices.check_order(raw, made):
        kept += merged[done + shift : splice.start + shift]
        assert merged[splice.start + shift : splice.start + shift + len(splice.new)] == splice.new
        shift += len(splice.new) - (splice.stop - splice.start)
        done = splice.stop

    assert kept + merged[done + shift :] == outside


def test_overlapping_changes_are_refused_with_the_lines_of_both() -> None:
    with pytest.raises(BadInput, match=r"lines 1-2 and lines 2-3") as caught:
        splices.merge(b"aa\nbb\ncc\n", [replacing(4, 8, b""), replacing(0, 5, b"")])

    assert caught.value.code == "overlap"


def test_two_texts_for_one_place_are_refused_for_their_order_is_not_known() -> None:
    with pytest.raises(BadInput, match="before line 2"):
        splices.merge(b"a\nb\n", [replacing(2, 2, b"x\n"), replacing(2, 2, b"y\n")])


def test_an_insert_goes_before_what_is_replaced_there_and_after_what_ends_there() -> None:
    made = [replacing(2, 4, b"B\n"), replacing(2, 2, b"x\n"), replacing(0, 2, b"A\n")]

    assert splices.merge(b"a\nb\n", made) == b"A\nx\nB\n"


def test_inserts_at_one_place_stand_in_the_order_of_their_ranks() -> None:
    made = [replacing(2, 2, b"end", splices.RANK_END), replacing(2, 2, b"below", splices.RANK_BELOW_HEADING)]

    assert splices.merge(b"a\n", made) == b"a\nbelowend"


@pytest.mark.parametrize("span", [(0, 3), (-1, 1), (2, 1)])
def test_a_span_outside_the_file_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(BadInput):
        splices.merge(b"ab", [replacing(*span, b"")])


OLD = b"".join(b"line %d\n" % number for number in range(1, 21))


def line(number: int) -> tuple[int, int]:
    start = OLD.index(b"line %d\n" % number)
    return start, start + len(b"line %d\n" % number)


def test_a_change_moves_with_its_lines() -> None:
    splice = replacing(*line(10), b"TEN\n")
    new = b"top\n" + OLD.replace(b"line 15\n", b"")

    assert splices.merge(new, [splices.rebase(splice, OLD, new)]) == new.replace(b"line 10\n", b"TEN\n")


@pytest.mark.parametrize("changed", [8, 9, 10, 11, 12])
def test_a_change_of_the_span_or_beside_it_is_a_conflict_with_the_current_text(changed: int) -> None:
    splice = replacing(*line(10), b"TEN\n")
    new = b"top\n" + OLD.replace(b"line %d\n" % changed, b"other\n")
    with pytest.raises(ConflictError) as caught:
        splices.rebase(splice, OLD, new)

    assert caught.value.details["line"] == 11
    assert str(caught.value).endswith("at or next to line 10, which is now about line 11")
    assert "other" in str(caught.value.details["current_text"])


def test_a_conflict_in_a_place_that_did_not_move_names_its_line_once() -> None:
    with pytest.raises(ConflictError) as caught:
        splices.rebase(replacing(*line(10), b"TEN\n"), OLD, OLD.replace(b"line 9\n", b"other\n"))

    assert str(caught.value).endswith("at or next to line 10")


def test_a_change_three_lines_away_is_no_conflict() -> None:
    splice = replacing(*line(10), b"TEN\n")
    new = OLD.replace(b"line 7\n", b"LINE 7\n").replace(b"line 13\n", b"")

    assert splices.rebase(splice, OLD, new) == splice


def test_a_place_that_could_be_one_of_several_is_a_conflict() -> None:
    old = b"- [ ] a\n- [ ] b\n" * 6
    splice = replacing(16, 24, b"- [x] a\n")
    new = old[32:]

    with pytest.raises(ConflictError):
        splices.rebase(splice, old, new)


def test_an_insert_between_lines_moves_only_with_both() -> None:
    at = line(10)[0]
    splice = replacing(at, at, b"new\n")

    assert splices.rebase(splice, OLD, b"x\n" + OLD).start == at + 2
    with pytest.raises(ConflictError):
        splices.rebase(splice, OLD, OLD[:at] + b"between\n" + OLD[at:])


def test_a_change_of_the_first_line_is_a_conflict_with_text_put_before_it() -> None:
    with pytest.raises(ConflictError):
        splices.rebase(replacing(*line(1), b"x\n"), OLD, b"above\n" + OLD)


def test_a_change_of_the_last_line_is_a_conflict_with_text_put_after_it() -> None:
    with pytest.raises(ConflictError):
        splices.rebase(replacing(*line(20), b"x\n"), OLD, OLD + b"below\n")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (b"a\n", b"a\nb\n", b"a\nb\nlog\n"),
        (b"a", b"a\nb", b"a\nb\nlog"),
        (b"a", b"a\nb\n", b"a\nb\nlog\n"),
        (b"a\n", b"a\nb", b"a\nb\nlog"),
        (b"a\r\n", b"a\r\nb\r\n", b"a\r\nb\r\nlog\r\n"),
        (b"a\n", b"", b"log\n"),
    ],
)
def test_text_for_the_end_goes_to_the_new_end(old: bytes, new: bytes, wanted: bytes) -> None:
    splice = splices.append_at_end(old, b"log", b"\r\n" if b"\r\n" in old else b"\n")

    assert splices.merge(new, [splices.rebase(splice, old, new)]) == wanted


@given(st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n"]), min_size=1), st.data())
def test_a_change_that_is_rebased_finds_the_same_bytes(rows: list[bytes], data: st.DataObject) -> None:
    old = b"".join(rows)
    new = b"".join(data.draw(st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"d\n"]))))
    first = data.draw(st.integers(0, len(rows) - 1))
    start = sum(map(len, rows[:first]))
    splice = replacing(start, start + len(rows[first]), b"X\n")
    try:
        moved = splices.rebase(splice, old, new)
    except ConflictError:
        return

    assert new[moved.start : moved.stop] == rows[first]
    above, below = old[:start].splitlines()[-2:], old[splice.stop :].splitlines()[:2]
    assert new[: moved.start].splitlines()[-2:][-len(above) :] == above
    assert new[moved.stop :].splitlines()[:2][: len(below) or 2] == below


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing would change") as caught:
        splices.ensure_change(b"abc", [replacing(0, 1, b"a")], "it is so")

    assert caught.value.code == "no_change"
