"""Tell in which threads a tool is called."""

from collections.abc import Mapping

from knapper.server.threads import Kind
from knapper.tools.registry import ToolSpec, ToolTable


def of(table: ToolTable, row: ToolSpec, arguments: Mapping[str, object]) -> Kind:
    """Tell the kind of a call; one that calls another tool by its name is of that tool's kind."""
    if row.name == "call_tool":
        name = arguments.get("name")
        row = next((one for one in table.rows if one.name == name), row)
    if row.takes_long:
        return "long"
    if row.open_world:
        return "world"
    return "read" if row.effect == "read" else "write"
