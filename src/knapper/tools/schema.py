"""Derive what a tool takes and gives from its function: nothing is declared twice."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, NotRequired, Required, cast, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, create_model

from knapper.jsontypes import JSONValue
from knapper.tools.rows import Row

_ANY: Final = "#/$defs/JsonValue"
"""How pydantic refers to any JSON."""
_NAMES: Final = {"JSONValue": JsonValue}
"""Recursive types, by the name that annotations call them by."""
_ASKED: Final[Mapping[str, tuple[type, object, str]]] = {
    "reason": (str, "", "Why this change is made; kept in the journal."),
    "dry_run": (bool, False, "Tell what would happen, and change nothing."),
}


_WRITES: Final = "`status` says what became of it: applied; or proposed: `proposal_id` waits for a person's word."
"""What every tool that writes answers beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Hold what a tool takes."""

    model: type[BaseModel]
    """Checks the arguments of a call."""
    asked: tuple[str, ...]
    """Those that say how the call is meant; the function doesn't get them."""
    optional: frozenset[str]
    """Those that the function gets only where they're given."""


@cache
def taken(row: Row) -> Taken:
    """Make what checks a tool's arguments.

    Raises:
        TypeError: A parameter's type has no JSON.
    """
    hints = get_type_hints(row.function, None, _NAMES, include_extras=True)
    said = _documented(row.function)
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    for parameter in list(inspect.signature(row.function).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for name, kind in _unpacked(hints[parameter.name]):
                fields[name] = (kind, Field(default=None, description=said.get(name)))
                optional.add(name)
        else:
            default: Any = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[parameter.name] = (hints[parameter.name], Field(default, description=said.get(parameter.name)))
    asked = tuple(name for name in _ASKED if row.is_asked and name not in fields)
    for name in asked:
        kind, default, purpose = _ASKED[name]
        fields[name] = (kind, Field(default, description=purpose))
    model = create_model(row.name, __config__=ConfigDict(extra="forbid"), **fields)
    return Taken(model=model, asked=asked, optional=frozenset(optional))


@cache
def parameters(row: Row, *, brief: bool = False) -> dict[str, JSONValue]:
    """Give the JSON Schema of a tool's arguments.

    Args:
        row: Which tool.
        brief: Leave out those that a model can do without.
    """
    schema = taken(row).model.model_json_schema()
    shown = cast("dict[str, JSONValue]", _plain(schema))
    known = cast("dict[str, dict[str, JSONValue]]", shown.get("properties", {}))
    for name in taken(row).optional:  # None stands for "not given", and nobody has to know
        known[name].pop("default", None)
    if brief:
        wanted = set(row.shown or known) - set(taken(row).asked)
        shown["properties"] = {name: one for name, one in known.items() if name in wanted}
    return {"type": "object", "properties": {}, **shown, "additionalProperties": False}


@cache
def returns(row: Row) -> dict[str, JSONValue]:
    """Give the JSON Schema of what a tool answers when it succeeds."""
    schema = TypeAdapter(shape(row)).json_schema(mode="serialization")
    return {"type": "object", **cast("dict[str, JSONValue]", _plain(schema))}


def shape(row: Row) -> Any:  # noqa: ANN401 - a type, which may be a TypedDict and so no class
    """Give the TypedDict that a tool says it answers with."""
    hint = get_type_hints(row.function, None, _NAMES, include_extras=True)["return"]
    said = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if not said:
        raise TypeError(f"the tool {row.name} doesn't say what it answers: -> Annotated[Answer, Shape]")
    return said[0]


@cache
def summary(row: Row) -> str:
    """Tell in a sentence what a tool does."""
    return _text(docstring_parser.parse(_doc(row.function)).short_description)


@cache
def description(row: Row) -> str:
    """Tell what a tool does, and what it answers."""
    doc = docstring_parser.parse(_doc(row.function), style=docstring_parser.DocstringStyle.GOOGLE)
    parts = [_text(doc.short_description), _text(doc.long_description)]
    if doc.returns is not None:
        told = [part for part in (doc.returns.type_name, doc.returns.description) if part]
        text = _text(": ".join(told))
        parts.append(f"Returns {text}" if text.startswith("`") else f"Returns: {text}")
    if row.is_asked:
        parts.append(_WRITES)
    return "\n\n".join(part for part in parts if part)


def _doc(function: Callable[..., object]) -> str:
    return inspect.getdoc(function) or ""


def _documented(function: Callable[..., object]) -> dict[str, str]:
    doc = docstring_parser.parse(_doc(function), style=docstring_parser.DocstringStyle.GOOGLE)
    return {one.arg_name: _text(one.description) for one in doc.params}


def _text(said: str | None) -> str:
    """Join a paragraph's lines, and mark code as Markdown does."""
    paragraphs = (said or "").replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _unpacked(hint: object) -> Iterator[tuple[str, Any]]:
    """Give the keys of a TypedDict that a function takes as ``**more: Unpack[…]``."""
    (given,) = get_args(hint)
    for name, kind in get_type_hints(given, None, _NAMES, include_extras=True).items():
        bare = get_args(kind)[0] if get_origin(kind) in {NotRequired, Required} else kind
        yield name, bare


def _plain(value: object) -> object:
    """Leave out the titles, which say nothing that names don't, and the long way to say that any JSON will do."""
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("dict[str, object]", value)
    if node.get("$ref") == _ANY:
        return {}
    named = {name: cast("dict[str, object]", node[name]) for name in ("properties", "$defs") if name in node}
    made: dict[str, object] = {
        name: _plain(one)
        for name, one in node.items()
        if name not in named
        and not (name == "title" and isinstance(one, str))
        and not (name == "anyOf" and _is_any(one))
        and not (name == "additionalProperties" and _is_any(cast("dict[str, object]", node[name])))
    }
    for name, nodes in named.items():
        kept = {key: _plain(each) for key, each in nodes.items() if key != _ANY.rpartition("/")[2]}
        if kept or name == "properties":
            made[name] = kept
    return made


def _is_any(value: object) -> bool:
    """Tell whether a schema, or its list of choices, lets all JSON through."""
    if isinstance(value, dict):
        node = cast("dict[str, object]", value)
        return node.get("$ref") == _ANY or _is_any(node.get("anyOf"))
    choices = cast("list[dict[str, object]]", value) if isinstance(value, list) else []
    return any(choice.get("items") == {"$ref": _ANY} for choice in choices)
