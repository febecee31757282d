"""Runs in Code Mode: scripts by the run's model, the tiers, a person's word, and what all of that costs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from knapper.agents.runs import executor, retrieving
from knapper.agents.runs.model import CheckpointEvent, RunLimits
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.app import tables
from knapper.app.hub import ScriptRuntime
from knapper.changes.writer import SubmitOptions
from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointStore, open_checkpoints
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.tools.context import (
    Context,
    HostFunction,
    OnCancel,
    ScriptInputs,
    ScriptLimits,
    ScriptResult,
    never_cancelled,
)
from knapper.vault import access
from tests.agents import run_world
from tests.agents.run_world import Brain, Part, World
from tests.agents.scripted import NOW
from tests.codemode.askers import fenced, searching

FENCE = (
    "# Fence\n\nWe decided on a green larch fence along the northern border. The neighbour pays half of the cost.\n\n"
    + "The larch boards are twenty millimetres thick and stand on stone feet. " * 16
)
COSTS = (
    "# Costs\n\nThe green larch fence costs two thousand euros; the neighbour pays half of the cost by transfer.\n\n"
    + "Invoices of the carpenter are kept in the blue folder beside the desk. " * 16
)
NOTES = {"Fence.md": FENCE, "Costs.md": COSTS, "Work.md": "# Report\n\n" + "Deliveries were late. " * 40}
TASK = "Which larch fence did we decide on, and what does the neighbour pay of its cost?"
ABSENT = "Explain quaternion interpolation for spacecraft attitude control"
GOOD = searching("larch fence neighbour cost")
POOR = searching("deliveries")
Make = Callable[[Brain], World]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[CheckpointStore]:
    made = open_checkpoints(tmp_path, lambda: NOW)
    yield made
    made.shut()


@pytest.fixture
def make(tmp_path: Path, sandbox: WorkerPool, checkpoints: CheckpointStore) -> Iterator[Make]:
    made: list[World] = []

    def one(brain: Brain) -> World:
        world = run_world.world(tmp_path / str(len(made)), brain, NOTES)
        made.append(world)
        _ = world.context.index.refresh()

        def open_context(run: str, _: tuple[str, ...]) -> Context:
            return replace(world.context, submit_options=SubmitOptions(run=run), open_sandbox=lambda: sandbox)

        finding = VaultRetriever(checkpoints=checkpoints)
        world.engine = replace(world.engine, retrieve=finding, open_context=open_context)
        return world

    yield one
    for world in made:
        run_world.shut(world)


def test_a_script_of_the_runs_model_finds_the_context(make: Make) -> None:
    world = make(Brain(scripts={TASK: [GOOD]}, answers={TASK: "Green larch. [[Fence]] (lines 3-3)"}))

    run = world.run(TASK)

    node = world.node(run, "root")
    assert run.state == "complete"
    assert node.found is not None
    assert (node.found.tier, len(node.found.attempts)) == ("", 1)
    assert "obsidian.search" in node.found.script
    assert node.found.score >= 0.45
    assert {source.path for source in node.sources} == {"Fence.md", "Costs.md"}
    assert "green larch fence" in world.brain.prompts["answer", TASK]
    assert "[[Fence]] (lines 1-" in world.brain.prompts["answer", TASK]


def beyond(world: World, base: Path) -> None:
    """Let scripts call tools, and read files of a folder."""
    scripts = ScriptRuntime(world.vault.settings(), tables.build_table)
    inner, folder = world.engine.open_context, base / "beside"
    folder.mkdir()
    (folder / "Paper.txt").write_text(FENCE, encoding="utf-8")

    def open_context(run: str, clients: tuple[str, ...]) -> Context:
        context = inner(run, clients)
        allowed = scripts.with_scripting(context, lambda _: context, roots=[str(folder)])
        return replace(allowed, open_sandbox=context.open_sandbox)

    world.engine = replace(world.engine, open_context=open_context)


def reading(*calls: str) -> str:
    """Write a script that puts together what calls give, and cites two notes."""
    cited = "[{'path': 'Fence.md'}, {'path': 'Costs.md'}]"
    own = "obsidian.read_note('Fence.md'), obsidian.read_note('Costs.md')"
    texts = ", ".join([own, *calls])
    return fenced(f"__result__ = {{'context': ' '.join([{texts}]), 'citations': {cited}, 'confidence': 0.9}}")


def test_what_a_script_reads_by_tools_makes_its_answer_stale_as_well(make: Make, tmp_path: Path) -> None:
    world = make(Brain(scripts={TASK: [reading("obsidian.tools.read_file('Work.md')['content']")]}))
    beyond(world, tmp_path)

    run = world.run(TASK)
    _ = world.run(TASK)
    same = list(world.brain.asked)
    world.write("Work.md", "# Report\n\nDeliveries are on time by now.\n")
    _ = world.run(TASK)

    found = world.node(run, "root").found
    assert found is not None
    assert found.attempts[0]["error"] == ""
    assert found.used_tools
    assert same == []
    assert ("answer", TASK) in world.brain.asked


def test_what_a_script_reads_beyond_the_vault_is_read_again(make: Make, tmp_path: Path) -> None:
    world = make(Brain(scripts={TASK: [reading("obsidian.read_file('Paper.txt')")]}))
    beyond(world, tmp_path)

    run = world.run(TASK, profile="local")
    _ = world.run(TASK, profile="local")

    found = world.node(run, "root").found
    assert found is not None
    assert found.attempts[0]["error"] == ""
    assert ("answer", TASK) in world.brain.asked


def test_scripts_are_counted_once_and_in_their_node(make: Make) -> None:
    world = make(Brain(scripts={TASK: [POOR, GOOD]}))

    run = world.run(TASK)

    node = world.node(run, "root")
    assert node.found is not None
    assert node.found.tier == "A"
    assert world.brain.kinds(TASK) == ["judge", "script", "script", "answer"]
    assert node.spent.tokens == 400


def test_a_run_has_at_most_five_scripts_written_anew(make: Make) -> None:
    parts = [Part(f"{ABSENT} {number}") for number in range(7)]
    scripts = {part.task: [POOR] for part in parts}
    world = make(Brain(plans={"T": parts}, scripts=scripts))

    run = world.run("T", RunLimits(parallel=1))

    written = [world.brain.kinds(part.task).count("script") for part in parts]
    assert sum(written) == 7 + 5
    assert max(written) == 2
    assert run.state == "partial"
    assert any("the run had all its 5 scripts written anew" in reason for reason in run.reasons)


def test_what_is_left_of_these_outlasts_the_process(make: Make) -> None:
    parts = [Part(f"{ABSENT} {number}") for number in range(6)]
    world = make(Brain(plans={"T": parts}, scripts={part.task: [POOR] for part in parts}))
    run = world.run("T", RunLimits(parallel=1))

    _ = world.go_on(run.id, replay="6")

    assert world.brain.kinds(parts[5].task).count("script") == 1


def test_a_person_is_asked_once_and_what_they_name_is_used(make: Make, checkpoints: CheckpointStore) -> None:
    plan = {"T": [Part(ABSENT, impact="security"), Part(TASK)]}
    world = make(Brain(plans=plan, scripts={ABSENT: [POOR], TASK: [GOOD]}))
    points: list[CheckpointEvent] = []

    async def person(point: CheckpointEvent) -> str:
        points.append(point)
        return "[[Costs]]"

    world.engine = replace(world.engine, ask_person=person)

    run = world.run("T")

    node = world.node(run, "1")
    assert len(points) == 1
    assert points[0].id
    assert checkpoints.waiting(run.id) == ()
    assert node.found is not None
    assert [source.path for source in node.found.sources] == ["Costs.md"]
    assert "two thousand euros" in world.brain.prompts["answer", ABSENT]


@pytest.mark.parametrize("choice", ["use", "stop"])
def test_the_answer_may_come_from_another_surface(
    make: Make, checkpoints: CheckpointStore, choice: Literal["use", "stop"]
) -> None:
    plan = {"T": [Part(ABSENT, impact="security"), Part(TASK)]}
    world = make(Brain(plans=plan, scripts={ABSENT: [POOR], TASK: [GOOD]}))

    async def person(point: CheckpointEvent) -> str:
        answer = CheckpointAnswer(choice=choice, text="Use slerp." if choice == "use" else "")
        _ = checkpoints.answer(point.id, answer, access.default_grants("page"))
        return await retrieving.wait_for_answer(checkpoints, point, look_s=0.01)

    world.engine = replace(world.engine, ask_person=person)

    run = world.run("T")

    node = world.node(run, "1")
    if choice == "stop":
        assert (node.state, node.reason) == ("failed", "the person skipped it")
    else:
        assert node.state == "done"
        assert "Use slerp." in world.brain.prompts["answer", ABSENT]


def test_a_persons_own_words_are_used_and_going_on_does_not_ask_again(make: Make) -> None:
    plan = {"T": [Part(ABSENT, impact="security"), Part(TASK)]}
    world = make(Brain(plans=plan, scripts={ABSENT: [POOR], TASK: [GOOD]}))
    asked: list[str] = []

    async def person(point: CheckpointEvent) -> str:
        asked.append(point.node_id)
        return "Use slerp between unit quaternions."

    world.engine = replace(world.engine, ask_person=person)
    run = world.run("T")

    _ = world.go_on(run.id)
    world.brain.asked.clear()

    assert asked == ["1"]
    assert "Use slerp between" in world.brain.prompts["answer", ABSENT]


def test_without_a_person_it_goes_on_and_says_so(make: Make, checkpoints: CheckpointStore) -> None:
    plan = {"T": [Part(ABSENT, impact="contract"), Part(TASK)]}
    world = make(Brain(plans=plan, scripts={ABSENT: [POOR], TASK: [GOOD]}))

    run = world.run("T")

    node = world.node(run, "1")
    assert run.state == "complete"
    assert node.asking is not None
    assert node.asking.unattended
    assert checkpoints.waiting(run.id) == ()


def test_of_little_importance_nobody_is_asked(make: Make) -> None:
    world = make(Brain(plans={"T": [Part(ABSENT), Part(TASK)]}, scripts={ABSENT: [POOR], TASK: [GOOD]}))

    run = world.run("T")

    assert world.node(run, "1").asking is None


def test_a_note_that_a_script_read_and_did_not_cite_makes_stale(make: Make) -> None:
    script = fenced(
        'text = obsidian.read_note("Fence.md") + obsidian.read_note("Costs.md")\n'
        '__result__ = {"context": text, "citations": [{"vault": "main", "path": "Fence.md"}], "confidence": 0.9}'
    )
    world = make(Brain(scripts={TASK: [script]}))
    run = world.run(TASK)
    (world.vault.root / "Costs.md").write_text("# Costs\n\nNothing.\n", encoding="utf-8")

    assert world.stale(run) == {"root": ["Costs.md"]}


def test_a_model_is_asked_for_no_script_after_the_run_was_ended(make: Make) -> None:
    world = make(Brain(scripts={TASK: [POOR]}, wait_s={TASK: 0.3}))
    run = world.begin(TASK)

    async def cancelled() -> int:
        work = asyncio.create_task(executor.carry_out_run(world.engine, run.id, world.events.append))
        while not world.brain.kinds(TASK).count("script"):  # noqa: ASYNC110 - a model is no event
            await asyncio.sleep(0.01)
        _ = work.cancel()
        with pytest.raises(asyncio.CancelledError):
            _ = await work
        asked = len(world.brain.asked)
        await asyncio.sleep(0.6)
        return len(world.brain.asked) - asked

    assert asyncio.run(cancelled()) == 0
    assert world.runs.show(run.id).run.state == "cancelled"


class Endless:
    """Run scripts that end only where nobody waits for them any more."""

    limits = ScriptLimits()

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def run(
        self,
        script: str,
        host: HostFunction,
        *,
        limits: ScriptLimits | None = None,
        given: ScriptInputs | None = None,
        on_cancel: OnCancel = never_cancelled,
    ) -> ScriptResult:
        del script, host, limits, given
        forget = on_cancel(self.ended.set)
        self.begun.set()
        _ = self.ended.wait(5)
        forget()
        return ScriptResult(kind="timeout")


def test_a_script_ends_with_its_run(make: Make) -> None:
    world, endless = make(Brain(scripts={TASK: [GOOD]})), Endless()

    def open_context(run: str, _: tuple[str, ...]) -> Context:
        return replace(world.context, submit_options=SubmitOptions(run=run), open_sandbox=lambda: endless)

    world.engine = replace(world.engine, open_context=open_context)
    run = world.begin(TASK)

    async def cancelled() -> None:
        work = asyncio.create_task(executor.carry_out_run(world.engine, run.id, world.events.append))
        assert await asyncio.to_thread(endless.begun.wait, 60)
        _ = work.cancel()
        with pytest.raises(asyncio.CancelledError):
            _ = await work

    asyncio.run(cancelled())

    assert endless.ended.is_set()
    assert world.runs.show(run.id).run.state == "cancelled"
