"""Hold questions to a person to what they promise: kept, asked once, answered once, and by a person alone."""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from knapper.codemode import checkpoints
from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointStore
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.vault.access import Grants

NOW = dt.datetime(2026, 3, 14, 9, 26, tzinfo=dt.UTC)
PERSON = Grants(client="cli", kind="person")
GO_ON = CheckpointAnswer(choice="continue")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[CheckpointStore]:
    made = checkpoints.open_checkpoints(tmp_path, lambda: NOW)
    yield made
    made.shut()


def test_a_question_outlasts_the_process(tmp_path: Path, kept: CheckpointStore) -> None:
    asked = kept.ask("run", "node", "task", {"context": "what was found", "score": 0.2})
    other = checkpoints.open_checkpoints(tmp_path, lambda: NOW)

    assert other.find("run", "node", "task") == asked
    assert other.waiting("run") == (asked,)
    assert asked.found == {"context": "what was found", "score": 0.2}
    assert asked.asked_at == "2026-03-14T09:26:00+00:00"
    other.shut()


def test_the_same_question_is_asked_once(kept: CheckpointStore) -> None:
    first = kept.ask("run", "node", "task", {"score": 0.2})

    assert kept.ask("run", "node", "task", {"score": 0.4}) == first
    assert len(kept.waiting()) == 1


def test_the_oldest_comes_first_also_of_those_asked_in_the_same_second(kept: CheckpointStore) -> None:
    asked = [kept.ask("run", f"node {number}", "task", {}).id for number in range(8)]

    assert [one.id for one in kept.waiting("run")] == asked


@pytest.mark.parametrize("other", [("run 2", "node", "task"), ("run", "node 2", "task"), ("run", "node", "task 2")])
def test_another_run_node_or_task_is_another_question(kept: CheckpointStore, other: tuple[str, str, str]) -> None:
    first = kept.ask("run", "node", "task", {})

    assert kept.find(*other) is None
    assert kept.ask(*other, {}).id != first.id


@pytest.mark.parametrize(
    "answer",
    [
        GO_ON,
        CheckpointAnswer(choice="stop"),
        CheckpointAnswer(choice="use", notes=("A.md", "Ü/日.md")),
        CheckpointAnswer(choice="use", text="So."),
    ],
)
def test_an_answer_is_kept_with_who_gave_it(kept: CheckpointStore, answer: CheckpointAnswer) -> None:
    asked = kept.ask("run", "node", "task", {})

    found = kept.answer(asked.id, answer, PERSON)

    assert found == kept.find("run", "node", "task")
    assert (found.answer, found.answered_by, found.answered_at) == (answer, "cli", "2026-03-14T09:26:00+00:00")
    assert kept.waiting() == ()
    shown = found.as_dict()["answer"]
    assert isinstance(shown, dict)
    assert shown["choice"] == answer.choice


@pytest.mark.parametrize("kind", ["agent", "mcp"])
def test_only_a_person_may_answer(kept: CheckpointStore, kind: str) -> None:
    asked = kept.ask("run", "node", "task", {})
    grants = Grants(client=kind, kind=kind)  # pyright: ignore[reportArgumentType] - one of its kinds

    with pytest.raises(RefusedError) as caught:
        _ = kept.answer(asked.id, GO_ON, grants)

    assert caught.value.code == "needs_person"
    assert kept.waiting() == (asked,)


def test_an_answer_cant_be_changed(kept: CheckpointStore) -> None:
    asked = kept.ask("run", "node", "task", {})
    _ = kept.answer(asked.id, GO_ON, PERSON)

    with pytest.raises(ConflictError):
        _ = kept.answer(asked.id, CheckpointAnswer(choice="stop"), PERSON)

    assert kept.find("run", "node", "task") is not None


def test_of_several_who_answer_at_once_one_is_heard(kept: CheckpointStore) -> None:
    asked = kept.ask("run", "node", "task", {})

    def answer(number: int) -> bool:
        try:
            return bool(kept.answer(asked.id, CheckpointAnswer(choice="use", text=str(number)), PERSON))
        except KnapError:
            return False

    with ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(answer, range(8)))

    assert sum(heard) == 1
    found = kept.find("run", "node", "task")
    assert found is not None
    assert found.answer == CheckpointAnswer(choice="use", text=str(heard.index(True)))


@pytest.mark.parametrize(
    "answer",
    [
        CheckpointAnswer(choice="whatever"),  # pyright: ignore[reportArgumentType] - that is the point
        CheckpointAnswer(choice="use"),
        CheckpointAnswer(choice="use", text=" \n"),
        CheckpointAnswer(choice="use", notes=("A.md",) * 51),
        CheckpointAnswer(choice="continue", text="x" * 100_001),
    ],
    ids=lambda answer: f"{answer.choice} {len(answer.notes)} {len(answer.text)}",
)
def test_an_answer_that_says_nothing_or_too_much_is_refused(kept: CheckpointStore, answer: CheckpointAnswer) -> None:
    asked = kept.ask("run", "node", "task", {})

    with pytest.raises(BadInput):
        _ = kept.answer(asked.id, answer, PERSON)

    assert kept.waiting() == (asked,)


def test_what_was_never_asked_cant_be_answered(kept: CheckpointStore) -> None:
    with pytest.raises(NotFound) as caught:
        _ = kept.answer("x" * 1_000, GO_ON, PERSON)

    assert len(caught.value.message) < 200


def test_questions_go_with_their_run(kept: CheckpointStore) -> None:
    _ = kept.ask("run", "a", "task", {})
    _ = kept.ask("run", "b", "task", {})
    other = kept.ask("other", "a", "task", {})

    assert kept.forget("run") == 2
    assert kept.waiting() == (other,)
