"""What models cost is counted, and held to the owner's limits."""

import asyncio
import datetime as dt
import sqlite3
import warnings
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.usage import RunUsage

from knapper.agents.chat.turn import ChatTurn, Message
from knapper.agents.events import Event
from knapper.agents.model import usage
from knapper.agents.model.usage import SpendingLimits
from knapper.codemode.tasks import ModelSpend
from knapper.errors import RefusedError, StorageError
from tests.agents import scripted
from tests.agents.scripted import NOW, Model
from tests.tools import opened


def spent(tokens: int, cost: str | None = None) -> ModelSpend:
    return ModelSpend(requests=1, input_tokens=tokens, output_tokens=0, cost_usd=Decimal(cost) if cost else None)


def meter(folder: Path, limits: SpendingLimits, now: dt.datetime = NOW) -> usage.Meter:
    return usage.open_meter(folder, limits, lambda: now)


def test_what_is_used_is_added_up_for_runs_and_days(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits())
    own.record("a", "m", spent(10, "0.10"))
    own.record("a", "m", spent(5))
    own.record("b", "m", spent(1, "0.02"))
    own.shut()
    tomorrow = meter(tmp_path, SpendingLimits(), NOW + dt.timedelta(days=1))

    assert tomorrow.of_run("a").tokens == 15
    assert tomorrow.of_run("a").cost_usd == Decimal("0.10")
    assert tomorrow.today().tokens == 0
    assert tomorrow.today().cost_usd is None
    tomorrow.shut()


def test_nothing_used_is_nothing_written(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits())
    own.record("a", "m", ModelSpend())

    assert own.of_run("a") == ModelSpend()
    own.shut()


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (SpendingLimits(), None),
        (SpendingLimits(turn_tokens=70), 70),
        (SpendingLimits(turn_tokens=70, run_tokens=30), 20),
        (SpendingLimits(turn_tokens=70, run_tokens=300, day_tokens=50), 39),
    ],
)
def test_a_turn_may_use_what_the_tightest_limit_leaves(
    tmp_path: Path, limits: SpendingLimits, left: int | None
) -> None:
    own = meter(tmp_path, limits)
    own.record("a", "m", spent(10))
    own.record("b", "m", spent(1))

    assert own.allow("a").total_tokens_limit == left
    assert own.allow("a").request_limit == usage.MAX_REQUESTS
    own.shut()


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (SpendingLimits(run_tokens=10), "model.run_tokens"),
        (SpendingLimits(day_tokens=10), "model.day_tokens"),
        (SpendingLimits(day_cents=5), "model.day_cents"),
    ],
)
def test_a_limit_that_is_reached_refuses_and_names_its_setting(
    tmp_path: Path, limits: SpendingLimits, setting: str
) -> None:
    own = meter(tmp_path, limits)
    own.record("a", "m", spent(10, "0.05"))

    with pytest.raises(RefusedError, match=setting) as told:
        own.allow("a")

    assert told.value.code == "budget_spent"
    own.shut()


def test_a_turn_stops_where_its_limit_is(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"A.md": "A\n"})
    folder = tmp_path / "account"
    folder.mkdir()
    own = meter(folder, SpendingLimits(turn_tokens=60))
    model = Model([[scripted.Call("read_file", {"path": "A.md", "offset": number})] for number in range(9)])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model, meter=own), context)

    assert scripted.done(events).state == "limit"
    assert [getattr(event, "code", "") for event in scripted.of(events, "error")] == ["budget_spent"]
    assert "Tool call limit" not in scripted.done(events).answer
    assert len(model.asked) < 9
    own.shut()


def test_a_turn_is_held_to_what_another_one_has_left_of_the_day_meanwhile(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"A.md": "A\n"})
    folder = tmp_path / "account"
    folder.mkdir()
    own = meter(folder, SpendingLimits(day_tokens=100_000))
    model = Model([[scripted.Call("read_file", {"path": "A.md", "offset": number})] for number in range(9)])

    def answered(event: Event) -> None:
        if event.kind == "tool_result" and len(model.asked) == 2:
            own.record("another", "m", spent(99_999))

    with scripted.agent(vault) as context:
        turn = ChatTurn(scripted.chat(model, meter=own), context, Message(text="hello", run="run-1"))
        asyncio.run(turn.run(answered))

    assert turn.state == "limit"
    assert len(model.asked) == 2
    own.shut()


@pytest.mark.parametrize("limits", [SpendingLimits(day_tokens=100), SpendingLimits(day_cents=5)])
def test_turns_that_go_on_at_once_use_no_more_than_the_day_has(tmp_path: Path, limits: SpendingLimits) -> None:
    own = meter(tmp_path, limits)
    one, other = own.allow("one"), own.allow("other")
    used = RunUsage(requests=1, input_tokens=60, cost=Decimal("0.03"))
    one.check_before_request(used)

    with pytest.raises(UsageLimitExceeded):
        other.check_before_request(RunUsage(requests=1, input_tokens=50, cost=Decimal("0.02")))
    used.input_tokens, used.cost = 100, Decimal("0.05")
    with pytest.raises(RefusedError):
        own.allow("third")

    own.record("one", "m", ModelSpend())
    assert own.allow("third").request_limit == usage.MAX_REQUESTS
    own.shut()


