"""Offer the table's tools to a model: calls are repaired, checked, run in threads, and answered within limits."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import anyio.to_thread
from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from knapper.agents import asking, halves, repair, workbench
from knapper.agents.events import Proposal, Question, ToolResult
from knapper.agents.results import Shown
from knapper.agents.synthetic import ASK_USER, DEFINITIONS, GET_CONTINUATION
from knapper.agents.workbench import Workbench
from knapper.errors import BadInput, KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import proposals, registry
from knapper.tools.context import Context
from knapper.tools.registry import CALL_TOOL, ToolSpec

UNCOUNTED: Final = frozenset({"log_interaction", GET_CONTINUATION})
"""Tools whose calls don't count towards the cap of a bench."""
FIND_TOOL: Final = "find_tool"
_PERSONS_OWN: Final = frozenset({"accept_proposal", "undo", "undo_change"})
"""Tools that decide on a person's behalf, which no agent does."""
_PATHS: Final = frozenset({"path", "paths", "source", "destination", "folder", "note_name", "file", "files"})
_REPEATED: Final = (
    "This very call was made just before, and its result stands above. Use that, or call with other arguments."
)
_CUT: Final = "the call's arguments end in the middle, and nothing was changed"
_ASKED: Final = "The question is put to the person; their next message answers it. End your turn now."
_RETRIES: Final = 50


def offered(rows: Sequence[ToolSpec], *, may_write: bool = True) -> dict[str, ToolSpec]:
    """Choose the tools that a model is offered, by name; deciding on proposals and undoing are a person's."""
    return {row.name: row for row in rows if row.name not in _PERSONS_OWN and (may_write or row.effect == "read")}


def arguments_of(rows: Mapping[str, ToolSpec], name: str, raw: object) -> repair.Arguments:
    """Read a call's arguments as they will be used, but for halves of characters, which tools refuse to write."""
    known = {definition.name: definition for definition in _definitions(rows)}
    schema: repair.Schema = known[name].parameters_json_schema if name in known else {}
    return cast("repair.Arguments", halves.whole(repair.fit(repair.read(raw), schema)))


class TableTools(AbstractToolset[Workbench]):
    """Offer the tools of a bench."""

    @property
    def id(self) -> str:
        """Name the toolset."""
        return "vault"

    async def get_tools(self, ctx: RunContext[Workbench]) -> dict[str, ToolsetTool[Workbench]]:
        """Describe the tools that the turn has."""
        shown = {name: row for name, row in ctx.deps.rows.items() if name in ctx.deps.listed}
        return {definition.name: self._tool(definition) for definition in _definitions(shown, brief=ctx.deps.brief)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Workbench], tool: ToolsetTool[Workbench]
    ) -> str:
        """Call a tool, and tell the turn what came of it; errors are told to the model, with their hints."""
        del tool
        bench, call_id = ctx.deps, ctx.tool_call_id or ""
        arguments = cast("repair.Arguments", tool_args)
        if name == CALL_TOOL:
            name, arguments = _meant(bench, arguments)
        if bench.repeats(name, arguments):
            return _tell(bench, call_id, name, {"success": False, "error": _REPEATED, "code": "repeated_call"})
        if name == GET_CONTINUATION:
            return _continue(bench, call_id, arguments)
        if name == ASK_USER:
            return _ask(bench, call_id, arguments)
        row = bench.rows.get(name)
        if row is None or (row.effect != "read" and call_id in bench.cut):
            return _refuse(bench, call_id, name, row)
        if row.effect == "read":
            return await _carried_out(bench, call_id, row, arguments)
        task = asyncio.create_task(_carried_out(bench, call_id, row, arguments))
        bench.writing.add(task)
        return await asyncio.shield(task)

    def _tool(self, definition: ToolDefinition) -> ToolsetTool[Workbench]:
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=_Repair(definition))


