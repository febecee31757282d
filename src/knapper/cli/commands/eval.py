"""Measure search against a judged collection, and compare two such measurements."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

import click

from knapper import app
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode, one_line
from knapper.cli.render import indexing
from knapper.config import Vault
from knapper.errors import BadInput
from knapper.index.documents import Filter
from knapper.index.search import SearchMode, SearchRequest
from knapper.jsontypes import is_list, is_object
from knapper.system.arrays import np
from knapper.tools import shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMPARED: Final = ("ndcg@10", "mrr", "hit@1", "recall@10")
_SAMPLES: Final = 10_000
_BLOCK: Final = 500
"""Samples that are drawn at a time, which limits the memory for many queries."""
_INTERVAL: Final = (2.5, 97.5)
_TIE: Final = 1e-9
_HINT: Final = "make it with `knap eval DIR --per-query --json > FILE`"
Measures = Mapping[str, Mapping[str, float]]
"""By query, values by measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one measure differs between two configurations, query by query."""

    before: float
    now: float
    low: float
    """Of the 95 % confidence interval of the mean difference."""
    high: float
    p: float
    """Probability of at least such a mean difference if the configurations were alike."""
    better: int
    """Queries that are better now."""
    equal: int
    worse: int

    def as_dict(self) -> dict[str, float]:
        """Return it in the shape of ``--json``."""
        rounded = {name: round(value, 4) for name, value in asdict(self).items()}
        return {**rounded, "difference": round(self.now - self.before, 4)}


def read_measures(file: Path) -> Measures:
    """Read the measures of each query from an earlier result.

    Raises:
        BadInput: The file can't be read, or holds no measures of queries.
    """
    try:
        result: object = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it isn't UTF-8 text"
        raise BadInput(f"{file} can't be read: {cause}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} isn't JSON", hint=_HINT) from error
    rows = result.get("per_query") if is_object(result) else None
    if not is_list(rows):
        raise BadInput(f"{file} holds no measures of queries", hint=_HINT)
    measures: dict[str, Mapping[str, float]] = {}
    for number, row in enumerate(rows, 1):
        fields = row if is_object(row) else {}
        values = {
            name: float(value)
            for name in COMPARED
            if isinstance(value := fields.get(name), int | float) and not isinstance(value, bool) and 0 <= value <= 1
        }
        if not isinstance(fields.get("id"), str) or len(values) < len(COMPARED):
            raise BadInput(f"{file}: query {number} has no id, or lacks a measure from 0 to 1", hint=_HINT)
        measures[str(fields["id"])] = values
    return measures


def compare_measures(before: Measures, now: Measures) -> dict[str, Difference]:
    """Compare the measures of the queries that both have.

    Raises:
        BadInput: They have none in common.
    """
    shared = [query for query in now if query in before]
    if not shared:
        raise BadInput("the results have no query in common", hint="compare results of the same collection")
    return {
        name: compare_pairs([before[query][name] for query in shared], [now[query][name] for query in shared])
        for name in COMPARED
    }


def compare_pairs(before: Sequence[float], now: Sequence[float]) -> Difference:
    """Compare values in pairs: by a randomization test, and with an interval by bootstrap; the same at each call.

    Source: Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation", CIKM 2007.
    """
    differences = np.asarray(now, np.float64) - np.asarray(before, np.float64)
    mean = float(differences.mean())
    generator = np.random.default_rng(0)
    count = len(differences)
    flipped: list[NDArray[np.float64]] = []  # means of the differences with random signs
    resampled: list[NDArray[np.float64]] = []  # means of differences drawn with repetition
    for _ in range(_SAMPLES // _BLOCK):
        signs = 1 - 2 * generator.integers(0, 2, (_BLOCK, count), np.int8)
        flipped.append(signs @ differences / count)
        resampled.append(differences[generator.integers(0, count, (_BLOCK, count))].mean(axis=1))
    low, high = np.percentile(np.concatenate(resampled), _INTERVAL)
    as_large = int((np.abs(np.concatenate(flipped)) >= abs(mean) - _TIE).sum())
    return Difference(
        before=float(np.mean(before)),
        now=float(np.mean(now)),
        low=float(low),
        high=float(high),
        p=(1 + as_large) / (1 + _SAMPLES),
        better=int((differences > _TIE).sum()),
        equal=int((np.abs(differences) <= _TIE).sum()),
        worse=int((differences < -_TIE).sum()),
    )


def render_differences(differences: Mapping[str, Difference], queries: int) -> str:
    """Lay out a comparison in columns."""
    header = f"{'':<10}{'before':>8}{'now':>8}{'change':>9}  {'95 % interval':<19}{'p':>7}  better/equal/worse"
    lines = [
        f"{name:<10}{one.before:>8.4f}{one.now:>8.4f}{one.now - one.before:>+9.4f}"
        f"  {f'{one.low:+.4f} to {one.high:+.4f}':<19}{one.p:>7.4f}  {one.better}/{one.equal}/{one.worse}"
        for name, one in differences.items()
    ]
    return "\n".join([f"{queries} queries in both:", header, *lines])


_COLUMNS = 3
_GRADE: Final = re.compile(r"-?\d{1,2}(?:\.\d{1,6})?", re.ASCII)
_LAYOUT = 'it holds vault/, queries.jsonl ({"_id", "text"} a line) and notes.tsv (query id, note path, grade)'


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What `knap eval` measures with."""

    vault: Path
    queries: Mapping[str, str]
    """Text by id; those that have a judgement."""
    grades: Mapping[str, Mapping[str, float]]
    """By query, grade by note: 0 is no answer; a fraction is a part of one."""


