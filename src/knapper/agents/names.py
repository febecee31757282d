"""Read which model is meant: ``provider:name``, with ``@address`` where it stands elsewhere than usual."""

import re
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from knapper.errors import SetupError

Provider = Literal["ollama", "openai", "anthropic", "fireworks", "openrouter", "compatible"]
"""``compatible`` is any server that speaks OpenAI's protocol."""
PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
OLLAMA_URL: Final = "http://localhost:11434"
FIREWORKS_MODEL: Final = "accounts/fireworks/models/deepseek-v3p1"
"""What Fireworks is asked for where it alone is named."""
FORMS: Final = "ollama:qwen3, openai:NAME, anthropic:NAME, fireworks:NAME, openrouter:MAKER/NAME or NAME@http://HOST/v1"
_FIREWORKS: Final = "accounts/fireworks/"
_ADDRESS: Final = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    """Name one model."""

    provider: Provider
    name: str
    base_url: str = ""
    """Empty for the provider's own address."""

    def __str__(self) -> str:
        """Write it as it can be read again."""
        where = f"@{self.base_url}" if self.base_url else ""
        return f"{self.name}{where}" if self.provider == "compatible" else f"{self.provider}:{self.name}{where}"


def parse(text: str, *, base_url: str = "") -> ModelName:
    """Read a model's name.

    ``ollama:qwen3:8b`` is Ollama's ``qwen3:8b``; ``tiny@http://127.0.0.1:8080/v1`` is a server's ``tiny``.

    Args:
        text: As the person wrote it.
        base_url: The address that holds where the name gives none.

    Raises:
        SetupError: It names no model, or no provider that is known.
    """
    text = text.strip()
    name, _, address = text.rpartition("@") if _ADDRESS.fullmatch(text.rpartition("@")[2]) else (text, "", "")
    address = (address or base_url).rstrip("/")
    provider, colon, rest = name.partition(":")
    if colon and provider in PROVIDERS and provider != "compatible":
        return _named(cast("Provider", provider), rest.strip(), address)
    if name in PROVIDERS and name != "compatible":
        return _named(cast("Provider", name), "", address)
    if name.startswith(_FIREWORKS) and not address:
        return _named("fireworks", name, "")
    if address and name:
        return ModelName(provider="compatible", name=name, base_url=address)
    raise SetupError(
        f"'{text}' doesn't say whose model it is" if text else "no model is set",
        code="no_model" if not text else "model_name",
        hint=f"write it as {FORMS}" if text else f"set KNAP_MODEL, or model.name, to one of {FORMS}",
    )


def ollama_url(wanted: ModelName) -> str:
    """Give the address of an Ollama server, without the part that the protocol adds."""
    return (wanted.base_url or OLLAMA_URL).removesuffix("/v1")


def _named(provider: Provider, name: str, address: str) -> ModelName:
    if not name and provider == "fireworks":
        name = FIREWORKS_MODEL
    if not name:
        raise SetupError(f"'{provider}:' names no model", code="model_name", hint=f"write it as {FORMS}")
    return ModelName(provider=provider, name=name, base_url=address)
