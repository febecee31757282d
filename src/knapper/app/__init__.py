"""The composition root: opens vaults, models and services, and connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.app.hub import Hub

if TYPE_CHECKING:
    from knapper.app.hub import Offer
    from knapper.config import Settings
    from knapper.tools.context import Context


__all__ = ["Hub", "open_hub", "open_vault"]


def open_hub(settings: Settings, *, only: bool = False, client: str = "") -> Hub:
    """Open the hub of a server, of the chosen vault alone, or of what one client may open; see `Hub`."""

    def find_offer() -> Offer:
        from knapper.app import pipelines  # noqa: PLC0415 - 2 s that only the agents' own tools should cost

        return pipelines.answer_offer

    return Hub(settings, find_offer, only=only, client=client)


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*; see `knapper.app.vault.open_vault`."""
    from knapper.app import vault  # noqa: PLC0415 - a server's first answer needn't wait for the index's libraries

    return vault.open_vault(settings, client=client)
