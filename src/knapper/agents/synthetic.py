"""Describe the tools that the loop itself answers."""

from typing import Final

from pydantic_ai.tools import ToolDefinition

GET_CONTINUATION: Final = "get_continuation"
ASK_USER: Final = "ask_user"
DEFINITIONS: Final = (
    ToolDefinition(
        name=GET_CONTINUATION,
        description="Read on in a tool result of this turn that was cut.",
        parameters_json_schema={
            "type": "object",
            "properties": {
                "tool_call_id": {"type": "string", "description": "As the cut result tells."},
                "offset": {"type": "integer", "description": "The character to begin at.", "default": 0},
            },
            "required": ["tool_call_id"],
            "additionalProperties": False,
        },
    ),
    ToolDefinition(
        name=ASK_USER,
        description="Ask the person, where the task can be meant in several ways and the notes don't tell which.",
        parameters_json_schema={
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
            },
            "required": ["question"],
            "additionalProperties": False,
        },
        sequential=True,
    ),
)
