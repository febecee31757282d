"""Search DuckDuckGo, which needs no key, through ``ddgs``.

Its answers don't distinguish a captcha, a block and a search without results.
"""

import time
from typing import Final

from ddgs.ddgs import DDGS
from ddgs.exceptions import DDGSException, TimeoutException

from knapper.net import search
from knapper.net.search import WebHit
from knapper.net.urls import SearchFailed

_NO_RESULTS: Final = "No results found"
_HINT: Final = "try again in a minute, or set web.provider to tavily, brave or serper"


class DuckDuckGo:
    """The search provider DuckDuckGo."""

    caveat = (
        "No results, or DuckDuckGo blocked the search: it doesn't say which. Try other words, or in some minutes; "
        "tavily, brave and serper, with a key, are more reliable."
    )

    def __init__(self, *, timeout_s: float) -> None:
        """Set the time-out; nothing is opened yet."""
        self._timeout_s = max(1, round(timeout_s))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first.

        Raises:
            SearchFailed: DuckDuckGo can't be reached, or not in time.
        """
        start = time.monotonic()
        try:
            results = DDGS(timeout=self._timeout_s).text(query, region="wt-wt", max_results=count, backend="duckduckgo")
        except TimeoutException as error:
            raise self._late() from error
        except DDGSException as error:
            if _NO_RESULTS in str(error):
                # The library reports no results, too, where it gave up waiting.
                if time.monotonic() - start >= self._timeout_s:
                    raise self._late() from error
                return []
            raise SearchFailed("DuckDuckGo can't be reached", hint=_HINT) from error
        return search.collect_hits(
            ((str(row.get("title", "")), str(row.get("href", "")), str(row.get("body", ""))) for row in results), count
        )

    @staticmethod
    def _late() -> SearchFailed:
        return SearchFailed("DuckDuckGo doesn't answer in time", hint=_HINT, code="timeout")

    def close(self) -> None:
        """Do nothing: no connection stays open."""
