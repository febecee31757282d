"""Search the web with a model where the notes don't answer the task."""

from dataclasses import dataclass, field, replace
from typing import Final

from pydantic_ai.usage import RunUsage

from knapper.agents import loop
from knapper.agents.loop import EventSink, LoopProgress, StageAgent, StageSpec
from knapper.agents.model.replies import Arguments
from knapper.agents.pipeline import context
from knapper.agents.pipeline.records import (
    EVALUATE_TOOL,
    FINALIZE_TOOL,
    SEARCH_TOOL,
    SELECT_TOOL,
    EnhancedWebSource,
    ResearchSettings,
    WebEnd,
    WebResult,
)
from knapper.agents.toolset import define_tool, object_schema
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import answers, web
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

_GIVES: Final = (
    define_tool(
        EVALUATE_TOOL,
        "Say whether the notes answer the task, or the web has to be searched. Call it first.",
        {
            "needs_web": {"type": "boolean", "description": "Whether the web has to be searched."},
            "reasoning": {"type": "string", "description": "Why, in a sentence or two."},
        },
        "needs_web",
        "reasoning",
    ),
    define_tool(
        SEARCH_TOOL,
        "Search the web.",
        {"query": {"type": "string", "description": "A few words, as for a search engine."}},
        "query",
    ),
    define_tool(
        SELECT_TOOL,
        "Read pages in full that web_search found.",
        {
            "urls": {"type": "array", "items": {"type": "string"}, "description": "Their addresses, the best first."},
            "reasoning": {"type": "string"},
        },
        "urls",
    ),
    define_tool(
        FINALIZE_TOOL,
        "Hand over what was found; ends the search.",
        {
            "findings": {"type": "string", "description": "What was found, and what is still open."},
            "sources": {
                "type": "array",
                "items": object_schema(
                    {
                        "url": {"type": "string"},
                        "extracted": {"type": "string", "description": "What of it matters for the task."},
                    },
                    "url",
                    "extracted",
                ),
            },
        },
        "findings",
    ),
)
WEB: Final = StageSpec(
    prompt="web",
    gives=_GIVES,
    limits="A search gives at most {0.snippet_limit} results. "
    "You may read at most {0.fetch_limit} pages, {0.token_budget:,} tokens in all.",
    answer_chars=90_000,  # pages are cut to their own budget before
)

_CHARS_PER_TOKEN: int = 4
_EVALUATE_HINT: str = "call it again with needs_web, true or false, and reasoning"
_MIN_PAGE_TOKENS: int = 200
"""Tokens below which reading a page isn't worth it."""


