"""The sections on language models and on transcription."""

from dataclasses import dataclass, field
from typing import Literal, cast

from knapper.config.declarations import Setting, SettingValues, get_count, get_text, get_texts

OfferedTools = Literal["full", "essential"]

_NO_LIMIT = "0 for no limit."
_KEY_PROVIDERS = ("openai", "anthropic", "fireworks", "openrouter")

MODEL_SETTINGS = (
    Setting(
        name="model.name",
        doc="The language model that writes and reasons; empty for none.",
        env=("KNAP_MODEL", "FIREWORKS_MODEL", "LLM_MODEL"),
    ),
    Setting(
        name="model.base_url",
        doc="The address of an OpenAI-compatible endpoint for the model.",
        kind="url",
        env=("KNAP_BASE_URL",),
    ),
    Setting(
        name="model.api_key",
        doc="The key for the model.",
        env=("KNAP_API_KEY", "FIREWORKS_API_KEY"),
        secret=True,
    ),
    *(
        Setting(
            name=f"model.{provider}_api_key",
            doc=f"The key for models of {provider.capitalize()}; without one the system's keyring is asked.",
            env=(f"{provider.upper()}_API_KEY",),
            secret=True,
        )
        for provider in _KEY_PROVIDERS
    ),
    Setting(
        name="model.ollama_url",
        doc="The address of the Ollama server.",
        kind="url",
        default="http://localhost:11434",
        env=("OLLAMA_BASE_URL",),
    ),
    Setting(
        name="model.fallbacks", doc="Models to take when the model can't answer, in order.", kind="texts", default=()
    ),
    Setting(
        name="model.timeout_s",
        doc="How long to wait for a sign of the model, in seconds.",
        kind="count",
        default=300,
        least=1,
        most=86_400,
    ),
    Setting(
        name="model.retries",
        doc="How often a request is sent again after a refusal that may pass.",
        kind="count",
        default=2,
        most=10,
    ),
    Setting(
        name="model.context_tokens",
        doc="How long a conversation may get, in tokens, before its beginning is summarised.",
        kind="count",
        default=24_000,
        least=2_000,
        most=10_000_000,
    ),
    Setting(
        name="model.tools",
        doc="Which tools the model is offered: all, or the essential ones, which suits small models.",
        kind="choice",
        default="full",
        choices=("full", "essential"),
    ),
    Setting(
        name="model.turn_tokens",
        doc=f"How many tokens one answer may use, tool calls included; {_NO_LIMIT}",
        kind="count",
        default=500_000,
        most=1_000_000_000,
    ),
    Setting(
        name="model.run_tokens",
        doc=f"How many tokens one session or run may use; {_NO_LIMIT}",
        kind="count",
        default=0,
        most=1_000_000_000,
    ),
    Setting(
        name="model.day_tokens",
        doc=f"How many tokens may be used in a day; {_NO_LIMIT}",
        kind="count",
        default=0,
        most=1_000_000_000,
    ),
    Setting(
        name="model.day_cents",
        doc=f"How much may be spent in a day, in cents of a US dollar, where prices are known; {_NO_LIMIT}",
        kind="count",
        default=0,
        most=1_000_000,
    ),
    Setting(
        name="model.session_days",
        doc="How long a session is kept after its last message, in days.",
        kind="count",
        default=365,
        least=1,
        most=36_500,
    ),
    Setting(
        name="model.sessions_mb",
        doc="How much all sessions of a vault may take up, in megabytes; the oldest go first.",
        kind="count",
        default=200,
        least=1,
        most=100_000,
    ),
    Setting(
        name="model.telemetry",
        doc="Whether turns are traced with OpenTelemetry, without what is said; where to is up to its own variables.",
        kind="choice",
        default="off",
        choices=("off", "on"),
    ),
    Setting(
        name="model.prompt",
        doc="A file with instructions for the chat in place of the built-in ones; "
        "chat.md in the folder prompts beside the configuration file otherwise, if it is there.",
        kind="path",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Name the language model, if there is one."""

    name: str = ""
    """Empty where no model is set."""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    """The key of the named model."""
    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Providers with their keys."""
    ollama_url: str = "http://localhost:11434"
    fallbacks: tuple[str, ...] = ()
    timeout_s: int = 300
    retries: int = 2
    context_tokens: int = 24_000
    tools: OfferedTools = "full"
    turn_tokens: int = 500_000
    run_tokens: int = 0
    day_tokens: int = 0
    day_cents: int = 0
    session_days: int = 365
    sessions_mb: int = 200
    telemetry: bool = False
    prompt: str = ""
    """A file of the person's own; empty for none."""


def read_model(values: SettingValues) -> ModelSettings:
    """Give the section."""
    keys = tuple((provider, get_text(values, f"model.{provider}_api_key")) for provider in _KEY_PROVIDERS)
    own = get_text(values, "model.api_key")
    return ModelSettings(
        name=get_text(values, "model.name"),
        base_url=get_text(values, "model.base_url"),
        api_key=own,
        keys=tuple((provider, key) for provider, key in keys if key),
        ollama_url=get_text(values, "model.ollama_url"),
        fallbacks=get_texts(values, "model.fallbacks"),
        timeout_s=get_count(values, "model.timeout_s"),
        retries=get_count(values, "model.retries"),
        context_tokens=get_count(values, "model.context_tokens"),
        tools=cast("OfferedTools", get_text(values, "model.tools")),
        turn_tokens=get_count(values, "model.turn_tokens"),
        run_tokens=get_count(values, "model.run_tokens"),
        day_tokens=get_count(values, "model.day_tokens"),
        day_cents=get_count(values, "model.day_cents"),
        session_days=get_count(values, "model.session_days"),
        sessions_mb=get_count(values, "model.sessions_mb"),
        telemetry=get_text(values, "model.telemetry") == "on",
        prompt=get_text(values, "model.prompt"),
    )


AUDIO_SETTINGS = (
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
class AudioSettings:
    """Say what transcribes audio."""

    access: Literal["auto", "off", "local", "on"] = "auto"
    provider: Literal["auto", "fireworks", "openai", "server", "whisper"] = "auto"
    model: str = "whisper-v3"
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    language: str = ""
    max_mb: int = 200
    timeout_s: int = 600


def read_audio(values: SettingValues) -> AudioSettings:
    """Give the section."""
    return AudioSettings(
        access=cast("Literal['auto', 'off', 'local', 'on']", get_text(values, "audio.access")),
        provider=cast(
            "Literal['auto', 'fireworks', 'openai', 'server', 'whisper']", get_text(values, "audio.provider")
        ),
        model=get_text(values, "audio.model"),
        base_url=get_text(values, "audio.base_url"),
        api_key=get_text(values, "audio.api_key"),
        language=get_text(values, "audio.language"),
        max_mb=get_count(values, "audio.max_mb"),
        timeout_s=get_count(values, "audio.timeout_s"),
    )
