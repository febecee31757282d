"""Read the configuration: the only place that knows files of settings and the environment."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knapper.config.files import environment_variables as environment_variables
    from knapper.config.loading import holds as holds
    from knapper.config.loading import load as load
    from knapper.config.loading import locate as locate
    from knapper.config.loading import state_folder as state_folder
    from knapper.config.loading import variable_names as variable_names
    from knapper.config.sections import ModelSettings as ModelSettings
    from knapper.config.settings import ClientSettings as ClientSettings
    from knapper.config.settings import EmbeddingSettings as EmbeddingSettings
    from knapper.config.settings import JournalSettings as JournalSettings
    from knapper.config.settings import SearchSettings as SearchSettings
    from knapper.config.settings import SettingOrigin as SettingOrigin
    from knapper.config.settings import Settings as Settings
    from knapper.config.settings import Vault as Vault

_HOMES = {
    "files": "environment_variables",
    "loading": "holds load locate state_folder variable_names",
    "sections": "ModelSettings",
    "settings": "ClientSettings EmbeddingSettings JournalSettings SearchSettings SettingOrigin Settings Vault",
}


def __getattr__(name: str) -> object:
    """Import what the package offers at its first use: a command that a server answers needs none of it, nor 80 ms."""
    home = next((module for module, names in _HOMES.items() if name in names.split()), "")
    if not home:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{home}"), name)
