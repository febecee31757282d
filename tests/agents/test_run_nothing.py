"""A node that found nothing rests on all notes: a new one may say what it looked for."""

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.runs.engine import RetrievalRequest
from knapper.agents.runs.model import ALL_NOTES, RetrievedContext, RunLimits, SourceRef
from tests.agents import run_world
from tests.agents.run_world import Brain, Part, World

Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path) -> Generator[Make]:
    made: list[World] = []

    def one(brain: Brain | None = None) -> World:
        made.append(run_world.world(tmp_path / str(len(made)), brain or Brain()))
        made[-1].context.index.refresh()
        return made[-1]

    yield one
    for world in made:
        run_world.shut(world)


def test_a_new_note_makes_it_stale_and_nothing_else(make: Make) -> None:
    world = make(Brain(plans={"T": [Part("a"), Part("zeta")]}))
    run = world.run("T")
    zeta = next(node for node in world.runs.show(run.id).nodes if node.task == "zeta")
    before = world.stale(run)
    world.write("Z.md", "# Z\n\nZeta is new.\n")

    assert before == {}
    assert world.stale(run) == {zeta.id: [ALL_NOTES]}
    again = world.go_on(run.id, replay="stale")
    assert world.finder.asked == ["zeta"]
    assert ("answer", "a") not in world.brain.asked
    assert {one.path for one in world.node(again, zeta.id).sources} == {"Z.md"}
    assert world.stale(run) == {}


@pytest.mark.parametrize("change", ["changed", "gone", "moved"])
def test_any_note_that_is_not_as_it_was_counts(make: Make, change: str) -> None:
    world = make()
    run = world.run("zeta")
    note = world.vault.root / "A.md"
    if change == "changed":
        world.write("A.md", "# A\n\nZeta, too.\n")
    elif change == "gone":
        note.unlink()
    else:
        _ = note.rename(world.vault.root / "Zeta.md")

    assert world.stale(run) == {"root": [ALL_NOTES]}


def test_what_is_no_note_or_saved_anew_as_it_was_does_not_count(make: Make) -> None:
    world = make()
    run = world.run("zeta")
    world.write("picture.svg", "<svg/>")
    world.write("A.md", world.vault.text("A.md"))

    assert world.stale(run) == {}


def test_the_cache_gives_its_answer_only_while_all_notes_are_as_they_were(make: Make) -> None:
    world = make()
    _ = world.run("zeta")
    same = world.run("zeta")
    world.write("Z.md", "# Z\n\nZeta is new.\n")
    anew = world.run("zeta")

    assert [world.node(run, "root").cached for run in (same, anew)] == [True, False]
    assert {one.path for one in world.node(anew, "root").sources} == {"Z.md"}


def test_a_run_that_goes_on_looks_again_for_what_was_found_nowhere(make: Make) -> None:
    world = make(Brain(plans={"T": [Part("zeta"), Part("a")]}))

    def fail(kind: str, _task: str) -> None:
        if kind == "answer":
            world.brain.before = None
            raise KeyboardInterrupt

    world.brain.before = fail
    run = world.begin("T", RunLimits(parallel=1))
    with pytest.raises(KeyboardInterrupt):
        _ = world.go_on(run.id)
    world.write("Z.md", "# Z\n\nZeta is new.\n")
    _ = world.go_on(run.id)

    assert world.finder.asked == ["zeta", "a"]


def test_a_note_that_is_saved_while_others_are_looked_through_counts(make: Make) -> None:
    world = make()
    finder = world.finder

    async def slow(need: RetrievalRequest) -> RetrievedContext:
        world.write("Late.md", "# Late\n")
        return await finder(need)

    world = replace(world, engine=replace(world.engine, retrieve=slow))
    run = world.run("zeta")

    assert world.stale(run) == {"root": [ALL_NOTES]}


def test_a_persons_own_words_are_something(make: Make) -> None:
    world = make()
    world.finder.found["zeta"] = RetrievedContext(context="## What the person says\nZeta is Greek.", checkpoint="c1")
    run = world.run("zeta")
    world.write("Z.md", "# Z\n")

    assert world.stale(run) == {}


def test_a_script_that_showed_something_without_a_citation_rests_on_what_it_read(make: Make) -> None:
    world = make()
    note = world.context.view.read("A.md")
    world.finder.found["zeta"] = RetrievedContext(context="Alpha", reads=(SourceRef(path="A.md", hash=note.hash),))
    run = world.run("zeta")
    world.write("Z.md", "# Z\n")

    assert world.stale(run) == {}