@pytest.mark.parametrize("limits", [SpendingLimits(day_tokens=100), SpendingLimits(day_cents=5)])
def test_turns_of_several_processes_use_no_more_than_the_day_has(tmp_path: Path, limits: SpendingLimits) -> None:
    own, other = meter(tmp_path, limits), meter(tmp_path, limits)
    used = RunUsage(requests=1, input_tokens=60, cost=Decimal("0.03"))
    mine, others = own.allow("one"), other.allow("other")
    mine.check_before_request(used)
    used.input_tokens, used.cost = 100, Decimal("0.05")
    assert other.today().tokens == 60
    with pytest.raises(UsageLimitExceeded):
        mine.check_before_request(used)

    with pytest.raises(UsageLimitExceeded):
        others.check_before_request(RunUsage())
    with pytest.raises(RefusedError):
        other.allow("third")

    own.record("one", "m", spent(40, "0.02"))
    assert other.today() == spent(40, "0.02")
    others.check_before_request(RunUsage())
    own.shut()
    other.shut()


def test_what_a_turn_used_that_was_killed_stays_counted(tmp_path: Path) -> None:
    killed = meter(tmp_path, SpendingLimits(day_tokens=100))
    killed.allow("one").check_before_request(RunUsage(requests=2, input_tokens=99))
    killed.shut()
    own = meter(tmp_path, SpendingLimits(day_tokens=99))

    with pytest.raises(RefusedError, match="day_tokens"):
        own.allow("one")

    own.shut()


def test_a_request_is_allowed_though_what_is_used_cannot_be_written_down_now(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits(day_tokens=100))
    allowed = own.allow("one")
    with sqlite3.connect(tmp_path / usage.USAGE_FILE) as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON spent BEGIN SELECT RAISE(FAIL, 'full'); END")
    database.close()
    used = RunUsage(requests=1, input_tokens=60)

    allowed.check_before_request(used)

    used.input_tokens = 100
    with pytest.raises(UsageLimitExceeded):
        allowed.check_before_request(used)
    with pytest.raises(StorageError):
        own.record("one", "m", spent(100))
    own.shut()


@pytest.mark.parametrize("limits", [SpendingLimits(), SpendingLimits(day_tokens=100_000)])
def test_what_each_reply_cost_stays_counted_though_the_process_ends_before_the_turn_does(
    tmp_path: Path, limits: SpendingLimits
) -> None:
    vault = opened.vault(tmp_path, {"A.md": "A\n"})
    folder = tmp_path / "account"
    folder.mkdir()
    own = meter(folder, limits)
    model = Model([[scripted.Call("read_file", {"path": "A.md"})], ["Done."]])

    with scripted.agent(vault) as context:
        turn = ChatTurn(scripted.chat(model, meter=own), context, Message(text="hello", run="run-1"))
        asyncio.run(turn.run(lambda _: None))
    own.shut()

    after = meter(folder, limits)
    assert turn.spent.requests == 2
    assert after.of_run("run-1") == after.today() == turn.spent
    after.record("run-1", "m", spent(7))
    assert after.of_run("run-1") == turn.spent + spent(7)
    after.shut()


def test_a_reply_is_counted_once_when_its_turn_is_recorded(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits(run_tokens=100))
    allowed, used = own.allow("one"), RunUsage(requests=1, input_tokens=60)
    allowed.check_tokens(used)
    assert own.today() == own.of_run("one") == spent(60)
    assert own.allow("one").total_tokens_limit == 40

    used.incr(RunUsage(requests=1, input_tokens=20))
    allowed.check_tokens(used)
    assert own.of_run("one") == usage.read_usage(used)

    own.record("one", "m", usage.read_usage(used))
    assert own.today() == own.of_run("one") == usage.read_usage(used)
    own.shut()


def test_a_reply_that_exceeds_a_limit_is_counted(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits(turn_tokens=50))

    with pytest.raises(UsageLimitExceeded):
        own.allow("one").check_tokens(RunUsage(requests=1, input_tokens=60))

    assert own.of_run("one") == spent(60)
    own.shut()


def test_recording_one_request_of_a_run_leaves_the_others_counted(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits())
    one, other = RunUsage(requests=1, input_tokens=60), RunUsage(requests=1, input_tokens=20)
    own.allow("run").check_tokens(one)
    own.allow("run").check_tokens(other)

    own.record("run", "m", spent(60), usage=one)

    assert own.of_run("run") == spent(60) + spent(20)
    own.record("run", "m", spent(20), usage=other)
    assert own.of_run("run") == spent(60) + spent(20)
    own.shut()


def test_a_turn_that_ended_unrecorded_stays_counted_when_the_next_one_of_its_session_is(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits())
    own.allow("one").check_tokens(RunUsage(requests=1, input_tokens=60))

    own.record("one", "m", spent(5))

    assert own.of_run("one") == spent(60) + spent(5)
    own.shut()


def test_a_server_that_does_not_tell_what_was_used_is_no_warning_on_the_screen(tmp_path: Path) -> None:
    own = meter(tmp_path, SpendingLimits(turn_tokens=100, day_cents=5))
    unknown = RunUsage(requests=1, unmeasured_requests=1)
    priceless = RunUsage(requests=1, input_tokens=50)

    with warnings.catch_warnings(record=True) as told:
        own.allow("a").check_tokens(unknown)
        own.allow("a").check_cost(priceless)

    assert told == []
    own.shut()


def test_a_known_models_price_is_known() -> None:
    assert usage.read_usage(RunUsage(requests=1, input_tokens=5, cost=Decimal("0.1"))).as_dict()["cost_usd"] == 0.1
    assert usage.read_usage(RunUsage(requests=1, input_tokens=5)).as_dict()["cost_usd"] is None
