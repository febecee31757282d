import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.cli.commands import eval as evaluation

GRADES = {"a": 3, "b": 2, "c": 1, "d": 0}

names = st.sampled_from("abcdefgh")
rankings = st.lists(names, unique=True)
judgements = st.dictionaries(names, st.integers(-1, 4), min_size=1)


def test_ndcg_of_the_documented_example() -> None:
    # By hand: gain 1/log2(2) + 2/log2(3) = 1 + 1.26186 = 2.26186; ideal 2 + 1/log2(3) = 2.63093.
    assert evaluation.ndcg(["b", "a"], {"a": 2, "b": 1}, 5) == pytest.approx(0.85972, abs=1e-5)


def test_ndcg_looks_no_further_than_k() -> None:
    # By hand: only place 2 counts: 3/log2(3) = 1.89279; ideal of two: 3 + 2/log2(3) = 4.26186.
    assert evaluation.ndcg(["x", "a", "b"], GRADES, 2) == pytest.approx(0.44412, abs=1e-5)


def test_the_ideal_order_has_the_highest_grades_first() -> None:
    # The judgements come with the lowest grade first; the ideal of one place is still the 3.
    assert evaluation.ndcg(["a"], {"c": 1, "b": 2, "a": 3}, 1) == 1
    assert evaluation.ndcg(["c"], {"c": 1, "b": 2, "a": 3}, 1) == pytest.approx(1 / 3)


def test_ndcg_is_0_where_nothing_is_relevant() -> None:
    assert evaluation.ndcg(["a"], {"a": 0, "b": -1}, 5) == 0
    assert evaluation.ndcg(["a"], {}, 5) == 0


@given(ranking=rankings, grades=judgements, k=st.integers(1, 10))
def test_measures_lie_between_0_and_1(ranking: list[str], grades: dict[str, int], k: int) -> None:
    for value in (
        evaluation.ndcg(ranking, grades, k),
        evaluation.recall(ranking, grades, k),
        evaluation.reciprocal_rank(ranking, grades),
        evaluation.hit(ranking, grades, k),
    ):
        assert -1e-9 <= value <= 1 + 1e-9


@given(grades=judgements, k=st.integers(1, 10))
def test_the_ideal_ranking_has_ndcg_1(grades: dict[str, int], k: int) -> None:
    ideal = sorted(grades, key=lambda name: -grades[name])

    assert evaluation.ndcg(ideal, grades, k) == pytest.approx(1 if max(grades.values()) > 0 else 0)


@pytest.mark.parametrize(
    ("ranking", "expected"), [(["a"], 1), (["x", "y", "c"], 1 / 3), (["d", "b"], 1 / 2), (["d"], 0), ([], 0)]
)
def test_the_reciprocal_rank_is_that_of_the_first_relevant(ranking: list[str], expected: float) -> None:
    assert evaluation.reciprocal_rank(ranking, GRADES) == pytest.approx(expected)


def test_recall_is_a_share_of_what_is_relevant() -> None:
    assert evaluation.recall(["a", "x", "d"], GRADES, 10) == pytest.approx(1 / 3)
    assert evaluation.recall(["x", "a", "b", "c"], GRADES, 2) == pytest.approx(1 / 3)
    assert evaluation.recall(["a"], {"a": 0}, 10) == 0


def test_a_hit_is_relevant() -> None:
    assert evaluation.hit(["d", "a"], GRADES, 1) == 0
    assert evaluation.hit(["a", "d"], GRADES, 1) == 1


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2), (0.95, 4), (0.25, 1), (0.26, 2), (0.0, 1), (1.0, 4)])
def test_percentiles_are_values_that_were_measured(share: float, expected: float) -> None:
    assert evaluation.percentile([4, 1, 3, 2], share) == expected


def test_percentiles_of_nothing_are_0() -> None:
    assert evaluation.percentile([], 0.5) == 0


def test_a_partial_answer_is_worth_less_by_the_gain_of_web_search() -> None:
    # By hand: gain 1 + 3/log2(3) = 2.89279; ideal 3 + 1/log2(3) = 3.63093.
    assert evaluation.ndcg(["b", "a"], {"a": 2, "b": 1}, 5, evaluation.exponential_gain) == pytest.approx(
        0.79671, abs=1e-5
    )


def test_averages_count_a_query_without_a_ranking() -> None:
    found = evaluation.average_metrics({"1": ["a", "b"]}, {"1": {"b": 1}, "2": {"z": 1}})

    assert found == {
        "ndcg@5": pytest.approx(1 / math.log2(3) / 2),
        "ndcg@10": pytest.approx(1 / math.log2(3) / 2),
        "ndcg_exp@10": pytest.approx(1 / math.log2(3) / 2),
        "mrr": pytest.approx(0.25),
        "hit@1": 0,
        "recall@10": pytest.approx(0.5),
    }
