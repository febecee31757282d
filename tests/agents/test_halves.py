"""Models that write halves of characters, which no UTF-8 can hold."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

from knapper.agents.chat.turn import ChatTurn, Message
from knapper.agents.model import replies
from knapper.agents.pipeline import pipeline
from knapper.agents.pipeline.store import AgentToggles
from tests.agents import runs as agents
from tests.agents import scripted, scripts
from tests.agents.run_world import NOTES, Brain, Part
from tests.agents.scripted import Call, Model, Reply
from tests.agents.scripts import Cast
from tests.server import running
from tests.server.running import done
from tests.tools import opened

pytestmark = pytest.mark.timeout(60)


class Torn(Brain):
    """Write half a character behind all that is said."""

    def said(self, kind: str, task: str) -> str:
        return f"{super().said(kind, task)} \ud83d"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain ü 😀", "plain ü 😀"),
        ("a \ud83d\ude00", "a 😀"),
        ("a \ud83d b", "a \ufffd b"),
        ("\ude00", "\ufffd"),
    ],
)
def test_halves_that_follow_each_other_are_joined_and_others_replaced(written: str, expected: str) -> None:
    assert replies.join_surrogates(written) == expected


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_a_model_writes_can_be_kept(written: str) -> None:
    kept = replies.join_surrogates(written)

    assert kept.encode().decode() == kept


@pytest.mark.parametrize("plans", [{}, {"T": [Part("Alpha?"), Part("Beta?")]}])
def test_a_run_bears_a_model_that_writes_halves_of_characters(tmp_path: Path, plans: dict[str, list[Part]]) -> None:
    with running.asking(tmp_path, Torn(plans=plans)) as (client, _):
        shown = client.get(f"/runs/{done(client)}").json()

    assert shown["state"] in {"complete", "partial"}
    assert shown["answer"].endswith("\ufffd")


HALF = '"\\ud83d"'


@pytest.mark.parametrize(
    "call",
    [
        Call("create_file", f'{{"path": "N.md", "content": {HALF}}}'),
        Call("read_file", f'{{"path": {HALF}}}'),
        Call("ask_user", f'{{"question": {HALF}}}'),
        Call("get_continuation", f'{{"tool_call_id": {HALF}}}'),
        Call("no_such_tool", f'{{"a": {HALF}}}'),
        Call("create_file", '{"path": "N.md", "content": "\ud83d"}'),
        Call("read_file\ud83d", '{"path": "A.md"}'),
        Call("read_file", '{"path": "A.md"}', "\ud83d"),
    ],
)
def test_a_chat_bears_calls_that_spell_halves_of_characters(call: Call, tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    with scripted.agent(vault) as context:
        turn = ChatTurn(scripted.chat(Model([[call], ["Fine."]])), context, Message(text="?", run="r"))
        events = asyncio.run(scripted.stream(turn))

    assert ModelMessagesTypeAdapter.dump_json(turn.messages)
    assert all(kept(event.as_dict()) for event in events)
    assert not (vault.root / "N.md").exists()


@pytest.mark.parametrize(
    "script",
    [
        [[Call("update_selection", f'{{"selected_paths": ["A.md"], "reasoning": {HALF}, "confidence": "done"}}')]],
        [[Call("search_keyword", f'{{"query": {HALF}}}')], [Call("ask_user", f'{{"question": {HALF}}}')]],
    ],
)
def test_a_scout_bears_calls_that_spell_halves_of_characters(script: list[Reply], tmp_path: Path) -> None:
    cast = Cast({"scout": script, "task": [scripts.task("Fine.")]})

    ended = agents.do(opened.vault(tmp_path, NOTES), cast, toggles=AgentToggles(scout=True))

    assert kept(pipeline.dump_state(ended.run.paused_state()))
    assert kept(ended.outcome.as_dict())
    assert all(kept(event.as_dict()) for event in ended.events)


def test_a_task_bears_an_answer_that_spells_half_a_character_and_no_edit_that_does(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    edit = f'{{"summary": "x", "edits": [{{"file": "A.md", "position": "end", "content": {HALF}}}]}}'
    cast = Cast(
        {"task": [[edit], ['{"summary": "Hi \\ud83d [[Nowhere]] (line 1)", "edits": []}']], "repair": [["\ud83d"]]}
    )

    ended = agents.do(vault, cast, current="A.md")

    assert ended.outcome.answer == "Hi \ufffd"
    assert "holds half a character" in cast.prompts("task")
    assert kept(ended.outcome.as_dict())


def test_whatever_a_reply_says_of_itself_can_be_kept() -> None:
    call = ToolCallPart(tool_name="a\ud83d", args='{"b": "\ud83d\ude00 \ud83d"}', tool_call_id="\ude00")
    said = ModelResponse(
        parts=[call], model_name="m\ud83d", provider_response_id="\ud83d", provider_details={"a": "\ud83d"}
    )

    replies.repair_response(said)

    assert ModelMessagesTypeAdapter.dump_json([said])
    assert call.args == '{"b": "\\ud83d\\ude00 \\ud83d"}'


def kept(shown: object) -> bytes:
    return json.dumps(shown, ensure_ascii=False).encode()
