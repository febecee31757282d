"""Describe the routes of chats and sessions in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fastapi.routing import APIRoute

from knapper.server.http import document
from knapper.server.http.calling import Endpoint
from knapper.server.http.chat_asking import Take
from knapper.vault.outline import JSONValue

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_NAME: Final = re.compile(r"{(\w+)(?::\w+)?}")
_ASK_MODELS: Final = ("/chat", "/chat/stream", "/ask", "/ask/stream")
_UPSTREAM: Final = {
    "description": "The model's server can't be reached, refuses, or answers what can't be used; "
    "`response` has what there is of an answer.",
    "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{document.ERROR}"}}},
}


@dataclass(frozen=True, slots=True)
class Shown:
    """Hold a route with what is said of it."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    tag: str
    summary: str
    endpoint: Endpoint
    description: str = ""
    takes: Sequence[Take] = ()
    gives: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The content of the good reply, by its type."""
    status: int = 200
    """Of the good reply."""


def route(shown: Shown) -> APIRoute:
    """Make a route that describes itself."""
    return APIRoute(
        shown.path,
        shown.endpoint,
        methods=[shown.method],
        status_code=shown.status,
        response_model=None,
        response_description="It went well.",
        tags=[shown.tag],
        operation_id=_id(shown),
        summary=shown.summary,
        description=shown.description or None,
        openapi_extra=_operation(shown),
    )


def listed(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a page of a list."""
    counts: dict[str, Any] = {each: {"type": "integer"} for each in ("total", "limit", "offset")}
    return answer({name: {"type": "array", "items": dict(row)}, **counts})


def answer(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a reply as JSON."""
    return {_JSON: {"schema": shape({"success": {"const": True}, **properties})}}


def streamed(told: str) -> dict[str, Any]:
    """Describe a stream of events.

    Args:
        told: Which there are, in which order.
    """
    fields = {"id": _TEXT, "event": _TEXT, "data": {**_TEXT, "contentMediaType": _JSON}}
    text = f"One of the events; its data is JSON, whose `type` is the event's name. {told}"
    return {_EVENTS: {"schema": {**shape(fields), "description": text}}}


def shape(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an object, all of whose properties are there."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _id(shown: Shown) -> str:
    words = shown.path.replace("{", "by_").replace(":path", "").replace("}", "").strip("/").replace("/", "_")
    return f"{shown.method.lower()}_{words}"


def _operation(shown: Shown) -> dict[str, Any]:
    in_body = shown.method in {"POST", "PUT", "PATCH"}
    found: dict[str, Any] = {
        "security": [{document.TOKEN: []}],
        "parameters": [_parameter(name) for name in _NAME.findall(shown.path)],
        "responses": {str(shown.status): {"content": dict(shown.gives)}, **document.failures()},
    }
    if shown.path.endswith(_ASK_MODELS):
        found["responses"]["502"] = _UPSTREAM
    if not in_body:
        found["parameters"] += [_in_query(take) for take in shown.takes]
    elif shown.takes:
        found["requestBody"] = {
            "required": any(take.needed for take in shown.takes),
            "content": {_JSON: {"schema": _body(shown.takes)}},
        }
    if _EVENTS in shown.gives and shown.method == "GET":
        found["parameters"].append(
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "integer", "minimum": 0}}
        )
    return found


def _parameter(name: str) -> dict[str, JSONValue]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(take: Take) -> dict[str, JSONValue]:
    schema: dict[str, JSONValue] = {**take.schema, "type": take.type}
    return {"name": take.name, "in": "query", "required": take.needed, "schema": schema}


def _body(takes: Sequence[Take]) -> dict[str, Any]:
    required = [take.name for take in takes if take.needed]
    shape: dict[str, Any] = {
        "type": "object",
        "properties": {take.name: take.schema for take in takes},
        "additionalProperties": False,
    }
    return {**shape, "required": required} if required else shape


_ROWS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_QUESTION: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "description": "What the model asks; the next message in the session answers it.",
    "properties": {"question": _TEXT, "options": {"type": "array"}},
}
_TURN: Final[Mapping[str, Any]] = {
    "response": {"type": "string", "description": "The answer, with citations that hold only."},
    "session_id": _TEXT,
    "turn_id": _TEXT,
    "citations": {**_ROWS, "description": "Each with its path, lines and the note's hash."},
    "removed": {**_ROWS, "description": "Citations that were dropped, each with the reason."},
    "tools": _ROWS,
    "proposals": {**_ROWS, "description": "What waits for a person's word; see /proposals."},
    "changes": {"type": "array", "items": _TEXT, "description": "Ids of what was applied."},
    "question": _QUESTION,
    "usage": {"type": "object"},
    "model": _TEXT,
    "state": {"enum": ["complete", "limit", "asked", "cancelled"]},
    "notes": {"type": "array"},
}
REPLY: Final = answer(_TURN)
STREAM: Final[Mapping[str, Any]] = streamed(
    "`start` comes first, with turn_id, session_id and message; then `text`, `tool_call`, `tool_result`, `proposal`, "
    "`question`, `usage` and `error`, as they happen; `done` comes last, with the answer. A lost connection doesn't "
    "end the turn: GET /chat/{turn_id}/events goes on."
)
CANCELLED: Final = answer(
    {"turn_id": _TEXT, "session_id": _TEXT, "cancelled": {"type": "boolean"}, "ended": {"type": "boolean"}}
)
SESSION: Final[Mapping[str, Any]] = shape(
    {
        "id": _TEXT,
        "title": _TEXT,
        "active_file": {"type": ["string", "null"]},
        "kind": {"enum": ["file", "none", "own"], "description": "Found by its file, without a file, or by its id."},
        "created": _TEXT,
        "updated": _TEXT,
        "turns": {"type": "integer"},
        "forked_from": {"type": ["string", "null"]},
        "running": {"type": ["string", "null"], "description": "The turn that goes on, if one does."},
    }
)
MESSAGE: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "content": _TEXT,
        "number": {"type": "integer", "description": "The turn's, from 1."},
        "at": _TEXT,
        "active_file": {"type": ["string", "null"]},
        "outcome": {"type": "object", "description": "As `done` tells it; of an answer only."},
    },
    "required": ["role", "content", "number", "at"],
}
