"""Read the settings and open the vault that a command works with."""

from pathlib import Path

from knapper import app, config
from knapper.cli import output
from knapper.cli.options import GlobalOptions
from knapper.config import Settings
from knapper.tools.context import Context


def read_settings(options: GlobalOptions) -> Settings:
    """Read the configuration.

    Raises:
        SetupError: It can't be read, or contains an unknown setting.
    """
    return config.load({"default_vault": options.vault}, config_file=options.config, env_file=options.env_file)


def config_path(options: GlobalOptions) -> Path:
    """Return the configuration file's path, without reading the file."""
    return config.locate(options.config)


def open_vault(options: GlobalOptions, *, writes: bool = False) -> Context:
    """Open the chosen vault; the command closes it.

    Args:
        options: Which one, among others.
        writes: Whether the command changes notes; then a remark says if the current folder is in another vault.

    Raises:
        SetupError: No vault is chosen, or its state can't be kept.
    """
    config = read_settings(options)
    if writes and config.passed_by is not None:
        text = f"note: this is about the vault '{config.vault.name}' ({config.vault.path}), not the one of this folder"
        output.note(options, f"{text}, which `--vault '{output.one_line(str(config.passed_by))}'` names")
    return app.open_vault(config)


def note_if_busy(options: GlobalOptions, context: Context) -> None:
    """Print a remark if the command has to wait for another process that is writing the index."""
    if context.index.is_being_filled:
        output.note(options, "another process is writing the index; waiting for it")
