"""The table of tools of all layers."""

from collections.abc import Sequence
from typing import Final

from knapper.agents.offers import AgentTools
from knapper.codemode import tool
from knapper.tools import table
from knapper.tools.finder import ToolFinder
from knapper.tools.registry import ToolSpec, ToolTable

# Its row stands here, since importing a row's class costs 0.1 s, which `knap script` needn't wait for.
_SCRIPT_TOOL: Final = ToolSpec(
    function=tool.run_script,
    effect="write",
    profile="essential",
    shown=("code",),
    rare=("timeout_s",),
    takes_long=True,
    has_submit_options=False,
)


def build_table(vaults: Sequence[str] = (), offers: AgentTools | None = None) -> ToolTable:
    """Build the table.

    Args:
        vaults: Names of the vaults that a server holds.
        offers: Carries out calls of the agents' tools; None if there is no model.
    """
    rows = (*table.TOOLS, _SCRIPT_TOOL, *(offers or AgentTools()).rows())
    finder = ToolFinder(ToolTable(rows, vaults))
    finder_rows = (
        ToolSpec(function=finder.find_tool, profile="essential", shown=("query", "limit")),
        ToolSpec(
            function=finder.call_tool,
            effect="destructive",
            profile="essential",
            open_world=True,
            has_submit_options=False,
        ),
    )
    return ToolTable((*rows, *finder_rows), vaults)
