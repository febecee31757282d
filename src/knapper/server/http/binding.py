"""Bind requests to tools and parameters: read arguments from path, query or body, check them, and call the tool."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NoReturn, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from knapper.app import Hub
from knapper.errors import BadInput, CallerError
from knapper.jsontypes import JSONValue, is_list, is_object, object_or_empty, one_of, strings_in
from knapper.server import security, workers
from knapper.server.reader_process import SEARCH_TOOLS, KnownFreshness
from knapper.server.readers import KnownState, ReaderPool
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

T = TypeVar("T")
_JSON_MEDIA_TYPES: Final = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_INTEGER: Final = re.compile(r"-?\d{1,18}")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_BODY_HINT: Final = "the body is the tool's arguments as one JSON object"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoute:
    """A route that calls a tool, with arguments from the path, and from the query (GET) or the body."""

    method: Literal["GET", "POST", "PUT"]
    path: str
    """As in routes: ``/proposals/{proposal_id}``; the names in braces are the tool's parameters."""
    tool: str
    fixed_arguments: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """Arguments that the route itself says."""
    tag: str = ""
    """The noun under which the document shows it."""
    has_etag: bool = False
    """The reply has an ETag, and isn't sent again to who has it."""

    @property
    def bound_names(self) -> frozenset[str]:
        """Return the names of the arguments that the path or the route provides."""
        return frozenset(re.findall(r"{(\w+)(?::\w+)?}", self.path)) | frozenset(self.fixed_arguments)


async def read_tool_arguments(
    route: ToolRoute, request: Request, properties: Mapping[str, JSONValue]
) -> dict[str, JSONValue]:
    """Read a tool's arguments from a request.

    Args:
        route: The route.
        request: The request.
        properties: The tool's parameters by name, each with its JSON Schema.

    Raises:
        BadInput: They can't be read.
        CallerError: The body isn't JSON.
    """
    if route.method == "GET":
        texts_by_name: dict[str, list[str]] = {}
        for name, text in request.query_params.multi_items():
            texts_by_name.setdefault(name, []).append(text)
        sent = {
            name: _parse_query_value(name, texts, object_or_empty(properties.get(name)))
            for name, texts in texts_by_name.items()
        }
    else:
        raw = await request.body()
        if raw and request.headers.get("content-encoding", "").strip().lower() not in {"", "identity"}:
            raise CallerError(
                "the body is compressed, or otherwise encoded",
                hint="send it as it is, without Content-Encoding",
                code="wrong_content_type",
            )
        if raw and not _JSON_MEDIA_TYPES.fullmatch(request.headers.get("content-type", "").strip()):
            raise CallerError(
                "the body isn't said to be JSON", hint="send Content-Type: application/json", code="wrong_content_type"
            )
        sent = _parse_object(raw) if raw else {}
    for name in route.bound_names & sent.keys():
        raise BadInput(f"'{name}' is said by the path already", hint="leave it out", code="bad_arguments")
    return {**sent, **request.path_params, **route.fixed_arguments}


