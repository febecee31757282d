"""Give models that need no server: one that does each task as it should be done, and one that does all wrong."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from knapper.agents.scout.names import ASK_USER, UPDATE_SELECTION
from knapper.agents.suite.tasks import Edit, Task
from knapper.jsontypes import JSONValue

Tool = tuple[str, dict[str, JSONValue]]
_TASK: Final = "You do what a person asks"
_CALM: Final = 'A {"brace": in a text and a ``` fence'


def perfect(task: Task) -> Model:
    """Do a task as it should be done."""
    script = task.perfect
    chosen: list[JSONValue] = [*script.selects]
    select: dict[str, JSONValue] = {"selected_paths": chosen, "reasoning": "the task is about them"}
    calls: list[Tool] = [(UPDATE_SELECTION, {**select, "confidence": "exploring" if script.asks else "done"})]
    if script.asks:
        calls.append((ASK_USER, {"question": script.asks}))
    return _model([calls], [reply(script.summary, script.edits)])


def careless(task: Task, root: Path) -> Model:
    """Do a task with every mistake there is: made-up paths and lines, overlaps, forbidden places, broken replies.

    Args:
        task: The task.
        root: The vault's folder: while the model replies, somebody else saves a note there.
    """
    current = task.current or "Budget.md"
    wild: tuple[Edit, ...] = (
        (current, "replace:900", "x"),
        (current, "delete:1-9999", ""),
        (current, "replace:0", "x"),
        (current, "insert:-3", "x"),
        (current, "replace:6-8", "over\nlapping"),
        (current, "replace:7", "the other"),
        (current, "insert:3", "12: numbered\n13: lines\n"),
        ("Private/Secrets.md", "end", "I was here."),
        ("Made/Up.md", "replace:1", "x"),
        ("../outside.md", "create", "x"),
        ("/etc/passwd", "end", "x"),
        (".obsidian/app.json", "create", "{}"),
        ("Ideas.md", "create", "overwritten"),
        (current, "after:## No Such Heading", "x"),
        (current, "rewrite", "x"),
    )
    stale: tuple[Edit, ...] = ((current, "replace:1", "stale first line"), (current, "replace:6-8", "stale lines"))
    cut_short = reply("Cut", ((current, "delete:1-5", ""), (current, "end", _CALM)))[:-25]

    def meddling(_messages: list[ModelMessage]) -> str:
        path = root / current
        _ = path.write_bytes(path.read_bytes().replace(b"# ", b"# Saved meanwhile: ", 1))
        return reply("Wild", wild)

    number = sum(map(ord, task.id)) % 3
    first: list[str | Callable[[list[ModelMessage]], str]] = [meddling, reply("Stale", stale)]
    second: list[str | Callable[[list[ModelMessage]], str]] = [cut_short, reply("Wild", wild)]
    third: list[str | Callable[[list[ModelMessage]], str]] = [reply("Wild", wild), cut_short]
    paths: list[JSONValue] = [
        "Made/Up.md",
        "../x",
        "Private/Secrets.md",
        *(f"Note {number}.md" for number in range(90)),
    ]
    calls: list[Tool] = [
        ("fetch_note", {"path": "No such.md"}),
        ("delete_file", {"path": current}),
        (UPDATE_SELECTION, {"selected_paths": paths, "reasoning": "all", "confidence": "sure!"}),
    ]
    return _model([calls, calls, []], (first, second, third)[number])


def reply(summary: str, edits: Sequence[Edit]) -> str:
    """Write a reply as the task agent is asked to."""
    rows = [{"file": file, "position": position, "content": content} for file, position, content in edits]
    return json.dumps({"summary": summary, "edits": rows}, ensure_ascii=False)


@dataclass(slots=True)
class _Turns:
    """Count what was said."""

    explored: int = 0
    done: int = 0


def _model(exploring: Sequence[Sequence[Tool]], doing: Sequence[str | Callable[[list[ModelMessage]], str]]) -> Model:
    """Make a model that explores by these rounds, and does tasks by these replies; the last ones again and again."""
    turns = _Turns()

    def task(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not (info.instructions or "").startswith(_TASK):  # the one that mends citations is asked so, too
            return ModelResponse(parts=[TextPart(content="")])
        said = doing[min(turns.done, len(doing) - 1)]
        turns.done += 1
        return ModelResponse(parts=[TextPart(content=said if isinstance(said, str) else said(messages))])

    async def explore(_: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        calls = exploring[min(turns.explored, len(exploring) - 1)]
        turns.explored += 1
        if not calls:
            yield "That is all."
        for number, (name, arguments) in enumerate(calls):
            called = DeltaToolCall(
                name=name, json_args=json.dumps(arguments), tool_call_id=f"{turns.explored}-{number}"
            )
            yield {number: called}

    return FunctionModel(function=task, stream_function=explore, model_name="scripted")