class _Repair:
    """Read a call's arguments, and mend them; stands where pydantic's validator would."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._schema = cast("repair.Schema", definition.parameters_json_schema)

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, JSONValue]:  # noqa: A002, ANN401 - the validator's own signature
        return repair.fit(repair.read(input), self._schema)

    def validate_python(self, input: Any, **_: Any) -> dict[str, JSONValue]:  # noqa: A002, ANN401 - the same
        return repair.fit(repair.read(input), self._schema)


def _definitions(rows: Mapping[str, ToolSpec], *, brief: bool = False) -> list[ToolDefinition]:
    """Describe the table's tools, and the loop's own; writes are run one after another, reads side by side."""
    table = [
        ToolDefinition(
            name=name,
            description=registry.describe(row),
            parameters_json_schema=cast("dict[str, Any]", registry.parameter_schema(row, brief=brief)),
            sequential=row.effect != "read",
        )
        for name, row in rows.items()
    ]
    return [*table, *DEFINITIONS]


async def _carried_out(bench: Workbench, call_id: str, row: ToolSpec, arguments: repair.Arguments) -> str:
    began = time.monotonic()
    answer = await anyio.to_thread.run_sync(
        _answer, row, bench.context, arguments, abandon_on_cancel=True, limiter=bench.threads
    )
    bench.used.append(_used(row.name, answer, time.monotonic() - began))
    await anyio.to_thread.run_sync(_note_writes, bench, answer, limiter=bench.threads)
    if row.name == FIND_TOOL:
        answer = _here(bench, answer)
        bench.listed |= _found(answer)
    return _tell(bench, call_id, row.name, answer)


def _answer(row: ToolSpec, context: Context, arguments: repair.Arguments) -> dict[str, JSONValue]:
    return registry.invoke_or_error(
        row, context, {name: _spaced(context, name, one) for name, one in arguments.items()}
    )


def _spaced(context: Context, name: str, value: JSONValue) -> JSONValue:
    """Write paths with plain spaces, unless a file has just the name that was given."""
    if name not in _PATHS:
        return value
    if isinstance(value, list):
        return [_spaced(context, name, one) for one in value]
    if not isinstance(value, str) or repair.plain_spaces(value) == value:
        return value
    try:
        _ = context.view.path(value)
    except KnapError:
        return repair.plain_spaces(value)
    return value


def _refuse(bench: Workbench, call_id: str, name: str, row: ToolSpec | None) -> str:
    """Tell the model that a tool isn't here, or that its call isn't whole."""
    if row is None:
        missing = NotFound(f"there is no tool '{name[:80]}' here", hint="find_tool finds others", code="no_tool")
        return _tell(bench, call_id, CALL_TOOL, cast("dict[str, JSONValue]", missing.as_dict()))
    cut = BadInput(_CUT, hint="send the whole call again, and a long text in several calls", code="cut_off")
    return _tell(bench, call_id, name, cast("dict[str, JSONValue]", cut.as_dict()))


def _continue(bench: Workbench, call_id: str, arguments: repair.Arguments) -> str:
    offset = arguments.get("offset", 0)
    try:
        if not isinstance(offset, int):
            raise BadInput(f"offset is {str(offset)[:40]!r}", hint="give a whole number")  # noqa: TRY301 - told to the model, like all others
        shown = bench.results.more(str(arguments.get("tool_call_id", "")), offset)
    except (BadInput, NotFound) as error:
        return _tell(bench, call_id, GET_CONTINUATION, cast("dict[str, JSONValue]", error.as_dict()))
    bench.told.append(_result(call_id, GET_CONTINUATION, {"success": True}, shown))
    return shown.text


def _ask(bench: Workbench, call_id: str, arguments: repair.Arguments) -> str:
    question, options = asking.read(arguments)
    try:
        asking.check(question, is_first=bench.question is None)
    except BadInput as error:
        return _tell(bench, call_id, ASK_USER, cast("dict[str, JSONValue]", error.as_dict()))
    bench.question = Question(id=call_id, question=question, options=[*options])
    bench.told.append(bench.question)
    return _ASKED


def _tell(bench: Workbench, call_id: str, name: str, answer: dict[str, JSONValue]) -> str:
    answer = cast("dict[str, JSONValue]", halves.whole(answer))
    bench.answers[call_id] = answer
    shown = bench.results.show(call_id, name, answer)
    bench.told.append(_result(call_id, name, answer, shown))
    return shown.text


def _result(call_id: str, name: str, answer: dict[str, JSONValue], shown: Shown) -> ToolResult:
    return ToolResult(
        id=call_id,
        name=name,
        success=answer.get("success") is not False,
        summary=workbench.summary(answer),
        answer=answer,
        chars=shown.chars,
        truncated=shown.truncated,
    )


def _used(name: str, answer: Mapping[str, JSONValue], seconds: float) -> JSONValue:
    return {
        "name": name,
        "success": answer.get("success") is not False,
        "summary": workbench.summary(answer),
        "duration_ms": round(seconds * 1_000),
    }


def _note_writes(bench: Workbench, answer: Mapping[str, JSONValue]) -> None:
    """Remember what was changed, and hand over what waits for a person."""
    status = answer.get("status")
    if status == "applied" and answer.get("change_id"):
        bench.changes.append(str(answer["change_id"]))
    for proposal in _left(answer, bench.context.vault):
        bench.proposals.append(proposal)
        bench.told.append(Proposal(proposal=proposals.show_proposal(bench.context, proposal)))


def _left(answer: Mapping[str, JSONValue], vault: str) -> list[str]:
    """Name the proposals in a vault that a call has left: its own, or those of the script that it ran."""
    if answer.get("status") == "proposed" and answer.get("proposal_id"):
        return [str(answer["proposal_id"])]
    rows = answer.get("proposals")
    named = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [str(row["id"]) for row in named if row.get("vault") == vault and "id" in row]


def _meant(bench: Workbench, arguments: repair.Arguments) -> tuple[str, repair.Arguments]:
    """Read which tool a call of the one that calls others means: only those of the bench can be called so."""
    name, inner = str(arguments.get("name", "")), arguments.get("arguments")
    if name == CALL_TOOL or name not in bench.rows:
        return f"{CALL_TOOL}: {name}" if name == CALL_TOOL else name, {}
    return name, repair.fit(repair.read(inner), cast("repair.Schema", registry.parameter_schema(bench.rows[name])))


def _here(bench: Workbench, answer: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Leave out of the tools that were found those that the bench hasn't."""
    results = answer.get("results")
    if not isinstance(results, list):
        return dict(answer)
    kept: list[JSONValue] = [row for row in results if isinstance(row, dict) and row.get("name") in bench.rows]
    return {**answer, "results": kept, "total": len(kept)}


def _found(answer: Mapping[str, JSONValue]) -> set[str]:
    results = answer.get("results")
    rows = results if isinstance(results, list) else []
    return {str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row}
