"""Models that say what a test tells them to, and what a turn of theirs came to."""

import asyncio
import datetime as dt
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models import Model as AnyModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from knapper.agents.chat.turn import ChatConfig, ChatTurn, Message
from knapper.agents.events import BaseEvent, Done, Event
from knapper.agents.prompting import Prompts
from knapper.app import tables
from knapper.changes.writer import SubmitOptions
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from tests.tools.opened import Opener

NOW = dt.datetime(2026, 3, 14, 9, 26, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    id: str = ""


Said = str | Call
Reply = Sequence[Said]
Script = Callable[[list[ModelMessage], int], Reply]


@dataclass
class Model:
    """Say the script's replies in turn; the last one again and again."""

    replies: Sequence[Reply]
    asked: list[list[ModelMessage]] = field(default_factory=list[list[ModelMessage]])
    infos: list[AgentInfo] = field(default_factory=list[AgentInfo])

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, function=self._whole)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for number, said in enumerate(self._next(messages, info)):
            if isinstance(said, str):
                yield said
            else:
                yield {number: delta(said, f"c{len(self.asked)}-{number}")}

    def _whole(self, messages: list[ModelMessage], info: AgentInfo):
        from pydantic_ai.messages import ModelResponse, TextPart  # noqa: PLC0415

        said = "".join(part for part in self._next(messages, info) if isinstance(part, str))
        return ModelResponse(parts=[TextPart(content=said)])

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Reply:
        self.asked.append(list(messages))
        self.infos.append(info)
        return self.replies[min(len(self.asked), len(self.replies)) - 1]


def delta(call: Call, usual: str) -> DeltaToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return DeltaToolCall(name=call.name, json_args=arguments, tool_call_id=call.id or usual)


def chat(model: Model | AnyModel, rows: Sequence[ToolSpec] = (), **more: object) -> ChatConfig:
    opened = model.open() if isinstance(model, Model) else model
    whole = ChatConfig(
        model=opened, name="scripted", rows=rows or tables.build_table().specs, prompts=Prompts(), now=lambda: NOW
    )
    return replace(whole, **more)


async def stream(turn: ChatTurn) -> list[Event]:
    async with aclosing(stream_events(turn)) as events:
        return [event async for event in events]


def run(given: ChatConfig, context: Context, text: str = "hello", **more: object) -> list[Event]:
    message = replace(Message(text=text, run="run-1"), **more)
    return asyncio.run(stream(ChatTurn(given, context, message)))


async def stream_events(turn: ChatTurn) -> AsyncGenerator[Event]:
    """Answer the message as a stream of events; closing the stream cancels the turn."""
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(turn.run(queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def done(events: Sequence[BaseEvent]) -> Done:
    last = events[-1]
    assert isinstance(last, Done)
    return last


def of(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def asked() -> SubmitOptions:
    return SubmitOptions(run="run-1")


def agent(opener: Opener) -> Context:
    return opener.open("agent", asked())


def returned(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """Give what the model was told that its tools answered."""
    requests = [one for one in messages if isinstance(one, ModelRequest)]
    return [part for one in requests for part in one.parts if isinstance(part, ToolReturnPart)]


async def drained(events: AsyncGenerator[Event]) -> list[Event]:
    return [event async for event in events]
