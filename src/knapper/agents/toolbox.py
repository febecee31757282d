"""Offer an agent a few tools of its own choice: calls are repaired, run in threads, and answered within limits."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio.to_thread
from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from knapper.agents import halves, repair, workbench
from knapper.agents.events import Event, ToolResult
from knapper.agents.repair import Arguments
from knapper.agents.results import Results
from knapper.agents.synthetic import DEFINITIONS, GET_CONTINUATION
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import registry
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer

_RETRIES: Final = 50
_REPEATED: Final = "This very call was made just before, and its answer stands above."
Handle = Callable[[Arguments], Answer]
"""Carries a call out; runs in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Hold one tool of an agent."""

    definition: ToolDefinition
    handle: Handle

    @property
    def name(self) -> str:
        """Give its name."""
        return self.definition.name


@dataclass(slots=True, kw_only=True)
class Box:
    """Hold the tools of one run, and what came of them."""

    tools: Mapping[str, Tool]
    results: Results
    told: list[Event] = field(default_factory=list[Event])
    used: list[JSONValue] = field(default_factory=list[JSONValue])
    _last: str = ""

    def repeats(self, name: str, arguments: Arguments) -> bool:
        """Tell whether a call is the one before it once more."""
        this = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
        repeated = this == self._last
        self._last = this
        return repeated


class BoxTools(AbstractToolset[Box]):
    """Offer the tools of a box."""

    @property
    def id(self) -> str:
        """Name the toolset."""
        return "box"

    async def get_tools(self, ctx: RunContext[Box]) -> dict[str, ToolsetTool[Box]]:
        """Describe the tools."""
        definitions = [tool.definition for tool in ctx.deps.tools.values()]
        definitions += [one for one in DEFINITIONS if one.name == GET_CONTINUATION]
        return {
            one.name: ToolsetTool(toolset=self, tool_def=one, max_retries=_RETRIES, args_validator=_Repair(one))
            for one in definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Box], tool: ToolsetTool[Box]
    ) -> str:
        """Call a tool; errors are told to the model, with their hints."""
        del tool
        box, call_id = ctx.deps, ctx.tool_call_id or ""
        arguments = cast("Arguments", halves.whole(tool_args))
        if name == GET_CONTINUATION:
            return _continue(box, call_id, arguments)
        if box.repeats(name, arguments):
            answer: Answer = {"success": False, "error": _REPEATED, "code": "repeated_call"}
        else:
            answer = await anyio.to_thread.run_sync(_handled, box.tools[name], arguments, abandon_on_cancel=True)
        shown = box.results.show(call_id, name, answer)
        box.used.append({"name": name, "success": answer.get("success") is not False})
        box.told.append(_result(call_id, name, answer))
        return shown.text


def from_row(
    row: ToolSpec, context: Context, *, heard: Callable[[Arguments, Answer], None], most: Mapping[str, int]
) -> Tool:
    """Make a tool of a row of the table.

    Args:
        row: Which.
        context: The vault, as the agent sees it.
        heard: Told of each call with its answer.
        most: The greatest number that an argument may be; it is taken where none is given, too.
    """
    given = cast("dict[str, Any]", registry.parameter_schema(row))

    def handle(arguments: Arguments) -> Answer:
        fitted = dict(arguments)
        for name, limit in most.items():
            value = fitted.get(name, limit)
            fitted[name] = min(value, limit) if isinstance(value, int) else value
        answer = registry.invoke_or_error(row, context, fitted)
        heard(arguments, answer)
        return answer

    definition = ToolDefinition(name=row.name, description=registry.describe(row), parameters_json_schema=given)
    return Tool(definition=definition, handle=handle)


def box(tools: Sequence[Tool], *, mark: str, max_chars: int) -> Box:
    """Put tools into a box.

    Args:
        tools: Each of another name.
        mark: That of the run's blocks.
        max_chars: How much of an answer the model is given at once.
    """
    return Box(tools={tool.name: tool for tool in tools}, results=Results(mark=mark, max_chars=max_chars))


class _Repair:
    """Read a call's arguments, and mend them; stands where pydantic's validator would."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._schema = cast("repair.Schema", definition.parameters_json_schema)

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> Arguments:  # noqa: A002, ANN401 - the validator's own signature
        return repair.fit(repair.read(input), self._schema)

    def validate_python(self, input: Any, **_: Any) -> Arguments:  # noqa: A002, ANN401 - the same
        return repair.fit(repair.read(input), self._schema)


def _handled(tool: Tool, arguments: Arguments) -> Answer:
    try:
        return tool.handle(arguments)
    except KnapError as error:
        return cast("Answer", error.as_dict())


def _continue(box: Box, call_id: str, arguments: Arguments) -> str:
    offset = arguments.get("offset", 0)
    try:
        if not isinstance(offset, int):
            raise BadInput(f"offset is {str(offset)[:40]!r}", hint="give a whole number")
        return box.results.more(str(arguments.get("tool_call_id", "")), offset).text
    except KnapError as error:
        answer = cast("Answer", error.as_dict())
        box.told.append(_result(call_id, GET_CONTINUATION, answer))
        return box.results.show(call_id, GET_CONTINUATION, answer).text


def _result(call_id: str, name: str, answer: Answer) -> ToolResult:
    success = answer.get("success") is not False
    return ToolResult(id=call_id, name=name, success=success, summary=workbench.summary(answer), answer=answer)
