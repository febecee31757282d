"""Ask servers of models whether they answer, and which models they have; that costs nothing."""

import json
import time
from dataclasses import dataclass
from typing import Final, Literal, cast

import httpx2

from knapper.agents import names
from knapper.agents.names import ModelName, Provider
from knapper.jsontypes import JSONValue

State = Literal["ok", "no_key", "refused", "unknown_model", "unreachable", "unusable"]
TIMEOUT_S: Final = 5.0
MAX_LISTED: Final = 200
_MAX_BYTES: Final = 20_000_000
_PLACES: Final[dict[Provider, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Say how a model's server stands."""

    state: State
    text: str
    models: tuple[str, ...] = ()
    """Those that it has, as far as it tells."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        listed: list[JSONValue] = [*self.models[:MAX_LISTED]]
        return {"state": self.state, "text": self.text, "models": listed}


def ask(wanted: ModelName, key: str, *, timeout_s: float = TIMEOUT_S) -> Found:
    """Ask a model's server.

    Args:
        wanted: The model; a name of ``*`` is any.
        key: Its key; empty for none.
        timeout_s: How long to wait.
    """
    if wanted.provider in _PLACES and not wanted.base_url and not key:
        return Found(state="no_key", text="there is no key for it")
    address, headers = _request(wanted, key)
    try:
        status, body = _get(address, headers, timeout_s)
    except httpx2.TimeoutException:
        return Found(state="unreachable", text=f"{_host(address)} didn't answer within {timeout_s:g} seconds")
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        return Found(state="unreachable", text=f"{_host(address)} can't be reached ({type(error).__name__})")
    except UnicodeEncodeError:
        return Found(state="refused", text="the key holds characters that no key has")
    return _told(wanted, address, status, body)


def _get(address: str, headers: dict[str, str], timeout_s: float) -> tuple[int, bytes]:
    """Give status and body, of which no more is read than a list of models has, nor for longer than that."""
    end = time.monotonic() + timeout_s
    body = bytearray()
    with (
        httpx2.Client(timeout=timeout_s, follow_redirects=False) as client,
        client.stream("GET", address, headers=headers) as answer,
    ):
        for part in answer.iter_bytes():
            body += part
            if len(body) > _MAX_BYTES:
                return answer.status_code, b""
            if time.monotonic() > end:
                raise httpx2.ReadTimeout("the answer took too long", request=answer.request)
        return answer.status_code, bytes(body)


def _request(wanted: ModelName, key: str) -> tuple[str, dict[str, str]]:
    if wanted.provider == "ollama":
        return f"{names.ollama_url(wanted)}/api/tags", {}
    place = wanted.base_url or _PLACES.get(wanted.provider, "")
    if wanted.provider == "anthropic":
        return f"{place}/models", {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return f"{place}/models", {"Authorization": f"Bearer {key}"} if key else {}


def _told(wanted: ModelName, address: str, status: int, body: bytes) -> Found:
    if status in {401, 403}:
        return Found(state="refused", text=f"{_host(address)} doesn't accept the key")
    if status != 200:
        return Found(state="unusable", text=f"{_host(address)} answered with status {status}")
    try:
        said = cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return Found(state="unusable", text=f"{_host(address)} doesn't speak the protocol of models")
    known = _names(said)
    spelled = {wanted.name, f"{wanted.name}:latest", f"models/{wanted.name}"}
    if known and wanted.name != "*" and not spelled & set(known):
        return Found(state="unknown_model", text=f"{_host(address)} has no model '{wanted.name}'", models=known)
    return Found(state="ok", text=f"{_host(address)} answers", models=known)


def _names(said: object) -> tuple[str, ...]:
    """Read a list of models, as Ollama gives it or as OpenAI's protocol does."""
    if not isinstance(said, dict):
        return ()
    rows = cast("dict[str, object]", said)
    listed = rows["models"] if "models" in rows else rows.get("data")
    given = cast("list[object]", listed) if isinstance(listed, list) else []
    every = [cast("dict[str, object]", row) for row in given if isinstance(row, dict)]
    return tuple(sorted(filter(None, (str(row.get("name") or row.get("id") or "") for row in every))))


def _host(address: str) -> str:
    return address.partition("//")[2].partition("/")[0].rpartition("@")[2]
