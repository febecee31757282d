"""Go on from a question that a person was asked, with what they have decided."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from knapper.codemode import citing, reading
from knapper.codemode.checkpoints import Answer, Checkpoint
from knapper.codemode.results import Written
from knapper.codemode.scoring import Needs, Score
from knapper.codemode.tasks import Attempt, Retrieval
from knapper.codemode.trials import Trials, reads_of
from knapper.codemode.witness import Read
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue


def recall(trials: Trials, wanted: Needs, asked: Checkpoint, search_again: Callable[[], Retrieval]) -> Retrieval:
    """Give what a person has decided on, or what waits for their word; no model is asked.

    Args:
        trials: Reads and scores.
        wanted: What the task asks for.
        asked: The question.
        search_again: Searches, where notes that the context rests on have changed, or aren't seen any more.
    """
    answer = asked.answer
    if answer is not None and answer.choice == "stop":
        notes = ("a person said not to go on with this",)
        return Retrieval(context="", tier="C", state="stopped", checkpoint=asked.id, notes=notes)
    if answer is not None and answer.choice == "use":
        return _used(trials, wanted, answer, asked.id)
    kept = replace(_kept(trials, asked.found) or search_again(), tier="C", checkpoint=asked.id)
    if answer is None:
        return replace(kept, state="waiting", notes=(*kept.notes, "a person is asked"))
    return replace(kept, notes=(*kept.notes, "a person said to go on with what there is"))


def _used(trials: Trials, wanted: Needs, answer: Answer, checkpoint: str) -> Retrieval:
    """Take the notes that a person has named, and their own words."""
    checked = citing.check(trials.open_vault, [Written(path=path) for path in answer.notes])
    said = answer.text.strip()
    parts = [f"## What the person says\n{said}"] if said else []
    parts += [f"## {one.path}\n{one.text.strip()}" for one in checked.citations]
    context = "\n\n".join(parts)
    score = trials.score(context, [said, *(one.text for one in checked.citations)], checked.citations, wanted)
    return Retrieval(
        context=context,
        citations=checked.citations,
        dropped=checked.dropped,
        score=score.total,
        parts=score,
        tier="C",
        reads=reads_of(checked.citations),
        attempts=(Attempt(step="person", score=score),),
        checkpoint=checkpoint,
        notes=("a person has named what to use",),
    )


def _kept(trials: Trials, found: Mapping[str, JSONValue]) -> Retrieval | None:
    """Read what was kept with the question; None where it rests on no note, or on one that isn't as it was."""
    reads = tuple(Read(**cast("dict[str, str]", one)) for one in _dicts(found, "reads"))
    if not reads or not all(_is_same(trials, one) for one in reads):
        return None
    written = [
        Written(
            path=str(one["path"]),
            vault=str(one["vault"]),
            start=cast("int", one["snip_start"]),
            stop=cast("int", one["snip_end"]),
        )
        for one in _dicts(found, "citations")
    ]
    parts = cast("Mapping[str, float]", found["parts"])
    score = Score(
        total=cast("float", found["score"]),
        overlap=parts["overlap"],
        coverage=parts["coverage"],
        diversity=parts["diversity"],
        boilerplate=parts["boilerplate"],
    )
    return Retrieval(
        context=str(found["context"]),
        citations=citing.check(trials.open_vault, written).citations,
        score=score.total,
        parts=score,
        script=str(found["script"]),
        reads=reads,
        used_tools=bool(found["used_tools"]),
        used_outside=bool(found.get("used_outside")),
    )


def _is_same(trials: Trials, read: Read) -> bool:
    try:
        note = reading.note(trials.open_vault(read.vault), read.path)
    except KnapError:
        return False
    return note is not None and note.hash == read.hash


def _dicts(found: Mapping[str, JSONValue], name: str) -> list[dict[str, JSONValue]]:
    values = found[name]
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
