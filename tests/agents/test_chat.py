"""The loop of a model and its tools."""

import asyncio
import json
import threading
import time
from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest
from pydantic_ai.messages import UserPromptPart

from knapper.agents.chat.turn import LIMIT_REACHED, ChatTurn, Message, TurnCaps
from knapper.agents.events import Error, Event, QuestionEvent, Text, ToolCall, ToolResult
from knapper.app import tables
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer
from tests.agents import scripted
from tests.agents.scripted import Call, Model
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\n## Fence\n\nThe fence is to be green.\n\n## Watering\n\nTwice a week in summer.\n",
    "Long.md": "# Long\n\n" + "".join(f"Line {number} of the long note.\n" for number in range(600)),
    "Preferences.md": "- Answer in short sentences.\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


def test_text_is_streamed_as_it_comes_and_done_holds_all_of_it(vault: opened.Opener) -> None:
    model = Model([["Hel", "lo."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    assert [event.text for event in events if isinstance(event, Text)] == ["Hel", "lo."]
    assert scripted.done(events).answer == "Hello."
    assert scripted.done(events).state == "complete"
    assert [event.kind for event in events] == ["text", "text", "usage", "usage", "done"]


def test_a_tool_is_called_and_its_result_given_back_in_a_marked_block(vault: opened.Opener) -> None:
    model = Model([["Let me look. ", Call("read_file", {"path": "Garden.md"}, "id-1")], ["It is green."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    assert [event.kind for event in events] == [
        *("text", "usage", "tool_call", "tool_result", "text", "usage", "usage", "done")
    ]
    assert scripted.of(events, "tool_call") == [ToolCall(id="id-1", name="read_file", arguments={"path": "Garden.md"})]
    result = events[3]
    assert isinstance(result, ToolResult)
    assert result.success
    assert result.answer["path"] == "Garden.md"
    (told,) = scripted.returned(model.asked[1])
    assert str(told.content).startswith('<vault-data source="read_file" mark="')
    assert "The fence is to be green." in str(told.content)
    assert scripted.done(events).tools[0]["name"] == "read_file"  # pyright: ignore[reportIndexIssue, reportArgumentType, reportCallIssue, reportOptionalSubscript]


def test_an_error_goes_back_to_the_model_with_its_hint(vault: opened.Opener) -> None:
    model = Model([[Call("read_file", {"path": "Gardn.md"})], ["No such note."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    (told,) = scripted.returned(model.asked[1])
    assert '"code": "not_found"' in str(told.content)
    assert "Garden.md" in str(told.content)
    assert scripted.done(events).state == "complete"


def test_a_tool_that_is_not_there_is_an_error_for_the_model(vault: opened.Opener) -> None:
    model = Model([[Call("drop_vault", {"sure": True})], ["Sorry."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    (result,) = scripted.of(events, "tool_result")
    assert isinstance(result, ToolResult)
    assert not result.success
    assert scripted.done(events).answer == "Sorry."


def test_what_decides_on_proposals_is_not_offered(vault: opened.Opener) -> None:
    model = Model([["Hi."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model), context)

    offered = {tool.name for tool in model.infos[0].function_tools}
    assert {"read_file", "edit_file", "get_continuation", "ask_user"} <= offered
    assert not {"accept_proposal", "undo_change"} & offered


def test_twenty_rounds_of_calls_and_no_more(vault: opened.Opener) -> None:
    replies = [[f"Step {number}. ", Call("read_lines", {"path": "Long.md", "first": number, "last": number})]
               for number in range(1, 40)]  # fmt: skip
    model = Model(replies)

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model, rows=(row_of_lines(),)), context)

    assert len(scripted.of(events, "tool_call")) == 20
    assert len(model.asked) == 21
    assert scripted.done(events).state == "limit"
    assert scripted.done(events).answer == f"Step 21. {LIMIT_REACHED}"


def row_of_lines() -> ToolSpec:
    from knapper.tools import reading  # noqa: PLC0415

    def read_lines(context: Context, path: str, first: int, last: int) -> dict[str, object]:
        """Read lines."""
        return reading.read_lines(context, path, first, last)  # pyright: ignore[reportReturnType]

    return ToolSpec(function=read_lines)


def logging(context: Context, summary: str = "") -> dict[str, object]:
    """Log."""
    del context
    return {"success": True, "message": summary}


def test_calls_of_uncounted_tools_do_not_count_unless_others_come_with_them(vault: opened.Opener) -> None:
    replies = [[Call("log_interaction", {"summary": str(number)})] for number in range(25)]
    model = Model([*replies, ["Done."]])

    with scripted.agent(vault) as context:
        rows = (ToolSpec(function=logging, alias="log_interaction"),)
        events = scripted.run(scripted.chat(model, rows=rows), context)

    assert len(scripted.of(events, "tool_call")) == 25
    assert scripted.done(events).answer == "Done."
    assert scripted.done(events).state == "complete"


def test_a_model_that_only_calls_uncounted_tools_is_stopped_all_the_same(vault: opened.Opener) -> None:
    model = Model([[Call("log_interaction", {"summary": str(number)})] for number in range(200)])

    with scripted.agent(vault) as context:
        rows = (ToolSpec(function=logging, alias="log_interaction"),)
        events = scripted.run(scripted.chat(model, rows=rows), context)

    assert scripted.done(events).state == "limit"
    assert len(model.asked) == 100


def test_the_same_call_twice_in_a_row_gets_a_remark(vault: opened.Opener) -> None:
    same = Call("read_file", {"path": "Garden.md"})
    model = Model([[same], [same], [Call("read_file", {"path": "Long.md"})], [same], ["Done."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    told = [str(part.content) for part in scripted.returned(model.asked[-1])]
    assert ["The fence" in text for text in told] == [True, False, False, True]
    assert "made just before" in told[1]
    assert [event.success for event in events if isinstance(event, ToolResult)] == [True, False, True, True]


def test_a_question_to_the_person_ends_the_turn(vault: opened.Opener) -> None:
    model = Model(
        [[Call("ask_user", {"question": "Which fence?", "options": "['front', 'back']"}, "q")], ["Never said"]]
    )

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    assert scripted.of(events, "question") == [
        QuestionEvent(id="q", question="Which fence?", options=["front", "back"])
    ]
    assert scripted.done(events).state == "asked"
    assert scripted.done(events).answer == "Which fence?"
    assert len(model.asked) == 1


@pytest.mark.parametrize("question", ["", " \n", None])
def test_a_question_without_words_is_none(vault: opened.Opener, question: str | None) -> None:
    model = Model([[Call("ask_user", {"question": question, "options": ["a", None]})], ["Never mind."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    assert scripted.of(events, "question") == []
    assert "the question is empty" in str(scripted.returned(model.asked[1]))
    assert scripted.done(events).state == "complete"
    assert scripted.done(events).answer == "Never mind."


def test_of_two_questions_at_once_the_first_is_put(vault: opened.Opener) -> None:
    asked = [Call("ask_user", {"question": "Which?", "options": ["a", None]}), Call("ask_user", {"question": "Why?"})]

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(Model([asked])), context)

    assert [(one.question, one.options) for one in events if isinstance(one, QuestionEvent)] == [("Which?", ["a"])]
    assert scripted.done(events).answer == "Which?"


def test_an_answer_of_white_space_is_none(vault: opened.Opener) -> None:
    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(Model([["  \n"]])), context)

    assert scripted.done(events).state == "failed"
    assert [event.code for event in events if isinstance(event, Error)] == ["model_reply"]


class Gauge:
    """Count how many calls run at once."""

    def __init__(self, at_once: int) -> None:
        self.met = threading.Barrier(at_once)
        """Where as many calls as may run at once wait for each other."""
        self.lock = threading.Lock()
        self.now = 0
        self.most = 0
        self.order: list[str] = []

    def rows(self) -> tuple[ToolSpec, ...]:
        def look(context: Context, name: str) -> dict[str, object]:
            """Look."""
            del context
            return self.work(name)

        def change(context: Context, name: str) -> dict[str, object]:
            """Change."""
            del context
            return self.work(name)

        return ToolSpec(function=look), ToolSpec(function=change, effect="write", has_submit_options=False)

    def work(self, name: str) -> dict[str, object]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(name)
        self.met.wait(60)
        time.sleep(0.05)
        with self.lock:
            self.now -= 1
        return {"success": True}


@pytest.mark.parametrize(("tool", "most"), [("look", 3), ("change", 1)])
def test_reads_run_side_by_side_and_writes_one_after_another(vault: opened.Opener, tool: str, most: int) -> None:
    gauge = Gauge(most)
    model = Model([[Call(tool, {"name": "a"}), Call(tool, {"name": "b"}), Call(tool, {"name": "c"})], ["Done."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model, rows=gauge.rows()), context)

    assert gauge.most == most
    assert sorted(gauge.order) == ["a", "b", "c"]
    if tool == "change":
        assert gauge.order == ["a", "b", "c"]


def test_the_system_prompt_tells_the_day_the_preferences_and_the_open_note(vault: opened.Opener) -> None:
    model = Model([["Hi."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model), context, active_file="Garden.md")

    prompt = model.infos[0].instructions or ""
    assert "Saturday, 2026-03-14, 09:26" in prompt
    assert "Answer in short sentences." in prompt
    assert '"Garden.md"' in prompt


def test_a_cancelled_turn_keeps_what_was_said_and_can_go_on(vault: opened.Opener) -> None:
    async def cancelled(context: Context) -> ChatTurn:
        chat = scripted.chat(Model([["Once ", "upon ", "a time."]]))
        turn = ChatTurn(chat, context, Message(text="tell", run="run-1"))
        async with aclosing(scripted.stream_events(turn)) as events:
            async for event in events:
                if isinstance(event, Text):
                    break
        return turn

    with scripted.agent(vault) as context:
        turn = asyncio.run(cancelled(context))
        model = Model([["And on."]])
        events = scripted.run(scripted.chat(model), context, history=turn.messages)

    assert turn.state == "cancelled"
    assert turn.done().answer == "Once "
    assert scripted.done(events).answer == "And on."
    assert [len(one.parts) for one in model.asked[0]] == [1, 1, 1]


def test_a_script_ends_where_its_turn_is_cancelled(vault: opened.Opener) -> None:
    begun, ended = threading.Event(), threading.Event()

    def run_on(context: Context) -> Answer:
        """Work until nobody waits any more."""
        forget = context.on_cancel(ended.set)
        begun.set()
        _ = ended.wait(5)
        forget()
        return {"success": False, "error": "it was ended"}

    async def cancelled(turn: ChatTurn) -> None:
        task = asyncio.create_task(turn.run(lambda _: None))
        assert await asyncio.to_thread(begun.wait, 60)
        _ = task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with scripted.agent(vault) as context:
        chat = scripted.chat(Model([[Call("run_on")]]), [ToolSpec(function=run_on, effect="write")])
        turn = ChatTurn(chat, context, Message(text="work", run="run-1"))
        asyncio.run(cancelled(turn))

    assert ended.is_set()
    assert turn.done().state == "cancelled"


def test_a_change_that_goes_on_where_a_turn_is_cancelled_is_waited_for_and_told(vault: opened.Opener) -> None:
    begun, let = threading.Event(), threading.Event()

    def write_slowly(context: Context, path: str) -> Answer:
        """Write a note, slowly."""
        begun.set()
        assert let.wait(60)
        _ = (context.view.root / path).write_text("x", encoding="utf-8")
        return {"success": True, "status": "applied", "change_id": "c1", "path": path}

    async def cancelled(turn: ChatTurn, told: list[Event]) -> None:
        task = asyncio.create_task(turn.run(told.append))
        assert await asyncio.to_thread(begun.wait, 60)
        _ = task.cancel()
        await asyncio.sleep(0.05)
        let.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    told: list[Event] = []
    model = Model([["Then."]])
    with scripted.agent(vault) as context:
        chat = scripted.chat(
            Model([[Call("write_slowly", {"path": "New.md"})]]), [ToolSpec(function=write_slowly, effect="write")]
        )
        turn = ChatTurn(chat, context, Message(text="write", run="run-1"))
        asyncio.run(cancelled(turn, told))
        made = (vault.root / "New.md").exists()
        _ = scripted.run(scripted.chat(model), context, history=turn.messages)

    assert made
    assert (turn.done().state, turn.done().changes) == ("cancelled", ["c1"])
    assert [event.kind for event in told][-1] == "tool_result"
    assert "c1" in str(scripted.returned(model.asked[0])[0].content)


@pytest.mark.parametrize("name", ["ask_vault", "accept_proposal", "undo_change", "call_tool", "nothing"])
def test_no_tool_is_called_through_another_one_that_the_model_is_not_offered(vault: opened.Opener, name: str) -> None:
    rows = [row for row in tables.build_table().specs if row.name != "ask_vault"]
    arguments = {"name": name, "arguments": {"task": "x", "name": "ask_vault", "proposal_id": "p", "change_id": "c"}}
    found = Call("find_tool", {"query": name.replace("_", " "), "limit": 50})
    model = Model([[found], [Call("call_tool", arguments)], ["Fine."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model, rows), context)

    search, call = [event for event in events if isinstance(event, ToolResult)]
    offered = {row.name for row in rows} - {"accept_proposal", "undo_change"}
    assert {row["name"] for row in cast("list[dict[str, str]]", search.answer["results"])} <= offered
    assert (call.success, call.answer["code"]) == (False, "no_tool")


@pytest.mark.parametrize(
    ("name", "hint"), [("read_fil", "did you mean 'read_file'?"), ("list_nots", "did you mean 'list_notes'?")]
)
def test_a_mistyped_tool_is_told_with_the_nearest_that_the_model_is_offered(
    vault: opened.Opener, name: str, hint: str
) -> None:
    rows = [row for row in tables.build_table().specs if row.name != "find_notes"]
    model = Model([[Call("call_tool", {"name": name, "arguments": {}})], ["Fine."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model, rows), context)

    (call,) = [event for event in events if isinstance(event, ToolResult)]
    assert (call.success, call.answer["hint"]) == (False, hint)


def test_a_tool_that_is_offered_can_be_called_through_another_one(vault: opened.Opener) -> None:
    model = Model([[Call("call_tool", {"name": "read_file", "arguments": '{"path": "Garden.md"}'})], ["Fine."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model, essential=True), context)

    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert (result.name, result.success, result.answer["path"]) == ("read_file", True, "Garden.md")


def test_a_turn_that_stopped_at_the_cap_can_go_on(vault: opened.Opener) -> None:
    replies = [["Looking. ", Call("read_file", {"path": "Garden.md", "offset": number})] for number in range(5)]
    chat = scripted.chat(Model(replies), caps=TurnCaps(rounds=2))

    with scripted.agent(vault) as context:
        turn = ChatTurn(chat, context, Message(text="look", run="run-1"))
        first = asyncio.run(scripted.stream(turn))
        second = scripted.run(scripted.chat(Model([["Fine."]])), context, history=turn.messages)

    assert scripted.done(first).state == "limit"
    assert scripted.done(second).answer == "Fine."


def test_essential_tools_come_first_and_found_ones_are_added(vault: opened.Opener) -> None:
    model = Model([[Call("find_tool", {"query": "rename a tag everywhere"})], ["Done."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model, essential=True), context)

    first, second = ({tool.name for tool in info.function_tools} for info in model.infos)
    assert "rename_tag" not in first
    assert "rename_tag" in second
    assert len(first) < 20


def test_a_client_that_may_not_write_is_offered_what_reads(vault: opened.Opener) -> None:
    model = Model([["Hi."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model, may_write=False), context)

    assert not {"create_file", "edit_file"} & {tool.name for tool in model.infos[0].function_tools}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("My plan.md", "My\u00a0plan.md"),
        ("My plan.md", "My\u202fplan.md"),
        ("My\u00a0plan.md", "My\u00a0plan.md"),
    ],
)
def test_a_path_with_odd_spaces_names_the_note_that_is_meant(tmp_path: Path, name: str, given: str) -> None:
    vault = opened.vault(tmp_path, {name: "Here.\n"})
    model = Model([[Call("read_file", {"path": given})], ["Read."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.answer["path"] == name


def test_a_new_note_gets_plain_spaces(vault: opened.Opener) -> None:
    model = Model([[Call("create_file", {"path": "New\u00a0plan.md", "content": "x"})], ["Proposed."]])

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(model), context)

    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.answer["path"] == "New plan.md"


def test_a_first_message_is_under_10_kilobytes(vault: opened.Opener) -> None:
    model = Model([["Hi."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model, essential=True), context)

    info, (request,) = model.infos[0], model.asked[0]
    # As OpenAI's protocol has them.
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in info.function_tools
    ]
    messages = [info.instructions, *(str(part.content) for part in request.parts if isinstance(part, UserPromptPart))]
    body = json.dumps({"tools": tools, "messages": messages}, separators=(",", ":"), ensure_ascii=False)
    assert "hello" in messages
    assert len(tools) >= 10
    assert len(body.encode()) < 10_000
