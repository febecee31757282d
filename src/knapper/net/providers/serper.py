"""Search Google with Serper.

Source: serper.dev, "Search": POST /search.
"""

from dataclasses import replace
from typing import Final

from knapper.net import hits
from knapper.net.hits import WebHit
from knapper.net.providers.calls import Account, Calls

BASE_URL: Final = "https://google.serper.dev"


class Serper:
    """Search Google with Serper."""

    caveat = ""

    def __init__(self, account: Account) -> None:
        """Open it; errors are those of `Calls`."""
        own = {"provider": "Serper", "key_header": "X-API-KEY"}
        self._calls = Calls(replace(account, **own, base_url=account.base_url or BASE_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Give at most *count* pages, best first; errors are those of `Calls`."""
        found = hits.rows(self._calls.post("search", {"q": query, "num": count}), "organic")
        return hits.collect(
            ((hits.text(row, "title"), hits.text(row, "link"), hits.text(row, "snippet")) for row in found), count
        )

    def close(self) -> None:
        """Close connections."""
        self._calls.close()
