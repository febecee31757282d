"""Call a search provider's API, again where it is busy."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from knapper.errors import SetupError
from knapper.net.client import Answer, Client, Unreachable
from knapper.net.failures import SearchFailed

_TRIES: Final = 3
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 5.0
_OK: Final = 200
_KEY_REFUSED: Final = frozenset({401, 403})
_USED_UP: Final = frozenset({402, 432, 433})
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Say whom to ask, and with which key."""

    provider: str
    """As messages call it."""
    base_url: str
    api_key: str
    needs_key: bool = True
    key_header: str = "Authorization"
    timeout_s: float = 15.0
    """For each try."""
    pause: Callable[[float], None] = time.sleep


class Calls:
    """Send requests to one provider; no message holds the key, the question, or what the provider wrote."""

    def __init__(self, account: Account) -> None:
        """Open it.

        Raises:
            SetupError: There is no key, or the address can't be used.
        """
        if account.needs_key and not account.api_key.strip():
            raise SetupError(
                f"searching with {account.provider} needs a key",
                hint="set web.api_key, or set web.provider to ddgs, which needs none",
                code="search_key",
            )
        self._account = account
        self._client = Client(account.base_url, api_key=account.api_key, key_header=account.key_header)

    def post(self, path: str, payload: object) -> object:
        """Send JSON, and give the JSON that comes back.

        Raises:
            SearchFailed: The provider doesn't answer as it should.
            SetupError: It refuses the key.
        """
        return self._call(lambda: self._client.post(path, payload, timeout_s=self._account.timeout_s))

    def get(self, path: str, query: Mapping[str, str]) -> object:
        """Ask, and give the JSON that comes back; errors are those of ``post``."""
        return self._call(lambda: self._client.get(path, query, timeout_s=self._account.timeout_s))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, send: Callable[[], Answer]) -> object:
        for tried in range(_TRIES):
            answer = self._try(send, is_last=tried == _TRIES - 1)
            if answer is not None and answer.status not in _BUSY:
                return self._read(answer)
            if tried < _TRIES - 1:
                self._account.pause(_pause_s(answer, tried))
        raise SearchFailed(
            f"{self._account.provider} is busy, or too much was asked of it",
            hint="try again in a minute, or set another web.provider",
            code="search_busy",
        )

    def _try(self, send: Callable[[], Answer], *, is_last: bool) -> Answer | None:
        try:
            return send()
        except Unreachable as error:
            if is_last or error.code == "timeout":  # whoever has waited that long needn't wait again
                raise
            return None

    def _read(self, answer: Answer) -> object:
        name = self._account.provider
        if answer.status in _KEY_REFUSED:
            raise SetupError(f"{name} refuses the key", hint="check web.api_key and web.provider", code="search_key")
        if answer.status in _USED_UP:
            raise SearchFailed(f"what was paid for at {name} is used up", hint="set another web.provider")
        if answer.status != _OK:
            raise SearchFailed(
                f"{name} answers with status {answer.status}", hint="check web.base_url, or set another web.provider"
            )
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise SearchFailed(f"{name} answers with something else than JSON", hint="check web.base_url") from error


def _pause_s(answer: Answer | None, tried: int) -> float:
    wanted = answer.headers.get("retry-after", "") if answer else ""
    pause = float(wanted) if wanted.isdecimal() and len(wanted) < len("100000") else _FIRST_PAUSE_S * 2**tried
    return min(pause, _LONGEST_PAUSE_S)
