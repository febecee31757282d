"""Describe the web agent's tools."""

from typing import Any, Final

from pydantic_ai.tools import ToolDefinition

from knapper.agents.research.records import EVALUATE, FINALIZE, SEARCH, SELECT


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


DEFINITIONS: Final = {
    EVALUATE: ToolDefinition(
        name=EVALUATE,
        description="Say whether the notes answer the task, or the web has to be searched. Call it first.",
        parameters_json_schema=_object(
            {
                "needs_web": {"type": "boolean", "description": "Whether the web has to be searched."},
                "reasoning": {"type": "string", "description": "Why, in a sentence or two."},
            },
            "needs_web",
            "reasoning",
        ),
        sequential=True,
    ),
    SEARCH: ToolDefinition(
        name=SEARCH,
        description="Search the web.",
        parameters_json_schema=_object(
            {"query": {"type": "string", "description": "A few words, as for a search engine."}}, "query"
        ),
        sequential=True,
    ),
    SELECT: ToolDefinition(
        name=SELECT,
        description="Read pages in full that web_search found.",
        parameters_json_schema=_object(
            {
                "urls": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Their addresses, the best first.",
                },
                "reasoning": {"type": "string"},
            },
            "urls",
        ),
        sequential=True,
    ),
    FINALIZE: ToolDefinition(
        name=FINALIZE,
        description="Hand over what was found; ends the search.",
        parameters_json_schema=_object(
            {
                "findings": {"type": "string", "description": "What was found, and what is still open."},
                "sources": {
                    "type": "array",
                    "items": _object(
                        {
                            "url": {"type": "string"},
                            "extracted": {"type": "string", "description": "What of it matters for the task."},
                        },
                        "url",
                        "extracted",
                    ),
                },
            },
            "findings",
        ),
        sequential=True,
    ),
}
