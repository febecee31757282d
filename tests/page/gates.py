"""Models that wait until a test lets them go on, or that fail."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from tests.agents.scripts import Cast


@dataclass(kw_only=True)
class Gate:
    """Say a word, wait until it may go on, and say the rest, each after another wait."""

    words: Sequence[str]
    _loops: list[asyncio.AbstractEventLoop] = field(default_factory=list[asyncio.AbstractEventLoop])
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _has_begun: threading.Event = field(default_factory=threading.Event)

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream)

    def go_on(self) -> None:
        """Let the next word come; the first one has."""
        assert self._has_begun.wait(60)
        self._loops[0].call_soon_threadsafe(self._bell.set)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        del messages, info
        self._loops.append(asyncio.get_running_loop())
        self._has_begun.set()
        for number, word in enumerate(self.words):
            if number:
                await self._bell.wait()
                self._bell.clear()
            yield word


@dataclass(kw_only=True)
class Held:
    """Play a cast, and wait before the scout's second reply."""

    cast: Cast
    _loops: list[asyncio.AbstractEventLoop] = field(default_factory=list[asyncio.AbstractEventLoop])
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _has_begun: threading.Event = field(default_factory=threading.Event)

    def open(self) -> FunctionModel:
        whole = self.cast.open().function
        assert whole is not None
        return FunctionModel(stream_function=self._stream, function=whole)

    def go_on(self) -> None:
        """Let the scout go on; it has replied once, or will."""
        assert self._has_begun.wait(60)
        self._loops[0].call_soon_threadsafe(self._bell.set)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        if len(messages) > 1 and "update_selection" in {tool.name for tool in info.function_tools}:
            self._loops.append(asyncio.get_running_loop())
            self._has_begun.set()
            await self._bell.wait()
        played = self.cast.open().stream_function
        assert played is not None
        async for said in played(messages, info):
            yield cast("str | DeltaToolCalls", said)


def broken() -> FunctionModel:
    """Give a model whose server refuses."""

    async def refuse(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        del messages, info
        raise ModelHTTPError(403, "broken")
        yield ""

    return FunctionModel(stream_function=refuse)
