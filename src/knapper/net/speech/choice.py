"""Choose what transcribes, as far as the owner allows it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from knapper.net.speech.endpoint import Access, Endpoint
from knapper.net.speech.store import Kept, Store
from knapper.net.speech.transcripts import TranscriberError
from knapper.net.speech.whisper import Whisper

if TYPE_CHECKING:
    from knapper.net.speech.transcripts import Transcriber

Permission = Literal["auto", "off", "local", "on"]
Provider = Literal["auto", "fireworks", "openai", "server", "whisper"]
_Chosen = Literal["fireworks", "openai", "server", "whisper"]

_FIREWORKS: Final = "https://audio-prod.api.fireworks.ai/v1"
_FIREWORKS_TURBO: Final = "https://audio-turbo.api.fireworks.ai/v1"
_OPENAI: Final = "https://api.openai.com/v1"
_OPENAI_BYTES: Final = 25_000_000
"""What OpenAI takes at most."""
_MODELS: Final = {"fireworks": "whisper-v3", "openai": "whisper-1", "server": "whisper-1", "whisper": "small"}
_VARIABLES: Final = {"fireworks": "FIREWORKS_API_KEY", "openai": "OPENAI_API_KEY"}
_PATH: Final = "/audio/transcriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSettings:
    """Hold what the owner says about transcribing."""

    access: Permission = "auto"
    """``auto``: allowed where a provider, an address or a key is set. ``local``: nothing leaves the machine."""
    provider: Provider = "auto"
    """``auto``: the server at *base_url*, else Fireworks."""
    model: str = ""
    """Empty for the provider's usual one; so is the one that is usual at Fireworks, which no other has."""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    fireworks_key: str = field(default="", repr=False)
    """Sent to Fireworks alone, where *api_key* is empty."""
    openai_key: str = field(default="", repr=False)
    """Sent to OpenAI alone, where *api_key* is empty."""
    language: str = ""
    max_bytes: int = 200_000_000
    timeout_s: float = 600.0
    env_proxies: bool = False


def open_transcriber(settings: SpeechSettings, *, folder: Path | None = None) -> Transcriber:
    """Open what transcribes; nothing is asked and loaded before the first recording.

    Args:
        settings: What the owner says.
        folder: Where transcripts are kept; None keeps none.

    Raises:
        SetupError: It isn't allowed, or something is missing.
    """
    chosen = _transcriber(settings)
    return chosen if folder is None else Kept(chosen, Store(folder))


def is_loopback(base_url: str) -> bool:
    """Tell whether an address is this machine's own, by what it says and without asking anybody."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _transcriber(settings: SpeechSettings) -> Transcriber:
    provider: _Chosen = settings.provider if settings.provider != "auto" else "fireworks"
    if settings.provider == "auto" and settings.base_url:
        provider = "server"
    key = settings.api_key
    if not key and not settings.base_url:  # a provider's key goes to no other address
        key = {"fireworks": settings.fireworks_key, "openai": settings.openai_key}.get(provider, "")
    if settings.access == "off":
        raise _off("audio.access is off")
    if settings.access == "auto" and settings.provider == "auto" and not (settings.base_url or key):
        raise _off("neither FIREWORKS_API_KEY nor audio.base_url is set")
    model = _MODELS[provider] if settings.model in {"", _MODELS["fireworks"]} else settings.model
    if provider == "whisper":
        return Whisper(model, language=settings.language, max_bytes=settings.max_bytes)
    base_url = _base(settings.base_url) or _usual_address(provider, model)
    _check(settings, provider, base_url, key)
    limit = _OPENAI_BYTES if base_url == _OPENAI else settings.max_bytes
    return Endpoint(
        Access(
            form=provider,
            base_url=base_url,
            model=model,
            api_key=key,
            language=settings.language,
            timeout_s=settings.timeout_s,
            max_bytes=min(limit, settings.max_bytes),
            env_proxies=settings.env_proxies,
        )
    )


def _check(settings: SpeechSettings, provider: _Chosen, base_url: str, key: str) -> None:
    if not base_url:
        raise TranscriberError(
            "audio.provider is server, and audio.base_url isn't set",
            hint="for example base_url = http://localhost:8000/v1",
            code="audio_address",
        )
    if settings.access == "local" and not is_loopback(base_url):
        raise TranscriberError(
            "audio.access is local, and the server isn't on this machine",
            hint="set audio.provider to whisper, or audio.base_url to a server on localhost, or audio.access to on",
            code="audio_local",
        )
    if provider in _VARIABLES and not key and not settings.base_url:
        raise TranscriberError(
            f"{_VARIABLES[provider]} isn't set",
            hint="set it, or audio.api_key; or transcribe on this machine with audio.provider = whisper",
            code="audio_key",
        )


def _off(why: str) -> TranscriberError:
    return TranscriberError(
        f"audio isn't transcribed: {why}",
        hint="set FIREWORKS_API_KEY or audio.base_url; or audio.provider = whisper, which keeps all on this machine",
        code="audio_off",
    )


def _usual_address(provider: _Chosen, model: str) -> str:
    if provider == "fireworks":
        return _FIREWORKS_TURBO if "turbo" in model else _FIREWORKS
    return _OPENAI if provider == "openai" else ""


def _base(url: str) -> str:
    """Bring an address to the form that ends before ``/audio/transcriptions``."""
    bare = url.strip().rstrip("/").removesuffix(_PATH).rstrip("/")
    return f"{bare}/v1" if bare and bare.count("/") == 2 else bare
