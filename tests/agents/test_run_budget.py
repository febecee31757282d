"""Runs: limits of tokens, cost and time, and the share of each that is kept for the answer."""

import time
from dataclasses import replace
from decimal import Decimal
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.usage import RequestUsage, RunUsage

from knapper.agents.model import usage
from knapper.agents.runs import engine
from knapper.agents.runs.engine import Budget, OutOfBudget
from knapper.agents.runs.model import RunLimits, total_spent
from knapper.changes.disk.storage import open_shared_database
from knapper.codemode.tasks import ModelSpend
from tests.agents.run_world import Brain, Make, Part
from tests.agents.scripted import NOW

DEAR = RequestUsage(input_tokens=1_500, output_tokens=500)
MANY = {"T": [Part(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")]}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_quarter_of_the_tokens_is_kept_for_the_answer() -> None:
    own = Budget(RunLimits(tokens=1_000))

    own.add(ModelSpend(input_tokens=700))

    assert own.tokens_left("work") == 50
    assert own.tokens_left("answer") == 300
    with pytest.raises(OutOfBudget, match="limit of 1,000 tokens"), own.reserve(51, "work"):
        pass
    with own.reserve(51, "answer"):
        pass


def test_requests_side_by_side_do_not_use_the_same_tokens() -> None:
    own = Budget(RunLimits(tokens=1_000))

    with own.reserve(500, "work"), pytest.raises(OutOfBudget), own.reserve(300, "work"):
        pass
    with own.reserve(300, "work"):
        pass


def test_a_quarter_of_the_time_is_kept_for_the_answer() -> None:
    clock = Clock()
    own = Budget(RunLimits(seconds=100), clock=clock)

    clock.now += 80

    assert own.seconds_left("work") == 0
    assert own.seconds_left("answer") == 20
    with pytest.raises(OutOfBudget, match="time of 100 s"):
        own.check(1, "work")
    own.check(1, "answer")


def test_costs_are_foreseen_by_what_tokens_cost_so_far() -> None:
    own = Budget(RunLimits(cents=100, tokens=0))

    own.add(ModelSpend(input_tokens=1_000, cost_usd=Decimal("0.60")))

    own.check(200, "work")
    with pytest.raises(OutOfBudget, match="100 cents"):
        own.check(300, "work")
    own.check(300, "answer")


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), max_size=30))
def test_no_order_of_requests_spends_more_than_the_limit(requests: list[tuple[int, bool]]) -> None:
    own = Budget(RunLimits(tokens=1_000))

    for tokens, answers in requests:
        try:
            with own.reserve(tokens, "answer" if answers else "work"):
                own.add(ModelSpend(input_tokens=tokens))
        except OutOfBudget:
            continue

    assert own.spent.tokens <= 1_000


def test_a_run_whose_tokens_end_still_has_its_answer(make: Make) -> None:
    world = make(Brain(plans=MANY, usage=DEAR))

    run = world.run("T", RunLimits(tokens=16_000, parallel=1))

    states = world.states(run)
    assert run.state == "partial"
    assert run.answer.startswith("join of T.")
    assert "done" in states.values()
    assert "cut" in states.values()
    assert "limit of 16,000 tokens" in run.answer


def test_a_run_spends_no_more_tokens_than_it_may(make: Make) -> None:
    world = make(Brain(plans=MANY))

    run = world.run("T", RunLimits(tokens=8_000))

    spent = sum(node.spent.tokens for node in world.runs.show(run.id).nodes)
    assert spent <= 8_000


def test_a_run_whose_tokens_end_at_once_still_ends(make: Make) -> None:
    world = make(Brain(plans=MANY))

    run = world.run("alpha", RunLimits(tokens=100))

    assert run.state == "partial"
    assert "No answer could be written" in run.answer
    assert "[[A]] (lines 1-3)" in run.answer
    assert world.brain.asked == []


def test_a_run_whose_time_ends_still_has_its_answer(make: Make) -> None:
    world = make(Brain(plans={"T": [Part("alpha"), Part("beta")]}, wait_s={"beta": 60}))
    gone = chain([0.0], repeat(70.0))  # most of it is gone at once: 5 s are left for the work, and 30 for the answer
    world.engine = replace(world.engine, clock=lambda: time.monotonic() + next(gone))

    run = world.run("T", RunLimits(seconds=100))

    assert run.state == "partial"
    assert run.answer.startswith("join of T.")
    assert world.states(run)["beta"] == "cut"
    assert "**beta**: the time was used up" in run.answer


def test_an_answer_that_takes_too_long_is_put_together_without_a_model(make: Make) -> None:
    world, clock = make(Brain(plans={"T": [Part("alpha"), Part("beta")]})), Clock()

    def slow(kind: str, _: str) -> None:
        if kind == "answer":
            world.brain.wait_s = {"T": 60}
            clock.now += 49  # when both have answered, 2 s are left

    world.brain.before = slow
    world.engine = replace(world.engine, clock=clock)

    run = world.run("T", RunLimits(seconds=100))

    assert run.state == "partial"
    assert "answer of alpha." in run.answer
    assert "answer of beta." in run.answer


def test_the_owners_limits_hold_for_runs_and_a_share_is_kept_of_them(make: Make) -> None:
    world = make(Brain(plans=MANY, usage=DEAR))
    meter = usage.open_meter(world.work.folder, usage.SpendingLimits(run_tokens=16_000), lambda: NOW)
    object.__setattr__(world.engine, "meter", meter)

    run = world.run("T", RunLimits(tokens=0, parallel=1))

    assert run.state == "partial"
    assert run.answer.startswith("join of T.")
    assert run.order.limits.tokens == 0
    assert meter.of_run(run.id).tokens == sum(node.spent.tokens for node in world.runs.show(run.id).nodes)
    meter.shut()


def test_more_tokens_let_a_run_go_on(make: Make) -> None:
    world = make(Brain(plans=MANY, usage=DEAR))
    run = world.run("T", RunLimits(tokens=16_000, parallel=1))
    done = [task for task, state in world.states(run).items() if state == "done"]

    run = world.go_on(run.id, limits=RunLimits(tokens=1_000_000))

    assert run.state == "complete"
    assert not any(world.brain.kinds(task) for task in done)


def test_estimates_are_rather_too_high() -> None:
    assert engine.estimate_tokens("word " * 100) > 100
    assert engine.estimate_tokens("日本語" * 10) > 15


class Killed(usage.Meter):
    """End before a request's end is recorded."""

    def record(self, run: str, model: str, spent: ModelSpend, *, usage: RunUsage | None = None) -> None:
        del run, model, spent, usage


def test_what_a_run_cost_stays_counted_though_the_process_ends_before_it_is_recorded(make: Make) -> None:
    world = make(Brain(plans={"T": [Part("alpha"), Part("beta")]}))
    usage.open_meter(world.work.folder, usage.SpendingLimits(), lambda: NOW).shut()
    file = world.work.folder / usage.USAGE_FILE
    killed = Killed(open_shared_database(file, "", usage.USAGE_VERSION), usage.SpendingLimits(), lambda: NOW)
    world.engine = replace(world.engine, meter=killed)

    run = world.run("T")
    killed.shut()

    after = usage.open_meter(world.work.folder, usage.SpendingLimits(), lambda: NOW)
    assert after.of_run(run.id).requests == len(world.brain.asked)
    assert after.of_run(run.id) == total_spent(world.runs.show(run.id).nodes)
    after.shut()
