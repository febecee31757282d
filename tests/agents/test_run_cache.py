"""Runs: nothing is paid twice, what changed is done again, and what didn't isn't."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from knapper.agents.runs import executor
from knapper.agents.runs.engine import RetrievalRequest
from knapper.agents.runs.model import CheckpointEvent, NodeChanged, RetrievedContext, RunOrder
from knapper.agents.runs.store import RunStore
from knapper.agents.work_store import open_work
from knapper.codemode import authoring
from knapper.errors import NotFound, StorageError
from knapper.tools.context import Context
from tests.agents.run_world import Brain, Make, Part, World

THREE = {"T": [Part("alpha"), Part("beta"), Part("gamma")]}
CHAIN = {"T": [Part("alpha"), Part("beta", needs=["alpha"]), Part("gamma")]}


def _given(context: Context, *_: object) -> Context:
    return context


def asked(world: World) -> set[str]:
    return {task for _, task in world.brain.asked}


def test_the_same_task_again_costs_nothing(make: Make) -> None:
    world = make(Brain(plans=THREE))
    first = world.run("T")

    second = world.run("T")

    assert world.brain.asked == []
    assert second.answer == first.answer
    assert all(node.cached and not node.spent.tokens for node in world.runs.show(second.id).nodes)


def test_cached_children_are_part_of_the_synthesis(make: Make) -> None:
    world = make(Brain(plans=THREE))
    _ = world.run("T")
    world.write("B.md", "# B\n\nBeta has grown.\n")
    world.brain.answers["answer beta"] = "Beta is tall now."

    _ = world.run("T")

    prompt = world.brain.prompts["join", "T"]
    assert "answer of alpha." in prompt
    assert "answer of gamma." in prompt
    assert "Beta is tall now." in prompt


def test_a_changed_note_makes_stale_exactly_the_nodes_that_read_it(make: Make) -> None:
    world = make(Brain(plans=THREE))
    run = world.run("T")
    world.write("B.md", "# B\n\nBeta has grown.\n")

    stale = world.stale(run)
    _ = world.run("T")

    assert stale == {"2": ["B.md"]}
    assert world.finder.asked == ["beta"]
    assert world.brain.asked == [("answer", "beta")]  # its answer is the same, and so is the whole


def test_the_same_task_text_with_another_note_is_not_taken_from_the_cache(make: Make) -> None:
    world = make(Brain())
    _ = world.run("alpha")
    world.write("A.md", "# A\n\nAlpha has withered.\n")

    run = world.run("alpha")

    assert "Alpha has withered." in world.brain.prompts["answer", "alpha"]
    assert not world.node(run, "root").cached


def test_a_note_that_is_gone_makes_stale(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")
    (world.vault.root / "A.md").unlink()

    assert world.stale(run) == {"root": ["A.md"]}


def test_a_note_that_is_put_back_is_as_it_was(make: Make) -> None:
    world = make(Brain())
    _ = world.run("alpha")
    before = world.vault.text("A.md")
    world.write("A.md", "# A\n\nOtherwise.\n")
    _ = world.run("alpha")
    world.write("A.md", before)

    run = world.run("alpha")

    assert world.node(run, "root").cached


@pytest.mark.parametrize("what", ["model", "strategy", "code_mode", "profile", "prompt", "script", "policy", "fresh"])
def test_whatever_else_an_answer_rests_on_is_part_of_the_key(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world = make(Brain())
    _ = world.run("alpha", strategy="research")
    more: dict[str, Any] = {"strategy": "research"}
    if what == "model":
        world.engine = replace(world.engine, name="another")
    elif what == "prompt":
        (tmp_path / "run-answer.md").write_text("You do one part. Rhyme.", encoding="utf-8")
        world.engine = replace(world.engine, prompts=replace(world.engine.prompts, folder=tmp_path))
    elif what == "script":
        monkeypatch.setattr(authoring, "prompt_texts", lambda: ["Write a script."])
    elif what == "policy":
        policy = replace(world.context.view.policy, hidden=("Journal/",))
        view = world.context.index.view.with_policy(policy)
        context = replace(world.context, view=view)
        world.engine = replace(world.engine, open_context=partial(_given, context))
    else:
        more |= {"strategy": {"strategy": "planning"}, "code_mode": {"code_mode": False}}.get(what, {})
        more |= {"profile": {"profile": "local"}, "fresh": {"fresh": True}}.get(what, {})

    _ = world.go_on(executor.create_run(world.engine, replace(RunOrder(task="alpha"), **more)).id)

    assert world.brain.kinds("alpha")


def test_a_node_that_depends_on_another_is_done_again_only_if_that_answers_otherwise(make: Make) -> None:
    same, other = make(Brain(plans=CHAIN)), make(Brain(plans=CHAIN))
    for world in (same, other):
        _ = world.run("T")
        world.write("A.md", "# A\n\nAlpha has grown.\n")
    other.brain.answers["answer alpha"] = "Otherwise."

    _ = same.run("T")
    _ = other.run("T")

    assert asked(same) == {"alpha"}
    assert asked(other) == {"alpha", "beta", "T"}


def test_going_on_with_a_finished_run_asks_nothing(make: Make) -> None:
    world = make(Brain(plans=THREE))
    run = world.run("T")

    again = world.go_on(run.id)

    assert world.brain.asked == []
    assert world.finder.asked == []
    assert (again.state, again.answer) == ("complete", run.answer)


def test_going_on_tries_again_only_what_failed_and_what_waited_for_it(make: Make) -> None:
    from pydantic_ai.exceptions import ModelHTTPError  # noqa: PLC0415

    def fail(kind: str, task: str) -> None:
        if (kind, task) == ("answer", "alpha"):
            raise ModelHTTPError(status_code=500, model_name="scripted")

    world = make(Brain(plans=CHAIN, before=fail))
    run = world.run("T")
    world.brain.before = None

    again = world.go_on(run.id)

    assert again.state == "complete"
    assert world.brain.asked == [("answer", "alpha"), ("answer", "beta"), ("join", "T")]
    assert world.finder.asked == ["beta"]


def test_replay_of_what_is_stale_does_that_again_and_what_builds_on_it(make: Make) -> None:
    world = make(Brain(plans=CHAIN))
    run = world.run("T")
    world.write("A.md", "# A\n\nAlpha has grown.\n")
    world.brain.answers["answer alpha"] = "It has grown."

    plain = world.go_on(run.id)
    kept = list(world.brain.asked)
    again = world.go_on(run.id, replay="stale")

    assert (plain.state, kept) == ("complete", [])
    assert world.brain.asked == [("answer", "alpha"), ("answer", "beta"), ("join", "T")]
    assert again.state == "complete"
    assert world.stale(run) == {}


def test_replay_of_a_node_does_it_again_though_nothing_changed(make: Make) -> None:
    world = make(Brain(plans=CHAIN))
    run = world.run("T")

    _ = world.go_on(run.id, replay="1")

    assert world.brain.asked == [("answer", "alpha")]
    assert world.finder.asked == ["alpha"]


def test_replay_of_the_root_does_all_again_with_the_same_plan(make: Make) -> None:
    world = make(Brain(plans=THREE))
    run = world.run("T")

    _ = world.go_on(run.id, replay="root")

    assert sorted(world.brain.asked) == [
        ("answer", "alpha"),
        ("answer", "beta"),
        ("answer", "gamma"),
        ("join", "T"),
    ]


def test_replay_of_a_node_that_is_not_there_is_refused(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")

    with pytest.raises(NotFound, match="no node '7'"):
        _ = world.go_on(run.id, replay="7")


def test_a_replay_that_is_refused_leaves_the_run_as_it_was(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")
    with pytest.raises(NotFound):
        _ = world.go_on(run.id, replay="7")

    shown = world.runs.show(run.id).run

    assert (shown.state, shown.updated) == ("complete", run.updated)


class Shaky(RunStore):
    """Fail where somebody looks whether a run is to end, at first."""

    looked = 0

    def is_to_cancel(self, run_id: str) -> bool:
        self.looked += 1
        if self.looked == 1:
            raise StorageError("database is locked", hint="try again")
        return super().is_to_cancel(run_id)


def test_a_look_that_fails_is_no_order_to_cancel(make: Make) -> None:
    world = make(Brain())
    work = open_work(world.work.folder)
    shaky = Shaky(work)

    async def find(need: RetrievalRequest) -> RetrievedContext:
        while shaky.looked < 2:  # noqa: ASYNC110 - another thread looks
            await asyncio.sleep(0.01)
        return await world.finder(need)

    world.engine = replace(world.engine, store=shaky, retrieve=find)

    run = world.run("alpha")
    work.shut()

    assert run.state == "complete"


def test_what_a_replay_costs_is_added_to_what_the_run_cost(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")

    _ = world.go_on(run.id, replay="root")

    assert world.node(run, "root").spent.requests == 3


def poor(text: str = "little") -> RetrievedContext:
    return RetrievedContext(context=text, score=0.1, tier="C")


def test_where_much_depends_on_a_node_a_person_is_asked(make: Make) -> None:
    world = make(Brain())
    world.finder.found["alpha"] = poor()
    points: list[CheckpointEvent] = []

    async def person(point: CheckpointEvent) -> str:
        points.append(point)
        return "look in the cellar"

    world.engine = replace(world.engine, ask_person=person)

    run = world.run("alpha")

    node = world.node(run, "root")
    assert [point.node_id for point in points] == ["root"]
    assert node.asking is not None
    assert node.asking.answer == "look in the cellar"
    assert world.finder.asked == ["alpha", "alpha"]
    assert "look in the cellar" in world.brain.prompts["answer", "alpha"]


def test_without_a_person_the_run_goes_on_and_says_so(make: Make) -> None:
    world = make(Brain())
    world.finder.found["alpha"] = poor()

    run = world.run("alpha")

    node = world.node(run, "root")
    assert run.state == "complete"
    assert node.asking is not None
    assert node.asking.unattended
    assert any("nobody was there" in note for note in node.notes)


def test_a_person_can_leave_a_node_out(make: Make) -> None:
    world = make(Brain(plans=THREE))
    world.finder.found["alpha"] = poor()

    async def person(_: CheckpointEvent) -> str:
        return "skip"

    world.engine = replace(world.engine, ask_person=person)

    run = world.run("T")

    assert world.states(run)["alpha"] == "failed"
    assert "- **alpha**: the person skipped it" in run.answer


def test_a_question_outlasts_the_run_that_asked_it(make: Make) -> None:
    world = make(Brain())
    world.finder.found["alpha"] = poor()

    async def never(_: CheckpointEvent) -> str:
        await asyncio.sleep(60)
        return ""

    async def later(_: CheckpointEvent) -> str:
        return "go on"

    world.engine = replace(world.engine, ask_person=never)
    run = world.begin("alpha")
    cancelled(world, run.id, when=lambda event: isinstance(event, CheckpointEvent))
    world.engine = replace(world.engine, ask_person=later)

    again = world.go_on(run.id)

    assert again.state == "complete"
    asking = world.node(run, "root").asking
    assert asking is not None
    assert asking.answer == "go on"


def cancelled(world: World, run_id: str, when: Callable[[object], bool]) -> None:
    """Carry a run out, and ask for its end from elsewhere as soon as an event says so."""

    def tell(event: object) -> None:
        if when(event):
            _ = world.runs.cancel(run_id)

    _ = asyncio.run(executor.carry_out_run(world.engine, run_id, tell))


def test_a_cancelled_run_keeps_what_is_done_and_goes_on_from_there(make: Make) -> None:
    world = make(Brain(plans=THREE, wait_s={"beta": 60, "gamma": 60}))
    run = world.begin("T")

    cancelled(world, run.id, lambda event: isinstance(event, NodeChanged) and event.node["state"] == "done")
    shown = world.runs.show(run.id)
    world.brain.wait_s = {}
    again = world.go_on(run.id)

    assert shown.run.state == "cancelled"
    assert "answer of alpha." in shown.run.answer
    assert again.state == "complete"
    assert world.brain.kinds("alpha") == []
    assert world.brain.kinds("T") == ["join"]


def test_a_run_that_nobody_carries_out_need_not_be_cancelled(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")

    assert not world.runs.cancel(run.id)


def test_a_run_whose_process_ended_is_told_as_interrupted(make: Make) -> None:
    world = make(Brain())
    run = world.begin("alpha")
    _ = world.engine.store.save(replace(run, state="running"))

    assert world.runs.show(run.id).run.state == "interrupted"
    assert world.runs.runs()[0][0].state == "interrupted"


def test_old_runs_are_forgotten(make: Make) -> None:
    world = make(Brain())
    _ = world.run("alpha")

    assert world.engine.store.prune(1) == 0
    assert world.engine.store.prune(-1) == 1
    assert world.runs.runs() == ([], 0)


def test_who_has_read_foreign_text_only_proposes_also_where_it_comes_from_the_cache(make: Make) -> None:
    world = make(Brain())
    world.write("F.md", "---\nsource: https://example.org/x\n---\n# F\n\nForeign words.\n")
    first = world.run("foreign")
    second = world.run("foreign")
    third = world.run("alpha")

    taints = world.context.writer.taints
    assert [taints.is_tainted("somebody", run.id) for run in (first, second, third)] == [False, True, False]


def test_a_run_can_be_forgotten_and_its_answers_stay_in_the_cache(make: Make) -> None:
    world = make(Brain())
    run = world.run("alpha")

    world.runs.delete(run.id)
    again = world.run("alpha")

    assert world.runs.runs()[1] == 1
    assert world.brain.asked == []
    assert again.state == "complete"


def test_an_answer_made_from_folders_beside_the_vault_is_not_given_to_who_may_not_read_them(make: Make) -> None:
    world = make(Brain())
    bare = world.context.scripting
    counts: list[int] = []
    for profile, roots in (("local", ("/a",)), ("local", ()), ("local", ("/a",)), ("strict", ("/a",)), ("strict", ())):
        own = replace(world.context, scripting=replace(bare, roots=tuple(map(Path, roots))))
        world.engine = replace(world.engine, open_context=partial(_given, own))
        _ = world.run("Alpha?", profile=profile)
        counts.append(len(world.brain.asked))

    assert counts == [2, 2, 0, 2, 0]
