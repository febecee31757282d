"""The caps of one loop: rounds, calls, tokens, time and cost, by settings, by a message and by a command."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RunUsage

from knapper.agents.chat import turn
from knapper.agents.chat.turn import TurnCaps
from knapper.agents.model import usage
from knapper.agents.model.usage import TurnAllowance
from knapper.app import Hub
from knapper.app.chats import open_chats
from knapper.cli import main
from knapper.server.http import chat as routes
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply
from tests.agents.scripted import Call, Model
from tests.server import chats
from tests.tools import opened

READ = Call("read_file", {"path": "Note.md"})
LIST = Call("list_tags")


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {"Note.md": "# Note\n\nText.\n"})


def test_more_calls_than_are_left_end_the_turn_and_the_partial_answer_says_so(vault: opened.Opener) -> None:
    model = Model([["First. ", READ], ["Then. ", READ, LIST], ["Never."]])

    events = scripted.run(scripted.chat(model, caps=TurnCaps(rounds=20, calls=2)), scripted.agent(vault))

    done = scripted.done(events)
    assert (done.state, done.notes) == ("limit", ["the limit of 2 tool calls was reached"])
    assert done.answer == f"Then. {turn.LIMIT_REACHED}"
    assert (len(model.asked), len(scripted.of(events, "tool_result"))) == (2, 1)
    assert [event.as_dict()["text"] for event in scripted.of(events, "notice")] == done.notes


def test_as_many_calls_as_are_allowed_are_no_limit(vault: opened.Opener) -> None:
    events = scripted.run(
        scripted.chat(Model([[READ, LIST], ["Done."]]), caps=TurnCaps(rounds=20, calls=2)), scripted.agent(vault)
    )

    assert (scripted.done(events).state, scripted.done(events).notes) == ("complete", [])


def test_rounds_that_are_used_up_are_told(vault: opened.Opener) -> None:
    events = scripted.run(scripted.chat(Model([[READ]]), caps=TurnCaps(rounds=1)), scripted.agent(vault))

    assert (scripted.done(events).state, scripted.done(events).notes) == (
        "limit",
        ["the limit of 1 rounds of tool calls was reached"],
    )


def test_a_cost_cap_without_a_known_price_holds_nothing_back_and_says_so(vault: opened.Opener) -> None:
    events = scripted.run(
        scripted.chat(Model([[READ], ["Done."]]), caps=TurnCaps(rounds=20, cents=5)), scripted.agent(vault)
    )
    without = scripted.run(scripted.chat(Model([["Done."]])), scripted.agent(vault))

    said = "no price is known for scripted, so the cost limit of 5 cents wasn't applied"
    assert (scripted.done(events).state, scripted.done(events).notes) == ("complete", [said])
    assert scripted.done(without).notes == []


def test_a_cost_cap_ends_a_turn_whose_price_is_known(vault: opened.Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = scripted.chat(Model([["One. ", READ], ["Two."]]), caps=TurnCaps(rounds=20, cents=5))

    def priced(_: TurnAllowance, used: RunUsage) -> None:
        used.cost = Decimal("0.06")

    monkeypatch.setattr(TurnAllowance, "check_tokens", priced)

    events = scripted.run(chat, scripted.agent(vault))

    (error,) = scripted.of(events, "error")
    assert (scripted.done(events).state, scripted.done(events).answer) == ("limit", "One. ")
    assert (error.as_dict()["error"], error.as_dict()["code"]) == (
        "the turn has reached the cost limit",
        "budget_spent",
    )


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"total_tokens_limit": 10}, "the limit of tokens"),
        ({"cost_limit": Decimal("0.01")}, "the cost limit"),
        ({"request_limit": 1}, "the limit of 100 requests to the model"),
    ],
)
def test_which_cap_ended_a_turn_is_told(limits: dict[str, object], said: str) -> None:
    used = RunUsage(requests=1, input_tokens=11, cost=Decimal("0.02"))
    allowance = TurnAllowance(**{"request_limit": None, **limits})  # pyright: ignore[reportArgumentType]

    def check() -> None:
        allowance.check_tokens(used)
        allowance.check_cost(used)
        allowance.check_before_request(used)

    with pytest.raises(usage.UsageLimitExceeded) as caught:
        check()

    error = usage.convert_model_error(caught.value, "tiny")
    assert (error.message, error.code) == (f"the turn has reached {said}", "budget_spent")


def test_a_message_only_lowers_what_the_chat_allows() -> None:
    own = TurnCaps(rounds=10, calls=8, minutes=1, cents=3)
    lower = TurnCaps(rounds=2, calls=3, tokens=50, minutes=0.5, cents=1)

    assert own.lowered_by(lower) == lower
    assert own.lowered_by(TurnCaps(rounds=99, calls=99, minutes=99, cents=99)) == own
    assert own.lowered_by(TurnCaps()) == own


def test_the_settings_limit_each_answer_and_change_nothing_where_they_are_left_out(
    vault: opened.Opener, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = vault.settings()
    usual = replace(settings, model=replace(settings.model, name="ollama:tiny"))
    capped = replace(usual, model=replace(usual.model, turn_rounds=3, turn_calls=4, turn_minutes=2, turn_cents=5))
    found: list[TurnCaps] = []
    for each in (usual, capped):
        with Hub(each) as hub, open_chats(hub) as own:
            found.append(own.chat().caps)
    monkeypatch.delenv("KNAP_MODEL", raising=False)

    assert found == [TurnCaps(rounds=20), TurnCaps(rounds=3, calls=4, minutes=2, cents=5)]
    assert own_home.is_dir()


def test_a_message_over_http_has_caps_of_its_own(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([[Call("list_tags"), Call("orphans")]])) as client:
        capped = client.post("/chat", json={"message": "hello", "calls": 1, "rounds": 1, "cents": 5})
        refused = client.post("/chat", json={"message": "hello", "calls": 0})
        tokens = client.post("/chat", json={"message": "again", "tokens": 1})
        names = {parameter.name for parameter in routes._CAPS}  # pyright: ignore[reportPrivateUsage]

    assert "the limit of 1 tool calls was reached" in capped.text
    assert refused.status_code == 422
    assert tokens.json()["error"] == "the turn has reached the limit of tokens"
    assert names == set(TurnCaps.__dataclass_fields__)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", [["ask", "hello"], ["agent", "weekly-review"]])
def test_a_command_has_caps_of_its_own(
    vault: opened.Opener,
    own_home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    monkeypatch.setenv("VAULT_PATH", str(vault.root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    with protocol.serving(Reply(parts=[Call("orphans"), Call("read_file", {"path": "Note.md"})])) as server:
        monkeypatch.setenv("KNAP_MODEL", f"tiny@{server.base_url}")
        main.run([*command, "--calls", "1", "--json"])
        printed = capsys.readouterr().out

    assert "the limit of 1 tool calls was reached" in printed


def test_time_that_is_up_ends_a_turn(vault: opened.Opener) -> None:
    async def slow(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        del messages, info
        yield "One. "
        await asyncio.sleep(30)

    chat = scripted.chat(FunctionModel(stream_function=slow))

    events = scripted.run(chat, scripted.agent(vault), caps=TurnCaps(minutes=0.005))

    assert (scripted.done(events).state, scripted.done(events).notes) == ("limit", [turn.TIME_IS_UP])
