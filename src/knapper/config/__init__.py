"""Read the configuration: the only place that knows files of settings and the environment."""

from knapper.config.environment import whole as environment_variables
from knapper.config.loading import load
from knapper.config.settings import Client, Embeddings, Journal, Model, Origin, Search, Settings, Vault
from knapper.config.vaults import state_folder

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
    "load",
    "state_folder",
]
