"""Hold retrieval to its tiers, thresholds and caps, with models that say what they are told to."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from knapper.codemode.checkpoints import CheckpointAnswer, CheckpointStore, open_checkpoints
from knapper.codemode.retrieval import CODE_MODE_OFF, NO_MODEL, NOBODY_TO_ASK, POOR_CONTEXT, Retriever
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.codemode.tasks import (
    ImpactMark,
    RegenerationBudget,
    Retrieval,
    RetrievalOptions,
    RetrievalTask,
    Thresholds,
)
from knapper.errors import RefusedError, SetupError
from knapper.tools.context import Context, ScriptAccess
from tests.codemode import askers
from tests.codemode.askers import Scripted, fenced, searching
from tests.tools import opened
from tests.tools.opened import Opener

FENCE = (
    "---\ntags: [garden]\n---\n# Fence\n\nWe decided on a green larch fence along the northern border. "
    "The neighbour pays half of the cost, and the carpenter begins in April.\n\n"
    + "The larch boards are twenty millimetres thick and stand on stone feet. "
    * 12
)
COSTS = (
    "# Costs\n\nThe green larch fence costs two thousand euros; the neighbour pays half of the cost by transfer.\n\n"
    + "Invoices of the carpenter are kept in the blue folder beside the desk. " * 12
)
NOTES = {
    "Garden/Fence.md": FENCE,
    "Garden/Costs.md": COSTS,
    "Garden/Pond.md": "# Pond\n\nThe pond has newts and needs a pump.\n",
    "Work/Report.md": "# Report\n\nQuarterly figures, and a table of deliveries.\n" + "Deliveries were late. " * 40,
    "Secret/Plan.md": "# Plan\n\nThe secret larch fence and what the neighbour pays.\n",
}
TASK = "Which larch fence did we decide on, and what does the neighbour pay of its cost?"
ABSENT = "Explain quaternion interpolation for spacecraft attitude control"
BROKEN = "for x in\n    pass"


@pytest.fixture
def checkpoints(tmp_path: Path, context: Context) -> Iterator[CheckpointStore]:
    folder = tmp_path / "runs"
    folder.mkdir()
    made = open_checkpoints(folder, context.now)
    yield made
    made.shut()


def retrieve(context: Context, model: Scripted | None, task: RetrievalTask | str = TASK, **more: object) -> Retrieval:
    given = RetrievalTask(text=task) if isinstance(task, str) else task
    return Retriever(context, ask=model, **more).retrieve(given)  # pyright: ignore[reportArgumentType]


def test_a_good_script_is_used_as_it_is(context: Context) -> None:
    model = Scripted([searching("larch fence neighbour cost")])

    found = retrieve(context, model)

    assert (found.tier, found.state, model.occasions) == ("script", "ready", ["first"])
    assert {one.path for one in found.citations} >= {"Garden/Fence.md", "Garden/Costs.md"}
    assert "The neighbour pays half" in found.context
    assert found.score >= 0.45
    assert found.confidence == 0.9
    assert found.usage == askers.COST
    assert found.why == "it searched"
    assert {one.path for one in found.reads} >= {"Garden/Fence.md", "Garden/Costs.md"}


def test_a_poor_score_has_another_script_written_that_is_told_what_is_missing(context: Context) -> None:
    model = Scripted([searching("deliveries"), searching("larch fence neighbour cost")])

    found = retrieve(context, model)

    assert (found.tier, model.occasions) == ("A", ["first", "again"])
    assert [one.step for one in found.attempts] == ["script", "again"]
    assert found.attempts[0].score.total < 0.45 <= found.score
    hints = model.data(1, "what was found")
    assert isinstance(hints, dict)
    assert TASK in hints["missing"]
    assert hints["queries"] == ["deliveries"]
    assert found.usage.requests == 2


def test_a_script_that_isnt_sure_has_another_one_written_whatever_its_score(context: Context) -> None:
    model = Scripted([searching("larch fence neighbour cost", 0.49), searching("larch fence neighbour cost", 0.5)])

    found = retrieve(context, model)

    assert (found.tier, model.occasions) == ("A", ["first", "again"])
    assert found.attempts[0].score.total >= 0.45


def test_a_script_that_doesnt_say_how_sure_it_is_is_judged_by_its_score_alone(context: Context) -> None:
    model = Scripted([searching("larch fence neighbour cost", None)])

    assert (retrieve(context, model).tier, model.occasions) == ("script", ["first"])


def test_what_a_script_says_of_itself_doesnt_make_it_good(context: Context) -> None:
    model = Scripted([searching("deliveries", 1.0)])

    found = retrieve(context, model)

    assert (found.tier, model.occasions) == ("B", ["first", "again"])
    assert [one.step for one in found.attempts] == ["script", "again", "direct"]
    assert "The neighbour pays half" in found.context
    assert found.script == ""


def test_a_good_context_outlives_a_script_that_is_never_sure(context: Context) -> None:
    model = Scripted([searching("larch fence neighbour cost", 0.1)])

    found = retrieve(context, model)

    assert found.tier == "B"
    assert found.score == max(one.score.total for one in found.attempts)


def test_a_node_gets_one_more_script_and_a_run_five(context: Context) -> None:
    model = Scripted([searching("deliveries")])
    budget = RegenerationBudget(5)
    retriever = Retriever(context, ask=model, regenerations=budget)

    found = [retriever.retrieve(RetrievalTask(text=TASK)) for _ in range(7)]

    assert model.occasions.count("again") == 5
    assert budget.used == 5
    assert [len(one.attempts) for one in found] == [3, 3, 3, 3, 3, 2, 2]
    assert any("5 scripts" in note for note in found[-1].notes)


def test_nodes_side_by_side_share_what_a_run_has(context: Context) -> None:
    model = Scripted([searching("deliveries")])
    retriever = Retriever(context, ask=model)

    tasks = [RetrievalTask(text=TASK, node=str(number)) for number in range(8)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(retriever.retrieve, tasks))

    assert [one.tier for one in found] == ["B"] * 8
    assert len({one.context for one in found}) == 1
    assert model.occasions.count("again") == retriever.regenerations.used == 5
    retriever.close()


def test_a_run_that_is_resumed_goes_on_counting(context: Context) -> None:
    model = Scripted([searching("deliveries")])

    found = retrieve(context, model, regenerations=RegenerationBudget(5, used=5))

    assert (found.tier, model.occasions) == ("B", ["first"])


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (BROKEN, "SyntaxError"),
        ("import os\n__result__ = {'context': ''}", "'os' can't be imported"),
        ("raise KeyError('x')", "KeyError"),
        ("x = 1", "__result__ is missing"),
        ("__result__ = ['a']", "list"),
        ("__result__ = {'context': 7}", "no text 'context'"),
        ("__result__ = {'context': 'x' * 300_000}", "bytes of JSON"),
    ],
)
def test_a_script_that_cant_be_used_is_mended_once(context: Context, script: str, told: str) -> None:
    model = Scripted([fenced(script), searching("larch fence neighbour cost")])

    found = retrieve(context, model)

    assert (found.tier, model.occasions) == ("script", ["first", "mend"])
    assert told in str(model.data(1, "error"))
    assert model.data(1, "script") == script
    assert [one.step for one in found.attempts] == ["script", "mended"]
    assert found.usage.requests == 2


def test_a_script_that_stays_broken_ends_in_a_search(context: Context) -> None:
    model = Scripted([fenced(BROKEN)])

    found = retrieve(context, model)

    assert model.occasions == ["first", "mend", "again", "mend"]
    assert found.tier == "B"
    assert found.usage.requests == 4
    assert "The neighbour pays half" in found.context


def test_a_script_with_a_syntax_error_or_a_forbidden_import_does_nothing_at_all(context: Context) -> None:
    early = "obsidian.write_note('Made.md', 'x')\n"
    model = Scripted([fenced(early + BROKEN), fenced(early + "import os")])

    found = retrieve(context, model)

    assert [one.calls for one in found.attempts[:2]] == [0, 0]


def test_without_a_model_it_is_off_and_says_so(context: Context) -> None:
    found = retrieve(context, None)

    assert (found.tier, found.attempts[0].step) == ("direct", "direct")
    assert found.notes == (NO_MODEL,)
    assert "The neighbour pays half" in found.context
    assert {one.path for one in found.citations} >= {"Garden/Fence.md", "Garden/Costs.md"}


def test_switched_off_no_model_is_asked(context: Context) -> None:
    model = Scripted([searching("larch")])

    found = retrieve(context, model, options=RetrievalOptions(code_mode=False))

    assert (found.tier, found.notes, model.asked) == ("direct", (CODE_MODE_OFF,), [])


def test_a_model_that_fails_leaves_a_search_and_a_word_of_it(context: Context) -> None:
    model = Scripted([RefusedError("the limit is reached", code="budget_spent")])

    found = retrieve(context, model)

    assert found.tier == "B"
    assert "Code Mode broke off: the limit is reached" in found.notes
    assert found.broken_off == found.as_dict()["broken_off"] == "Code Mode broke off: the limit is reached"
    assert "The neighbour pays half" in found.context


def test_a_model_that_fails_later_leaves_what_was_found_before(context: Context) -> None:
    model = Scripted([searching("larch fence neighbour cost", 0.2), RefusedError("too much")])

    found = retrieve(context, model)

    assert [one.step for one in found.attempts] == ["script", "direct"]
    assert found.usage.requests == 1


def test_a_model_that_fails_while_it_mends_leaves_the_attempt_and_its_cost(context: Context) -> None:
    found = retrieve(context, Scripted([fenced(BROKEN), RefusedError("too much")]))

    assert [one.step for one in found.attempts] == ["script", "direct"]
    assert found.usage == askers.COST
    assert "Code Mode broke off: too much" in found.notes


def test_where_scripts_cant_be_run_it_searches_and_says_so(context: Context) -> None:
    def none() -> WorkerPool:
        raise SetupError("wasmtime isn't there")

    found = retrieve(replace(context, open_sandbox=none), Scripted([searching("larch")]))

    assert found.tier == "B"
    assert any("wasmtime isn't there" in note for note in found.notes)


@pytest.mark.parametrize(
    ("depth", "marks", "needed", "waits"),
    [
        (0, ("security",), 0.0, True),
        (1, ("data_model",), 0.0, True),
        (1, ("architecture", "contract"), 0.0, True),
        (2, ("security",), 0.0, False),
        (0, (), 0.0, False),
        (2, (), 0.5, True),
        (0, (), 0.49, False),
    ],
)
def test_a_person_is_asked_where_all_failed_and_much_hangs_on_it(
    context: Context,
    checkpoints: CheckpointStore,
    depth: int,
    marks: tuple[ImpactMark, ...],
    needed: float,
    waits: bool,
) -> None:
    task = RetrievalTask(text=ABSENT, node="n", depth=depth, marks=marks, needed_share=needed)

    found = retrieve(context, Scripted([searching("deliveries")]), task, checkpoints=checkpoints, run="r")

    assert (found.tier, found.state) == (("C", "waiting") if waits else ("B", "ready"))
    assert len(checkpoints.waiting("r")) == waits
    assert POOR_CONTEXT in found.notes


def test_nobody_is_asked_where_the_search_was_good_enough(context: Context, checkpoints: CheckpointStore) -> None:
    task = RetrievalTask(text=TASK, node="n", marks=("security",))

    found = retrieve(context, Scripted([searching("deliveries")]), task, checkpoints=checkpoints, run="r")

    assert (found.tier, found.state, checkpoints.waiting()) == ("B", "ready", ())


def test_without_a_person_it_goes_on_and_says_so(context: Context) -> None:
    found = retrieve(context, Scripted([searching("deliveries")]), RetrievalTask(text=ABSENT, marks=("security",)))

    assert (found.tier, found.state) == ("B", "ready")
    assert NOBODY_TO_ASK in found.notes


def waiting(context: Context, checkpoints: CheckpointStore) -> tuple[RetrievalTask, Retrieval]:
    task = RetrievalTask(text=ABSENT, node="n", marks=("security",))
    return task, retrieve(context, Scripted([searching("deliveries")]), task, checkpoints=checkpoints, run="r")


def test_what_waits_is_found_again_without_asking_the_model(context: Context, checkpoints: CheckpointStore) -> None:
    task, first = waiting(context, checkpoints)
    model = Scripted([searching("deliveries")])

    again = retrieve(context, model, task, checkpoints=checkpoints, run="r")

    assert (again.state, again.checkpoint, again.context, model.asked) == (
        "waiting",
        first.checkpoint,
        first.context,
        [],
    )


def test_a_person_lets_it_go_on_with_what_there_is(
    context: Context, vault: Opener, checkpoints: CheckpointStore
) -> None:
    task, first = waiting(context, checkpoints)
    with vault.open("cli") as person:
        _ = checkpoints.answer(first.checkpoint, CheckpointAnswer(choice="continue"), person.writer.grants)

    found = retrieve(context, Scripted(["no"]), task, checkpoints=checkpoints, run="r")

    assert (found.tier, found.state, found.context, found.score) == ("C", "ready", first.context, first.score)
    assert found.citations == first.citations


def test_a_person_names_notes_and_says_what_no_note_holds(
    context: Context, vault: Opener, checkpoints: CheckpointStore
) -> None:
    task, first = waiting(context, checkpoints)
    answer = CheckpointAnswer(choice="use", notes=("Garden/Pond.md", "Nowhere.md", "Secret/Plan.md"), text="Use slerp.")
    with vault.open("cli") as person:
        _ = checkpoints.answer(first.checkpoint, answer, person.writer.grants)

    found = retrieve(context, Scripted(["no"]), task, checkpoints=checkpoints, run="r")

    assert (found.tier, found.state) == ("C", "ready")
    assert [one.path for one in found.citations] == ["Garden/Pond.md"]
    assert [one.code for one in found.dropped] == ["no_note", "no_note"]
    assert "Use slerp." in found.context
    assert "newts" in found.context
    assert "secret larch" not in found.context


def test_a_person_stops_it(context: Context, vault: Opener, checkpoints: CheckpointStore) -> None:
    task, first = waiting(context, checkpoints)
    with vault.open("cli") as person:
        _ = checkpoints.answer(first.checkpoint, CheckpointAnswer(choice="stop"), person.writer.grants)

    found = retrieve(context, Scripted(["no"]), task, checkpoints=checkpoints, run="r")

    assert (found.state, found.context) == ("stopped", "")


def test_what_was_kept_isnt_used_once_a_note_behind_it_has_changed(
    context: Context, vault: Opener, checkpoints: CheckpointStore
) -> None:
    task, first = waiting(context, checkpoints)
    (vault.root / first.reads[0].path).write_text("# New\n\nNothing of that any more.\n", encoding="utf-8")
    with vault.open("cli") as person:
        _ = checkpoints.answer(first.checkpoint, CheckpointAnswer(choice="continue"), person.writer.grants)

    found = retrieve(context, Scripted(["no"]), task, checkpoints=checkpoints, run="r")

    assert found.state == "ready"
    assert found.context != first.context
    assert "Deliveries were late" not in found.context or first.reads[0].path != "Work/Report.md"


def test_a_search_goes_through_all_the_vaults_that_are_named(context: Context, tmp_path: Path) -> None:
    other = opened.vault(tmp_path / "other", {"Fences.md": "# Fences\n\nThe neighbour pays for a larch fence.\n"})
    with other.open("agent") as second:
        _ = second.index.refresh()
        named = replace(second, vault="second")
        both = replace(context, scripting=ScriptAccess(open_vault=lambda _: named))

        found = retrieve(both, None, options=RetrievalOptions(vaults=("main", "second")))

    assert {one.vault for one in found.citations} == {context.vault, "second"}


def test_the_model_is_told_of_the_other_vaults(context: Context, tmp_path: Path) -> None:
    other = opened.vault(tmp_path / "other", {"Elsewhere/Fences.md": "# Fences\n"})
    model = Scripted([searching("larch fence neighbour cost")])
    with other.open("agent") as second:
        _ = second.index.refresh()
        both = replace(context, scripting=ScriptAccess(open_vault=lambda _: replace(second, vault="second")))

        _ = retrieve(both, model, options=RetrievalOptions(vaults=(context.vault, "second")))

    others = cast("dict[str, dict[str, object]]", model.data(0, "vault"))["others"]
    assert list(others) == ["second"]
    assert "Elsewhere" in str(others)


def test_the_thresholds_can_be_set(context: Context) -> None:
    strict = RetrievalOptions(thresholds=Thresholds(low_score=1.01, regens_per_node=2))
    model = Scripted([searching("larch fence neighbour cost")])

    found = retrieve(context, model, options=strict)

    assert (found.tier, model.occasions) == ("B", ["first", "again", "again"])


def test_all_that_became_of_it_is_shown_as_json(context: Context) -> None:
    found = retrieve(context, Scripted([searching("larch fence neighbour cost")])).as_dict()

    assert found["tier"] == "script"
    assert set(found["parts"] if isinstance(found["parts"], dict) else {}) == {
        "overlap",
        "coverage",
        "diversity",
        "boilerplate",
    }
