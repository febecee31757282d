"""Names, keys and servers of language models; light to import, no model library is needed."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import httpx2
from typing_extensions import TypedDict

from knapper.errors import SetupError
from knapper.jsontypes import JSONValue, Record, is_object, loads, objects_in, one_of

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
    if colon and (known := one_of(provider, PROVIDERS)) and known != "compatible":
        return _make_name(known, rest.strip(), address)
    if (known := one_of(name, PROVIDERS)) and known != "compatible":
        return _make_name(known, "", address)
    if name.startswith(_FIREWORKS_PREFIX) and not address:
        return _make_name("fireworks", name, "")
    if address and name:
        return ModelName(provider="compatible", name=name, base_url=address)
    forms = f"`knap setup` offers those that it finds; or set model.name, or KNAP_MODEL, to one of {NAME_FORMS}"
    raise SetupError(
        f"'{text}' names no provider" if text else "no model is set",
        code="no_model" if not text else "model_name",
        hint=f"write it as {NAME_FORMS}" if text else forms,
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
    try:
        import keyring  # noqa: PLC0415 - see above
        from keyring.errors import KeyringError  # noqa: PLC0415 - the same
    except ImportError:  # the extra that needs keys isn't installed, and without it none was stored
        return ""
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
        kept = keyring.get_password(KEYRING_SERVICE, name) or ""
    except KeyringError as error:
        raise no_keyring_error(name) from error
    if kept != key:  # one that is switched off takes everything, and keeps nothing
        raise no_keyring_error(name)


def no_keyring_error(name: str) -> SetupError:
    """Return the error where no keyring works, with where else the key of a provider or an address may stand."""
    variable = "KNAP_API_KEY, for the model that model.name names," if "/" in name else f"{name.upper()}_API_KEY"
    return SetupError(
        "the system's keyring can't be used",
        code="no_keyring",
        hint=f"set {variable} as an environment variable, or in the .env beside the configuration file",
    )


def _endpoint(name: ModelName) -> tuple[str, str]:
    return name.provider, name.base_url


ServerState = Literal["ok", "no_key", "refused", "unknown_model", "unreachable", "unusable"]
TIMEOUT_S: Final = 5.0
MAX_LISTED: Final = 200
_MAX_REPLY_BYTES: Final = 20_000_000
_BASE_URLS: Final[dict[Provider, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}


class PriceRow(TypedDict):
    """What a model costs, as every surface shows it."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServerStatus(Record):
    """The status of a model's server."""

    state: ServerState
    """What came of asking."""
    text: str
    """The same in words."""
    models: tuple[str, ...] = ()
    """Names of those that the server lists, of which 200 are shown at most; some may not be for chat."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {**Record.as_dict(self), "models": [*self.models[:MAX_LISTED]]}


def check_server(model: ModelName, key: str, *, timeout_s: float = TIMEOUT_S) -> ModelServerStatus:
    """Check a model's server.

    Args:
        model: The model; the name ``*`` stands for any.
        key: Its key; empty for none.
        timeout_s: How long to wait.
    """
    if model.provider in _BASE_URLS and not model.base_url and not key:
        return ModelServerStatus(state="no_key", text="there is no key for it")
    address, headers = _listing_request(model, key)
    try:
        status, body = _get(address, headers, timeout_s)
    except httpx2.TimeoutException:
        return ModelServerStatus(
            state="unreachable", text=f"{_host_name(address)} didn't answer within {timeout_s:g} seconds"
        )
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        return ModelServerStatus(
            state="unreachable", text=f"{_host_name(address)} can't be reached ({type(error).__name__})"
        )
    except UnicodeEncodeError:
        return ModelServerStatus(state="refused", text="the key contains invalid characters")
    return _read_status(model, address, status, body)


_CONTEXT_FIELDS: Final = ("loaded_context_length", "max_model_len", "context_length", "max_context_length")
"""Where lists of models say how many tokens one reads at once: LM Studio, vLLM, Ollama and OpenRouter, others."""
_CONTEXT_TIMEOUT_S: Final = 1.0


def read_context_tokens(model: ModelName, key: str, *, timeout_s: float = _CONTEXT_TIMEOUT_S) -> int:
    """Return how many tokens a model reads at once, as its server lists it; 0 where it doesn't say, or can't be asked.

    Ollama says it of models that are loaded. It cuts longer requests without a word.

    Args:
        model: The model.
        key: Its key; empty for none.
        timeout_s: How long to wait.
    """
    address, headers = _listing_request(model, key)
    if model.provider == "ollama":
        address = f"{ollama_url(model)}/api/ps"
    try:
        status, body = _get(address, headers, timeout_s)
        decoded = loads(body) if status == 200 else None
    except (httpx2.RequestError, httpx2.InvalidURL, UnicodeEncodeError, ValueError, RecursionError):
        return 0
    rows = [row for row in _read_rows(decoded) if _row_name(row) in _spellings(model)]
    values = [row[name] for row in rows[:1] for name in _CONTEXT_FIELDS if name in row]
    return next((value for value in values if isinstance(value, int) and value > 0), 0)


def _get(address: str, headers: dict[str, str], timeout_s: float) -> tuple[int, bytes]:
    """Return status and body; both the body's size and the time for reading it are limited."""
    # httpx limits the wait for each part only, so a slow server could send for ever.
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    with (
        httpx2.Client(timeout=timeout_s, follow_redirects=False) as client,
        client.stream("GET", address, headers=headers) as answer,
    ):
        for part in answer.iter_bytes():
            body += part
            if len(body) > _MAX_REPLY_BYTES:
                return answer.status_code, b""
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout("the answer took too long", request=answer.request)
        return answer.status_code, bytes(body)


def _listing_request(model: ModelName, key: str) -> tuple[str, dict[str, str]]:
    if model.provider == "ollama":
        return f"{ollama_url(model)}/api/tags", {}
    place = model.base_url or _BASE_URLS.get(model.provider, "")
    if model.provider == "anthropic":
        return f"{place}/models", {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return f"{place}/models", {"Authorization": f"Bearer {key}"} if key else {}


def _read_status(model: ModelName, address: str, status: int, body: bytes) -> ModelServerStatus:
    if status in {401, 403}:
        return ModelServerStatus(state="refused", text=f"{_host_name(address)} doesn't accept the key")
    if status != 200:
        return ModelServerStatus(state="unusable", text=f"{_host_name(address)} answered with status {status}")
    try:
        decoded = loads(body)
    except (ValueError, RecursionError):
        return ModelServerStatus(state="unusable", text=f"{_host_name(address)} doesn't speak a protocol for models")
    # In Ollama's format or in OpenAI's.
    available: tuple[str, ...] = tuple(sorted(filter(None, map(_row_name, _read_rows(decoded)))))
    if available and model.name != "*" and not _spellings(model) & set(available):
        return ModelServerStatus(
            state="unknown_model", text=f"{_host_name(address)} has no model '{model.name}'", models=available
        )
    return ModelServerStatus(state="ok", text=f"{_host_name(address)} answers", models=available)


def _spellings(model: ModelName) -> set[str]:
    return {model.name, f"{model.name}:latest", f"models/{model.name}"}


def _read_rows(decoded: object) -> list[dict[str, JSONValue]]:
    if not is_object(decoded):
        return []
    return objects_in(decoded["models"] if "models" in decoded else decoded.get("data"))


def _row_name(row: Mapping[str, object]) -> str:
    return str(row.get("name") or row.get("id") or "")


def _host_name(address: str) -> str:
    return address.partition("//")[2].partition("/")[0].rpartition("@")[2]
