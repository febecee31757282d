"""Describe the HTTP API as an OpenAPI document."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Any, Final, Literal, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from knapper import __version__
from knapper.agents.events import BaseEvent
from knapper.errors import StorageError
from knapper.jsontypes import JSONValue, Record, is_list, is_object, is_sequence, object_or_empty
from knapper.server import security, workers
from knapper.server.http import binding
from knapper.server.http.binding import BoundRoute, Parameter, RequestArguments, ToolRoute
from knapper.tools import registry
from knapper.tools.answers import MAX_OFFSET
from knapper.tools.registry import ToolTable
from knapper.tools.shapes import MAX_RESULTS

ERROR_SCHEMA_NAME: Final = "Error"
TOKEN_SCHEME: Final = "token"  # noqa: S105 - the name of a scheme in the document
SECURITY_SCHEMES: Final[Mapping[str, JSONValue]] = {TOKEN_SCHEME: {"type": "http", "scheme": "bearer"}}
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
STRING: Final[Mapping[str, Any]] = {"type": "string"}
STRINGS: Final[Mapping[str, Any]] = {"type": "array", "items": STRING}
INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
BOOLEAN: Final[Mapping[str, Any]] = {"type": "boolean"}
OBJECTS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_IF_NONE_MATCH: Final[Mapping[str, JSONValue]] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of a reply that is at hand already.",
}
_PAGE_RANGES: Final[Mapping[str, Mapping[str, JSONValue]]] = {
    "limit": {"minimum": 1, "maximum": MAX_RESULTS},
    "offset": {"minimum": 0, "maximum": MAX_OFFSET},
}
"""Of the parameters that choose a page. Only this document has them: models that are shown tools seldom need them."""
_OPENAPI_VERSION: Final = "3.1.0"
_SCHEMA_REF: Final = "#/components/schemas/"
_JSON: Final = "application/json"


def error_responses() -> dict[str, Any]:
    """Return the error replies that every route with a token may have."""
    reply = {_JSON: {"schema": {"$ref": f"{_SCHEMA_REF}{ERROR_SCHEMA_NAME}"}}}
    return {
        str(status): {"description": text, "content": reply} for status, text in security.DOCUMENTED_STATUSES.items()
    }


def make_document(
    routes: Iterable[BaseRoute], faces: Sequence[ToolRoute], table: ToolTable, vaults: Sequence[str]
) -> dict[str, Any]:
    """Describe the whole API.

    Args:
        routes: The application's; those that describe themselves are in the document.
        faces: The tools' routes.
        table: The tools.
        vaults: Names of those that the reader may open.
    """
    paths: dict[str, dict[str, Mapping[str, object]]] = {}
    schemas: dict[str, JSONValue] = {ERROR_SCHEMA_NAME: dict(ERROR_SCHEMA)}
    for route in routes:
        if isinstance(route, BoundRoute) and route.operation is not None:
            operation = {name: _resolve_types(part, schemas) for name, part in route.operation().items()}
            paths.setdefault(_path_in_document(route.path), {})[route.method.lower()] = operation
    for face in faces:
        described_route, shared = describe_tool_route(face, table, vaults)
        paths.setdefault(_path_in_document(face.path), {})[face.method.lower()] = described_route
        schemas |= shared
    return {
        "openapi": _OPENAPI_VERSION,
        "info": {"title": "Knapper", "summary": "Search, question and edit Markdown vaults.", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": dict(SECURITY_SCHEMES)},
    }


def _path_in_document(path: str) -> str:
    return path.replace(":path}", "}")


def describe_tool_route(
    route: ToolRoute, table: ToolTable, vaults: Sequence[str]
) -> tuple[dict[str, Any], dict[str, JSONValue]]:
    """Describe a route to a reader who may open some vaults.

    Returns:
        The operation, and the schemas that it refers to, by name.
    """
    row = table.find(route.tool)
    definitions: dict[str, JSONValue] = {}
    parameters = _add_page_ranges(table.parameters(row, vaults=vaults))
    parameter_schema = _extract_definitions(parameters, f"{row.name}.", definitions)
    answer_schema = _extract_definitions(registry.answer_schema(row), f"{row.name}.", definitions)
    words = route.path.replace("{", "by_").replace("}", "").replace(":path", "").strip("/")
    described: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{words.replace('/', '_')}",
        "tags": [route.tag],
        "summary": registry.summarize(row),
        "description": registry.describe(row),
        "security": [{TOKEN_SCHEME: []}],
        "parameters": _tool_parameters(route, parameter_schema),
        "responses": {
            "200": {"description": "What the tool answers.", "content": {_JSON: {"schema": answer_schema}}},
            **error_responses(),
        },
    }
    if route.has_etag:
        described["parameters"].append(dict(_IF_NONE_MATCH))
        described["responses"]["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        described["responses"]["304"] = {"description": "It is as the asker knows it."}
    if route.method != "GET":
        properties = {
            name: property_schema
            for name, property_schema in parameter_schema["properties"].items()
            if name not in route.bound_names
        }
        required = [name for name in parameter_schema.get("required", ()) if name not in route.bound_names]
        body_schema = {**parameter_schema, "properties": properties}
        if "required" in parameter_schema:
            body_schema["required"] = required
        described["requestBody"] = {
            "required": bool(set(parameter_schema.get("required", ())) - route.bound_names),
            "content": {_JSON: {"schema": body_schema}},
        }
    return described, definitions


def _add_page_ranges(parameters: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    properties = object_or_empty(parameters["properties"])
    ranges = _PAGE_RANGES if "offset" in properties else {}
    ranged: dict[str, JSONValue] = {
        name: {**schema, **ranges[name]} if name in ranges and is_object(schema) else schema
        for name, schema in properties.items()
    }
    return {**parameters, "properties": ranged}


def _tool_parameters(route: ToolRoute, parameter_schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties, required = parameter_schema["properties"], parameter_schema.get("required", ())
    described: list[dict[str, Any]] = []
    for name, schema_part in properties.items():
        location = "path" if name in route.bound_names else "query"
        if name in route.fixed_arguments or (location == "query" and route.method != "GET"):
            continue
        content = {"content": {_JSON: {"schema": schema_part}}} if "$ref" in schema_part else {"schema": schema_part}
        parameter = {"name": name, "in": location, "required": location == "path" or name in required, **content}
        described.append(
            parameter | ({"description": schema_part["description"]} if "description" in schema_part else {})
        )
    return described


def _extract_definitions(schema: Mapping[str, JSONValue], prefix: str, shared: dict[str, JSONValue]) -> dict[str, Any]:
    """Move a schema's own definitions to those of the whole document."""
    definitions = schema.get("$defs", {})
    for name, definition in definitions.items() if isinstance(definitions, dict) else ():
        shared[f"{prefix}{name}"] = _rewrite_refs(definition, prefix)
    return _rewrite_refs_in({name: definition for name, definition in schema.items() if name != "$defs"}, prefix)


