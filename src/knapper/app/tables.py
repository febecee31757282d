"""Join the tools of all layers into one table."""

from collections.abc import Sequence

from knapper.agents.offers import Offers
from knapper.codemode import scripts
from knapper.tools import table
from knapper.tools.finder import Finder
from knapper.tools.rows import Row
from knapper.tools.tables import Table


def whole(vaults: Sequence[str] = (), offers: Offers | None = None) -> Table:
    """Make the table.

    Args:
        vaults: Names of the vaults that a server holds.
        offers: Who does what the agents' tools are asked for; None where there is no model.
    """
    rows = (*table.ROWS, *scripts.ROWS, *(offers or Offers()).rows())
    finder = Finder(Table(rows, vaults))
    found = (
        Row(function=finder.find_tool, profile="essential"),
        Row(function=finder.call_tool, effect="destructive", profile="essential", open_world=True, asked=False),
    )
    return Table((*rows, *found), vaults)
