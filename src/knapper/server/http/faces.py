"""Say which route shows which tool, and read a call of the tool from a request."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn, cast

from starlette.requests import Request

from knapper.errors import BadInput, CallerError
from knapper.jsontypes import JSONValue

_JSON_TYPES: Final = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_WHOLE: Final = re.compile(r"-?\d{1,18}")
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
_HINT: Final = "the body is the tool's arguments as one JSON object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """Say that a route calls a tool; its arguments come from the path, and from the query (GET) or the body."""

    method: Literal["GET", "POST", "PUT"]
    path: str
    """As in routes: ``/proposals/{proposal_id}``; the names in braces are the tool's parameters."""
    tool: str
    fixed: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """Arguments that the route itself says."""
    tag: str = ""
    """The noun under which the document shows it."""
    is_tagged: bool = False
    """The reply has an ETag, and isn't sent again to who has it."""

    @property
    def bound(self) -> frozenset[str]:
        """Name the arguments that the path gives, or the route says."""
        return frozenset(re.findall(r"{(\w+)(?::\w+)?}", self.path)) | frozenset(self.fixed)


async def arguments(face: Face, request: Request, properties: Mapping[str, JSONValue]) -> dict[str, object]:
    """Read a tool's arguments from a request.

    Args:
        face: The route.
        request: What was asked.
        properties: The tool's parameters by name, each with its JSON Schema.

    Raises:
        BadInput: They can't be read.
        CallerError: The body isn't JSON.
    """
    given = _of_query(request, properties) if face.method == "GET" else await _of_body(request)
    for name in face.bound & given.keys():
        raise BadInput(f"'{name}' is said by the path already", hint="leave it out", code="bad_arguments")
    path = cast("Mapping[str, object]", request.path_params)
    return {**given, **path, **face.fixed}


async def _of_body(request: Request) -> dict[str, object]:
    raw = await request.body()
    if not raw:
        return {}
    if request.headers.get("content-encoding", "").strip().lower() not in {"", "identity"}:
        raise CallerError(
            "the body is compressed, or otherwise encoded",
            hint="send it as it is, without Content-Encoding",
            code="wrong_content_type",
        )
    if not _JSON_TYPES.fullmatch(request.headers.get("content-type", "").strip()):
        raise CallerError(
            "the body isn't said to be JSON", hint="send Content-Type: application/json", code="wrong_content_type"
        )
    return _object(raw)


def _object(raw: bytes) -> dict[str, object]:
    try:
        value: object = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
        _ = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise BadInput("the body isn't UTF-8", hint=_HINT, code="invalid_json") from None
    except UnicodeEncodeError:
        raise BadInput(
            "the body holds half a character", hint="write all text as Unicode", code="invalid_text"
        ) from None
    except json.JSONDecodeError as error:
        raise BadInput(
            f"the body isn't JSON: {error.msg} at character {error.pos}", hint=_HINT, code="invalid_json"
        ) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists in lists
        raise BadInput("the body isn't JSON that can be taken in", hint=_HINT, code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadInput("the body isn't a JSON object", hint=_HINT, code="not_an_object")
    return cast("dict[str, object]", value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _of_query(request: Request, properties: Mapping[str, JSONValue]) -> dict[str, object]:
    said: dict[str, list[str]] = {}
    for name, text in request.query_params.multi_items():
        said.setdefault(name, []).append(text)
    given: dict[str, object] = {}
    for name, texts in said.items():
        schema = properties.get(name)
        given[name] = _value(name, texts, schema if isinstance(schema, dict) else {})
    return given


def _value(name: str, said: Sequence[str], schema: Mapping[str, JSONValue]) -> object:
    """Read a value of the query by its parameter's schema; what fits no kind stays text, and the tool refuses it."""
    kinds = _kinds(schema)
    if "array" in kinds:
        return list(said)
    if len(said) > 1:
        raise BadInput(f"'{name}' is given {len(said)} times", hint="give it once", code="bad_arguments")
    (text,) = said
    if "string" in kinds or not kinds:
        return text
    if "integer" in kinds and _WHOLE.fullmatch(text):
        return int(text)
    if "boolean" in kinds and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    return _object(text.encode()) if "object" in kinds else text


def _kinds(schema: Mapping[str, JSONValue]) -> set[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    either = schema.get("anyOf")
    rows = either if isinstance(either, list) else []
    found = {one for row in rows if isinstance(row, dict) for one in _kinds(row)}
    return found or ({"string"} if "enum" in schema else {"object"} if "$ref" in schema else set())
