"""Run stages: a model that calls tools until its task is done, or one that gives back by a text that is read.

Also has a model write further search queries before either.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, Protocol, TypeVar, cast

import pydantic_ai
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRetry, RunContext, capture_run_messages
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    RetryFeedbackPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.output import OutputSpec
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import prompting
from knapper.agents.events import Event, Text, ToolCall, ToolResult
from knapper.agents.model import replies
from knapper.agents.model import usage as model_usage
from knapper.agents.model.replies import SurrogateSafeModel
from knapper.agents.model.usage import ModelFailure
from knapper.agents.prompting import PromptName
from knapper.agents.toolset import (
    GET_CONTINUATION,
    AgentTool,
    TableToolset,
    ToolHandler,
    ToolSession,
    open_tool_session,
)
from knapper.errors import BadInput, KnapError
from knapper.index import snapshot
from knapper.jsontypes import JSONValue
from knapper.tools import search
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer

EventSink = Callable[[Event], None]
"""Receives an event; called in the loop's own task."""
LoopEnd = Literal["said", "done", "rounds", "calls", "timeout"]
"""The model answered without calling tools; the task is done; the rounds, the calls or the time are used up."""
_RETRIES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTask:
    """A task for the loop, with its model and tools."""

    model: Model
    system: str
    prompt: str | None
    """None to go on where the history ends."""
    session: ToolSession
    rounds: int
    """Maximum number of rounds of calls."""
    calls: int = 0
    """Maximum number of calls; 0 for no limit. A round of more than are left isn't begun."""
    timeout_s: float = 0
    """How long it may take; 0 for no limit."""
    is_done: Callable[[], bool]
    """Checked after each round."""
    uncounted: frozenset[str] = frozenset({GET_CONTINUATION})
    """Tools whose rounds of calls, without others, aren't counted; their calls never are."""
    spared: frozenset[str] = frozenset()
    """Tools whose first such round isn't counted either."""
    on_round: Callable[[int], None] | None = None
    """Called with the number of each counted round, before its calls."""
    streams_text: bool = False
    """Whether the model's words and what they cost are told as they come."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    limits: UsageLimits = field(default_factory=lambda: UsageLimits(request_limit=model_usage.MAX_REQUESTS))
    capabilities: Sequence[AbstractCapability[ToolSession]] = ()


@dataclass(slots=True)
class LoopProgress:
    """The progress of a loop, which stays valid however the loop ends."""

    rounds: int = 0
    calls: int = 0
    replies: list[str] = field(default_factory=list[str])
    """The text of each reply so far."""
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The conversation up to the last answered round, from which it can continue."""
    run: AgentRun[ToolSession, str] | None = field(default=None, repr=False)
    is_spared: bool = False
    """Whether the round that isn't counted was used."""
    is_capped: bool = False
    """Whether the rounds or the calls were used up."""

    @property
    def text(self) -> str:
        """Return the model's last text."""
        texts = (replies.join_surrogates(one).strip() for one in reversed(self.replies))
        return next(filter(None, texts), "")

    @property
    def new_messages(self) -> list[ModelMessage]:
        """Return the messages since the loop began, unfinished ones among them."""
        return self.run.new_messages() if self.run else []


class StageSettings(Protocol):
    """The limits of every stage that calls tools."""

    @property
    def rounds(self) -> int:
        """Return the maximum number of rounds of calls."""
        ...

    @property
    def timeout_s(self) -> float:
        """Return how long it may take."""
        ...


SettingsT_co = TypeVar("SettingsT_co", covariant=True)
OutputT = TypeVar("OutputT")
ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """A stage of a task as data: what it may call, by what it gives back and ends, what it is told of its limits."""

    prompt: PromptName | Literal[""]
    """Empty where the whole prompt comes with the task."""
    tools: tuple[str, ...] = ()
    """Those of the table that it may be offered."""
    gives: tuple[ToolDefinition, ...] = ()
    """Its own tools: by them it gives back what it found, asks the person, and ends; none to give back by its text."""
    limits: str = ""
    """What it is told of its limits; ``{0.rounds}`` stands for a setting."""
    answer_chars: int = 0
    """Characters of a tool's answer that the model is shown at once."""
    spared: frozenset[str] = frozenset()
    """As in `LoopTask`."""
    corrections: int = 0
    """How often the model may correct its text where the reader has something against it."""
    correcting: str = ""
    """What the person is told then."""
    reply_tokens: int = 0
    """Maximum length of its text, in tokens; 0 for no limit of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[ReplyT]):
    """What a reader makes of a model's text."""

    reply: ReplyT
    complaint: str = ""
    """What the model may correct, in words for it; empty to accept the reply as it is."""


