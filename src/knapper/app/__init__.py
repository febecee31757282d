"""Wire the parts together: the only place that knows all of them."""

from knapper.app.hub import Hub
from knapper.app.opened import OpenedVault, open_vault

__all__ = ["Hub", "OpenedVault", "open_hub", "open_vault"]

open_hub = Hub
