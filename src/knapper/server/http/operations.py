"""Describe routes that show no tool as operations of the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fastapi.routing import APIRoute

from knapper.jsontypes import JSONValue
from knapper.server.http import document
from knapper.server.http.arguments import Take
from knapper.server.http.calling import Endpoint

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
