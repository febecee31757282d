"""Read the configuration: the only place that knows files of settings and the environment."""

from knapper.config.environment import all_variables
from knapper.config.loading import holds, load, locate, state_folder
from knapper.config.sections.models import ModelSettings
from knapper.config.settings import (
    ClientSettings,
    EmbeddingSettings,
    JournalSettings,
    SearchSettings,
    SettingOrigin,
    Settings,
    Vault,
)

__all__ = [
    "Client",
    "ClientSettings",
    "EmbeddingSettings",
    "Embeddings",
    "Journal",
    "JournalSettings",
    "Model",
    "ModelSettings",
    "Origin",
    "Search",
    "SearchSettings",
    "SettingOrigin",
    "Settings",
    "Vault",
    "all_variables",
    "environment_variables",
    "holds",
    "load",
    "locate",
    "state_folder",
]