def accept(output: OutputT) -> Reading[OutputT]:
    """Read a text that needs no correction."""
    return Reading(reply=output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTask(Generic[OutputT, ReplyT]):
    """A task for a stage that gives back by its text."""

    system: str = ""
    """The rest of the system prompt, after the stage's own."""
    prompt: str
    output: OutputSpec[OutputT]
    """The text's form: ``str``, or a shape of JSON."""
    read: Callable[[OutputT], Reading[ReplyT]]
    """Reads the text, in a thread; raises `BadInput` for one that can't be used."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    settings: ModelSettings | None = None
    report: Callable[[str], None] = lambda _: None
    """Receives the progress in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReply(Generic[ReplyT]):
    """What a stage gave back by its text."""

    reply: ReplyT
    corrected: ReplyT | None = None
    """The reply before, which it stands in the place of; None for none."""
    notices: tuple[str, ...] = ()
    """For the person, about a text that was cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAgent(Generic[SettingsT_co]):
    """Who works on a stage: a model, instructed and limited for it."""

    stage: StageSpec
    model: Model
    prompt: str
    """The beginning of the system prompt."""
    settings: SettingsT_co
    """What it may do."""
    limits: UsageLimits
    rows: Mapping[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    """The table's tools that it is offered, by name."""
    name: str = ""
    """The model's, as the person wrote it."""
    rewriter: Rewriter | None = None
    """Rewrites the task into search queries beforehand; None not to."""

    def make_task(
        self: StageAgent[StageSettings],
        prompt: str,
        context: Context,
        mark: str,
        handles: Mapping[str, ToolHandler],
        is_done: Callable[[], bool],
    ) -> LoopTask:
        """Return a task for the loop.

        Args:
            prompt: What it is to work on.
            context: The vault, as the agent sees it.
            mark: Of the blocks of data; empty for a new one.
            handles: What carries out its own tools, by name; one without isn't offered.
            is_done: As in `LoopTask`.
        """
        stage = self.stage
        own = [AgentTool(definition=one, handle=handles[one.name]) for one in stage.gives if one.name in handles]
        return LoopTask(
            model=self.model,
            system=f"{self.prompt.strip()}\n\n## Limits\n\n{stage.limits.format(self.settings)}",
            prompt=prompt,
            session=open_tool_session(self.rows, context, max_chars=stage.answer_chars, own=own, mark=mark),
            rounds=self.settings.rounds,
            timeout_s=self.settings.timeout_s,
            is_done=is_done,
            spared=stage.spared,
            limits=self.limits,
        )

    async def ask(
        self, task: TextTask[OutputT, ReplyT], usage: RunUsage, messages: list[ModelMessage] | None = None
    ) -> StageReply[ReplyT]:
        """Have the task done by a text, which the model may correct as often as the stage allows.

        Where a correction can't be used, or the model fails at it, the reply before stands.

        Args:
            task: The task.
            usage: Where the cost is added.
            messages: The conversation is put here, however it ends; None where nobody asks for it.

        Raises:
            ModelFailure: No text could be used; it has the code of the first one's fault.
        """
        # The library prints a greeting to stderr, which belongs to the person's terminal.
        pydantic_ai.BANNER_ENABLED = False
        agent = Agent(
            SurrogateSafeModel(self.model),
            output_type=task.output,
            instructions="\n\n".join(filter(None, (self.prompt.strip(), task.system))),
            retries=self.stage.corrections,
            capabilities=[ProcessHistory(_prompt_for_corrections)],
        )
        reader = _ReplyReader(task, self.stage)
        _ = agent.output_validator(reader.check)
        with capture_run_messages() as conversation:
            try:
                _ = await agent.run(
                    task.prompt,
                    message_history=list(task.history),
                    usage=usage,
                    usage_limits=self.limits,
                    model_settings=task.settings,
                )
            except model_usage.MODEL_ERRORS:
                if reader.accepted is None:
                    raise
                task.report("the model couldn't be asked again: its first reply is used")
            finally:
                if messages is not None:
                    messages[:] = conversation
        return reader.result()


def _prompt_for_corrections(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Put what a reader has against a text in the reader's own words, without the library's around them."""
    corrected: list[ModelMessage] = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            corrected.append(message)
            continue
        parts: list[ModelRequestPart] = []
        for part in message.parts:
            if (
                isinstance(part, RetryFeedbackPart)
                and part.retry.cause == "model_retry"
                and isinstance(part.content, str)
            ):
                parts.append(UserPromptPart(content=part.content))
            else:
                parts.append(part)
        corrected.append(replace(message, parts=parts))
    return corrected


class _ReplyReader(Generic[OutputT, ReplyT]):
    """The reading of one text and its corrections."""

    def __init__(self, task: TextTask[OutputT, ReplyT], stage: StageSpec) -> None:
        self._task = task
        self._stage = stage
        self.accepted: StageReply[ReplyT] | None = None
        """The last reply that can be used."""
        self._fault: BadInput | None = None
        """Of the first text that can't."""

    async def check(self, run: RunContext[object], output: OutputT) -> OutputT:
        """Accept a text, or ask once more."""
        try:
            reading = await asyncio.to_thread(self._task.read, output)
        except BadInput as error:
            self._fault = self._fault or error
            complaint = prompting.escape_plain(f"Your reply can't be used: {error.message}. {error.hint}".strip())
        else:
            last = run.messages[-1]
            notices = replies.truncation_notices(last) if isinstance(last, ModelResponse) else ()
            corrected = self.accepted.reply if self.accepted else None
            self.accepted = StageReply(reply=reading.reply, corrected=corrected, notices=notices)
            complaint = reading.complaint
        if complaint and not run.last_attempt:
            if self._stage.correcting:
                self._task.report(self._stage.correcting)
            raise ModelRetry(complaint)
        return output

    def result(self) -> StageReply[ReplyT]:
        """Return what was given back."""
        if self.accepted is not None:
            return self.accepted
        # The fault's own hint is for the model, which has used its tries; the person needs another one.
        reason, code = (self._fault.message, self._fault.code) if self._fault else ("it is empty", "model_reply")
        hint = "try again, ask for less, or take another model"
        raise ModelFailure(f"the model's answer can't be used: {reason}", code=code, hint=hint)


async def run_loop(task: LoopTask, progress: LoopProgress, usage: RunUsage, emit: EventSink) -> LoopEnd:
    """Run the model until the task is done.

    Args:
        task: The task.
        progress: The progress so far; updated in place.
        usage: Where the cost is added.
        emit: Receives each event.
    """
    try:
        async with asyncio.timeout(task.timeout_s or None):
            return await _run_rounds(task, progress, usage, emit)
    except TimeoutError:
        if not task.timeout_s:  # the model's own, which is told as its failure
            raise
    await task.session.finish_writes()
    tell_pending(task.session, emit)
    return "timeout"


def tell_pending(session: ToolSession, emit: EventSink) -> None:
    """Report the events that the tools have left in the session."""
    for event in session.pending_events:
        emit(event)
    session.pending_events.clear()


async def _run_rounds(task: LoopTask, progress: LoopProgress, usage: RunUsage, emit: EventSink) -> LoopEnd:
    # The library prints a greeting to stderr, which belongs to the person's terminal.
    pydantic_ai.BANNER_ENABLED = False
    agent = Agent(
        task.model,
        deps_type=ToolSession,
        instructions=task.system,
        toolsets=[TableToolset()],
        retries={"tools": _RETRIES, "output": 1},
        capabilities=task.capabilities,
    )
    known_call_ids = replies.collect_call_ids(task.history)
    async with agent.iter(
        task.prompt, message_history=list(task.history), deps=task.session, usage=usage, usage_limits=task.limits
    ) as run:
        progress.run = run
        async for node in run:
            if Agent.is_model_request_node(node):
                # Before the request is sent: a run that pauses here continues with this request still in its history.
                progress.messages = [*run.all_messages(), node.request]
                if task.is_done():
                    return "done"
                progress.replies.append("")
                async with node.stream(run.ctx) as stream:
                    async for event in stream:
                        added = replies.added_text(event)
                        progress.replies[-1] += added
                        if added and task.streams_text:
                            emit(Text(text=replies.join_surrogates(added), step=len(progress.replies)))
                if task.streams_text:
                    emit(model_usage.make_usage_event(model_usage.read_usage(usage)))
            elif Agent.is_call_tools_node(node):
                # Before the calls run, since their results are stored under the repaired and unique ids.
                replies.repair_response(node.model_response)
                replies.make_call_ids_unique(node.model_response, known_call_ids)
                reached = _count_round(node, task, progress)
                if reached is not None:
                    progress.is_capped = True
                    return reached
                await _run_calls(node, run, task.session, emit)
    return "said"


def _count_round(
    node: CallToolsNode[ToolSession, str], task: LoopTask, progress: LoopProgress
) -> Literal["rounds", "calls"] | None:
    """Count a round of calls, and return the limit that it exceeds; None where it may be carried out."""
    names = [call.tool_name for call in node.model_response.tool_calls]
    called, calls = set(names), sum(name not in task.uncounted for name in names)
    if task.calls and progress.calls + calls > task.calls:
        return "calls"
    progress.calls += calls
    if called <= task.uncounted:
        return None
    if not progress.is_spared and called <= task.spared | task.uncounted:
        progress.is_spared = True
        return None
    if progress.rounds >= task.rounds:
        return "rounds"
    progress.rounds += 1
    if task.on_round is not None:
        task.on_round(progress.rounds)
    return None


async def _run_calls(
    node: CallToolsNode[ToolSession, str], run: AgentRun[ToolSession, str], session: ToolSession, emit: EventSink
) -> None:
    session.truncated_call_ids |= {
        one.tool_call_id for one in node.model_response.tool_calls if replies.is_truncated(one.args)
    }
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            if isinstance(event, FunctionToolCallEvent):
                part = event.part
                arguments = session.repair_arguments(part.tool_name, part.args)
                emit(ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
            elif isinstance(event, FunctionToolResultEvent):
                tell_pending(session, emit)
                answered = event.part
                if answered.tool_call_id not in session.answers and answered.outcome == "retried":
                    error = f"there is no tool '{answered.tool_name}'"
                    result = ToolResult(id=answered.tool_call_id, name=answered.tool_name, success=False, summary=error)
                    emit(result)


STEP: Final = "rewrite_question"
"""What the step is called where the steps of an answer are shown."""
MAX_QUERIES: Final = 3
MAX_QUERY_CHARS: Final = 200
_MAX_QUESTION_CHARS: Final = 4_000
_MAX_EARLIER_CHARS: Final = 1_000
REWRITE: Final = StageSpec(prompt="rewrite", reply_tokens=1_000)
"""Writes search queries."""
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


async def find_by_rewriting(
    rewriter: Rewriter, by: StageAgent[object], usage: RunUsage, question: Question, context: Context, emit: EventSink
) -> Answer:
    """Rewrite a question once, and find passages by it and its queries; both are told as a step.

    Where the model or the search fails, the step says so, and the answer is made without it.

    Args:
        rewriter: What rewrites.
        by: Who answers afterwards, whose model does.
        usage: Where the cost is added.
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
        queries = await _rewrite(rewriter, by, usage, question)
        results = await asyncio.to_thread(_search, context, question, queries) if queries else []
    except TimeoutError:
        return _failed(call_id, f"{by.name} didn't rewrite the question within {TIMEOUT_S:g} seconds", emit)
    except (*model_usage.MODEL_ERRORS, KnapError) as error:
        return _failed(call_id, model_usage.convert_model_error(error, by.name).message, emit)
    answer: Answer = {"success": True, "queries": [*queries], "results": [*results]}
    summary = f"searched for: {'; '.join(queries)}" if queries else "nothing to look up"
    emit(ToolResult(id=call_id, name=STEP, success=True, summary=summary, answer=answer))
    return answer


def describe(answer: Answer, mark: str) -> str:
    """Return what was found as a part of the system prompt; empty where nothing was."""
    if not answer.get("results"):
        return ""
    shown_fields = {name: answer[name] for name in ("queries", "results")}
    block = prompting.enclose(STEP, prompting.escape(shown_fields), mark)
    return (
        "## Found beforehand\n\nThe message was rewritten into these queries, and these passages were found by it and "
        f"them. They may be beside the point; search and read as you need.\n\n{block}"
    )


async def _rewrite(rewriter: Rewriter, by: StageAgent[object], usage: RunUsage, question: Question) -> tuple[str, ...]:
    """Return a question's queries, by one request at most."""
    question = Question(text=question.text[:_MAX_QUESTION_CHARS], earlier=question.earlier[:_MAX_EARLIER_CHARS])
    known = rewriter.cache.get(by.name, question)
    if known is not None:
        return known
    agent = replace(by, stage=REWRITE, prompt=rewriter.prompt())
    earlier = f"The message before:\n\n{question.earlier}\n\n" if question.earlier else ""
    async with asyncio.timeout(TIMEOUT_S):
        written = await agent.ask(
            TextTask(
                prompt=f"{earlier}The message:\n\n{question.text}",
                output=str,
                read=accept,
                settings=ModelSettings(max_tokens=REWRITE.reply_tokens),
            ),
            usage,
        )
    queries = parse_queries(replies.join_surrogates(written.reply))
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
    ranked = list(passages.values())
    best = sorted(scores, key=lambda place: (-scores[place], place))[:_MAX_PASSAGES]
    return [
        {
            "path": hit["source"],
            **{name: hit[name] for name in ("heading", "start_line", "end_line")},
            "content": search.preview(str(hit["content"]), _MAX_PASSAGE_CHARS),
        }
        for hit in (ranked[place] for place in best)
    ]


def _failed(call_id: str, problem: str, emit: EventSink) -> Answer:
    answer: Answer = {"success": False, "error": problem}
    emit(ToolResult(id=call_id, name=STEP, success=False, summary=f"not rewritten: {problem}", answer=answer))
    return answer
