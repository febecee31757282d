"""Hold what a search of the web finds, and read it from providers' answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from knapper.net import texts, urls
from knapper.net.failures import BadAddress

JSON = dict[str, object]
_TITLE_MOST: Final = 300
_SNIPPET_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHit:
    """Name a page that was found; strangers wrote all of it."""

    title: str
    url: str
    snippet: str


class Provider(Protocol):
    """Search the web."""

    caveat: str
    """What a search without results may mean besides; empty for nothing."""

    def search(self, query: str, count: int) -> list[WebHit]:
        """Give at most *count* pages, best first."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def collect(found: Iterable[tuple[str, str, str]], count: int) -> list[WebHit]:
    """Make hits of titles, addresses and snippets: each address once, only those of the web, at most *count*."""
    hits: dict[str, WebHit] = {}
    for title, address, snippet in found:
        try:
            url = str(urls.parse(address))
        except BadAddress:
            continue
        hit = WebHit(title=texts.line(title, _TITLE_MOST), url=url, snippet=texts.line(snippet, _SNIPPET_MOST))
        _ = hits.setdefault(url, hit)
    return list(hits.values())[:count]


def rows(answer: object, *path: str) -> list[JSON]:
    """Give the objects of a list in an answer; what has another shape is left out."""
    value = answer
    for name in path:
        value = cast("JSON", value).get(name) if isinstance(value, dict) else None
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JSON", item) for item in items if isinstance(item, dict)]


def text(row: JSON, name: str) -> str:
    """Give a text of an object; empty where there is none."""
    value = row.get(name)
    return value if isinstance(value, str) else ""