def _rewrite_refs(value: JSONValue, prefix: str) -> JSONValue:
    if isinstance(value, dict):
        return _rewrite_refs_in(value, prefix)
    return [_rewrite_refs(item, prefix) for item in value] if isinstance(value, list) else value


def _rewrite_refs_in(schema: Mapping[str, JSONValue], prefix: str) -> dict[str, JSONValue]:
    return {
        name: item.replace("#/$defs/", f"{_SCHEMA_REF}{prefix}")
        if name == "$ref" and isinstance(item, str)
        else _rewrite_refs(item, prefix)
        for name, item in schema.items()
    }


_EVENT_STREAM: Final = "text/event-stream"
_PATH_NAME: Final = re.compile(r"{(\w+)(?::\w+)?}")
_MODEL_PATHS: Final = ("/chat", "/chat/stream", "/ask", "/ask/stream")
_BAD_GATEWAY_RESPONSE: Final = {
    "description": "The model's server can't be reached, refuses, or answers what can't be used; "
    "`response` has what there is of an answer.",
    "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{ERROR_SCHEMA_NAME}"}}},
}


Handler = Callable[[Request, RequestArguments], Awaitable[Response | Mapping[str, object]]]
"""Returns the fields of a good reply besides ``success``, or the whole reply."""


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """A route with its documentation."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    tag: str
    summary: str
    handler: Handler
    description: str = ""
    parameters: Sequence[Parameter] = ()
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The content of the good reply, by its type."""
    status: int = 200
    """Of the good reply."""
    responses: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Other replies than the good one and the usual errors, by status."""
    is_open: bool = False
    """Whether it needs no token."""


def bind_route(
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
    path: str,
    tag: str,
    handler: Handler,
    parameters: Sequence[Parameter],
    content: Mapping[str, Any],
) -> RouteSpec:
    """Return the route of a handler.

    Args:
        method: Of HTTP.
        path: Of the route, such as ``/sessions/{session_id}``.
        tag: The group in the document.
        handler: Its docstring is the route's description: the first paragraph is the summary.
        parameters: What the route takes besides the names in its path.
        content: Of the good reply, by its type.
    """
    summary, _, description = (inspect.getdoc(handler) or "").partition("\n\n")
    return RouteSpec(method, path, tag, summary, handler, " ".join(description.split()), parameters, content)


def make_route(spec: RouteSpec) -> BoundRoute:
    """Create a route from its specification; it is described only when the document is requested."""

    async def endpoint(request: Request) -> Response:
        result = await spec.handler(request, await binding.read_arguments(request, spec.parameters))
        if isinstance(result, Response):
            return result
        return security.JsonReply({"success": True, **result}, spec.status)

    return BoundRoute(spec.method, spec.path, endpoint, lambda: _describe_operation(spec))


def page_content(name: str, row: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - schemas, or types
    """Describe a page of a list as JSON.

    Args:
        name: The field with the rows.
        row: The schema or the type of one of them.
        more: The schemas or types of other fields, by name.
    """
    counts: dict[str, Any] = dict.fromkeys(("total", "limit", "offset"), INTEGER)
    return json_content({name: {"type": "array", "items": row}, **counts, **more})


def json_content(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a reply as JSON, by the schemas or types of its fields."""
    return {_JSON: {"schema": object_schema({"success": {"const": True}, **properties})}}


