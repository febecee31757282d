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
        if not self._settings.web.is_allowed:
            raise SetupError(
                "web access is off",
                hint='the owner can allow it: access = "on" below [web] in the configuration, or KNAP_WEB_ACCESS=on',
                code="web_off",
            )
        with self._lock:
            if self._web is None:
                self._web = _open_web(self._settings)
            return self._web

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._web is not None:
                self._web.close()
            if self._transcriber is not None:
                self._transcriber.close()

    def transcriber(self) -> Transcriber:
        """Give what transcribes audio.

        Raises:
            SetupError: The owner hasn't said what may.
        """
        with self._lock:
            if self._transcriber is None:
                self._transcriber = _open_transcriber(self._settings, self._folder)
            return self._transcriber


def _open_web(settings: Settings) -> Web:
    from knapper.app import web_choice  # noqa: PLC0415 - needed by few
    from knapper.net import web  # noqa: PLC0415 - slow to import, and off for most

    return web.open_web(web_choice.options(settings))


def _open_transcriber(settings: Settings, folder: Path) -> Transcriber:
    from knapper.net.speech import service  # noqa: PLC0415 - needed by few

    said, keys = settings.audio, dict(settings.model.keys)
    return service.open_transcriber(
        service.SpeechSettings(
            access=said.access,
            provider=said.provider,
            model=said.model,
            base_url=said.base_url,
            api_key=said.api_key,
            fireworks_key=keys.get("fireworks", ""),
            openai_key=keys.get("openai", ""),
            language=said.language,
            max_bytes=said.max_mb * 1_000_000,
            timeout_s=said.timeout_s,
        ),
        folder=folder / "transcripts",
    )
