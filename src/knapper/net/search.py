"""Search the web through a provider: Brave, Serper, Tavily, a model provider or DuckDuckGo."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape
from re import sub
from typing import Final, Protocol
from urllib.parse import urlsplit

from knapper.errors import SetupError
from knapper.jsontypes import JSONValue, is_object, objects_in
from knapper.net import client, urls
from knapper.net.client import HttpClient, HttpResponse, Unreachable
from knapper.net.urls import BadAddress, SearchFailed

JsonObject = dict[str, JSONValue]
_MAX_TITLE: Final = 300
_MAX_SNIPPET: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHit:
    """A page in the results; all of its text was written by strangers."""

    title: str
    url: str
    snippet: str


class SearchProvider(Protocol):
    """A provider of web search."""

    caveat: str
    """What else an empty result may mean; empty for nothing."""

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def collect_hits(results: Iterable[tuple[str, str, str]], count: int) -> list[WebHit]:
    """Build at most *count* hits from titles, URLs and snippets: each URL once, only those of the web."""
    hits: dict[str, WebHit] = {}
    for title, address, snippet in results:
        try:
            url = str(urls.parse(address))
        except BadAddress:
            continue
        hit = WebHit(
            title=client.clip_to_line(title, _MAX_TITLE), url=url, snippet=client.clip_to_line(snippet, _MAX_SNIPPET)
        )
        _ = hits.setdefault(url, hit)
    return list(hits.values())[:count]


def list_objects(answer: object, *path: str) -> list[JsonObject]:
    """Return the objects in a list of the response; values of other types are left out."""
    value = answer
    for name in path:
        value = value.get(name) if is_object(value) else None
    return objects_in(value)


def read_text_field(row: JsonObject, name: str) -> str:
    """Return a text field of an object; empty where it is missing."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


_TRIES: Final = 3
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 5.0
_OK_STATUS: Final = 200
_KEY_REFUSED_STATUSES: Final = frozenset({401, 403})
_USED_UP_STATUSES: Final = frozenset({402, 432, 433})
_BUSY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount:
    """A provider's address and key."""

    provider: str
    """The provider's name in messages."""
    base_url: str
    api_key: str
    needs_key: bool = True
    key_header: str = "Authorization"
    timeout_s: float = 15.0
    """Time for each attempt."""
    pause: Callable[[float], None] = time.sleep


class ProviderClient:
    """A client of one provider; its messages never contain the key, the query or text of the provider."""

    caveat = ""
    """As of `SearchProvider`."""

    def __init__(self, account: ProviderAccount) -> None:
        """Open the client.

        Raises:
            SetupError: There is no key, or the address can't be used.
        """
        if account.needs_key and not account.api_key.strip():
            variable = f"{account.provider.upper()}_API_KEY or " if account.provider.isalpha() else ""
            raise SetupError(
                f"searching with {account.provider} needs a key",
                hint=f"set {variable}web.api_key, or set web.provider to ddgs, which needs none",
                code="search_key",
            )
        self._account = account
        self._client = HttpClient(account.base_url, api_key=account.api_key, key_header=account.key_header)

    def post(self, path: str, payload: object) -> object:
        """Send JSON, and return the JSON response.

        Raises:
            SearchFailed: The provider doesn't answer, or not as expected.
            SetupError: The provider rejects the key.
        """
        return self._call(lambda: self._client.post(path, payload, timeout_s=self._account.timeout_s))

    def get(self, path: str, query: Mapping[str, str]) -> object:
        """Send a GET request, and return the JSON response; errors are those of ``post``."""
        return self._call(lambda: self._client.get(path, query, timeout_s=self._account.timeout_s))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, send: Callable[[], HttpResponse]) -> object:
        for attempt in range(_TRIES):
            is_last = attempt == _TRIES - 1
            try:
                answer = send()
            except Unreachable as error:
                # After a time-out the caller has waited long enough.
                if is_last or error.code == "timeout":
                    raise
                answer = None
            if answer is not None and answer.status not in _BUSY_STATUSES:
                return self._read(answer)
            if not is_last:
                pause = _FIRST_PAUSE_S * 2**attempt
                retry_after = answer.headers.get("retry-after", "") if answer else ""
                if retry_after.isdecimal() and len(retry_after) < len("100000"):
                    pause = float(retry_after)
                self._account.pause(min(pause, _LONGEST_PAUSE_S))
        raise SearchFailed(
            f"{self._account.provider} is busy, or too much was asked of it",
            hint="try again in a minute, or set another web.provider",
            code="search_busy",
        )

    def _read(self, answer: HttpResponse) -> object:
        name = self._account.provider
        if answer.status in _KEY_REFUSED_STATUSES:
            raise SetupError(f"{name} refuses the key", hint="check web.api_key and web.provider", code="search_key")
        if answer.status in _USED_UP_STATUSES:
            raise SearchFailed(f"what was paid for at {name} is used up", hint="set another web.provider")
        if answer.status != _OK_STATUS:
            raise SearchFailed(
                f"{name} answers with status {answer.status}", hint="check web.base_url, or set another web.provider"
            )
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise SearchFailed(f"{name} answers with something else than JSON", hint="check web.base_url") from error


