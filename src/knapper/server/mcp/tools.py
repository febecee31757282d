"""Offer the tools of the table."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastmcp.server.providers.base import Provider
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp_types import ToolAnnotations
from pydantic import PrivateAttr

from knapper.errors import KnapError
from knapper.server.mcp import results
from knapper.server.mcp.callers import Desk
from knapper.server.mcp.progress import Reporter
from knapper.server.threads import Kind
from knapper.tools import schema
from knapper.tools.profiles import Choice
from knapper.tools.rows import Row
from knapper.tools.tables import Open, Table


class RowTool(Tool):
    """Offer one row of the table."""

    _row: Row = PrivateAttr()
    _table: Table = PrivateAttr()
    _desk: Desk = PrivateAttr()

    @classmethod
    def of(cls, row: Row, table: Table, desk: Desk, *, brief: bool = False) -> "RowTool":
        """Derive the tool from its row.

        Args:
            row: Which.
            table: Where it stands.
            desk: Does the work.
            brief: Leave out what a model can do without: every definition takes room in its context.
        """
        tool = cls(
            name=row.name,
            title=row.title,
            description=schema.summary(row) if brief else schema.description(row),
            parameters=table.parameters(row, brief=brief),
            output_schema=None if brief else schema.returns(row),
            annotations=annotations(row),
        )
        tool._row, tool._table, tool._desk = row, table, desk
        return tool

    def get_meta(self) -> dict[str, Any]:
        """Give no data about ourselves: it says nothing, and takes room."""
        return {}

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool; what it refuses is a result that a model can act on."""
        reporter = Reporter()
        name, table = self._row.name, self._table

        def call(open_vault: Open) -> ToolResult:
            answer = table.call(name, arguments, lambda vault: reporter.listen(open_vault(vault)))
            return results.success(self._row, answer)

        try:
            return await self._desk.work(call, _kind(self._row))
        except KnapError as error:
            return results.failure(error)
        except asyncio.CancelledError:
            reporter.cancel()
            raise


class Tools(Provider):
    """List the tools of a choice; those beyond it can be called all the same, unless they may not be."""

    def __init__(self, table: Table, desk: Desk, choice: Choice) -> None:
        """Take the table.

        Args:
            table: With the tools of all layers.
            desk: Does the work.
            choice: Which tools are listed.
        """
        super().__init__()
        self._listed = [RowTool.of(row, table, desk, brief=choice == "essential") for row in table.chosen(choice)]
        callable_ = "read-only" if choice == "read-only" else "full"
        self._known = {row.name: row for row in table.chosen(callable_)}
        self._table = table
        self._desk = desk

    async def _list_tools(self) -> Sequence[Tool]:
        return self._listed

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        del version
        listed = next((tool for tool in self._listed if tool.name == name), None)
        if listed is not None or name not in self._known:
            return listed
        return RowTool.of(self._known[name], self._table, self._desk)


def _kind(row: Row) -> Kind:
    if row.open_world:
        return "world"
    return "read" if row.effect == "read" else "write"


def annotations(row: Row) -> ToolAnnotations:
    """Tell what a call may do, in the protocol's words."""
    return ToolAnnotations(
        title=row.title,
        read_only_hint=row.effect == "read",
        destructive_hint=row.effect == "destructive",
        idempotent_hint=row.effect == "read" or row.repeatable,
        open_world_hint=row.open_world,
    )
