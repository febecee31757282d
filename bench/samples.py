"""Make retrievals whose worth is known, and tell how well Code Mode's score parts the good from the bad."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean

from bench import ir
from bench.frame import Goal, Row, say
from bench.judged import Collection, note_of
from knapper.codemode import evidence, retrieval, scoring
from knapper.codemode.evidence import ReportedCitation
from knapper.codemode.retrieval import AttemptRunner
from knapper.codemode.scoring import InformationNeed, Score, ScoreWeights, Vocabulary
from knapper.codemode.tasks import RetrievalOptions, Thresholds

_GOAL = Goal(limit=0.8, sense="at least")
_CHARS = 2_000
_FEW = 5
_STEPS = [step / 20 for step in range(2, 17)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Hold a retrieval whose worth is known."""

    task: str
    half: int
    kind: str
    is_good: bool
    score: Score


def make(collection: Collection, strangers: Sequence[str], most: int) -> Iterator[Sample]:
    """Make retrievals of all sorts for some queries, and score them as Code Mode does."""
    say(f"{collection.name}: scoring")
    rng = random.Random(collection.name)
    context = collection.context
    vocabulary = Vocabulary(context.index.store)
    trials = AttemptRunner(context=context, options=RetrievalOptions(), vocabulary=vocabulary)
    files = [str(file.path) for file in context.view.list_files() if str(file.path).endswith(".md")]
    ids = rng.sample(sorted(collection.queries), min(most, len(collection.queries)))
    for query in ids:
        text, source = collection.queries[query], collection.sources[query]

        def found(asked: str, source: str = source) -> list[str]:
            return [path for _, path in retrieval.rank_notes([context], asked) if path != source]

        wanted = scoring.analyze_task(text, vocabulary, lambda asked: retrieval.rank_notes([context], asked))
        other = collection.queries[rng.choice([one for one in ids if one != query])]
        for kind, paths in _retrievals(text, other, found, rng, files, vocabulary).items():
            good = any(note_of(path) in collection.wanted[query] for path in paths)
            yield Sample(task=query, half=ir.half(query), kind=kind, is_good=good, score=_score(trials, wanted, paths))
    for text in rng.sample(list(strangers), min(most // 2, len(strangers))):
        wanted = scoring.analyze_task(text, vocabulary, lambda asked: retrieval.rank_notes([context], asked))
        paths = [path for _, path in retrieval.rank_notes([context], text)][:_FEW]
        score = _score(trials, wanted, paths)
        yield Sample(task=text, half=ir.half(text), kind="not there", is_good=False, score=score)


def _retrievals(
    text: str,
    other: str,
    found: Callable[[str], list[str]],
    rng: random.Random,
    files: list[str],
    vocabulary: Vocabulary,
) -> dict[str, list[str]]:
    words = text.split()
    by_weight = sorted(words, key=lambda word: -sum(term.weight for term in vocabulary.terms(word)))
    ranked = found(text)
    return {
        "first five": ranked[:5],
        "first two": ranked[:2],
        "first": ranked[:1],
        "next five": ranked[5:10],
        "far down": ranked[20:25],
        "half of the words": found(" ".join(rng.sample(words, max(len(words) // 2, 1))))[:5],
        "two rare words": found(" ".join(by_weight[:2]))[:5],
        "three common words": found(" ".join(by_weight[-3:]))[:5],
        "another task": found(other)[:5],
        "any notes": rng.sample(files, 5),
    }


def _score(trials: AttemptRunner, wanted: InformationNeed, paths: Sequence[str]) -> Score:
    citations = evidence.check_citations(
        trials.open_vault, [ReportedCitation(path=path, start=0, stop=_CHARS) for path in paths]
    ).citations
    texts = [one.text for one in citations]
    parts = [f"## {one.path}\n{one.text}" for one in citations]
    return trials.score("\n\n".join(parts), texts, citations, wanted)


def rows(samples: Mapping[str, Sequence[Sample]]) -> Iterator[Row]:
    low = Thresholds().low_score
    for half, label in ((1, "reported half"), (0, "chosen on")):
        each = {name: auc(_of(own, half), ScoreWeights()) for name, own in samples.items()}
        goal = _GOAL if half else None
        yield Row(
            what=f"score: AUC, mean of the collections, {label}", values=[mean(each.values())], digits=3, goal=goal
        )
        for name, value in each.items():
            yield Row(what=f"score: AUC, {name}, {label}", values=[value], digits=3)
    reported = {name: _of(own, 1) for name, own in samples.items()}
    for name, own in reported.items():
        yield Row(what=f"score: the better of two for one task, {name}", values=[_within(own)], digits=3)
    every = [one for own in reported.values() for one in own]
    missed = mean(one.score.total < low for one in every if one.is_good)
    passed = mean(one.score.total >= low for one in every if not one.is_good)
    alien = mean(one.score.total >= low for one in every if one.kind == "not there")
    yield Row(what=f"score: good retrievals below {low:g}", values=[missed], digits=2)
    yield Row(what=f"score: bad retrievals above {low:g}", values=[passed], digits=2)
    yield Row(what=f"score: of those, the vault knows nothing of the task: above {low:g}", values=[alien], digits=2)


def choose(samples: Mapping[str, Sequence[Sample]]) -> tuple[ScoreWeights, float]:
    """Find the weights with the best mean AUC on the half that chooses; none below a tenth."""
    best = (ScoreWeights(), 0.0)
    for overlap, diversity, boilerplate in product(_STEPS, _STEPS, (0.1, 0.2, 0.3)):
        coverage = round(1 - overlap - diversity, 4)
        if coverage < _STEPS[0]:
            continue
        weights = ScoreWeights(overlap=overlap, coverage=coverage, diversity=diversity, boilerplate=boilerplate)
        reached = mean(auc(_of(own, 0), weights) for own in samples.values())
        if reached > best[1]:
            best = (weights, reached)
    return best


def auc(samples: Sequence[Sample], weights: ScoreWeights) -> float:
    """Give the chance that a good retrieval scores higher than a bad one; a tie is half."""
    good = [total(one.score, weights) for one in samples if one.is_good]
    bad = [total(one.score, weights) for one in samples if not one.is_good]
    return _higher(good, bad)


def total(score: Score, weights: ScoreWeights) -> float:
    return scoring.combine_parts(score.overlap, score.coverage, score.diversity, score.boilerplate, weights)


def _within(samples: Sequence[Sample]) -> float:
    """Give the chance that a good retrieval scores higher than a bad one for the same task."""
    by_task: dict[str, list[Sample]] = {}
    for one in samples:
        by_task.setdefault(one.task, []).append(one)
    found = [
        _higher([a.score.total for a in own if a.is_good], [b.score.total for b in own if not b.is_good])
        for own in by_task.values()
        if len({one.is_good for one in own}) == 2
    ]
    return mean(found)


def _higher(good: Sequence[float], bad: Sequence[float]) -> float:
    ranked = sorted(bad)
    won = sum(bisect_left(ranked, one) + bisect_right(ranked, one) for one in good)
    return won / 2 / (len(good) * len(bad))


def _of(samples: Sequence[Sample], half: int) -> list[Sample]:
    return [one for one in samples if one.half == half]
