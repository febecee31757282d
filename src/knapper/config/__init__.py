"""Read the configuration: the only place that knows files of settings and the environment."""

from knapper.config.files import all_variables as environment_variables
from knapper.config.loading import holds, load, locate, state_folder
from knapper.config.sections import ModelSettings
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
    "ClientSettings",
    "EmbeddingSettings",
    "JournalSettings",
    "ModelSettings",
    "SearchSettings",
    "SettingOrigin",
    "Settings",
    "Vault",
    "environment_variables",
    "holds",
    "load",
    "locate",
    "state_folder",
]