def read_collection(folder: Path) -> Collection:
    """Read a collection.

    Raises:
        BadInput: Something is missing, or a line can't be used; the message names file and line.
    """
    vault = folder / "vault"
    if not vault.is_dir():
        raise BadInput(f"{folder} is no collection: there is no {vault}", hint=_LAYOUT)
    queries = _read_queries(folder / "queries.jsonl")
    grades = _read_grades(folder / "notes.tsv", queries, vault)
    if not grades:
        raise BadInput(f"{folder / 'notes.tsv'} judges nothing", hint=_LAYOUT)
    judged = {query: text for query, text in queries.items() if query in grades}
    return Collection(vault=vault, queries=judged, grades=grades)


def _read_queries(file: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in _read_lines(file):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _line_error(file, number, "it isn't JSON") from error
        if not is_object(row):
            raise _line_error(file, number, "it isn't an object")
        name, text = row.get("_id"), row.get("text")
        if not isinstance(name, str) or not isinstance(text, str):
            raise _line_error(file, number, "'_id' and 'text' must be texts")
        if name in queries:
            raise _line_error(file, number, f"the query '{name}' stands there twice")
        queries[name] = text
    return queries


def _read_grades(file: Path, queries: Mapping[str, str], vault: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    for number, line in _read_lines(file):
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise _line_error(file, number, f"it has {len(columns)} columns, not {_COLUMNS}")
        query, note, grade = columns
        if query not in queries:
            raise _line_error(file, number, f"there is no query '{query}'")
        if not _GRADE.fullmatch(grade.strip()):
            raise _line_error(file, number, f"the grade '{grade}' isn't a number from -99 to 99")
        if not (vault / note).is_file():
            raise _line_error(file, number, f"there is no note '{note}' in {vault}")
        grades.setdefault(query, {})[note] = float(grade)
    return grades


def _read_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it isn't UTF-8 text"
        raise BadInput(f"{file} can't be read: {cause}", hint=_LAYOUT) from error


def _line_error(file: Path, number: int, cause: str) -> BadInput:
    return BadInput(f"{file}:{number}: {cause}", hint=_LAYOUT)


def linear_gain(grade: float) -> float:
    """Return the gain of a note by its grade, as TREC and BEIR count it; none for a grade of 0 or below."""
    return max(grade, 0.0)


def exponential_gain(grade: float) -> float:
    """Return the gain of a note by its grade, as web search counts it: a partial answer is worth much less.

    Source: Burges et al., "Learning to Rank using Gradient Descent", ICML 2005.
    """
    return 2.0 ** max(grade, 0.0) - 1


def ndcg(
    ranking: Sequence[str], grades: Mapping[str, float], k: int, gain: Callable[[float], float] = linear_gain
) -> float:
    """Return the normalised discounted cumulative gain of the first *k*.

    A ranking ``["b", "a"]`` with grades ``{"a": 2, "b": 1}`` gives (1 + 2 / log2 3) / (2 + 1 / log2 3) = 0.86.

    Args:
        ranking: Best first, each once.
        grades: By what is ranked; what is missing has grade 0.
        k: How far down to look, at least 1.
        gain: Of a grade.

    Returns:
        0 to 1; 0 where nothing has a grade above 0.

    Source: Järvelin and Kekäläinen, TOIS 2002.
    """
    ideal = _cumulative_gain(sorted((gain(grade) for grade in grades.values()), reverse=True)[:k])
    return _cumulative_gain([gain(grades.get(name, 0)) for name in ranking[:k]]) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, float]) -> float:
    """Return one divided by the first relevant place; 0 where there is none."""
    return next((1 / place for place, name in enumerate(ranking, 1) if grades.get(name, 0) > 0), 0.0)


