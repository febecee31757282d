"""Join what a task finds with what the note that is open says, before any text is read."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from knapper.index import ranking
from knapper.index.ports import Look
from knapper.index.ranking import Hit, Ranking
from knapper.vault.paths import NotePath

Why = Literal["task", "current_note", "linked"]
_WEIGHTS: Final[Mapping[Why, float]] = {"task": 1.0, "current_note": 0.35, "linked": 0.1}
"""What a note's place in each ranking counts; the task leads."""
POOL: Final = 3
"""How many times the notes that are wanted each ranking hands on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Hold the note that is open while something is asked; what takes time is asked for when it is needed."""

    path: NotePath
    linked: Callable[[], Collection[NotePath]]
    """The notes that it leads to, or that lead to it."""
    words: Callable[[], str]
    """What it says, where no vectors tell that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Hold a chunk of a note that matters, and why it does."""

    hit: Hit
    score: float
    why: tuple[Why, ...]


@dataclass(slots=True, kw_only=True)
class _Note:
    """Hold what the rankings say of a note."""

    best: Ranking
    """The first that has it, whose chunk of it is shown."""
    score: float = 0.0
    why: list[Why] = field(default_factory=list[Why])


def joined(
    look: Look, rankings: Mapping[Why, Ranking], current: NotePath | None, linked: Collection[NotePath], *, limit: int
) -> tuple[Related, ...]:
    """Join rankings by their scores, each as a share of its best; what is linked with the current note comes before."""
    notes: dict[int, _Note] = {}
    for why, one in rankings.items():
        found = [note for note in one.best(POOL * limit) if one.held.get(note) or look.first(note) is not None]
        best = max((one.notes[note] for note in found), default=0.0)
        for note in found if best > 0 else ():
            seen = notes.setdefault(note, _Note(best=one))
            seen.score += _WEIGHTS[why] * one.notes[note] / best
            seen.why.append(why)
    paths = look.paths(notes)
    for note, path in paths.items():
        if path in linked:
            notes[note].score += _WEIGHTS["linked"]
            notes[note].why.append("linked")
    ranked = sorted((note for note in paths if paths[note] != current), key=lambda i: (-notes[i].score, paths[i]))
    hits = _hits(look, {note: notes[note].best for note in ranked[:limit]})
    return tuple(
        Related(hit=hits[note], score=notes[note].score, why=tuple(notes[note].why))
        for note in ranked[:limit]
        if note in hits
    )


def _hits(look: Look, wanted: Mapping[int, Ranking]) -> dict[int, Hit]:
    """Read the best chunk of each note, by the ranking that it is wanted from."""
    by_ranking: defaultdict[int, list[int]] = defaultdict(list)
    for note, one in wanted.items():
        by_ranking[id(one)].append(note)
    found: dict[int, Hit] = {}
    for notes in by_ranking.values():
        one = wanted[notes[0]]
        shown = ranking.texts(look, one, notes)
        for hit in ranking.hits(look, one, shown, limit=len(notes), per_note=1):
            found[look.note(hit.row.id)] = hit
    return found
