"""Read the configuration: the only place that knows files of settings and the environment."""

from knapper.config.environment import whole as environment_variables
from knapper.config.loading import load, locate
from knapper.config.settings import Client, Embeddings, Journal, Model, Origin, Search, Settings, Vault
from knapper.config.vaults import holds, state_folder

__all__ = [
    "Client",
    "Embeddings",
    "Journal",
    "Model",
    "Origin",
    "Search",
    "Settings",
    "Vault",
    "environment_variables",
    "holds",
    "load",
    "locate",
    "state_folder",
]
