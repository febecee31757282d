"""Tell a model's calls of tools apart where its server counts them anew in each reply."""

import secrets
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse

_LENGTH = 9
"""Letters and digits; some servers take no other length."""


def of(messages: Sequence[ModelMessage]) -> set[str]:
    """Gather the ids of all calls of a conversation."""
    return {call.tool_call_id for one in messages if isinstance(one, ModelResponse) for call in one.tool_calls}


def part(said: ModelResponse, known: set[str]) -> None:
    """Give calls ids of their own, where they stand: results, and what is shown of them, are found by these.

    Args:
        said: A reply that was streamed; what is asked next holds it.
        known: The ids of the conversation's calls before; those of the reply are added.
    """
    for call in said.tool_calls:
        if call.tool_call_id in known:
            call.tool_call_id = secrets.token_hex(_LENGTH)[:_LENGTH]
        known.add(call.tool_call_id)
