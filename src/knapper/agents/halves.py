"""Mend what models write that no UTF-8 can hold: halves of characters."""

import re
from dataclasses import replace
from typing import Any, Final, cast

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from knapper.jsontypes import JSONValue

_HALF: Final = re.compile("[\ud800-\udfff]")


def joined(text: str) -> str:
    """Join halves of a character that follow each other, and put U+FFFD for others."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole(value: JSONValue) -> JSONValue:
    """Mend all texts in a value, keys included; JSON can spell halves that stand in no text."""
    if isinstance(value, str):
        return joined(value)
    if isinstance(value, list):
        return [whole(one) for one in value]
    return {joined(name): whole(one) for name, one in value.items()} if isinstance(value, dict) else value


def mend(said: ModelResponse) -> None:
    """Mend a reply that was streamed, where it stands: what is asked next holds it, and it is kept."""
    for part in said.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part.content = joined(part.content)
        elif isinstance(part, ToolCallPart):
            _mend_call(part)
    if said.model_name:
        said.model_name = joined(str(said.model_name))  # a server may send anything
    if said.provider_response_id:
        said.provider_response_id = joined(str(said.provider_response_id))
    said.provider_details = cast("dict[str, Any] | None", whole(cast("JSONValue", said.provider_details)))


def _mend_call(call: ToolCallPart) -> None:
    call.tool_name, call.tool_call_id = joined(str(call.tool_name)), joined(str(call.tool_call_id))
    if isinstance(call.args, str):
        call.args = _HALF.sub(_escaped, call.args)


def _escaped(half: re.Match[str]) -> str:
    """Write half a character as JSON does, so that whoever reads the arguments still sees that it is one."""
    return f"\\u{ord(half[0]):04x}"


class Whole(WrapperModel):
    """Ask a model, and mend the texts of its replies; streams are passed on as they are, and are mended by `mend`."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask for a reply."""
        said = await super().request(messages, model_settings, model_request_parameters)
        return replace(said, parts=[_mended(part) for part in said.parts])


def _mended(part: ModelResponsePart) -> ModelResponsePart:
    return replace(part, content=joined(part.content)) if isinstance(part, TextPart | ThinkingPart) else part
