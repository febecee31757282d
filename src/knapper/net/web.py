"""Search the web and fetch pages."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from knapper.errors import BadInput, SetupError
from knapper.net import pages, urls
from knapper.net.dial import Dialer
from knapper.net.guard import Guard, Limits
from knapper.net.hits import Provider, WebHit
from knapper.net.pages import Page
from knapper.net.providers.brave import Brave
from knapper.net.providers.calls import Account
from knapper.net.providers.model import ModelSearch
from knapper.net.providers.serper import Serper
from knapper.net.providers.tavily import Tavily

ProviderName = Literal["ddgs", "tavily", "brave", "serper", "model"]
QUERY_MOST: Final = 1_000
_KEPT_PAGES: Final = 8
_KEPT_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Say how the web is reached."""

    provider: ProviderName = "ddgs"
    api_key: str = field(default="", repr=False)
    """The provider's."""
    base_url: str = ""
    """The provider's address; empty for its usual one."""
    model: str = ""
    """Which model searches, for ``model``."""
    max_results: int = 8
    """Of one search, at most."""
    hosts: tuple[str, ...] = ()
    """Hosts that pages are fetched from; empty for any public one."""
    timeout_s: float = 20.0
    """For a page, or one try of a search."""
    max_page_bytes: int = 2_000_000


class Web:
    """Search with one provider, and fetch pages through the guard; any thread may.

    The last pages are kept for some minutes, so that reading on doesn't fetch again.
    """

    def __init__(self, *, open_provider: Callable[[], Provider], guard: Guard, options: Options) -> None:
        """Make one.

        Args:
            open_provider: Opens the provider when it is first asked.
            guard: The way to pages.
            options: Limits.
        """
        self._open_provider = open_provider
        self._provider: Provider | None = None
        self._guard = guard
        self._options = options
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[float, Page]] = OrderedDict()

    @property
    def max_results(self) -> int:
        """Give how many results a search has at most."""
        return self._options.max_results

    @property
    def caveat(self) -> str:
        """Say what a search without results may mean besides; empty for nothing."""
        return self._opened().caveat

    def search(self, query: str, n: int = 8) -> list[WebHit]:
        """Search the web.

        Args:
            query: Words, at most 1,000 characters.
            n: How many results at most; the owner's limit counts where that is lower.

        Raises:
            BadInput: The query is empty or too long, or *n* is below 1.
            SetupError: The provider can't be used as it is configured, or doesn't answer.
        """
        words = " ".join(query.split())
        if not words:
            raise BadInput("the query is empty", hint="give at least one word")
        if len(words) > QUERY_MOST:
            raise BadInput(f"the query has {len(words):,} characters", hint=f"give at most {QUERY_MOST:,}")
        if n < 1:
            raise BadInput(f"{n} results were asked for", hint="ask for 1 or more")
        return self._opened().search(words, min(n, self.max_results))

    def fetch(self, url: str) -> Page:
        """Fetch a page's readable text.

        Raises:
            KnapError: What `pages.fetch` raises.
        """
        key = str(urls.parse(url))
        kept = self._kept(key)
        if kept is not None:
            return kept
        page = pages.fetch(self._guard, url, hosts=self._options.hosts)
        with self._lock:
            self._pages[key] = (time.monotonic(), page)
            self._pages.move_to_end(key)
            while len(self._pages) > _KEPT_PAGES:
                _ = self._pages.popitem(last=False)
        return page

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            if self._provider is not None:
                self._provider.close()
                self._provider = None

    def _opened(self) -> Provider:
        with self._lock:
            if self._provider is None:
                self._provider = self._open_provider()
            return self._provider

    def _kept(self, key: str) -> Page | None:
        with self._lock:
            at, page = self._pages.get(key, (0.0, None))
            return page if page is not None and time.monotonic() - at < _KEPT_S else None


def open_web(options: Options, *, dialer: Dialer | None = None) -> Web:
    """Make the web as it is configured; nothing is sent yet.

    Args:
        options: What the owner says.
        dialer: Reaches pages; the system's where it isn't given.
    """
    limits = Limits(total_s=options.timeout_s, max_bytes=options.max_page_bytes)
    return Web(open_provider=lambda: _provider(options), guard=Guard(limits=limits, dialer=dialer), options=options)


def _provider(options: Options) -> Provider:
    account = Account(
        provider=options.provider, base_url=options.base_url, api_key=options.api_key, timeout_s=options.timeout_s
    )
    match options.provider:
        case "ddgs":
            return _duckduckgo(options)
        case "tavily":
            return Tavily(account)
        case "brave":
            return Brave(account)
        case "serper":
            return Serper(account)
        case "model":
            return ModelSearch(account, model=options.model)


def _duckduckgo(options: Options) -> Provider:
    if options.base_url:
        raise SetupError(
            "web.base_url has no meaning for the provider ddgs",
            hint="take it out, or set web.provider to tavily, brave, serper or model",
            code="config_invalid",
        )
    from knapper.net.providers.duckduckgo import DuckDuckGo  # noqa: PLC0415 - slow to import, and often not chosen

    return DuckDuckGo(timeout_s=options.timeout_s)
