import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import splices
from knapper.changes.text.splices import MatchingRun

letters = st.lists(st.sampled_from("abcd"), max_size=20)


def check(before: list[str], after: list[str], found: list[MatchingRun]) -> None:
    old = new = 0
    for run in found:
        assert run.size > 0
        assert run.old >= old
        assert run.new >= new
        assert before[run.old : run.old + run.size] == after[run.new : run.new + run.size]
        old, new = run.old + run.size, run.new + run.size


@given(letters, letters)
def test_runs_are_equal_stretches_in_order(before: list[str], after: list[str]) -> None:
    check(before, after, splices.matching_runs(before, after))


@given(letters, letters)
def test_changes_are_what_lies_between_runs(before: list[str], after: list[str]) -> None:
    made = list(before)
    for start, stop, new_start, new_stop in reversed(splices.changed_ranges(before, after)):
        made[start:stop] = after[new_start:new_stop]

    assert made == after


@pytest.mark.parametrize("limit", [0, 10, 100])
@given(before=letters, after=letters)
def test_large_sequences_are_divided_at_what_stands_once(limit: int, before: list[str], after: list[str]) -> None:
    unique = [str(number) for number in range(len(before))]
    left = [item for pair in zip(before, unique, strict=True) for item in pair]
    right = [item for pair in zip(after, unique, strict=False) for item in pair]

    check(left, right, splices.matching_runs(left, right, max_cells=limit))


@pytest.mark.slow  # on a busy machine
def test_two_changes_far_apart_in_a_large_file_stay_two() -> None:
    before = [f"line {number}" for number in range(200_000)]
    after = list(before)
    after[10], after[190_000] = "x", "y"

    assert splices.changed_ranges(before, after) == [(10, 11, 10, 11), (190_000, 190_001, 190_000, 190_001)]


def test_a_shuffled_large_file_is_compared_in_little_memory() -> None:
    before = [f"line {number}" for number in range(40_000)]
    after = list(before)
    random.Random(3).shuffle(after)

    check(before, after, splices.matching_runs(before, after))


@pytest.mark.parametrize(
    ("before", "after", "span", "wanted"),
    [
        ("abcdef", "xabcdef", (2, 4), 3),
        ("abcdef", "abXcdef", (1, 4), None),
        ("abcdef", "abXdef", (1, 4), None),
        ("abab", "ab", (0, 2), None),
        ("abc", "", (0, 1), None),
    ],
)
def test_a_span_moves_whole_and_to_one_place_only(
    before: str, after: str, span: tuple[int, int], wanted: int | None
) -> None:
    assert splices.moved_start(before, after, *span) == wanted


@pytest.mark.parametrize(("after", "index", "wanted"), [("abc", 1, 1), ("xabc", 1, 2), ("ac", 1, 1), ("", 2, 0)])
def test_the_nearest_place_is_told(after: str, index: int, wanted: int) -> None:
    assert splices.nearest_position("abc", after, index) == wanted
