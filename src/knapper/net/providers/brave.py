"""Search with Brave.

Source: api-dashboard.search.brave.com, "Web search": GET /web/search.
"""

from dataclasses import replace
from html import unescape
from re import sub
from typing import Final

from knapper.net import hits
from knapper.net.hits import WebHit
from knapper.net.providers.calls import Account, Calls

BASE_URL: Final = "https://api.search.brave.com/res/v1"
_QUERY_MOST: Final = 400
_COUNT_MOST: Final = 20


class Brave:
    """Search with Brave."""

    caveat = ""

    def __init__(self, account: Account) -> None:
        """Open it; errors are those of `Calls`."""
        own = {"provider": "Brave", "key_header": "X-Subscription-Token"}
        self._calls = Calls(replace(account, **own, base_url=account.base_url or BASE_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Give at most *count* pages, best first; errors are those of `Calls`."""
        asked = {"q": query[:_QUERY_MOST], "count": str(min(count, _COUNT_MOST)), "text_decorations": "false"}
        found = hits.rows(self._calls.get("web/search", asked), "web", "results")
        return hits.collect(
            (
                (_plain(hits.text(row, "title")), hits.text(row, "url"), _plain(hits.text(row, "description")))
                for row in found
            ),
            count,
        )

    def close(self) -> None:
        """Close connections."""
        self._calls.close()


def _plain(text: str) -> str:
    """Leave out the marks of emphasis that stand in titles and descriptions."""
    return unescape(sub(r"</?(?:strong|b|em)>", "", text))
