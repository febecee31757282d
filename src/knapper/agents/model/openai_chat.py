"""Detect streams of OpenAI's protocol that broke off, and replies of another shape."""

import re
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Final

import httpx2
from openai import AsyncStream
from openai.types.chat import ChatCompletionChunk
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import FinishReason, ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings, OpenAIStreamedResponse
from pydantic_ai.settings import ModelSettings

# A server ends a stream with `data: [DONE]`; some leave out the finish reason, so that line is the only sign.
_END_MARK: Final = re.compile(rb"[\r\n]data:[ \t]?\[DONE\]")
_TAIL_BYTES: Final = 32
"""Bytes kept of earlier parts, in which an end mark that arrives in two parts begins."""
_SHAPE_ERRORS: Final = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""The errors of a reply of another shape, which neither OpenAI's library nor pydantic-ai checks for."""


@contextmanager
def _reporting_bad_shape() -> Generator[None]:
    try:
        yield
    except _SHAPE_ERRORS as error:
        raise UnexpectedModelBehavior(f"the reply has another shape ({type(error).__name__})") from error


class _EndMarkStream(httpx2.AsyncByteStream):
    """A response body that notes whether the protocol's end mark was in it."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body
        self._tail = b"\n"
        self.is_done = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            window = self._tail + part
            self.is_done = self.is_done or bool(_END_MARK.search(window))
            self._tail = window[-_TAIL_BYTES:]
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


class _CheckedStreamedResponse(OpenAIStreamedResponse):
    """A stream that counts as broken off without finish reason and end mark; a compressed one isn't checked."""

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        with _reporting_bad_shape():
            async for event in super()._get_event_iterator():
                yield event

    def _missing_finish_reason(self) -> FinishReason:
        body = self._response.source.response.stream
        return "error" if isinstance(body, _EndMarkStream) and not body.is_done else "stop"


class TruncationAwareChatModel(OpenAIChatModel):
    """A model of OpenAI's protocol; a stream that broke off has the finish reason ``error``."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Request a whole reply; one of another shape raises `UnexpectedModelBehavior`."""
        with _reporting_bad_shape():
            return await super().request(messages, model_settings, model_request_parameters)

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CheckedStreamedResponse

    async def _process_streamed_response(
        self,
        response: AsyncStream[ChatCompletionChunk],
        model_request_parameters: ModelRequestParameters,
        model_settings: OpenAIChatModelSettings | None = None,
    ) -> OpenAIStreamedResponse:
        answer, body = response.response, response.response.stream
        # The end mark can only be found in a body that isn't compressed.
        if isinstance(body, httpx2.AsyncByteStream) and answer.headers.get("content-encoding") in {None, "identity"}:
            answer.stream = _EndMarkStream(body)
        with _reporting_bad_shape():
            return await super()._process_streamed_response(response, model_request_parameters, model_settings)


class TruncationAwareOllamaModel(TruncationAwareChatModel, OllamaModel):
    """A model of Ollama; a stream that broke off has the finish reason ``error``."""
