"""Have a model write further search queries for a question, and find passages by all of them."""

from __future__ import annotations

import asyncio
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import untrusted
from knapper.agents.events import ToolCall, ToolResult
from knapper.agents.loop import EventSink
from knapper.agents.model import replies
from knapper.agents.model import usage as model_usage
from knapper.agents.model.replies import SurrogateSafeModel
from knapper.errors import KnapError
from knapper.index import snapshot
from knapper.jsontypes import JSONValue
from knapper.tools import notes, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

STEP: Final = "rewrite_question"
"""What the step is called where the steps of an answer are shown."""
MAX_QUERIES: Final = 3
MAX_QUERY_CHARS: Final = 200
_MAX_QUESTION_CHARS: Final = 4_000
_MAX_EARLIER_CHARS: Final = 1_000
_MAX_REPLY_TOKENS: Final = 1_000
TIMEOUT_S: Final = 20.0
_HITS_PER_QUERY: Final = 6
_MAX_PASSAGES: Final = 8
_MAX_PASSAGE_CHARS: Final = 600
_MAX_CACHED: Final = 500
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*")
_NOTHING: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be found."""

    text: str
    earlier: str = ""
    """The person's message before it; empty for none."""


@dataclass(frozen=True, slots=True)
class QueryCache:
    """The queries of questions that were rewritten already; thread-safe."""

    _queries: dict[tuple[str, Question], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, Question], tuple[str, ...]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, model: str, question: Question) -> tuple[str, ...] | None:
        """Return a question's queries; None where it wasn't rewritten yet."""
        with self._lock:
            return self._queries.get((model, question))

    def put(self, model: str, question: Question, queries: tuple[str, ...]) -> None:
        """Store a question's queries; the oldest go first."""
        with self._lock:
            self._queries[model, question] = queries
            while len(self._queries) > _MAX_CACHED:
                del self._queries[next(iter(self._queries))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """What rewrites questions."""

    prompt: Callable[[], str]
    """Reads the instructions for the model."""
    cache: QueryCache


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingModel:
    """The model of an answer, and what it may use."""

    model: Model
    name: str
    usage: RunUsage
    """Where the cost is added."""
    limits: UsageLimits


async def find_by_rewriting(
    rewriter: Rewriter, by: RewritingModel, question: Question, context: Context, emit: EventSink
) -> Answer:
    """Rewrite a question once, and find passages by it and its queries; both are told as a step.

    Where the model or the search fails, the step says so, and the answer is made without it.

    Args:
        rewriter: What rewrites.
        by: The model that does.
        question: The person's.
        context: The vault, as the agent sees it.
        emit: Receives the step's events.

    Returns:
        ``queries``, and ``results`` with path, heading, lines and content, best first; none where it failed, or where
        the model has nothing to look up.
    """
    # A task may explore several times, each with a step of its own.
    call_id = f"rewrite-{secrets.token_hex(4)}"
    emit(ToolCall(id=call_id, name=STEP, arguments={"query": question.text[:MAX_QUERY_CHARS]}))
    try:
        queries = await _rewrite(rewriter, by, question)
        results = await asyncio.to_thread(_search, context, question, queries) if queries else []
    except TimeoutError:
        return _failed(call_id, f"{by.name} didn't rewrite the question within {TIMEOUT_S:g} seconds", emit)
    except model_usage.MODEL_ERRORS as error:
        return _failed(call_id, model_usage.convert_model_error(error, by.name).message, emit)
    except KnapError as error:
        return _failed(call_id, error.message, emit)
    answer: Answer = {"success": True, "queries": [*queries], "results": [*results]}
    summary = f"searched for: {'; '.join(queries)}" if queries else "nothing to look up"
    emit(ToolResult(id=call_id, name=STEP, success=True, summary=summary, answer=answer))
    return answer


def describe(answer: Answer, mark: str) -> str:
    """Return what was found as a part of the system prompt; empty where nothing was."""
    if not answer.get("results"):
        return ""
    told = {name: answer[name] for name in ("queries", "results")}
    block = untrusted.enclose(STEP, untrusted.escape(told), mark)
    return (
        "## Found beforehand\n\nThe message was rewritten into these queries, and these passages were found by it and "
        f"them. They may be beside the point; search and read as you need.\n\n{block}"
    )


async def _rewrite(rewriter: Rewriter, by: RewritingModel, question: Question) -> tuple[str, ...]:
    """Return a question's queries, by one request at most."""
    question = Question(text=question.text[:_MAX_QUESTION_CHARS], earlier=question.earlier[:_MAX_EARLIER_CHARS])
    known = rewriter.cache.get(by.name, question)
    if known is not None:
        return known
    agent = Agent(SurrogateSafeModel(by.model), instructions=rewriter.prompt(), retries=0)
    earlier = f"The message before:\n\n{question.earlier}\n\n" if question.earlier else ""
    async with asyncio.timeout(TIMEOUT_S):
        result = await agent.run(
            f"{earlier}The message:\n\n{question.text}",
            usage=by.usage,
            usage_limits=by.limits,
            model_settings=ModelSettings(max_tokens=_MAX_REPLY_TOKENS),
        )
    queries = parse_queries(replies.join_surrogates(result.output))
    rewriter.cache.put(by.name, question, queries)
    return queries


def parse_queries(reply: str) -> tuple[str, ...]:
    r"""Return the queries of a model's reply, one a line.

    ``"1. tomato watering\n- \"irrigation\"\nnone"`` gives ``("tomato watering", "irrigation")``.
    """
    lines = (_LIST_MARK.sub("", line).strip().strip("\"'`“”„").strip() for line in reply.splitlines())
    queries = (line for line in lines if line and line.casefold().rstrip(".") != _NOTHING)
    # A line that long is an explanation.
    return tuple(dict.fromkeys(query for query in queries if len(query) <= MAX_QUERY_CHARS))[:MAX_QUERIES]


def _search(context: Context, question: Question, queries: Sequence[str]) -> list[JSONValue]:
    """Find passages by each query, and join the rankings by reciprocal rank."""
    passages: dict[tuple[JSONValue, JSONValue], Mapping[str, JSONValue]] = {}
    rankings: list[list[int]] = []
    for query in (question.text[:_MAX_QUESTION_CHARS], *queries):
        answer = search.search_vault(context, query, n_results=_HITS_PER_QUERY)
        hits = cast("list[dict[str, JSONValue]]", answer["results"])
        keys = [(hit["source"], hit["start_line"]) for hit in hits]
        for key, hit in zip(keys, hits, strict=True):
            _ = passages.setdefault(key, hit)
        places = {key: place for place, key in enumerate(passages)}
        rankings.append([places[key] for key in keys])
    scores = snapshot.reciprocal_rank_fusion(rankings)
    found = list(passages.values())
    best = sorted(scores, key=lambda place: (-scores[place], place))[:_MAX_PASSAGES]
    return [_shorten(found[place]) for place in best]


def _shorten(hit: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    kept = {name: hit[name] for name in ("heading", "start_line", "end_line")}
    return {"path": hit["source"], **kept, "content": notes.preview(str(hit["content"]), _MAX_PASSAGE_CHARS)}


def _failed(call_id: str, problem: str, emit: EventSink) -> Answer:
    answer: Answer = {"success": False, "error": problem}
    emit(ToolResult(id=call_id, name=STEP, success=False, summary=f"not rewritten: {problem}", answer=answer))
    return answer
