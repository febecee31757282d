"""Open the vault that a command works on, as its options say."""

from knapper import app
from knapper.cli import settings
from knapper.cli.options import Options
from knapper.tools.context import Context


def vault(options: Options) -> Context:
    """Open the chosen vault; the command closes it.

    Raises:
        SetupError: No vault is chosen, or its state can't be kept.
    """
    return app.open_vault(settings.read(options))
