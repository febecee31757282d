"""What MCP lists of each tool, made ahead of time: building all schemas anew would take half a second of a start.

``scripts/reference`` writes the definitions into `FILE` beside this module, and a test holds them against the table of
tools.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.jsontypes import objects_in
from knapper.tools import registry
from knapper.tools.context import ToolSelection
from knapper.tools.registry import ToolEffect, ToolProfile

if TYPE_CHECKING:
    from knapper.jsontypes import JSONValue
    from knapper.tools.registry import ToolSpec

FILE: Final = "tools.json"
_SHORT_SELECTIONS: Final[frozenset[ToolSelection]] = frozenset({"essential", "standard"})
"""Those whose definitions leave out what a model can do without, for it takes room in its context."""
_VAULT: Final = "vault"
_PAGE_PARAMETERS: Final = frozenset({"limit", "offset"})
"""Parameters whose names say enough."""
_EMPTY_DEFAULTS: Final = ("", 0, None)
"""Defaults that stand for what isn't given; False is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpDefinition:
    """One tool of the table, as clients may be told of it."""

    name: str
    title: str
    effect: ToolEffect
    profile: ToolProfile
    is_twin: bool
    open_world: bool
    repeatable: bool
    summary: str
    description: str
    shown: tuple[str, ...]
    """The parameters that the essential selection lists."""
    usual: tuple[str, ...]
    """The parameters that the standard selection lists."""
    parameters: "dict[str, JSONValue]"
    """The whole JSON Schema of the arguments, without references: some clients know none."""
    answer: "dict[str, JSONValue]"
    """The JSON Schema of the answer, without references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """Which tools a server lists, and with what."""

    choice: ToolSelection = "standard"
    output_schemas: bool | None = None
    """Whether each says what it answers; None for where the selection lists whole definitions."""

    @property
    def has_output_schemas(self) -> bool:
        """Return whether the tools say what they answer."""
        return self.choice not in _SHORT_SELECTIONS if self.output_schemas is None else self.output_schemas

    def describe(self, definition: McpDefinition) -> str:
        """Return a tool's description, as long as the selection has them."""
        return definition.summary if self.is_short(definition) else definition.description

    def parameters(
        self, definition: McpDefinition, vaults: Sequence[str], *, names_vaults: bool
    ) -> "dict[str, JSONValue]":
        """Return the schema of a tool's arguments, as long as the selection has them.

        Args:
            definition: The tool.
            vaults: Those that the server has.
            names_vaults: Whether a short definition lists the vaults; one with the list is enough.
        """
        whole = registry.add_vault_parameter(definition.parameters, vaults)
        if not self.is_short(definition):
            return whole
        kept = {*(definition.shown if self.choice == "essential" else definition.usual), _VAULT}
        return _shorten(whole, kept, names_vaults=names_vaults)

    def is_short(self, definition: McpDefinition) -> bool:
        """Return whether a tool's definition leaves out what a model can do without."""
        return self.choice in _SHORT_SELECTIONS and registry.is_listed(definition, self.choice)


def _shorten(parameters: "Mapping[str, JSONValue]", kept: set[str], *, names_vaults: bool) -> "dict[str, JSONValue]":
    """Return a schema of some of the arguments, without what a model doesn't need."""
    whole = cast("dict[str, dict[str, JSONValue]]", parameters["properties"])
    properties: dict[str, JSONValue] = {
        name: _shorten_parameter(name, definition) for name, definition in whole.items() if name in kept
    }
    if _VAULT in properties:
        properties[_VAULT] = {"type": "string", **({"enum": whole[_VAULT]["enum"]} if names_vaults else {})}
    remaining = {name: value for name, value in parameters.items() if name != "additionalProperties"}
    return {**remaining, "properties": properties}


def _shorten_parameter(name: str, definition: "Mapping[str, JSONValue]") -> "dict[str, JSONValue]":
    short = dict(definition)
    if short.get("default", ...) in _EMPTY_DEFAULTS:
        del short["default"]
    kinds = [kind for kind in objects_in(short.get("anyOf")) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del short["anyOf"]
        short |= kinds[0]
    if name in _PAGE_PARAMETERS:
        short.pop("description", None)
    return short


def define(row: "ToolSpec") -> McpDefinition:
    """Return the definition of a row of the table."""
    from fastmcp.utilities.json_schema import dereference_refs  # noqa: PLC0415 - a start reads the file instead

    parameters = dereference_refs(registry.parameter_schema(row))
    names = [name for name in parameters["properties"] if name not in registry.parse_parameters(row).submit_options]
    return McpDefinition(
        name=row.name,
        title=row.title,
        effect=row.effect,
        profile=row.profile,
        is_twin=row.is_twin,
        open_world=row.open_world,
        repeatable=row.repeatable,
        summary=registry.summarize(row),
        description=registry.describe(row),
        shown=row.shown or tuple(names),
        usual=tuple(name for name in names if name not in row.rare),
        parameters=parameters,
        answer=dereference_refs(registry.answer_schema(row)),
    )


def dump_definitions(rows: "Iterable[ToolSpec]") -> str:
    """Return the text of the file for the rows of the table; answers that several tools share stand in it once."""
    answers: list[JSONValue] = []
    tools: list[JSONValue] = []
    for row in rows:
        definition = cast("dict[str, JSONValue]", asdict(define(row)))
        if definition["answer"] not in answers:
            answers.append(definition["answer"])
        tools.append({**definition, "answer": answers.index(definition["answer"])})
    lists = {"answers": answers, "tools": tools}
    # A line a tool, so that two changes of different tools can be merged.
    parts = [f'"{name}":[\n' + ",\n".join(map(_dump_line, values)) + "\n]" for name, values in lists.items()]
    return "{" + ",\n".join(parts) + "}\n"


def _dump_line(value: "JSONValue") -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@cache
def load_definitions() -> "Mapping[str, McpDefinition]":
    """Return the definitions of all tools by name, in the order of the table."""
    content = json.loads(resources.files(__package__ or "").joinpath(FILE).read_text(encoding="utf-8"))
    return {tool["name"]: _read_definition(tool, content["answers"]) for tool in content["tools"]}


def _read_definition(tool: dict[str, Any], answers: Sequence[dict[str, Any]]) -> McpDefinition:
    listed: dict[str, Any] = {name: tuple(tool[name]) for name in ("shown", "usual")}
    members: dict[str, Any] = {**tool, **listed, "answer": answers[tool["answer"]]}
    return McpDefinition(**members)
