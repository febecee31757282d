"""Tell where an answer of a model isn't whole."""

from collections.abc import Mapping
from typing import Final

from pydantic_ai.messages import FinishReason, ModelResponse

_TOLD: Final[Mapping[FinishReason | None, str]] = {
    "length": "the answer ends where the model may write no more at once; ask it to go on",
    "error": "the answer broke off before its end; ask again, or ask the model to go on",
}


def of(reply: ModelResponse) -> tuple[str, ...]:
    """Say it in words for a person; empty where the answer is whole."""
    told = _TOLD.get("error" if _broke_off(reply) else reply.finish_reason)
    return (told,) if told else ()


def _broke_off(reply: ModelResponse) -> bool:
    """Tell whether a reply of Anthropic's, which always give a reason, ends without one."""
    given = reply.finish_reason or (reply.provider_details or {}).get("finish_reason")
    return reply.provider_name == "anthropic" and not given
