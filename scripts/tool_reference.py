"""Write the reference of tools from their table."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from knapper.app import tables
from knapper.tools import registry
from knapper.tools.registry import ToolSpec

_EFFECTS: Final = {
    "read": "Changes nothing.",
    "write": "Adds, and puts nothing in the place of what was there.",
    "destructive": "May replace, move or trash what is there; every change can be undone.",
}
_ALIKE: Final = ("success", "total", "limit", "offset", "next_offset", "notes")
"""What many answers hold, and the page says once."""


def rows() -> Iterator[str]:
    """Return the page's parts: a section for each tool."""
    table = tables.build_table()
    for row in table.specs:
        yield f"## {row.name}"
        yield registry.describe(row)
        yield " ".join(_facts(row))
        given = cast("Mapping[str, Any]", registry.parameter_schema(row)["properties"])
        needed = cast("list[str]", registry.parameter_schema(row).get("required", []))
        lines = [(f"`{name}`", _kind(one), _default(name, one, needed), _said(one)) for name, one in given.items()]
        yield _table(("parameter", "type", "default", "meaning"), lines) if lines else ""
        fields = [
            name for name in cast("Mapping[str, Any]", registry.answer_schema(row)["properties"]) if name not in _ALIKE
        ]
        yield f"Gives {', '.join(f'`{name}`' for name in fields)}." if fields else ""


def _facts(row: ToolSpec) -> Iterator[str]:
    yield _EFFECTS[row.effect]
    if row.profile != "full":
        profiles = "`essential` and `standard`" if row.profile == "essential" else "`standard`"
        yield f"In the profile{'s' if row.profile == 'essential' else ''} {profiles}."
    if row.is_twin:
        yield "A second name, which lists leave out."
    if row.open_world:
        yield "Reaches beyond the vault."


def _kind(one: Mapping[str, Any]) -> str:
    choices = one.get("enum")
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    kinds = [_kind(each) for each in one.get("anyOf", ()) if each.get("type") != "null"]
    if kinds:
        return " or ".join(kinds)
    if one.get("type") == "array":
        return f"list of {_kind(one.get('items', {}))}"
    return {"string": "text", "integer": "number", "number": "number", "boolean": "yes or no", "object": "object"}.get(
        str(one.get("type", "")), "any JSON" if "$ref" not in one else "object"
    )


def _default(name: str, one: Mapping[str, Any], needed: list[str]) -> str:
    if name in needed:
        return "needed"
    value = one.get("default")
    return f"`{value}`".lower() if isinstance(value, int | float | str) and value != "" else ""


def _said(one: Mapping[str, Any]) -> str:
    return str(one.get("description", ""))


def _table(names: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    every = [names, ("---",) * len(names), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in every)
