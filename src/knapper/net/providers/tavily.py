"""Search with Tavily.

Source: docs.tavily.com, "Tavily Search": POST /search.
"""

from dataclasses import replace
from typing import Final

from knapper.net import hits
from knapper.net.hits import WebHit
from knapper.net.providers.calls import Account, Calls

BASE_URL: Final = "https://api.tavily.com"


class Tavily:
    """Search with Tavily."""

    caveat = ""

    def __init__(self, account: Account) -> None:
        """Open it; errors are those of `Calls`."""
        self._calls = Calls(replace(account, provider="Tavily", base_url=account.base_url or BASE_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Give at most *count* pages, best first; errors are those of `Calls`."""
        answer = self._calls.post("search", {"query": query, "max_results": count, "search_depth": "basic"})
        found = hits.rows(answer, "results")
        return hits.collect(
            ((hits.text(row, "title"), hits.text(row, "url"), hits.text(row, "content")) for row in found), count
        )

    def close(self) -> None:
        """Close connections."""
        self._calls.close()
