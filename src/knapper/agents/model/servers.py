"""Check that model servers answer, and list their models; neither costs anything."""

import json
import time
from dataclasses import dataclass
from typing import Final, Literal, cast

import httpx2

from knapper.agents.model import names
from knapper.agents.model.names import ModelName, Provider
from knapper.jsontypes import JSONValue

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServerStatus:
    """The status of a model's server."""

    state: ServerState
    text: str
    models: tuple[str, ...] = ()
    """The models that the server lists."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        names: list[JSONValue] = [*self.models[:MAX_LISTED]]
        return {"state": self.state, "text": self.text, "models": names}


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
        return f"{names.ollama_url(model)}/api/tags", {}
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
        decoded = cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return ModelServerStatus(state="unusable", text=f"{_host_name(address)} doesn't speak a protocol for models")
    available = _read_model_names(decoded)
    spellings = {model.name, f"{model.name}:latest", f"models/{model.name}"}
    if available and model.name != "*" and not spellings & set(available):
        return ModelServerStatus(
            state="unknown_model", text=f"{_host_name(address)} has no model '{model.name}'", models=available
        )
    return ModelServerStatus(state="ok", text=f"{_host_name(address)} answers", models=available)


def _read_model_names(decoded: object) -> tuple[str, ...]:
    """Return the names in a list of models, in Ollama's or in OpenAI's format."""
    if not isinstance(decoded, dict):
        return ()
    rows = cast("dict[str, object]", decoded)
    models = rows["models"] if "models" in rows else rows.get("data")
    items = cast("list[object]", models) if isinstance(models, list) else []
    model_rows = [cast("dict[str, object]", row) for row in items if isinstance(row, dict)]
    return tuple(sorted(filter(None, (str(row.get("name") or row.get("id") or "") for row in model_rows))))


def _host_name(address: str) -> str:
    return address.partition("//")[2].partition("/")[0].rpartition("@")[2]
