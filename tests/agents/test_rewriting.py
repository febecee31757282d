"""A message is rewritten into queries once, what they find is given to the model, and a failure stops nothing."""

import asyncio
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from knapper.agents import loop, prompting
from knapper.agents.chat import turn
from knapper.agents.events import Event, ToolCall, ToolResult
from knapper.agents.loop import QueryCache, Question, Rewriter
from knapper.agents.pipeline.store import AgentToggles
from knapper.agents.stages import Stages
from tests.agents import runs, scripted, scripts
from tests.agents.scripts import Cast
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\n## Watering\n\nTomatoes get a can in summer.\n",
    "Shed.md": "# Shed\n\nThe irrigation timer hangs beside the door.\n",
    "Tax.md": "# Tax\n\nReceipts of the year.\n",
    "Secret/Pipes.md": "# Pipes\n\nThe irrigation pipes are stolen.\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


def rewriter(cache: QueryCache | None = None) -> Rewriter:
    return Rewriter(prompt=lambda: prompting.read_built_in("rewrite"), cache=cache or QueryCache())


def cast(*replies: str) -> Cast:
    return Cast(
        {"rewrite": [[reply] for reply in replies], "other": [["It hangs in the shed."]], "scout": [["nothing"]]}
    )


def step(events: list[Event]) -> ToolResult:
    (call,) = (one for one in events if isinstance(one, ToolCall) and one.name == loop.STEP)
    (result,) = (one for one in events if isinstance(one, ToolResult) and one.name == loop.STEP)
    assert call.id == result.id
    return result


def test_queries_are_written_once_shown_as_a_step_and_what_they_find_is_given_to_the_model(
    vault: opened.Opener,
) -> None:
    played = cast('1. irrigation timer\n- "watering tomatoes"')
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "where is that thing?")

    shown = step(events)
    assert shown.summary == "searched for: irrigation timer; watering tomatoes"
    assert shown.answer["queries"] == ["irrigation timer", "watering tomatoes"]
    assert [len(played.asked["rewrite"]), len(played.asked["other"])] == [1, 1]
    system = played.system("other")
    assert "## Found beforehand" in system
    assert f'<vault-data source="{loop.STEP}" mark="' in system
    assert "irrigation timer hangs beside the door" in system
    assert scripted.done(events).answer == "It hangs in the shed."


def test_it_is_off_unless_it_is_asked_for(vault: opened.Opener) -> None:
    played = cast("irrigation")
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(played.open()), context, "where is that thing?")

    assert "rewrite" not in played.asked
    assert "Found beforehand" not in played.system("other")
    assert scripted.of(events, "tool_call") == []


def test_the_same_question_is_not_rewritten_again(vault: opened.Opener) -> None:
    cache, played = QueryCache(), cast("irrigation timer")
    with scripted.agent(vault) as context:
        for text in ("where is it?", "where is it?", "where was it?"):
            events = scripted.run(scripted.chat(played.open(), rewriter=rewriter(cache)), context, text)

    assert len(played.asked["rewrite"]) == 2
    assert step(events).answer["queries"] == ["irrigation timer"]


def test_what_points_back_is_asked_with_the_message_before(vault: opened.Opener) -> None:
    played = cast("irrigation timer")
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content="Do I own an irrigation timer?")]),
        ModelResponse(parts=[TextPart(content="Yes.")]),
    ]
    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "where is it?", history=history)

    assert "Do I own an irrigation timer?" in played.prompts("rewrite")


@pytest.mark.parametrize("reply", ["none", "None.", "  \n", "x" * 300])
def test_where_there_is_nothing_to_look_up_nothing_is_searched(vault: opened.Opener, reply: str) -> None:
    played = cast(reply)
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "hello")

    assert step(events).summary == "nothing to look up"
    assert "Found beforehand" not in played.system("other")


def test_queries_are_bounded() -> None:
    reply = "\n".join(["1) first", "first", "* second", "none", "y" * 201, "„third“", "fourth"])

    assert loop.parse_queries(reply) == ("first", "second", "third")


def test_the_cache_forgets_the_oldest() -> None:
    cache = QueryCache()
    for number in range(501):
        cache.put("m", Question(text=str(number)), ("q",))

    assert cache.get("m", Question(text="0")) is None
    assert cache.get("m", Question(text="1")) == ("q",)
    assert cache.get("other", Question(text="1")) is None


def fail(_messages: list[ModelMessage]) -> list[str]:
    raise ModelHTTPError(status_code=503, model_name="scripted", body="busy with a secret")


def test_a_model_that_fails_at_it_stops_nothing(vault: opened.Opener) -> None:
    played = Cast({"rewrite": [fail], "other": [["It hangs in the shed."]]})
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "where is it?")

    result = step(events)
    assert not result.success
    assert result.summary.startswith("not rewritten: ")
    assert scripted.done(events).state == "complete"


def test_a_model_that_takes_too_long_at_it_stops_nothing(vault: opened.Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "TIMEOUT_S", 0.05)

    async def hang(*_: object) -> tuple[str, ...]:
        async with asyncio.timeout(loop.TIMEOUT_S):
            await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(loop, "_rewrite", hang)
    played = cast("x")
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "where is it?")

    assert step(events).summary == "not rewritten: scripted didn't rewrite the question within 0.05 seconds"
    assert scripted.done(events).state == "complete"


def test_notes_that_the_agent_may_not_see_are_not_found(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES, hidden=("Secret/",))
    played = cast("irrigation pipes")
    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(played.open(), rewriter=rewriter()), context, "where are they?")

    assert "stolen" not in played.system("other")


def test_the_scout_begins_with_what_the_rewritten_task_finds(vault: opened.Opener) -> None:
    played = Cast({"rewrite": [["irrigation timer"]], "scout": [[scripts.select("Shed.md")]]})
    ended = runs.do(vault, played, "find it", toggles=AgentToggles(scout=True, task=False), agents_rewriter=rewriter())

    assert "irrigation timer hangs beside the door" in played.system("scout")
    assert step([event for event in ended.events if isinstance(event, ToolCall | ToolResult)]).success
    assert ended.paths == ["Shed.md"]


def test_an_agent_with_a_task_of_its_own_has_nothing_rewritten() -> None:
    stage = Stages().find("weekly-review")

    assert turn.configure_stage(scripted.chat(cast("x").open(), rewriter=rewriter()), stage).rewriter is None
