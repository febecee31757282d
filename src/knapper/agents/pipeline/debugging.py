"""Write what a model was given and said so that a person can read it."""

import json
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart


def readable(messages: Sequence[ModelMessage]) -> str:
    """Write a conversation: each part under its kind, JSON over several lines."""
    parts: list[str] = []
    for message in messages:
        who = "model" if isinstance(message, ModelResponse) else "to the model"
        for part in message.parts:
            if isinstance(part, TextPart | UserPromptPart):
                parts.append(f"--- {who}\n{_pretty(str(part.content))}")
            elif isinstance(part, ToolCallPart):
                parts.append(f"--- {who} calls {part.tool_name}\n{_pretty(part.args_as_json_str())}")
            elif isinstance(part, ToolReturnPart):
                parts.append(f"--- {part.tool_name} answers\n{part.model_response_str()}")
    return "\n\n".join(parts)


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
