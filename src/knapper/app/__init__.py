"""Wire the parts together: the only place that knows all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.app.hub import Hub, open_hub

if TYPE_CHECKING:
    from knapper.config import Settings
    from knapper.tools.context import Context

__all__ = ["Hub", "open_hub", "open_vault"]


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*; `knapper.app.opened.open_vault` says more."""
    from knapper.app import opened  # noqa: PLC0415 - a server's first answer needn't wait for the index's libraries

    return opened.open_vault(settings, client=client)
