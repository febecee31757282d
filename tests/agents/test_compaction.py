"""Conversations are shortened between turns: stubs for what tools answered, then a summary."""

import asyncio
import json
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RunUsage

from knapper.agents.chat import turn as chat_turn
from knapper.agents.chat.turn import ChatTurn, Message
from knapper.jsontypes import JSONValue
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply
from tests.agents.scripted import Call, Model
from tests.tools import opened

PROMPT = "Sum up:\n{messages}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"success": True, "results": [{"source": "a.md"}, {"source": "b.md"}, {"source": "a.md"}], "total": 9},
            {"status": "success", "result_count": 3, "files": ["a.md", "b.md"], "total": 9},
        ),
        (
            {"success": True, "results": ["a.md", "b.md"]},
            {"status": "success", "result_count": 2, "files": ["a.md", "b.md"]},
        ),
        (
            {"success": True, "path": "a.md", "hash": "h", "content": "long", "start_line": 1, "end_line": 9},
            {"status": "success", "path": "a.md", "hash": "h", "start_line": 1, "end_line": 9},
        ),
        (
            {"success": True, "status": "proposed", "proposal_id": "p", "path": "a.md", "files": [{"diff": "long"}]},
            {"status": "success", "result": "proposed", "path": "a.md", "proposal_id": "p"},
        ),
        (
            {"success": False, "error": "no note", "code": "not_found", "hint": "long"},
            {"status": "error", "error": "no note", "code": "not_found"},
        ),
        ({"success": True, "content": "long"}, {"status": "success"}),
    ],
)
def test_a_stub_tells_what_was_found_and_where(answer: dict[str, JSONValue], expected: dict[str, JSONValue]) -> None:
    assert chat_turn.stub_answer(answer) == expected


def test_a_stub_names_twenty_files_and_counts_the_others() -> None:
    found: list[JSONValue] = [{"path": f"{number}.md"} for number in range(30)]

    told = chat_turn.stub_answer({"success": True, "results": found})

    assert told["files"] == [f"{number}.md" for number in range(20)]
    assert told["more_files"] == 10


def test_within_a_turn_results_are_whole_and_after_it_they_are_stubs(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Garden.md": "# Garden\n\nThe fence is green.\n"})
    model = Model([[Call("read_file", {"path": "Garden.md"})], [Call("list_proposals")], ["Green."]])
    after = Model([["Still green."]])

    with scripted.agent(vault) as context:
        turn = ChatTurn(scripted.chat(model), context, Message(text="colour?", run="r"))
        _ = asyncio.run(scripted.stream(turn))
        _ = scripted.run(scripted.chat(after), context, history=turn.messages)

    assert all("fence is green" in str(scripted.returned(asked)[0].content) for asked in model.asked[1:])
    (stub, _) = scripted.returned(after.asked[0])
    assert json.loads(str(stub.content))["path"] == "Garden.md"
    assert "fence is green" not in str(stub.content)
    assert chat_turn.is_stub(stub)


def test_the_mark_of_a_stub_is_kept_and_no_provider_is_sent_it(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Garden.md": "Green.\n"})
    model = Model([[Call("read_file", {"path": "Garden.md"})], ["Green."]])
    with scripted.agent(vault) as context, protocol.serving(Reply(parts=["Yes."])) as server:
        turn = ChatTurn(scripted.chat(model), context, Message(text="colour?", run="r"))
        _ = asyncio.run(scripted.stream(turn))
        stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(turn.messages))
        from knapper.agents.model import names, usage  # noqa: PLC0415

        real = usage.open_model([names.parse_model_name(f"tiny@{server.base_url}")], lambda _: "")
        _ = scripted.run(scripted.chat(real), context, history=stored)

    assert [chat_turn.is_stub(part) for part in scripted.returned(stored)] == [True]
    sent = json.dumps(server.asked[0])
    assert "compacted" not in sent
    assert '\\"status\\": \\"success\\"' in sent


def test_system_prompts_are_not_kept(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {})

    with scripted.agent(vault) as context:
        turn = ChatTurn(scripted.chat(Model([["Hi."]])), context, Message(text="hello", run="r"))
        _ = asyncio.run(scripted.stream(turn))

    assert [one.instructions for one in turn.messages if isinstance(one, ModelRequest)] == [None]


def talk(turns: int, *, words: int = 200) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for number in range(turns):
        call = ToolCallPart(tool_name="read_file", args={"path": "a.md"}, tool_call_id=f"c{number}")
        result = ToolReturnPart(tool_name="read_file", content="{}", tool_call_id=f"c{number}")
        messages += [
            ModelRequest(parts=[UserPromptPart(content=f"Question {number}. " + "word " * words)]),
            ModelResponse(parts=[call]),
            ModelRequest(parts=[result]),
            ModelResponse(parts=[TextPart(content=f"Answer {number}.")]),
        ]
    return messages


def shorter(messages: list[ModelMessage], model: Model, *, budget: int) -> tuple[list[ModelMessage], RunUsage]:
    usage = RunUsage()
    work = chat_turn.summarize_history(messages, model.open(), budget=budget, prompt=PROMPT, usage=usage)
    kept = asyncio.run(work)
    assert kept is not None
    return kept, usage


def test_a_conversation_within_its_budget_stays_as_it_is() -> None:
    model = Model([["never"]])
    messages = talk(3)

    kept, _ = shorter(messages, model, budget=100_000)

    assert kept == messages
    assert model.asked == []


def test_a_long_conversation_begins_with_a_summary_and_ends_as_it_was() -> None:
    model = Model([["The fence is green."]])
    messages = talk(12)

    kept, usage = shorter(messages, model, budget=2_000)

    assert chat_turn.estimate_history_tokens(kept) <= 2_000
    summary = kept[0].parts[0]
    assert isinstance(summary, CompactionPart)
    assert summary.content == "The fence is green."
    assert kept[-1] == messages[-1]
    assert usage.requests == 1
    assert "Question 0." in str(model.asked[0])


def test_calls_and_their_results_stay_together() -> None:
    kept, _ = shorter(talk(12), Model([["Short."]]), budget=2_000)

    calls = [part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolCallPart)]
    results = [part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolReturnPart)]
    assert calls == results


def test_a_summary_that_is_too_long_is_none() -> None:
    work = chat_turn.summarize_history(
        talk(12), Model([["word " * 4_000]]).open(), budget=2_000, prompt=PROMPT, usage=RunUsage()
    )

    assert asyncio.run(work) is None


def test_a_beginning_is_dropped_by_whole_turns() -> None:
    kept = chat_turn.drop_beginning(talk(12), 2_000)

    assert chat_turn.estimate_history_tokens(kept) <= 2_000
    first = kept[0].parts[0]
    assert isinstance(first, UserPromptPart)


def test_calls_that_nobody_answered_are_left_out() -> None:
    call = ToolCallPart(tool_name="x", args={}, tool_call_id="c")
    asked = ModelRequest(parts=[UserPromptPart(content="q")])

    assert chat_turn.drop_open_calls([asked, ModelResponse(parts=[call])]) == [asked]
    kept = chat_turn.drop_open_calls([asked, ModelResponse(parts=[TextPart(content="Look."), call])])
    assert [type(part).__name__ for part in kept[-1].parts] == ["TextPart"]
