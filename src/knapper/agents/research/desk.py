"""Carry out what the web agent asks for, in its order and within its budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from knapper.agents.contexts import unified
from knapper.agents.repair import Arguments
from knapper.agents.research.records import EVALUATE, SEARCH, EnhancedWebSource, ResearchSettings
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import web
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

_CHARS: int = 4
_LEAST: int = 200
"""Tokens that are worth reading a page for."""


@dataclass(slots=True)
class Desk:
    """Hold the state of one search."""

    context: Context
    settings: ResearchSettings
    evaluated: bool = False
    needed: bool = False
    reasoning: str = ""
    queries: list[str] = field(default_factory=list[str])
    hits: dict[str, EnhancedWebSource] = field(default_factory=dict[str, EnhancedWebSource])
    """What searches found, by address."""
    read: dict[str, EnhancedWebSource] = field(default_factory=dict[str, EnhancedWebSource])
    """What was read in full, by address."""
    findings: str = ""
    finished: bool = False

    @property
    def left(self) -> int:
        """Tell how many tokens of pages may still be taken in."""
        return self.settings.token_budget - sum(one.tokens for one in self.read.values())

    @property
    def is_done(self) -> bool:
        """Tell whether there is nothing left to do."""
        return self.finished or (self.evaluated and not (self.needed and self.settings.auto_search))

    def evaluate(self, given: Arguments) -> Answer:
        """Take the agent's word on whether the web is needed."""
        self.evaluated = True
        self.needed = given.get("needs_web") is True
        self.reasoning = str(given.get("reasoning", ""))[:2_000]
        if self.needed and not self.settings.auto_search:
            return {"success": True, "message": "Searching by itself is switched off: the person is told."}
        return {"success": True, "message": "Search now." if self.needed else "Nothing is searched."}

    def search(self, given: Arguments) -> Answer:
        """Search the web."""
        if not self.evaluated:
            return _out_of_order(f"call {EVALUATE} first")
        if self.is_done:
            return _out_of_order(
                "you said that no search is needed" if not self.needed else "searching is switched off"
            )
        query = str(given.get("query", ""))
        answer = web.web_search(self.context, query, self.settings.snippet_limit)
        self.queries.append(query)
        rows = answer.get("results")
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict):
                self._hit(row)
        return answer

    def select(self, given: Arguments) -> Answer:
        """Read pages that were found, as many and as much of each as the limits leave."""
        urls = given.get("urls")
        wanted = list(dict.fromkeys(map(str, urls if isinstance(urls, list) else [urls])))
        told: list[JSONValue] = []
        for url in wanted:
            if url not in self.hits:
                told.append({"url": url, "error": f"{SEARCH} didn't find this address"})
            elif len(self.read) >= self.settings.fetch_limit and url not in self.read:
                told.append({"url": url, "error": f"only {self.settings.fetch_limit} pages may be read"})
            elif self.left < _LEAST:
                told.append({"url": url, "error": f"the budget of {self.settings.token_budget:,} tokens is used up"})
            else:
                told.append(self._fetch(url))
        return {"success": True, "results": told, "tokens_left": self.left}

    def finalize(self, given: Arguments) -> Answer:
        """Take what was found; sources that were never found are left out."""
        self.findings = str(given.get("findings", ""))[:20_000]
        self.finished = True
        rows = given.get("sources")
        left_out: list[JSONValue] = []
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict):
                self._take(str(row.get("url", "")), str(row.get("extracted", "")), left_out)
        answer: Answer = {"success": True, "message": "Handed over."}
        if left_out:
            answer["not_found_before"] = left_out
        return answer

    def sources(self) -> tuple[EnhancedWebSource, ...]:
        """Give the pages that were read or that something was taken from, those first."""
        taken = [one for one in self.hits.values() if one.extracted and one.url not in self.read]
        return (*self.read.values(), *taken)

    def _hit(self, row: Mapping[str, JSONValue]) -> None:
        url = str(row.get("url", ""))
        one = EnhancedWebSource(title=str(row.get("title", "")), url=url, snippet=str(row.get("snippet", "")))
        _ = self.hits.setdefault(url, one)

    def _fetch(self, url: str) -> JSONValue:
        length = min(max(self.left * _CHARS, 1), 50_000)
        try:
            page = web.fetch_page(self.context, url, length=length)
        except KnapError as error:
            return {"url": url, "error": error.message, "hint": error.hint}
        text = _fitted(str(page.get("content", "")), self.left)
        self.read[url] = replace(
            self.hits[url],
            title=str(page.get("title") or self.hits[url].title),
            date=str(page.get("date") or ""),
            tokens=unified.tokens(text),
        )
        return {"url": url, "title": self.read[url].title, "date": self.read[url].date, "content": text}

    def _take(self, url: str, extracted: str, left_out: list[JSONValue]) -> None:
        place = self.read if url in self.read else self.hits
        if url not in place:
            left_out.append(url)
            return
        place[url] = replace(place[url], extracted=extracted[:8_000])


def _fitted(text: str, tokens: int) -> str:
    """Cut a text to so many tokens."""
    while text and unified.tokens(text) > tokens:
        text = text[: max(len(text) * tokens // (unified.tokens(text) + 1), 0)]
    return text


def _out_of_order(hint: str) -> Answer:
    return {"success": False, "error": "this comes later", "code": "out_of_order", "hint": hint}