BRAVE_URL: Final = "https://api.search.brave.com/res/v1"
_BRAVE_MAX_QUERY: Final = 400
_BRAVE_MAX_COUNT: Final = 20


class Brave(ProviderClient):
    """The search provider Brave."""

    def __init__(self, account: ProviderAccount) -> None:
        """Open the client; errors are those of `ProviderClient`."""
        overrides = {"provider": "Brave", "key_header": "X-Subscription-Token"}
        super().__init__(replace(account, **overrides, base_url=account.base_url or BRAVE_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first; errors are those of `ProviderClient`."""
        query_parameters = {
            "q": query[:_BRAVE_MAX_QUERY],
            "count": str(min(count, _BRAVE_MAX_COUNT)),
            "text_decorations": "false",
        }
        results = list_objects(self.get("web/search", query_parameters), "web", "results")
        return collect_hits(
            (
                (
                    _strip_emphasis(read_text_field(row, "title")),
                    read_text_field(row, "url"),
                    _strip_emphasis(read_text_field(row, "description")),
                )
                for row in results
            ),
            count,
        )


def _strip_emphasis(text: str) -> str:
    """Strip the emphasis marks from titles and descriptions."""
    return unescape(sub(r"</?(?:strong|b|em)>", "", text))


SERPER_URL: Final = "https://google.serper.dev"


class Serper(ProviderClient):
    """The search provider Serper, which searches Google."""

    def __init__(self, account: ProviderAccount) -> None:
        """Open the client; errors are those of `ProviderClient`."""
        overrides = {"provider": "Serper", "key_header": "X-API-KEY"}
        super().__init__(replace(account, **overrides, base_url=account.base_url or SERPER_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first; errors are those of `ProviderClient`."""
        results = list_objects(self.post("search", {"q": query, "num": count}), "organic")
        return collect_hits(
            (
                (read_text_field(row, "title"), read_text_field(row, "link"), read_text_field(row, "snippet"))
                for row in results
            ),
            count,
        )


TAVILY_URL: Final = "https://api.tavily.com"


class Tavily(ProviderClient):
    """The search provider Tavily."""

    def __init__(self, account: ProviderAccount) -> None:
        """Open the client; errors are those of `ProviderClient`."""
        super().__init__(replace(account, provider="Tavily", base_url=account.base_url or TAVILY_URL))

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first; errors are those of `ProviderClient`."""
        response = self.post("search", {"query": query, "max_results": count, "search_depth": "basic"})
        results = list_objects(response, "results")
        return collect_hits(
            (
                (read_text_field(row, "title"), read_text_field(row, "url"), read_text_field(row, "content"))
                for row in results
            ),
            count,
        )


OPENAI_URL: Final = "https://api.openai.com/v1"
_MODEL_MIN_TIMEOUT_S: Final = 60.0
_MODEL_INSTRUCTIONS: Final = (
    "You are a search engine. Search the web for what the user writes, and list the best pages, at most {count}: one "
    "line for each, with one or two sentences of what that page says on it, and cite it. Write nothing else."
)
_TRACKING_PARAMETER: Final = re.compile(r"[?&]utm_source=openai\b")
_MARKDOWN_LINK: Final = re.compile(r"\(?\[[^\]]{0,200}\]\([^)\s]{0,2000}\)\)?")


class ModelSearch(ProviderClient):
    """Search through the web search tool of a model provider."""

    caveat = "The model may have answered without searching."

    def __init__(self, account: ProviderAccount, *, model: str) -> None:
        """Open the client; errors are those of `ProviderClient`.

        Raises:
            SetupError: No model is configured.
        """
        if not model:
            raise SetupError(
                "searching with a model needs a model",
                hint="set model.name, or another web.provider",
                code="search_key",
            )
        self._model = model
        super().__init__(
            replace(
                account,
                provider="the model's provider",
                needs_key=not account.base_url,
                base_url=account.base_url or OPENAI_URL,
                timeout_s=max(account.timeout_s, _MODEL_MIN_TIMEOUT_S),
            )
        )

    def search(self, query: str, count: int) -> list[WebHit]:
        """Return at most *count* pages, best first; errors are those of `ProviderClient`."""
        response = self.post(
            "responses",
            {
                "model": self._model,
                "instructions": _MODEL_INSTRUCTIONS.format(count=count),
                "input": query,
                "tools": [{"type": "web_search"}],
                "tool_choice": "required",
                "include": ["web_search_call.action.sources"],
                "store": False,
            },
        )
        output = list_objects(response, "output")
        sources = (source for item in output for source in list_objects(item, "action", "sources"))
        addresses = [_strip_tracking(read_text_field(source, "url")) for source in sources]
        return collect_hits([*_list_citations(output), *((_host_of(url), url, "") for url in addresses)], count)


def _list_citations(output: list[JsonObject]) -> Iterator[tuple[str, str, str]]:
    """Yield of each citation the title, the address, and the line that cites it, without its links."""
    for part in (part for item in output for part in list_objects(item, "content")):
        text = read_text_field(part, "text")
        for annotation in list_objects(part, "annotations"):
            if annotation.get("type") != "url_citation":
                continue
            position = annotation.get("start_index")
            at = position if isinstance(position, int) and 0 <= position <= len(text) else 0
            start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = _MARKDOWN_LINK.sub("", text[start : stop if stop >= 0 else len(text)]).strip(" -*\t")
            yield read_text_field(annotation, "title"), _strip_tracking(read_text_field(annotation, "url")), line


def _strip_tracking(url: str) -> str:
    return _TRACKING_PARAMETER.sub("", url)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


_NO_RESULTS: Final = "No results found"
_DUCKDUCKGO_HINT: Final = "try again in a minute, or set web.provider to tavily, brave or serper"


class DuckDuckGo:
    """DuckDuckGo, which needs no key, through ``ddgs``.

    Its answers don't distinguish a captcha, a block and a search without results.
    """

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
        from ddgs.ddgs import DDGS  # noqa: PLC0415 - slow to import, and often not chosen
        from ddgs.exceptions import DDGSException, TimeoutException  # noqa: PLC0415 - the same

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
            raise SearchFailed("DuckDuckGo can't be reached", hint=_DUCKDUCKGO_HINT) from error
        return collect_hits(
            ((str(row.get("title", "")), str(row.get("href", "")), str(row.get("body", ""))) for row in results), count
        )

    @staticmethod
    def _late() -> SearchFailed:
        return SearchFailed("DuckDuckGo doesn't answer in time", hint=_DUCKDUCKGO_HINT, code="timeout")

    def close(self) -> None:
        """Do nothing: no connection stays open."""
