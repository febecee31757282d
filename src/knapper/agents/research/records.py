"""Say how a search of the web is set up, and what it came to."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from knapper.agents.scout.records import check
from knapper.jsontypes import JSONValue

EVALUATE: Final = "evaluate_context"
SEARCH: Final = "web_search"
SELECT: Final = "select_pages"
FINALIZE: Final = "finalize_web_context"
SNIPPETS: Final = (3, 15)
PAGES: Final = (1, 5)
TOKENS: Final = (2_000, 20_000)
Ended = Literal["done", "said", "rounds", "timeout", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchSettings:
    """Say how the web is searched.

    Raises:
        BadInput: A number is out of its range.
    """

    snippet_limit: int = 8
    """Results of a search at most, 3 to 15."""
    fetch_limit: int = 3
    """Pages that are read at most, 1 to 5."""
    token_budget: int = 8_000
    """Tokens of pages that are taken in at most, 2,000 to 20,000."""
    auto_search: bool = True
    """Search by itself where the notes don't answer; else only say that a search is needed."""
    rounds: int = 8
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check("snippet_limit", self.snippet_limit, SNIPPETS)
        check("fetch_limit", self.fetch_limit, PAGES)
        check("token_budget", self.token_budget, TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnhancedWebSource:
    """Hold a page that something was taken from; strangers wrote all of it."""

    title: str
    url: str
    date: str = ""
    """When it was published, as it says; empty where it doesn't."""
    extracted: str = ""
    """What of it matters for the task; empty where the agent took nothing."""
    snippet: str = ""
    tokens: int = 0
    """Of its text that was read."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "title": self.title,
            "url": self.url,
            "date": self.date or None,
            "extracted": self.extracted,
            "snippet": self.snippet,
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult:
    """Hold what a search of the web came to."""

    search_performed: bool = False
    evaluation_reasoning: str = ""
    """Why the web was searched, or why not."""
    search_needed: bool = False
    search_queries: tuple[str, ...] = ()
    sources: tuple[EnhancedWebSource, ...] = ()
    findings: str = ""
    """What was found, in the agent's words."""
    tokens_used: int = 0
    ended: Ended = "said"
    problem: str = ""
    """Why it failed; empty where it didn't."""

    def after(self, before: "WebResult | None") -> "WebResult":
        """Give what this search and those before it came to; how the last one ended counts."""
        if before is None:
            return self
        sources = {one.url: one for one in (*before.sources, *self.sources)}
        return replace(
            self,
            search_performed=before.search_performed or self.search_performed,
            evaluation_reasoning=self.evaluation_reasoning or before.evaluation_reasoning,
            search_queries=(*before.search_queries, *self.search_queries),
            sources=tuple(sources.values()),
            findings="\n\n".join(filter(None, (before.findings, self.findings))),
            tokens_used=before.tokens_used + self.tokens_used,
        )

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        queries: list[JSONValue] = [*self.search_queries]
        sources: list[JSONValue] = [one.as_dict() for one in self.sources]
        return {
            "search_performed": self.search_performed,
            "search_needed": self.search_needed,
            "evaluation_reasoning": self.evaluation_reasoning,
            "search_queries": queries,
            "sources": sources,
            "findings": self.findings,
            "tokens_used": self.tokens_used,
            "ended": self.ended,
            **({"problem": self.problem} if self.problem else {}),
        }
