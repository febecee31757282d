"""Read the configuration: the only place that knows files of settings and the environment."""

from knapper.config.loading import load, locate
from knapper.config.settings import Client, Embeddings, Model, Origin, Search, Settings, Vault
from knapper.config.vaults import holds, state_folder

__all__ = [
    "Client",
    "Embeddings",
    "Model",
    "Origin",
    "Search",
    "Settings",
    "Vault",
    "holds",
    "load",
    "locate",
    "state_folder",
]