@dataclass(slots=True)
class WebNotes:
    """The state of one web search."""

    context: Context
    settings: ResearchSettings
    evaluated: bool = False
    needed: bool = False
    reasoning: str = ""
    queries: list[str] = field(default_factory=list[str])
    hits: dict[str, EnhancedWebSource] = field(default_factory=dict[str, EnhancedWebSource])
    """Results of the searches, by address."""
    pages_read: dict[str, EnhancedWebSource] = field(default_factory=dict[str, EnhancedWebSource])
    """Pages that were read in full, by address."""
    findings: str = ""
    finished: bool = False

    @property
    def tokens_left(self) -> int:
        """Return how many more tokens of pages may be read."""
        return self.settings.token_budget - sum(one.tokens for one in self.pages_read.values())

    @property
    def is_done(self) -> bool:
        """Return whether the search is finished or not needed."""
        return self.finished or (self.evaluated and not (self.needed and self.settings.auto_search))

    def evaluate(self, arguments: Arguments) -> Answer:
        """Record the agent's decision whether the web is needed."""
        needs_web = arguments.get("needs_web")
        # A decision that wasn't made is none: taken for a no, it would end the search.
        if not isinstance(needs_web, bool):
            error = BadInput("needs_web is neither true nor false", hint=_EVALUATE_HINT, code="bad_arguments")
            return answers.as_json(error.as_dict())
        self.evaluated = True
        self.needed = needs_web
        self.reasoning = str(arguments.get("reasoning", ""))[:2_000]
        if self.needed and not self.settings.auto_search:
            return {"success": True, "message": "Searching by itself is switched off: the person is told."}
        return {"success": True, "message": "Search now." if self.needed else "Nothing is searched."}

    def search(self, arguments: Arguments) -> Answer:
        """Search the web and record the results."""
        if not self.evaluated:
            return _out_of_order_answer(f"call {EVALUATE_TOOL} first")
        if self.is_done:
            return _out_of_order_answer(
                "you said that no search is needed" if not self.needed else "searching is switched off"
            )
        query = str(arguments.get("query", ""))
        answer = web.web_search(self.context, query, self.settings.snippet_limit)
        self.queries.append(query)
        for hit in answer["results"]:
            source = EnhancedWebSource(title=hit["title"], url=hit["url"], snippet=hit["snippet"])
            _ = self.hits.setdefault(hit["url"], source)
        return answers.as_json(answer)

    def select(self, arguments: Arguments) -> Answer:
        """Read pages from the results, as many and as much of each as the limits allow."""
        urls = arguments.get("urls")
        addresses = list(dict.fromkeys(map(str, urls if isinstance(urls, list) else [urls])))
        rows: list[JSONValue] = []
        for url in addresses:
            # Only addresses from the results: text on a page could otherwise make the model send data in an address.
            if url not in self.hits:
                rows.append({"url": url, "error": f"{SEARCH_TOOL} didn't find this address"})
            elif len(self.pages_read) >= self.settings.fetch_limit and url not in self.pages_read:
                rows.append({"url": url, "error": f"only {self.settings.fetch_limit} pages may be read"})
            elif self.tokens_left < _MIN_PAGE_TOKENS:
                rows.append({"url": url, "error": f"the budget of {self.settings.token_budget:,} tokens is used up"})
            else:
                rows.append(self._read_page(url))
        return {"success": True, "results": rows, "tokens_left": self.tokens_left}

    def finalize(self, arguments: Arguments) -> Answer:
        """Record the findings; sources that no search returned are left out."""
        self.findings = str(arguments.get("findings", ""))[:20_000]
        self.finished = True
        rows = arguments.get("sources")
        unknown_urls: list[JSONValue] = []
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict):
                url, extracted = str(row.get("url", "")), str(row.get("extracted", ""))
                place = self.pages_read if url in self.pages_read else self.hits
                if url in place:
                    place[url] = replace(place[url], extracted=extracted[:8_000])
                else:
                    unknown_urls.append(url)
        answer: Answer = {"success": True, "message": "Handed over."}
        if unknown_urls:
            answer["not_found_before"] = unknown_urls
        return answer

    def sources(self) -> tuple[EnhancedWebSource, ...]:
        """Return the pages that were read, then those that only a part was taken from."""
        taken = [one for one in self.hits.values() if one.extracted and one.url not in self.pages_read]
        return (*self.pages_read.values(), *taken)

    def _read_page(self, url: str) -> JSONValue:
        """Return the row of a page from the results, with as much of its text as the budget allows, or the error."""
        length = min(max(self.tokens_left * _CHARS_PER_TOKEN, 1), 50_000)
        try:
            page = web.fetch_page(self.context, url, length=length)
        except KnapError as error:
            return {"url": url, "error": error.message, "hint": error.hint}
        text, tokens_left = page["content"], self.tokens_left
        while text and (tokens := context.estimate_tokens(text)) > tokens_left:
            text = text[: max(len(text) * tokens_left // (tokens + 1), 0)]
        title, date = page["title"] or self.hits[url].title, page["date"]
        self.pages_read[url] = replace(self.hits[url], title=title, date=date, tokens=context.estimate_tokens(text))
        return {"url": url, "title": title, "date": date, "content": text}


def _out_of_order_answer(hint: str) -> Answer:
    return {"success": False, "error": "this comes later", "code": "out_of_order", "hint": hint}


class WebResearch:
    """The web search for one task; made anew for each."""

    def __init__(
        self, agent: StageAgent[ResearchSettings], context: Context, task: str, *, notes: str = "", mark: str = ""
    ) -> None:
        """Prepare the search.

        Args:
            agent: The model and its limits.
            context: The vault, as the agent sees it, with its web access.
            task: What it is for.
            notes: The notes as blocks; empty for none.
            mark: Of these blocks; empty for a new one.
        """
        self._agent = agent
        self._prompt = f"The notes:\n\n{notes or '(There are no notes for it.)'}\n\nThe task: {task}"
        self._mark = mark
        self.notes = WebNotes(context=context, settings=agent.settings)
        self.progress = LoopProgress()
        self.usage = RunUsage()
        self.ended: WebEnd = "cancelled"
        """How the search ended; *cancelled* until it has."""

    async def run(self, emit: EventSink) -> WebResult:
        """Search and report events; a cancelled search leaves its partial result in `result`.

        Args:
            emit: Receives each event.
        """
        web_notes = self.notes
        handles = {
            EVALUATE_TOOL: web_notes.evaluate,
            SEARCH_TOOL: web_notes.search,
            SELECT_TOOL: web_notes.select,
            FINALIZE_TOOL: web_notes.finalize,
        }
        work = self._agent.make_task(self._prompt, web_notes.context, self._mark, handles, lambda: web_notes.is_done)
        ended = await loop.run_loop(work, self.progress, self.usage, emit)
        self.ended = "rounds" if ended == "calls" else ended  # a search has no limit of calls besides
        return self.result()

    def result(self) -> WebResult:
        """Return the result so far."""
        web_notes = self.notes
        return WebResult(
            search_performed=bool(web_notes.queries),
            evaluation_reasoning=web_notes.reasoning or ("" if web_notes.evaluated else self.progress.text[:2_000]),
            search_needed=web_notes.needed,
            search_queries=tuple(web_notes.queries),
            sources=web_notes.sources(),
            findings=web_notes.findings,
            tokens_used=self.usage.input_tokens + self.usage.output_tokens,
            ended=self.ended,
        )