def type_content(kind: Any, **more: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a type, which may be a TypedDict and so no class
    """Describe a reply as JSON, by its type: a TypedDict or a dataclass, whose fields' docstrings describe them.

    Args:
        kind: The type, or a function that imports it.
        more: The schemas of fields that the reply has beside, or that are narrower in it than in the type, by name.
    """
    return {_JSON: {"schema": ExtendedType(kind, {"success": {"const": True}, **more})}}


@dataclass(frozen=True, slots=True)
class ExtendedType:
    """A type in the place of its schema, with fields beside; see `type_content`."""

    kind: Any
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """A schema that stands once in the document, by its name, and that others refer to."""

    name: str
    schema: Any


class _ReplySchemaWriter(GenerateJsonSchema):
    """Writes the schemas of types as replies are: with all fields of a record, and the docstrings of fields."""

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as in its base
        """Describe a TypedDict."""
        return _describe_fields(super().typed_dict_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as in its base
        """Describe a dataclass."""
        shape, described = schema["cls"], super().dataclass_schema(schema)
        if not issubclass(shape, Record):
            return _describe_fields(described, shape)
        properties, names = described["properties"], shape.shown_names()
        if issubclass(shape, BaseEvent):
            properties["type"], names = {"const": shape.kind}, ("type", *names)
        for name in set(names) - properties.keys():
            getter = getattr(shape, name).fget
            doc = (inspect.getdoc(getter) or "").removeprefix("Return ")
            value_schema = self.generate_inner(TypeAdapter[Any](get_type_hints(getter)["return"]).core_schema)
            properties[name] = {**value_schema, "description": f"{doc[:1].upper()}{doc[1:]}"}
        shown = {name: properties[name] for name in names}
        return _describe_fields({**described, "properties": shown, "required": list(names)}, shape)

    def default_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as in its base
        """Leave out the default, which is none of the reply's."""
        return self.generate_inner(schema["schema"])

    def dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as in its base
        """Say that an object of any JSON has fields; without it, the page's types take it for an empty one."""
        described = super().dict_schema(schema)
        has_any = "__JsonValue-" in str(described.get("additionalProperties"))  # as pydantic names it
        return {**described, "additionalProperties": True} if has_any else described

    def datetime_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002 - as in its base
        """Leave out the format: some times are by the server's clock, and have no zone."""
        return dict(STRING)


def _describe_fields(schema: dict[str, Any], shape: type) -> dict[str, Any]:
    try:
        properties, docs = schema["properties"], registry.field_docs(shape)
    except (OSError, SyntaxError) as error:  # docstrings of fields are in no module, only in its source
        raise StorageError(
            f"the source of {shape.__module__} can't be read any more: Knapper was upgraded or removed meanwhile",
            hint="restart the server: `knap service restart`, or end `knap serve` and start it again",
            code="restart_needed",
        ) from error
    for name in properties.keys() & docs.keys():
        properties[name]["description"] = docs[name]
    if "description" in schema:
        schema["description"] = schema["description"].partition("\n\n")[0]
    return schema


def _resolve_types(node: Any, named: dict[str, JSONValue]) -> Any:  # noqa: ANN401 - a part of the document, or a type in its place
    """Replace the types in a part of the document, and functions that import one, by their schemas.

    Args:
        node: The part.
        named: The schemas that the document has by their names; those that are new are added.
    """
    if isinstance(node, NamedSchema):
        if node.name not in named:
            named[node.name] = _resolve_types(node.schema, named)
        return {"$ref": f"{_SCHEMA_REF}{node.name}"}
    if isinstance(node, ExtendedType):
        schema, more = _resolve_types(node.kind, named), _resolve_types(node.more, named)
        required = dict.fromkeys([*more, *schema["required"]])
        return {**schema, "properties": {**schema["properties"], **more}, "required": [*required]}
    if is_object(node):
        return {name: _resolve_types(part, named) for name, part in node.items()}
    if is_sequence(node):
        return [_resolve_types(part, named) for part in node]
    if node is None or isinstance(node, str | int | float):
        return node
    if isinstance(node, FunctionType):
        with workers.IMPORT_LOCK:
            node = node()
    return _describe_type(node)


@cache
def _describe_type(kind: Any) -> JSONValue:  # noqa: ANN401 - a type, which may be a TypedDict and so no class
    schema = registry.type_schema(kind, _ReplySchemaWriter)
    return _inline_definitions(schema, schema.get("$defs"))


def _inline_definitions(node: JSONValue, definitions: JSONValue) -> JSONValue:
    """Put a type's definitions in the places that refer to them; what is said there counts more."""
    if is_list(node):
        return [_inline_definitions(part, definitions) for part in node]
    if not is_object(node):
        return node
    parts = {name: _inline_definitions(part, definitions) for name, part in node.items() if name != "$defs"}
    reference = parts.pop("$ref", None)
    if not isinstance(reference, str) or not is_object(definitions):
        return parts
    definition = _inline_definitions(definitions[reference.rpartition("/")[2]], definitions)
    return {**definition, **parts} if is_object(definition) else parts


def stream_content(event_order: str, data: NamedSchema) -> dict[str, Any]:
    """Describe a stream of events.

    Args:
        event_order: The events and their order, in words.
        data: The schema of their data.
    """
    data_schema = {**STRING, "contentMediaType": _JSON, "contentSchema": data}
    fields = {"id": STRING, "event": STRING, "data": data_schema}
    text = f"One of the events; its data is JSON, whose `type` is the event's name. {event_order}"
    return {_EVENT_STREAM: {"schema": {**object_schema(fields), "description": text}}}


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an object whose properties are all required."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _describe_operation(spec: RouteSpec) -> dict[str, Any]:
    in_body = spec.method in {"POST", "PUT", "PATCH"}
    words = spec.path.replace("{", "by_").replace(":path", "").replace("}", "").strip("/").replace("/", "_")
    good_reply = {"description": "It went well.", "content": dict(spec.content)}
    described: dict[str, Any] = {
        "operationId": f"{spec.method.lower()}_{words}",
        "tags": [spec.tag],
        "summary": spec.summary,
        **({"description": spec.description} if spec.description else {}),
        "security": [] if spec.is_open else [{TOKEN_SCHEME: []}],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _PATH_NAME.findall(spec.path)
        ],
        "responses": {str(spec.status): good_reply, **error_responses(), **spec.responses},
    }
    if spec.path.endswith(_MODEL_PATHS):
        described["responses"]["502"] = _BAD_GATEWAY_RESPONSE
    if not in_body:
        described["parameters"] += [
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.required,
                "schema": {**parameter.schema, "type": parameter.type},
            }
            for parameter in spec.parameters
        ]
    elif spec.parameters:
        required = [parameter.name for parameter in spec.parameters if parameter.required]
        body_schema: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in spec.parameters},
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }
        described["requestBody"] = {
            "required": any(parameter.required for parameter in spec.parameters),
            "content": {_JSON: {"schema": body_schema}},
        }
    if _EVENT_STREAM in spec.content and spec.method == "GET":
        described["parameters"].append(
            {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "integer", "minimum": 0}}
        )
    return described
