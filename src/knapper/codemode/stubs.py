"""Show the interface of scripts to those who write them, as Python."""

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Final

from knapper.codemode.guest import obsidian, rules
from knapper.jsontypes import JSONValue
from knapper.tools.sandboxes import Signature

_ANY: Final = str(obsidian.JSON)
_MODULE: Final = re.compile(r"\b(?:knapper\.codemode\.guest\.obsidian|collections\.abc)\.")
_FOUND: Final = "# Found: {path: str, content: str, score: float; vault: str where vaults were named}"
_OPTIONAL: Final = ("read_file", "http_get")
_TYPES: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def text(methods: Iterable[str] = (), tools: Iterable[Signature] = ()) -> str:
    """Write the interface.

    Args:
        methods: Of those that not every script has.
        tools: That scripts can call.
    """
    given = frozenset(methods)
    lines = [f"# imports: {', '.join(rules.ALLOWED)}", _FOUND, "class obsidian:"]
    for name, function in vars(obsidian.Obsidian).items():
        if name.startswith("_") or not inspect.isfunction(function) or (name in _OPTIONAL and name not in given):
            continue
        signature = str(inspect.signature(function)).replace("(self, ", "(").replace(_ANY, "object")
        signature = _MODULE.sub("", signature)
        lines.append(f"    def {name}{signature}: ...  # {_first(function.__doc__)}")
    shown = [f"        def {tool.name}({_parameters(tool)}) -> dict: ...  # {tool.summary}" for tool in tools]
    return "\n".join([*lines, *(["    class tools:", *shown] if shown else [])])


def names(tool: Signature) -> list[str]:
    """Name a tool's parameters, those that are needed first."""
    properties = tool.parameters.get("properties")
    known = list(properties) if isinstance(properties, dict) else []
    needed = _needed(tool)
    return sorted(known, key=lambda name: name not in needed)


def _parameters(tool: Signature) -> str:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict):
        return ""
    needed = _needed(tool)
    return ", ".join(
        f"{name}: {_type(properties[name])}" + ("" if name in needed else f" = {_default(properties[name])}")
        for name in names(tool)
    )


def _needed(tool: Signature) -> frozenset[str]:
    required = tool.parameters.get("required")
    return frozenset(map(str, required)) if isinstance(required, list) else frozenset()


def _type(schema: JSONValue) -> str:
    if not isinstance(schema, dict):
        return "object"
    choices = schema.get("enum")
    if isinstance(choices, list):
        return f"Literal[{', '.join(map(repr, choices))}]"
    several = schema.get("anyOf")
    if isinstance(several, list):
        return " | ".join(dict.fromkeys(map(_type, several)))
    items = schema.get("items")
    name = _TYPES.get(str(schema.get("type")), "object")
    return f"list[{_type(items)}]" if name == "list" and items else name


def _default(schema: JSONValue) -> str:
    return repr(schema["default"]) if isinstance(schema, dict) and "default" in schema else "None"


def _first(doc: str | None) -> str:
    return (doc or "").partition("\n")[0]
