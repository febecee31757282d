"""Open what reaches beyond the vault, as far as its owner allows that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from knapper.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from knapper.changes.writer import Writer
    from knapper.config import Settings
    from knapper.net.speech import Transcriber
    from knapper.net.web import Web

Close = Callable[[], None]
MakeWriter = Callable[[], "Writer"]


def nothing() -> None:
    """Do nothing."""


class Outside:
    """Open the web and what transcribes when they're first asked for."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Take what the configuration says.

        Args:
            settings: What the configuration says.
            folder: The vault's state folder.
        """
        self._settings = settings
        self._folder = folder
        self._lock = threading.Lock()
        self._web: Web | None = None
        self._transcriber: Transcriber | None = None

    def web(self) -> Web:
        """Give what searches the web and fetches pages.

        Raises:
            SetupError: The owner hasn't allowed it.
        """
        raise SetupError("the web is off", hint="set web.access to on")

    def transcriber(self) -> Transcriber:
        """Give what transcribes audio.

        Raises:
            SetupError: The owner hasn't said what may.
        """
        raise SetupError("nothing is set up that transcribes audio", hint="set audio.access")
