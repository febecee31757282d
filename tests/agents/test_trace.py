"""What a model did is recorded in its order, within limits, and never so that it can't be stored."""

import json

from hypothesis import given
from hypothesis import strategies as st

from knapper.agents import events
from knapper.agents.events import Text, ToolCall, ToolResult, TraceRecorder


def recorded(*events: object) -> list[dict[str, object]]:
    recorder = TraceRecorder()
    for event in events:
        recorder.record(event)
    return json.loads(json.dumps(recorder.entries()))


def test_texts_between_calls_are_kept_and_the_answer_is_not() -> None:
    found = recorded(
        Text(text="I ", step=1),
        Text(text="look.", step=1),
        ToolCall(id="a", name="read_file", arguments={"path": "A.md"}),
        ToolResult(id="a", name="read_file", success=True, summary="A.md", answer={"success": True}, chars=16),
        Text(text="Now I know.", step=2),
        Text(text="It is A.", step=3),
    )

    assert [(entry["kind"], entry.get("text") or entry.get("name")) for entry in found] == [
        ("text", "I look."),
        ("call", "read_file"),
        ("text", "Now I know."),
    ]
    assert found[1]["answer"] == {"success": True}


def test_calls_side_by_side_keep_their_own_answers_and_one_without_says_so() -> None:
    found = recorded(
        ToolCall(id="a", name="one", arguments={}),
        ToolCall(id="b", name="two", arguments={}),
        ToolCall(id="c", name="three", arguments={}),
        ToolResult(id="b", name="two", success=False, summary="no", answer={"code": "b"}),
        ToolResult(id="a", name="one", success=True, summary="yes", answer={"code": "a"}),
    )

    assert [(entry["name"], entry["success"], entry.get("answer")) for entry in found] == [
        ("one", True, {"code": "a"}),
        ("two", False, {"code": "b"}),
        ("three", None, None),
    ]


def test_what_exceeds_the_limits_is_a_beginning_and_named(  # a turn may read a hundred long notes
) -> None:
    call = ToolResult(id="", name="read_file", success=True, summary="", answer={"content": "x" * 20_000})
    recorder = TraceRecorder()
    for number in range(100):
        recorder.record(ToolResult(id=str(number), name=call.name, success=True, summary="", answer=call.answer))
    found = recorder.entries()
    again = TraceRecorder(found)
    again.record(ToolCall(id="last", name="read_file", arguments={"path": "A.md"}))

    assert len(found) == 100
    assert len(json.dumps(found)) < events.MAX_TRACE_CHARS * 1.2
    assert all(isinstance(entry, dict) and entry["cut"] == ["answer"] for entry in found)
    last = again.entries()[-1]
    assert isinstance(last, dict)
    assert (last["arguments"], last["cut"]) == ("", ["arguments"])


@given(st.text(st.characters(min_codepoint=0, max_codepoint=0xFFFF)), st.integers(0, 3))
def test_any_text_can_be_stored(text: str, step: int) -> None:
    found = recorded(
        Text(text=text, step=step),
        ToolCall(id="a", name=text, arguments={text: text}),
        ToolResult(id="a", name=text, success=True, summary=text, answer={"path": text}),
    )

    assert len(json.dumps(found, ensure_ascii=False).encode()) > 0
