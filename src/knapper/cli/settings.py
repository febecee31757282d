"""Read the settings that a command works with, as its options say."""

from pathlib import Path

from knapper import config
from knapper.cli.options import Options
from knapper.config import Settings


def read(options: Options) -> Settings:
    """Read the configuration.

    Raises:
        SetupError: It can't be read, or says something that isn't a setting.
    """
    return config.load({"default_vault": options.vault}, config_file=options.config, env_file=options.env_file)


def file(options: Options) -> Path:
    """Tell where the configuration file is, or would be, without reading it."""
    return config.locate(options.config)
