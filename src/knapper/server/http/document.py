"""Describe the API as an OpenAPI document; what each tool takes and gives comes from the tool itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from knapper.jsontypes import JSONValue
from knapper.server import statuses
from knapper.server.http.faces import Face
from knapper.tools import registry
from knapper.tools.registry import ToolTable

ERROR: Final = "Error"
TOKEN: Final = "token"  # noqa: S105 - the name of a scheme in the document
SECURITY: Final[Mapping[str, JSONValue]] = {TOKEN: {"type": "http", "scheme": "bearer"}}
ERROR_SCHEMA: Final[Mapping[str, JSONValue]] = {
    "type": "object",
    "description": "What went wrong, and what to do about it; some errors tell more beside.",
    "properties": {
        "success": {"const": False},
        "error": {"type": "string", "description": "For people."},
        "code": {"type": "string", "description": "For programs; stable."},
        "hint": {"type": "string", "description": "The next step."},
    },
    "required": ["success", "error", "code"],
}
_KNOWN: Final[Mapping[str, JSONValue]] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of a reply that is at hand already.",
}
_REF: Final = "#/components/schemas/"
_JSON: Final = "application/json"


def failures() -> dict[str, Any]:
    """Give the error replies that every route with a token may have."""
    reply = {_JSON: {"schema": {"$ref": f"{_REF}{ERROR}"}}}
    return {str(status): {"description": text, "content": reply} for status, text in statuses.DOCUMENTED.items()}


def completed(described: Mapping[str, Any], faces: Sequence[Face], table: ToolTable) -> dict[str, Any]:
    """Add the routes that show tools to a document, and the schemas that they refer to."""
    paths: dict[str, dict[str, Any]] = {path: dict(operations) for path, operations in described["paths"].items()}
    schemas: dict[str, JSONValue] = {ERROR: dict(ERROR_SCHEMA)}
    for face in faces:
        found, shared = operation(face, table)
        paths.setdefault(face.path.replace(":path}", "}"), {})[face.method.lower()] = found
        schemas |= shared
    components = {**described.get("components", {}), "schemas": schemas, "securitySchemes": dict(SECURITY)}
    return {**described, "paths": paths, "components": components}


def operation(face: Face, table: ToolTable) -> tuple[dict[str, Any], dict[str, JSONValue]]:
    """Describe a route.

    Returns:
        The operation, and the schemas that it refers to, by name.
    """
    row = table.find(face.tool)
    shared: dict[str, JSONValue] = {}
    takes = _shared(table.parameters(row), f"{row.name}.", shared)
    gives = _shared(registry.answer_schema(row), f"{row.name}.", shared)
    described: dict[str, Any] = {
        "operationId": _id(face),
        "tags": [face.tag],
        "summary": registry.summarize(row),
        "description": registry.describe(row),
        "security": [{TOKEN: []}],
        "parameters": _parameters(face, takes),
        "responses": {
            "200": {"description": "What the tool answers.", "content": {_JSON: {"schema": gives}}},
            **failures(),
        },
    }
    if face.is_tagged:
        described["parameters"].append(dict(_KNOWN))
        described["responses"]["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        described["responses"]["304"] = {"description": "It is as the asker knows it."}
    if face.method != "GET":
        described["requestBody"] = {
            "required": _needed(face, takes),
            "content": {_JSON: {"schema": _body(face, takes)}},
        }
    return described, shared


def _id(face: Face) -> str:
    words = face.path.replace("{", "by_").replace("}", "").replace(":path", "").strip("/")
    return f"{face.method.lower()}_{words.replace('/', '_')}"


def _parameters(face: Face, takes: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties, required = takes["properties"], takes.get("required", ())
    found: list[dict[str, Any]] = []
    for name, one in properties.items():
        place = "path" if name in face.bound else "query"
        if name in face.fixed or (place == "query" and face.method != "GET"):
            continue
        content = {"content": {_JSON: {"schema": one}}} if "$ref" in one else {"schema": one}
        said = {"name": name, "in": place, "required": place == "path" or name in required, **content}
        found.append(said | ({"description": one["description"]} if "description" in one else {}))
    return found


def _body(face: Face, takes: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: one for name, one in takes["properties"].items() if name not in face.bound}
    required = [name for name in takes.get("required", ()) if name not in face.bound]
    return {**takes, "properties": properties, **({"required": required} if "required" in takes else {})}


def _needed(face: Face, takes: Mapping[str, Any]) -> bool:
    return bool(set(takes.get("required", ())) - face.bound)


def _shared(given: Mapping[str, JSONValue], prefix: str, shared: dict[str, JSONValue]) -> dict[str, Any]:
    """Move a schema's own definitions to where the whole document's stand."""
    inner = given.get("$defs", {})
    for name, one in inner.items() if isinstance(inner, dict) else ():
        shared[f"{prefix}{name}"] = _renamed(one, prefix)
    rest: JSONValue = {name: one for name, one in given.items() if name != "$defs"}
    return cast("dict[str, Any]", _renamed(rest, prefix))


def _renamed(value: JSONValue, prefix: str) -> JSONValue:
    if isinstance(value, dict):
        return {
            name: one.replace("#/$defs/", f"{_REF}{prefix}")
            if name == "$ref" and isinstance(one, str)
            else _renamed(one, prefix)
            for name, one in value.items()
        }
    return [_renamed(one, prefix) for one in value] if isinstance(value, list) else value
