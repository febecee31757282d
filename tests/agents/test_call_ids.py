"""Servers that count calls of tools anew in each reply mix no results up."""

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse

from knapper.agents.pipeline.store import AgentToggles
from tests.agents import runs, scripted, scripts
from tests.agents.scripted import Call, Model
from tests.agents.scripts import Cast
from tests.tools import opened


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {"A.md": "Apple.\n", "B.md": "Bear.\n"})


def test_calls_of_one_id_are_told_apart_in_a_chat(vault: opened.Opener) -> None:
    first = [Call("read_file", {"path": "A.md"}, id="call_0"), Call("read_file", {"path": "B.md"}, id="call_0")]
    model = Model([first, [Call("nope", id="call_0")], ["Done."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    called = [event.as_dict()["id"] for event in scripted.of(events, "tool_call")]
    told = {event.as_dict()["id"]: event.as_dict()["name"] for event in scripted.of(events, "tool_result")}
    assert len(set(called)) == 3
    assert told == dict(zip(called, ["read_file", "read_file", "nope"], strict=True))
    asked = [call.tool_call_id for one in model.asked[-1] if isinstance(one, ModelResponse) for call in one.tool_calls]
    assert asked == called
    assert [part.tool_call_id for part in scripted.returned(model.asked[-1])] == called


def test_calls_of_one_id_are_told_apart_on_a_scouts_trip(vault: opened.Opener) -> None:
    fetch = [[Call("fetch_note", {"path": path}, id="call_0")] for path in ("A.md", "B.md")]
    cast = Cast({"scout": [*fetch, [scripts.select("A.md")]]})

    ended = runs.do(vault, cast, toggles=AgentToggles(scout=True, task=False))

    called = [event.as_dict()["id"] for event in ended.of("tool_call")]
    assert ended.paths == ["A.md"]
    assert len(called) == len(set(called)) == 3
    assert [event.as_dict()["id"] for event in ended.of("tool_result")] == called
