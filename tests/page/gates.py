"""Models that wait between words until a test lets them go on, or that fail."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel


@dataclass(kw_only=True)
class Gate:
    """Say a word, wait until it may go on, and say the rest, each after another wait."""

    words: Sequence[str]
    _loops: list[asyncio.AbstractEventLoop] = field(default_factory=list[asyncio.AbstractEventLoop])
    _bell: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream)

    def go_on(self) -> None:
        """Let the next word come; the first one has."""
        self._loops[0].call_soon_threadsafe(self._bell.set)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        del messages, info
        self._loops.append(asyncio.get_running_loop())
        for number, word in enumerate(self.words):
            if number:
                await self._bell.wait()
                self._bell.clear()
            yield word


def broken() -> FunctionModel:
    """Give a model whose server refuses."""

    async def refuse(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        del messages, info
        raise ModelHTTPError(403, "broken")
        yield ""

    return FunctionModel(stream_function=refuse)