def recall(ranking: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Return the share of all that is relevant which stands among the first *k*; 0 where nothing is."""
    relevant = {name for name, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def hit(ranking: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Return 1 where something relevant stands among the first *k*, else 0."""
    return 1.0 if any(grades.get(name, 0) > 0 for name in ranking[:k]) else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a *share* of the values doesn't exceed, by the nearest rank; 0 where there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def measure_query(ranking: Sequence[str], grades: Mapping[str, float]) -> dict[str, float]:
    """Return every measure of one query."""
    return {
        "ndcg@5": ndcg(ranking, grades, 5),
        "ndcg@10": ndcg(ranking, grades, 10),
        "ndcg_exp@10": ndcg(ranking, grades, 10, exponential_gain),
        "mrr": reciprocal_rank(ranking, grades),
        "hit@1": hit(ranking, grades, 1),
        "recall@10": recall(ranking, grades, 10),
    }


def measure_queries(
    rankings: Mapping[str, Sequence[str]], judged: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return every measure of each judged query; one without a ranking counts as 0."""
    return {query: measure_query(rankings.get(query, ()), grades) for query, grades in judged.items()}


def average_metrics(
    rankings: Mapping[str, Sequence[str]], judged: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Average every measure over the judged queries; one without a ranking counts as 0."""
    rows = measure_queries(rankings, judged).values()
    names = measure_query((), {})
    return {name: fmean(row[name] for row in rows) if rows else 0.0 for name in names}


def _cumulative_gain(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


_METRIC_LABELS = {
    "queries": "queries",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "ndcg_exp@10": "nDCG@10, 2^grade - 1",
    "mrr": "MRR",
    "hit@1": "hit@1",
    "recall@10": "recall@10",
    "p50_ms": "p50 (ms)",
    "p95_ms": "p95 (ms)",
}


def render_metrics(result: Mapping[str, object]) -> str:
    """Lay them out in columns."""
    return "\n".join(
        f"{label:<20}  {_format_value(result[name]):>8}"
        for name, label in _METRIC_LABELS.items()
        # Where no grade is a partial one, both gains give the same.
        if not (name == "ndcg_exp@10" and result[name] == result["ndcg@10"])
    )


def render_queries(rows: Sequence[Mapping[str, object]]) -> str:
    """Lay out the measures of each query in columns, the worst first."""
    ordered = sorted(rows, key=lambda row: float(str(row["ndcg@10"])))
    lines = [
        f"{_format_value(row['ndcg@10']):>8}  {_format_value(row['mrr']):>8}  {_format_value(row['recall@10']):>9}"
        f"  {one_line(str(row['id']))}: {one_line(str(row['text']))}"
        for row in ordered
    ]
    return "\n".join([f"{'nDCG@10':>8}  {'MRR':>8}  {'recall@10':>9}  query", *lines])


def _format_value(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


_DEPTH = 10
"""Notes that are asked for; no measure looks further down."""


@click.command(
    "eval",
    epilog=options.examples(
        ("knap eval mine", "mine/vault, mine/queries.jsonl and mine/notes.tsv"),
        ("knap eval mine --mode keyword", "by words only"),
        ("knap eval mine --per-query", "each query by itself, the worst first"),
        ("knap eval mine --per-query --json > a.json", "to compare with another configuration"),
        ("knap eval mine --mode keyword --against a.json", "query by query, with a test"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--mode", type=click.Choice(shapes.SEARCH_MODES), default="hybrid", show_default=True, help="Ranking method."
)
@click.option("--per-query", is_flag=True, help="Also show the measures of each query.")
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare with the result of another configuration, made by --per-query --json.",
)
@options.pass_options
def command(
    global_options: GlobalOptions, folder: Path, mode: SearchMode, *, per_query: bool, against: Path | None
) -> ExitCode:
    """Measure how well search finds judged notes.

    DIR contains `vault/`, `queries.jsonl` (one object {"_id", "text"} per line) and `notes.tsv` (query id, note path
    and grade, separated by tabs). The index is kept apart from those of your vaults, so that the next run is faster.
    """
    before = read_measures(against) if against else None
    collected = read_collection(folder)
    rankings, times = _search_collection(global_options, folder, collected, mode)
    by_query = {
        # Rounded as in the result that another one is compared with.
        query: {name: round(value, 4) for name, value in values.items()}
        for query, values in measure_queries(rankings, collected.grades).items()
    }
    rows = [
        {
            "id": query,
            "text": collected.queries[query],
            **values,
            "ms": round(times[query], 2),
            "found": list(rankings[query]),
        }
        for query, values in by_query.items()
    ]
    result: dict[str, object] = {
        "success": True,
        "mode": mode,
        "queries": len(collected.queries),
        **{name: round(value, 4) for name, value in average_metrics(rankings, collected.grades).items()},
        "p50_ms": round(percentile(list(times.values()), 0.5), 2),
        "p95_ms": round(percentile(list(times.values()), 0.95), 2),
    }
    texts = [render_metrics(result)]
    if per_query:
        result["per_query"] = rows
        texts.append(render_queries(rows))
    if before is not None:
        differences = compare_measures(before, by_query)
        shared = sum(query in before for query in by_query)
        result["comparison"] = {
            "against": str(against),
            "queries": shared,
            **{name: one.as_dict() for name, one in differences.items()},
        }
        texts.append(render_differences(differences, shared))
    output.write_either(global_options, result, "\n\n".join(texts))
    return ExitCode.OK


def _search_collection(
    global_options: GlobalOptions, folder: Path, collected: Collection, mode: SearchMode
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Index the collection's vault, and run every query; return the notes found, and the times in milliseconds."""
    config = setup.read_settings(global_options)
    vault = Vault(name=folder.resolve().name, path=collected.vault.resolve())
    eval_settings = dataclasses.replace(config, choice=vault, state_dir=config.state_dir / "eval")
    with app.open_vault(eval_settings) as context:
        with indexing.show_progress(global_options) as on_progress:
            context.index.refresh(progress=on_progress)
            context.index.embed(progress=on_progress)
        rankings: dict[str, list[str]] = {}
        times: dict[str, float] = {}
        where = context.restrict(Filter())
        # The index was just brought up to date, so the times are those of searching alone. The first query, which reads
        # the vectors from the disk, is run twice.
        first = next(iter(collected.queries), None)
        for name, text in [*([(first, collected.queries[first])] if first else []), *collected.queries.items()]:
            question = SearchRequest(
                text=text, mode=mode, limit=_DEPTH, per_note=1, where=where, merges_copies=True, reranks=True
            )
            start = time.perf_counter()
            hits = context.index.search(question).hits
            times[name] = (time.perf_counter() - start) * 1000
            rankings[name] = list(dict.fromkeys(row.note for hit in hits for row in (hit.row, *hit.copies)))
        return rankings, times
