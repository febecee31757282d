"""Let a model provider search: the tool web_search of OpenAI's Responses API.

The model writes an answer with citations; each citation becomes a hit, with the line that it stands in as its
snippet, and then each source that the model looked at and didn't cite.

Source: developers.openai.com, "Web search": POST /responses, ``url_citation`` and ``web_search_call.action.sources``.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from knapper.errors import SetupError
from knapper.net import hits
from knapper.net.hits import JSON, WebHit
from knapper.net.providers.calls import Account, Calls

BASE_URL: Final = "https://api.openai.com/v1"
_LEAST_TIMEOUT_S: Final = 60.0
_INSTRUCTIONS: Final = (
    "You are a search engine. Search the web for what the user writes, and list the best pages, at most {count}: one "
    "line for each, with one or two sentences of what that page says on it, and cite it. Write nothing else."
)
_TRACE: Final = re.compile(r"[?&]utm_source=openai\b")
_LINK: Final = re.compile(r"\(?\[[^\]]{0,200}\]\([^)\s]{0,2000}\)\)?")


class ModelSearch:
    """Search with the tool of a model provider."""

    caveat = "The model may have answered without searching."

    def __init__(self, account: Account, *, model: str) -> None:
        """Open it; errors are those of `Calls`.

        Raises:
            SetupError: No model is named.
        """
        if not model:
            raise SetupError(
                "searching with a model needs a model",
                hint="set model.name, or another web.provider",
                code="search_key",
            )
        self._model = model
        self._calls = Calls(
            replace(
                account,
                provider="the model's provider",
                needs_key=not account.base_url,
                base_url=account.base_url or BASE_URL,
                timeout_s=max(account.timeout_s, _LEAST_TIMEOUT_S),
            )
        )

    def search(self, query: str, count: int) -> list[WebHit]:
        """Give at most *count* pages, best first; errors are those of `Calls`."""
        answer = self._calls.post(
            "responses",
            {
                "model": self._model,
                "instructions": _INSTRUCTIONS.format(count=count),
                "input": query,
                "tools": [{"type": "web_search"}],
                "tool_choice": "required",
                "include": ["web_search_call.action.sources"],
                "store": False,
            },
        )
        output = hits.rows(answer, "output")
        return hits.collect([*_cited(output), *_looked_at(output)], count)

    def close(self) -> None:
        """Close connections."""
        self._calls.close()


def _cited(output: list[JSON]) -> Iterator[tuple[str, str, str]]:
    for item in output:
        for part in hits.rows(item, "content"):
            written = hits.text(part, "text")
            for note in hits.rows(part, "annotations"):
                if note.get("type") == "url_citation":
                    yield (
                        hits.text(note, "title"),
                        _clean(hits.text(note, "url")),
                        _line(written, note.get("start_index")),
                    )


def _looked_at(output: list[JSON]) -> Iterator[tuple[str, str, str]]:
    for item in output:
        for source in hits.rows(item, "action", "sources"):
            url = _clean(hits.text(source, "url"))
            yield _host(url), url, ""


def _line(written: str, at: object) -> str:
    """Give the line that a citation stands in, without the links."""
    start = at if isinstance(at, int) and 0 <= at <= len(written) else 0
    first = written.rfind("\n", 0, start) + 1
    last = written.find("\n", start)
    return _LINK.sub("", written[first : last if last >= 0 else len(written)]).strip(" -*\t")


def _clean(url: str) -> str:
    return _TRACE.sub("", url)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