def _parse_object(raw: bytes) -> dict[str, JSONValue]:
    try:
        value: JSONValue = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
        _ = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise BadInput("the body isn't UTF-8", hint=_BODY_HINT, code="invalid_json") from None
    except UnicodeEncodeError:
        raise BadInput(
            "the body holds half a character", hint="write all text as Unicode", code="invalid_text"
        ) from None
    except json.JSONDecodeError as error:
        raise BadInput(
            f"the body isn't JSON: {error.msg} at character {error.pos}", hint=_BODY_HINT, code="invalid_json"
        ) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists in lists
        raise BadInput("the body isn't JSON that can be taken in", hint=_BODY_HINT, code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadInput("the body isn't a JSON object", hint=_BODY_HINT, code="not_an_object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _parse_query_value(name: str, texts: Sequence[str], schema: Mapping[str, JSONValue]) -> JSONValue:
    """Parse a query value by its parameter's schema; a value of no known type stays text, and the tool refuses it."""
    kinds = _schema_types(schema)
    if "array" in kinds:
        return [*texts]
    if len(texts) > 1:
        raise BadInput(f"'{name}' is given {len(texts)} times", hint="give it once", code="bad_arguments")
    (text,) = texts
    if "string" in kinds or not kinds:
        return text
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    return _parse_object(text.encode()) if "object" in kinds else text


def _schema_types(schema: Mapping[str, JSONValue]) -> set[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    alternatives = schema.get("anyOf")
    rows = alternatives if isinstance(alternatives, list) else []
    types = {alternative_type for row in rows if isinstance(row, dict) for alternative_type in _schema_types(row)}
    return types or ({"string"} if "enum" in schema else {"object"} if "$ref" in schema else set())


_MAX_TEXT_CHARS: Final = 2_000
_MAX_LIST_ITEMS: Final = 1_000
"""Of a list."""
ParameterKind = Literal["text", "count", "number", "flag", "texts", "object"]
_SCHEMA_TYPES: Final[Mapping[ParameterKind, str]] = {
    "text": "string",
    "count": "integer",
    "number": "number",
    "flag": "boolean",
    "texts": "array",
    "object": "object",
}
_NUMBER_TYPES: Final[Mapping[str, tuple[type[int] | type[float], ...]]] = {"count": (int,), "number": (int, float)}
_PYTHON_TYPES: Final[Mapping[ParameterKind, tuple[type, str]]] = {
    "text": (str, "a text"),
    "flag": (bool, "true or false"),
    "texts": (list, "a list of texts"),
    "object": (dict, "an object"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a route."""

    name: str
    doc: str
    kind: ParameterKind = "text"
    required: bool = False
    """Whether it may not be left out or be null; a required text may not be empty or blank either."""
    refuses_blank: bool = False
    """Whether a text that may be left out, and is when it is empty, may not be blanks alone."""
    minimum: float = 0
    """The lowest number."""
    maximum: float = _MAX_TEXT_CHARS
    """Characters of a text, or of each in a list; or the highest number."""
    choices: tuple[str, ...] = ()
    """What a text, or each of a list, may be; empty for anything."""
    fields: tuple["Parameter", ...] = ()
    """What an object holds."""

    @property
    def schema(self) -> dict[str, JSONValue]:
        """Return the parameter's JSON Schema."""
        type_name = _SCHEMA_TYPES[self.kind]
        described: dict[str, JSONValue] = {
            "type": type_name if self.required else [type_name, "null"],
            "description": self.doc,
        }
        if self.kind in _NUMBER_TYPES:
            return {**described, "minimum": self.minimum, "maximum": self.maximum}
        if self.kind == "texts":
            return {**described, "maxItems": _MAX_LIST_ITEMS, "items": {"type": "string", **self._text()}}
        if self.kind == "object":
            return {
                **described,
                "properties": {inner_parameter.name: inner_parameter.schema for inner_parameter in self.fields},
                "additionalProperties": False,
            }
        return {**described, **self._text(or_none=not self.required)} if self.kind == "text" else described

    @property
    def type(self) -> str:
        """Return its JSON Schema type."""
        return _SCHEMA_TYPES[self.kind]

    def _text(self, *, or_none: bool = False) -> dict[str, JSONValue]:
        if self.choices:
            return {"enum": [*self.choices, *([None] if or_none else [])]}
        length: dict[str, JSONValue] = {"maxLength": self.maximum}
        if self.kind == "texts":
            return length
        if self.required:
            return {"minLength": 1, **length, "pattern": r"\S"}
        return {**length, "pattern": r"^$|\S"} if self.refuses_blank else length


def count_parameter(name: str, doc: str, least: int, most: int) -> Parameter:
    """Return a parameter that is a whole number in a range, and may be left out."""
    return Parameter(name=name, doc=doc, kind="count", minimum=least, maximum=most)


VAULT_PARAMETER: Final = Parameter(name="vault", doc="Which vault; the first one where it is left out.")
ANY_VAULT: Final = (
    Parameter(name="vault", doc="Counts for nothing here; a program may send it with each of its requests."),
)
"""Of routes whose answer is the same for all vaults, or whose id tells the vault."""
PAGE_LIMIT: Final = 50
"""How many rows a page has where a request doesn't say."""
PAGE_PARAMETERS: Final = (
    count_parameter("limit", f"How many at most; {PAGE_LIMIT} where it is left out.", 0, 500),
    count_parameter("offset", "How many are passed over.", 0, 10**9),
)
"""Of routes that list by pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestArguments:
    """The checked arguments of a request."""

    values: Mapping[str, JSONValue]

    def choice(self, name: str, choices: Sequence[T], default: T) -> T:
        """Return one of some words; the default if omitted.

        Raises:
            BadInput: It is another word.
        """
        value = self.text(name)
        chosen = one_of(value, choices) if value else default
        if chosen is None:
            raise _argument_error(f"'{name}' can't be '{value[:60]}'", f"give {', '.join(map(str, choices))}")
        return chosen

    def text(self, name: str) -> str:
        """Return a text; empty if omitted."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def integer_or_default(self, name: str, default: int) -> int:
        """Return a number, or the default."""
        value = self.integer(name)
        return default if value is None else value

    def page(self) -> tuple[int, int]:
        """Return the ``limit`` and the ``offset`` of a page: 50 and 0 where they are left out."""
        return self.integer_or_default("limit", PAGE_LIMIT), self.integer_or_default("offset", 0)

    def integer(self, name: str) -> int | None:
        """Return a whole number; None if omitted."""
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def number(self, name: str) -> float | None:
        """Return a number; None if omitted."""
        value = self.values.get(name)
        return value if isinstance(value, int | float) else None

    def flag(self, name: str) -> bool | None:
        """Return true or false; None if omitted."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else None

    def texts(self, name: str) -> list[str] | None:
        """Return a list of texts; None if omitted."""
        value = self.values.get(name)
        return strings_in(value) if is_list(value) else None

    def non_null_values(self) -> dict[str, JSONValue]:
        """Return all arguments that aren't null."""
        return {name: value for name, value in self.values.items() if value is not None}

    def object(self, name: str) -> "RequestArguments":
        """Return an object; empty if omitted."""
        return RequestArguments(values=object_or_empty(self.values.get(name)))


async def read_arguments(request: Request, parameters: Sequence[Parameter]) -> RequestArguments:
    """Read the body of a request, or its query where it has no body.

    Raises:
        BadInput: An argument is unknown, missing or invalid.
        CallerError: The body isn't JSON.
    """
    in_query = request.method in {"GET", "HEAD", "DELETE"}
    route = ToolRoute(method="GET" if in_query else "POST", path="/", tool="")
    schemas: dict[str, JSONValue] = {parameter.name: {"type": parameter.type} for parameter in parameters}
    raw_values = await read_tool_arguments(route, request, schemas)
    sent = {name: value for name, value in raw_values.items() if name not in request.path_params}
    values = _with_whole_numbers(parameters, sent)
    _check_all(parameters, values)
    return RequestArguments(values=values)


def _with_whole_numbers(parameters: Sequence[Parameter], values: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Take 8.0 for 8: to JSON Schema, and so to the API's document, both are integers."""
    converted = dict(values)
    for parameter in parameters:
        value = converted.get(parameter.name)
        if parameter.kind == "count" and isinstance(value, float) and value.is_integer():
            converted[parameter.name] = int(value)
        elif parameter.kind == "object" and is_object(value):
            converted[parameter.name] = _with_whole_numbers(parameter.fields, value)
    return converted


def _check_all(parameters: Sequence[Parameter], values: Mapping[str, JSONValue]) -> None:
    allowed_names = [parameter.name for parameter in parameters]
    for name in values.keys() - set(allowed_names):
        raise _argument_error(f"'{name[:60]}' isn't taken here", f"it takes {', '.join(allowed_names) or 'nothing'}")
    for parameter in parameters:
        value = values.get(parameter.name)
        if value is None:
            if parameter.required:
                raise _argument_error(f"'{parameter.name}' is needed", parameter.doc)
        elif parameter.kind in _NUMBER_TYPES:
            kinds = _NUMBER_TYPES[parameter.kind]
            if (
                isinstance(value, bool)
                or not isinstance(value, kinds)
                or not parameter.minimum <= value <= parameter.maximum
            ):
                raise _argument_error(
                    f"'{parameter.name}' isn't a number that can be used",
                    f"give {parameter.minimum:,} to {parameter.maximum:,}",
                )
        else:
            kind, expected = _PYTHON_TYPES[parameter.kind]
            if not isinstance(value, kind):
                raise _argument_error(f"'{parameter.name}' isn't {expected}", parameter.doc)
            _check_contents(parameter, value)


def _check_contents(parameter: Parameter, value: JSONValue) -> None:
    if isinstance(value, str):
        if not value.strip() and (parameter.required or (value and parameter.refuses_blank)):
            raise _argument_error(f"'{parameter.name}' is empty", parameter.doc)
        _check_text(parameter, value)
    elif isinstance(value, list):
        if len(value) > _MAX_LIST_ITEMS:
            raise _argument_error(f"'{parameter.name}' has {len(value):,} items", f"give at most {_MAX_LIST_ITEMS:,}")
        for row in value:
            if not isinstance(row, str):
                raise _argument_error(f"'{parameter.name}' isn't a list of texts", parameter.doc)
            _check_text(parameter, row)
    elif isinstance(value, dict):
        _check_all(parameter.fields, value)


def _check_text(parameter: Parameter, text: str) -> None:
    if parameter.choices and text not in parameter.choices:
        raise _argument_error(f"'{parameter.name}' can't be '{text[:60]}'", f"give {', '.join(parameter.choices)}")
    if len(text) > parameter.maximum:
        raise _argument_error(f"'{parameter.name}' has {len(text):,} characters", f"give at most {parameter.maximum:,}")


def _argument_error(problem: str, hint: str) -> BadInput:
    return BadInput(problem, hint=hint, code="bad_arguments")


Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvoker:
    """Calls tools for the routes, in worker threads."""

    hub: Hub
    threads: WorkerThreads
    readers: ReaderPool | None = None

    async def reply(self, route: ToolRoute, request: Request) -> security.JsonReply:
        """Reply with the answer of a route's tool, from a reader process where that is quicker.

        Raises:
            KnapError: As for `answer`.
        """
        readers = self.readers
        if readers is None or route.tool not in SEARCH_TOOLS:
            return security.JsonReply(await self.answer(route, request))
        client = security.client_of(request.scope)
        arguments = await read_tool_arguments(route, request, self.properties(route))
        with readers.under_way(str(arguments.get("vault") or "")):
            state = await readers.look(client, arguments)
            content = await readers.answer(client, route.tool, arguments, state)
            if content is None:
                pending_call = self.call(client, route.tool, arguments, state)
                content = await workers.run_unless_disconnected(request.receive, pending_call)
        return security.JsonReply(content)

    async def call(
        self, client: str, tool: str, arguments: Mapping[str, object], state: KnownState | None = None
    ) -> Answer:
        """Call a tool on a client's behalf, in a thread.

        Args:
            client: Who asks.
            tool: The tool's name.
            arguments: By name.
            state: What a look at the vault's changes has found just now; None lets the call look by itself.

        Raises:
            KnapError: As the tool raises, or too many calls are waiting.
        """
        hub, cancelling = self.hub, StopSignal()

        def opened(vault: str) -> Context:
            context = replace(hub.context(client=client, vault=vault), on_cancel=cancelling.subscribe)
            # What an answer may miss depends on what the client may see, unless that is nothing or everything.
            if state is None or not (state.is_plain or context.view.policy.sees_all):
                return context
            return replace(context, shared_refresh=KnownFreshness(context.index, state.freshness))

        kind = workers.kind_of_call(hub.table, hub.table.find(tool), arguments)
        try:
            return await self.threads.run(kind, lambda: hub.table.call(tool, arguments, opened))
        except asyncio.CancelledError:
            cancelling.cancel()
            raise

    async def answer(self, route: ToolRoute, request: Request) -> Answer:
        """Call the tool of a route with the request's arguments.

        Raises:
            KnapError: The request can't be read, or the tool fails.
        """
        arguments = await read_tool_arguments(route, request, self.properties(route))
        return await workers.run_unless_disconnected(
            request.receive, self.call(security.client_of(request.scope), route.tool, arguments)
        )

    def properties(self, route: ToolRoute) -> dict[str, JSONValue]:
        """Return the parameters of a route's tool by name."""
        table = self.hub.table
        properties = table.parameters(table.find(route.tool))["properties"]
        return properties if isinstance(properties, dict) else {}


class BoundRoute(Route):
    """A route of the API; it leaves itself in the scope, so that the log names it and never a path."""

    def __init__(
        self, method: str, path: str, endpoint: Endpoint, operation: Callable[[], Mapping[str, object]] | None = None
    ) -> None:
        """Bind a method of a path to its endpoint.

        Args:
            method: The only one; HEAD isn't added to GET.
            path: As the router knows it, with the names of its parts in braces.
            endpoint: Replies.
            operation: Describes it in the document; None leaves it out there.
        """
        super().__init__(path, endpoint, methods=[method], include_in_schema=False)
        self.method = method
        self.methods = {method}
        self.operation = operation
        # A note's name may hold a line's end, which the router's dot doesn't fit.
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match as a route does, and add the route."""
        match, child_scope = super().matches(scope)
        return match, child_scope if match is Match.NONE else {**child_scope, "route": self}


def make_tool_endpoint(invoker: ToolInvoker, route: ToolRoute) -> Endpoint:
    """Create the endpoint that replies with the tool's answer."""

    async def endpoint(request: Request) -> Response:
        return await invoker.reply(route, request)

    return endpoint
