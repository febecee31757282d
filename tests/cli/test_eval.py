"""`knap eval`: each query by itself, two configurations in pairs, and times of searching alone."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.cli import main
from knapper.cli.commands import eval as evaluation
from knapper.errors import BadInput
from knapper.index.engine import Engine

NOTES = {
    "Garden.md": "# Tomatoes\n\nWater them every evening.\n",
    "Car.md": "Car repair: the brakes are worn.\n",
    "Tax.md": "Receipts of the year.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a collection with two queries, one of which only meaning answers."""
    for name, text in NOTES.items():
        (tmp_path / "mine" / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / "vault" / name).write_text(text, encoding="utf-8")
    queries = [{"_id": "q1", "text": "tomatoes"}, {"_id": "q2", "text": "automobile\x1b"}]
    (tmp_path / "mine" / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    (tmp_path / "mine" / "notes.tsv").write_text("q1\tGarden.md\t2\nq1\tTax.md\t0.5\nq2\tCar.md\t1\n", encoding="utf-8")
    return tmp_path / "mine"


def measured(capsys: pytest.CaptureFixture[str], folder: Path, *args: str) -> dict[str, Any]:
    assert main.run(["eval", str(folder), *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_query_is_told_by_itself_the_worst_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = measured(capsys, folder, "--mode", "keyword", "--per-query")["per_query"]
    code = main.run(["eval", str(folder), "--mode", "keyword", "--per-query"])
    lines = capsys.readouterr().out.splitlines()

    assert [(row["id"], row["found"], row["mrr"]) for row in rows] == [("q1", ["Garden.md"], 1.0), ("q2", [], 0.0)]
    assert all(row["ms"] >= 0 for row in rows)
    assert code == 0
    assert [line.split("  ")[-1] for line in lines[-3:]] == ["query", "q2: automobile\ufffd", "q1: tomatoes"]


def test_without_the_option_no_query_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "per_query" not in measured(capsys, folder)


def test_two_configurations_are_compared_query_by_query(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = folder / "keyword.json"
    before.write_text(json.dumps(measured(capsys, folder, "--mode", "keyword", "--per-query")), encoding="utf-8")
    compared = measured(capsys, folder, "--against", str(before))["comparison"]
    same = measured(capsys, folder, "--mode", "keyword", "--against", str(before))["comparison"]

    assert (compared["queries"], compared["against"]) == (2, str(before))
    ndcg = compared["mrr"]
    assert (ndcg["before"], ndcg["now"], ndcg["better"], ndcg["equal"], ndcg["worse"]) == (0.5, 1.0, 1, 1, 0)
    assert {(one["p"], one["equal"]) for one in same.values() if isinstance(one, dict)} == {(1.0, 2)}
    assert main.run(["eval", str(folder), "--against", str(before)]) == 0
    assert "2 queries in both:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 100_000,
        "[]",
        '{"success": true}',
        '{"per_query": {}}',
        '{"per_query": [1]}',
        '{"per_query": [{"id": "q1"}]}',
        '{"per_query": [{"id": 1, "ndcg@10": 1, "mrr": 1, "hit@1": 1, "recall@10": 1}]}',
        '{"per_query": [{"id": "q1", "ndcg@10": NaN, "mrr": 1, "hit@1": 1, "recall@10": 1}]}',
        '{"per_query": [{"id": "q1", "ndcg@10": 1e99, "mrr": 1, "hit@1": 1, "recall@10": 1}]}',
        '{"per_query": [{"id": "other", "ndcg@10": 1, "mrr": 1, "hit@1": 1, "recall@10": 1}]}',
    ],
    ids=lambda text: text[:30],
)
def test_a_file_that_cannot_be_compared_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (folder / "bad.json").write_text(text, encoding="utf-8")

    assert main.run(["eval", str(folder), "--against", str(folder / "bad.json")]) == 2
    assert "error: " in capsys.readouterr().err


def test_times_are_those_of_searching_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the vault was looked at again")

    monkeypatch.setattr(Engine, "freshen", refuse)

    assert measured(capsys, folder)["p50_ms"] > 0


def test_partial_grades_count_in_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = measured(capsys, folder, "--mode", "keyword", "--per-query")["per_query"][0]

    # By hand: 2 / (2 + 0.5 / log2 3), and 3 / (3 + 0.41421 / log2 3).
    assert (found["ndcg@10"], found["ndcg_exp@10"]) == (0.8638, 0.9199)


@pytest.mark.parametrize("grade", ["high", "1e9", "nan", "inf", "100", "1,5", "٣", "--1", ""])
def test_a_grade_that_is_no_small_number_is_refused(folder: Path, grade: str) -> None:
    (folder / "notes.tsv").write_text(f"q1\tGarden.md\t{grade}\n", encoding="utf-8")

    with pytest.raises(BadInput, match="isn't a number from -99 to 99"):
        evaluation.read_collection(folder)


def test_a_comparison_says_what_chance_would_do() -> None:
    better = evaluation.compare_pairs([0.1] * 10, [0.3] * 10)
    mixed = evaluation.compare_pairs([0.1, 0.9] * 5, [0.9, 0.1] * 5)

    # By hand: of 1,024 choices of signs two are as large.
    assert better.p == pytest.approx(2 / 1024, abs=0.0015)
    assert (better.better, better.low, better.high) == (10, pytest.approx(0.2), pytest.approx(0.2))
    assert (mixed.p, mixed.better, mixed.worse) == (1.0, 5, 5)
    assert evaluation.compare_pairs([0.1] * 10, [0.3] * 10) == better


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_a_comparison_counts_each_query_once(pairs: list[tuple[float, float]]) -> None:
    one = evaluation.compare_pairs([before for before, _ in pairs], [now for _, now in pairs])

    assert one.better + one.equal + one.worse == len(pairs)
    assert 0 < one.p <= 1
    assert -1 <= one.low <= one.high <= 1
