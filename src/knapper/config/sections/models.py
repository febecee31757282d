"""The sections on language models and on transcription."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from knapper.config.declarations import FilePath, SettingsSection, Url, setting

OfferedTools = Literal["full", "essential"]

_NO_LIMIT = "0 for no limit."
_KEY_PROVIDERS = ("openai", "anthropic", "fireworks", "openrouter")


def _provider_key(provider: str) -> str:
    return setting(
        "",
        f"The key for models of {provider.capitalize()}; without one the system's keyring is asked.",
        env=(f"{provider.upper()}_API_KEY",),
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(SettingsSection):
    """The language model that writes and reasons, its keys, and how much of it may be used."""

    name: str = setting(
        "",
        "The language model that writes and reasons; empty for none.",
        env=("KNAP_MODEL", "FIREWORKS_MODEL", "LLM_MODEL"),
    )
    base_url: Url = setting("", "The address of an OpenAI-compatible endpoint for the model.", env=("KNAP_BASE_URL",))
    api_key: str = setting("", "The key for the model.", env=("KNAP_API_KEY", "FIREWORKS_API_KEY"), secret=True)
    openai_api_key: str = _provider_key("openai")
    anthropic_api_key: str = _provider_key("anthropic")
    fireworks_api_key: str = _provider_key("fireworks")
    openrouter_api_key: str = _provider_key("openrouter")
    ollama_url: Url = setting("http://localhost:11434", "The address of the Ollama server.", env=("OLLAMA_BASE_URL",))
    fallbacks: tuple[str, ...] = setting((), "Models to take when the model can't answer, in order.")
    timeout_s: int = setting(300, "How long to wait for a sign of the model, in seconds.", least=1, most=86_400)
    retries: int = setting(2, "How often a request is sent again after a refusal that may pass.", most=10)
    context_tokens: int = setting(
        24_000,
        "How long a conversation may get, in tokens, before its beginning is summarised.",
        least=2_000,
        most=10_000_000,
    )
    tools: OfferedTools = setting(
        "full", "Which tools the model is offered: all, or the essential ones, which suits small models."
    )
    turn_tokens: int = setting(
        500_000, f"How many tokens one answer may use, tool calls included; {_NO_LIMIT}", most=1_000_000_000
    )
    run_tokens: int = setting(0, f"How many tokens one session or run may use; {_NO_LIMIT}", most=1_000_000_000)
    day_tokens: int = setting(0, f"How many tokens may be used in a day; {_NO_LIMIT}", most=1_000_000_000)
    day_cents: int = setting(
        0,
        f"How much may be spent in a day, in cents of a US dollar, where prices are known; {_NO_LIMIT}",
        most=1_000_000,
    )
    session_days: int = setting(
        365, "How long a session is kept after its last message, in days.", least=1, most=36_500
    )
    sessions_mb: int = setting(
        200,
        "How much all sessions of a vault may take up, in megabytes; the oldest go first.",
        least=1,
        most=100_000,
    )
    telemetry: bool = setting(
        False,
        "Whether turns are traced with OpenTelemetry, without what is said; where to is up to its own variables.",
    )
    prompt: FilePath = setting(
        "",
        "A file with instructions for the chat in place of the built-in ones; "
        "chat.md in the folder prompts beside the configuration file otherwise, if it is there.",
    )

    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Once the section is read, the providers that have a key of their own, each with it."""

    def checked(self) -> Self:
        """Return the section with the providers' keys in one place."""
        own = (self.openai_api_key, self.anthropic_api_key, self.fireworks_api_key, self.openrouter_api_key)
        keys = tuple((provider, key) for provider, key in zip(_KEY_PROVIDERS, own, strict=True) if key)
        return replace(
            self, keys=keys, openai_api_key="", anthropic_api_key="", fireworks_api_key="", openrouter_api_key=""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioSettings(SettingsSection):
    """What transcribes audio, and whether recordings may leave the machine."""

    access: Literal["auto", "off", "local", "on"] = setting(
        "auto",
        "Whether recordings may be transcribed: off, on this machine only (local), on, "
        "or where a key, a provider or an address is set (auto).",
        env=("KNAP_AUDIO",),
    )
    provider: Literal["auto", "fireworks", "openai", "server", "whisper"] = setting(
        "auto",
        "What transcribes: fireworks, openai, a server of their form at audio.base_url, or whisper on this "
        "machine; auto takes the server where there is one, else fireworks.",
    )
    model: str = setting(
        "whisper-v3",
        "The model that transcribes audio; the default stands for the provider's usual one.",
        env=("WHISPER_MODEL",),
    )
    base_url: Url = setting(
        "",
        "The address of a server of OpenAI's form that transcribes, such as http://localhost:8000/v1.",
        env=("KNAP_AUDIO_BASE_URL",),
    )
    api_key: str = setting(
        "",
        "The key for transcribing; without one those of Fireworks and OpenAI are sent to these alone.",
        env=("KNAP_AUDIO_API_KEY",),
        secret=True,
    )
    language: str = setting("", "The language that is spoken, such as de; empty lets the model find out.")
    max_mb: int = setting(200, "How large a recording may be, in megabytes.", least=1, most=2_000)
    timeout_s: int = setting(
        600, "How long sending and transcribing one recording may take, in seconds.", least=1, most=86_400
    )
