"""Names and keys of language models; light to import, no model library is needed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from knapper.errors import SetupError

Provider = Literal["ollama", "openai", "anthropic", "fireworks", "openrouter", "compatible"]
"""``compatible`` is any server that speaks OpenAI's protocol."""
PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
OLLAMA_URL: Final = "http://localhost:11434"
FIREWORKS_MODEL: Final = "accounts/fireworks/models/deepseek-v3p1"
"""The model that the bare name ``fireworks`` stands for."""
NAME_FORMS: Final = (
    "ollama:qwen3, openai:NAME, anthropic:NAME, fireworks:NAME, openrouter:MAKER/NAME or NAME@http://HOST/v1"
)
_FIREWORKS_PREFIX: Final = "accounts/fireworks/"
_ADDRESS: Final = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    """The name of one model."""

    provider: Provider
    name: str
    base_url: str = ""
    """Empty for the provider's own address."""

    def __str__(self) -> str:
        """Return it in the form that `parse_model_name` reads."""
        where = f"@{self.base_url}" if self.base_url else ""
        return f"{self.name}{where}" if self.provider == "compatible" else f"{self.provider}:{self.name}{where}"


def parse_model_name(text: str, *, base_url: str = "") -> ModelName:
    """Parse a model's name.

    ``ollama:qwen3:8b`` is Ollama's ``qwen3:8b``; ``tiny@http://127.0.0.1:8080/v1`` is a server's ``tiny``.

    Args:
        text: As the person wrote it.
        base_url: The address to use where the name has none.

    Raises:
        SetupError: It names no model, or no known provider.
    """
    text = text.strip()
    name, _, address = text.rpartition("@") if _ADDRESS.fullmatch(text.rpartition("@")[2]) else (text, "", "")
    address = (address or base_url).rstrip("/")
    provider, colon, rest = name.partition(":")
    if colon and provider in PROVIDERS and provider != "compatible":
        return _make_name(cast("Provider", provider), rest.strip(), address)
    if name in PROVIDERS and name != "compatible":
        return _make_name(cast("Provider", name), "", address)
    if name.startswith(_FIREWORKS_PREFIX) and not address:
        return _make_name("fireworks", name, "")
    if address and name:
        return ModelName(provider="compatible", name=name, base_url=address)
    raise SetupError(
        f"'{text}' names no provider" if text else "no model is set",
        code="no_model" if not text else "model_name",
        hint=f"write it as {NAME_FORMS}" if text else f"set KNAP_MODEL, or model.name, to one of {NAME_FORMS}",
    )


def ollama_url(model: ModelName) -> str:
    """Return the address of an Ollama server, without the ``/v1`` of OpenAI's protocol."""
    return (model.base_url or OLLAMA_URL).removesuffix("/v1")


def _make_name(provider: Provider, name: str, address: str) -> ModelName:
    if not name and provider == "fireworks":
        name = FIREWORKS_MODEL
    if not name:
        raise SetupError(f"'{provider}:' names no model", code="model_name", hint=f"write it as {NAME_FORMS}")
    return ModelName(provider=provider, name=name, base_url=address)


KEYRING_SERVICE: Final = "knapper"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeys:
    """The configured keys; others are looked up in the keyring."""

    by_provider: Mapping[Provider, str] = field(default_factory=dict[Provider, str], repr=False)
    configured_key: str = field(default="", repr=False)
    """The key of the configured model, and of no other server."""
    configured_model: ModelName | None = None
    """The configured model."""
    ring: Callable[[str], str] = field(default_factory=lambda: read_keyring, repr=False)
    """Reads a key from the system's keyring."""

    def find(self, model: ModelName) -> str:
        """Return the key for a model; empty where there is none.

        A key goes to the provider that it was given for, and a server at an address of its own gets only the key that
        was given with that address.
        """
        # A key must not leak to another server: the configured one is bound to provider and address together.
        if self.configured_key and self.configured_model and _endpoint(self.configured_model) == _endpoint(model):
            return self.configured_key
        if model.provider == "ollama":
            return ""
        if model.base_url:
            return self.ring(model.base_url)
        return self.by_provider.get(model.provider, "") or self.ring(model.provider)


def read_keyring(name: str) -> str:
    """Return a key from the system's keyring; empty where it has none, or no keyring works."""
    # keyring searches for the system's service when it is imported, which most keys don't need.
    import keyring  # noqa: PLC0415 - see above
    from keyring.errors import KeyringError  # noqa: PLC0415 - the same

    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except KeyringError:
        return ""


def store_key(name: str, key: str) -> None:
    """Store a key in the system's keyring; an empty one removes it.

    Raises:
        SetupError: There is no keyring that works.
    """
    import keyring  # noqa: PLC0415 - as above
    from keyring.errors import KeyringError  # noqa: PLC0415 - as above

    try:
        if key:
            keyring.set_password(KEYRING_SERVICE, name, key)
        elif keyring.get_password(KEYRING_SERVICE, name):
            keyring.delete_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        raise SetupError(
            "the system's keyring can't be used",
            code="no_keyring",
            hint="set the key as an environment variable, or in the .env beside the configuration file",
        ) from error


def _endpoint(name: ModelName) -> tuple[str, str]:
    return name.provider, name.base_url
