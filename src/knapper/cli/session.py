"""Open the vault that a command works on, as its options say."""

from knapper import app
from knapper.cli import output, settings
from knapper.cli.options import Options
from knapper.tools.context import Context


def vault(options: Options, *, writes: bool = False) -> Context:
    """Open the chosen vault; the command closes it.

    Args:
        options: Which one, among others.
        writes: The command changes notes: whoever stands in another vault than the chosen one is told so.

    Raises:
        SetupError: No vault is chosen, or its state can't be kept.
    """
    found = settings.read(options)
    if writes and found.passed_by is not None:
        text = f"note: this is about the vault '{found.vault.name}' ({found.vault.path}), not the one of this folder"
        output.note(options, f"{text}, which `--vault '{output.line(str(found.passed_by))}'` names")
    return app.open_vault(found)


def tell_if_busy(options: Options, context: Context) -> None:
    """Say what a command that takes files in waits for, where somebody else is just at it."""
    if context.index.is_being_filled:
        output.note(options, "another process is writing the index; waiting for it")
