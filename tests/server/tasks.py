"""Have agents do tasks over HTTP, with models that say what a test tells them to."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx2
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.agents import scripts
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.server import chats
from tests.server.chats import Gate, Heard

ANSWER = scripts.task("It rains on them. [[Rain]]")
EDIT = scripts.task("Now it snows.", ("Rain.md", "replace:3", "It snows on the tomatoes."))
SELECT = [scripts.select("Rain.md")]
ASK = [
    scripts.select("Rain.md", confidence="exploring"),
    Call("ask_user", {"question": "Which garden?", "options": ["North", "South"]}),
]


def answering(*replies: Any) -> Cast:  # noqa: ANN401 - any replies
    """Have the task agent say these in turn, and the scout choose a note."""
    return Cast({"task": replies or (ANSWER,), "scout": [SELECT]})


def asking() -> Cast:
    """Have the scout ask the person something, choose a note when it is answered, and the task be done."""
    return Cast({"task": [EDIT], "scout": [ASK, SELECT]})


class TaskGate(Gate):
    """Wait with the whole reply until it may go on."""

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, function=self._whole)

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        words = [word async for word in self._stream(messages, info)]
        return ModelResponse(parts=[TextPart(content="".join(words))])


def gate(summary: str = "Done.") -> TaskGate:
    """Have an agent reply when the gate is opened; as the task agent does."""
    return TaskGate(words=("", json.dumps({"summary": summary, "edits": []})))


def streaming(client: httpx2.Client, **order: object) -> AbstractContextManager[Iterator[Heard]]:
    """Hear a task from its beginning."""
    return chats.streaming(client, "/ask/stream", {"task": "rain?", "note": "Rain.md", **order})


def again(client: httpx2.Client, run_id: str, after: int = 0) -> list[Heard]:
    """Hear a run to its end, from an event on."""
    return chats.again(client, f"/ask/{run_id}", after)
