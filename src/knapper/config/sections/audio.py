"""Say what transcribes audio, and whether recordings may leave the machine."""

from dataclasses import dataclass, field
from typing import Literal, cast

from knapper.config.setting import Setting, Values, count, text

SETTINGS = (
    Setting(
        name="audio.access",
        doc="Whether recordings may be transcribed: off, on this machine only (local), on, "
        "or where a key, a provider or an address is set (auto).",
        kind="choice",
        default="auto",
        choices=("auto", "off", "local", "on"),
        env=("KNAP_AUDIO",),
    ),
    Setting(
        name="audio.provider",
        doc="What transcribes: fireworks, openai, a server of their form at audio.base_url, or whisper on this "
        "machine; auto takes the server where there is one, else fireworks.",
        kind="choice",
        default="auto",
        choices=("auto", "fireworks", "openai", "server", "whisper"),
    ),
    Setting(
        name="audio.model",
        doc="The model that transcribes audio; the default stands for the provider's usual one.",
        default="whisper-v3",
        env=("WHISPER_MODEL",),
    ),
    Setting(
        name="audio.base_url",
        doc="The address of a server of OpenAI's form that transcribes, such as http://localhost:8000/v1.",
        kind="url",
        env=("KNAP_AUDIO_BASE_URL",),
    ),
    Setting(
        name="audio.api_key",
        doc="The key for transcribing; without one those of Fireworks and OpenAI are sent to these alone.",
        env=("KNAP_AUDIO_API_KEY",),
        secret=True,
    ),
    Setting(
        name="audio.language",
        doc="The language that is spoken, such as de; empty lets the model find out.",
    ),
    Setting(
        name="audio.max_mb",
        doc="How large a recording may be, in megabytes.",
        kind="count",
        default=200,
        least=1,
        most=2_000,
    ),
    Setting(
        name="audio.timeout_s",
        doc="How long sending and transcribing one recording may take, in seconds.",
        kind="count",
        default=600,
        least=1,
        most=86_400,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """Say what transcribes audio."""

    access: Literal["auto", "off", "local", "on"] = "auto"
    provider: Literal["auto", "fireworks", "openai", "server", "whisper"] = "auto"
    model: str = "whisper-v3"
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    language: str = ""
    max_mb: int = 200
    timeout_s: int = 600


def read(values: Values) -> Audio:
    """Give the section."""
    return Audio(
        access=cast("Literal['auto', 'off', 'local', 'on']", text(values, "audio.access")),
        provider=cast("Literal['auto', 'fireworks', 'openai', 'server', 'whisper']", text(values, "audio.provider")),
        model=text(values, "audio.model"),
        base_url=text(values, "audio.base_url"),
        api_key=text(values, "audio.api_key"),
        language=text(values, "audio.language"),
        max_mb=count(values, "audio.max_mb"),
        timeout_s=count(values, "audio.timeout_s"),
    )
