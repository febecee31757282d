"""Wire the parts together: the only place that knows all of them."""

from knapper.app.hub import Hub, open_hub
from knapper.app.opened import OpenedVault, open_vault

__all__ = ["Hub", "OpenedVault", "open_hub", "open_vault"]
