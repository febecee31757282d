"""Offer the tools of the table."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastmcp.server.providers.base import Provider
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.json_schema import dereference_refs
from fastmcp.utilities.versions import VersionSpec
from mcp_types import ToolAnnotations
from pydantic import PrivateAttr

from knapper.errors import KnapError, RefusedError
from knapper.server import kinds
from knapper.server.mcp import definitions, results
from knapper.server.mcp.callers import Desk
from knapper.server.mcp.progress import Reporter
from knapper.tools import registry
from knapper.tools.context import Context, ToolSelection
from knapper.tools.registry import ToolSpec, VaultOpener

_MISSING: Final = "missing"


class RowTool(Tool):
    """Offer one row of the table."""

    _row: ToolSpec = PrivateAttr()
    _desk: Desk = PrivateAttr()
    _choice: ToolSelection = PrivateAttr()

    @classmethod
    def of(cls, row: ToolSpec, desk: Desk, choice: ToolSelection = "full") -> "RowTool":
        """Derive the tool from its row.

        Args:
            row: Which.
            desk: Does the work.
            choice: Among which tools it is offered; of the essential ones each definition leaves out what a model can
                do without, for it takes room in its context.
        """
        brief = choice == "essential" and row.profile == "essential"
        parameters = dereference_refs(desk.hub.table.parameters(row, brief=brief))  # some clients know no "$ref"
        if brief:
            is_first = row is desk.hub.table.chosen(choice)[0]
            parameters = definitions.shortened(parameters, names_vaults=is_first)
        tool = cls(
            name=row.name,
            title=row.title,
            description=registry.summarize(row) if brief else registry.describe(row),
            parameters=parameters,
            output_schema=None if brief else dereference_refs(registry.answer_schema(row)),
            annotations=annotations(row),
        )
        tool._row, tool._desk, tool._choice = row, desk, choice
        return tool

    def get_meta(self) -> dict[str, Any]:
        """Give no data about ourselves: it says nothing, and takes room."""
        return {}

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool; what it refuses is a result that a model can act on."""
        reporter = Reporter()
        name, table = self._row.name, self._desk.hub.table

        def call(open_vault: VaultOpener) -> ToolResult:
            answer = table.call(name, arguments, lambda vault: self._seen(reporter.listen(open_vault(vault))))
            return results.success(answer)

        try:
            return await self._desk.work(call, kinds.of(table, self._row, arguments))
        except KnapError as error:
            return results.failure(error)
        except asyncio.CancelledError:
            reporter.cancel()
            raise

    def _seen(self, context: Context) -> Context:
        return replace(context, offered=self._choice)


class _Missing(Tool):
    """Answer a call of what isn't offered, with what comes nearest."""

    _error: KnapError = PrivateAttr()

    @classmethod
    def of(cls, name: str, desk: Desk, *, is_read_only: bool) -> "_Missing":
        tool = cls(name=_MISSING, parameters={"type": "object"})  # the library warns of odd names, line by line
        try:
            _ = desk.hub.table.find(name)
            hint = "the person set it up with the profile read-only" if is_read_only else ""
            tool._error = RefusedError(f"'{name}' isn't offered here", hint=hint, code="no_tool")
        except KnapError as error:
            tool._error = error
        return tool

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        del arguments
        return results.failure(self._error)


class Tools(Provider):
    """List the tools of a choice; those beyond it can be called all the same, unless they may not be.

    They're derived when they're first asked for: the handshake waits for none.
    """

    def __init__(self, desk: Desk, choice: ToolSelection) -> None:
        """Take what does the work, and say which tools are listed."""
        super().__init__()
        self._desk = desk
        self._choice: ToolSelection = choice
        self._made: dict[str, RowTool] = {}

    async def _list_tools(self) -> Sequence[Tool]:
        return [self._tool(row) for row in self._desk.hub.table.chosen(self._choice)]

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        del version
        allowed = self._desk.hub.table.callable(self._choice)
        row = next((row for row in allowed if row.name == name), None)
        return self._tool(row) if row else _Missing.of(name, self._desk, is_read_only=self._choice == "read-only")

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """Offer no background tasks; the library would list all tools at its start to look for some."""
        return []

    def _tool(self, row: ToolSpec) -> RowTool:
        made = self._made.get(row.name)
        if made is None:
            made = self._made[row.name] = RowTool.of(row, self._desk, self._choice)
        return made


def annotations(row: ToolSpec) -> ToolAnnotations:
    """Tell what a call may do, in the protocol's words."""
    return ToolAnnotations(
        title=row.title,
        read_only_hint=row.effect == "read",
        destructive_hint=row.effect == "destructive",
        idempotent_hint=row.effect == "read" or row.repeatable,
        open_world_hint=row.open_world,
    )
