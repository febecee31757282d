"""Run the loop of a model and its tools, round after round, until the task is done or a limit is reached."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pydantic_ai
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRequestNode
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents.events import Event, Text, ToolCall, ToolResult
from knapper.agents.model import replies
from knapper.agents.model import usage as model_usage
from knapper.agents.toolset import GET_CONTINUATION, TableToolset, ToolSession

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
                await _stream_reply(node, run, task, progress, emit)
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


async def _stream_reply(
    node: ModelRequestNode[ToolSession, str],
    run: AgentRun[ToolSession, str],
    task: LoopTask,
    progress: LoopProgress,
    emit: EventSink,
) -> None:
    progress.replies.append("")
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            added = replies.added_text(event)
            progress.replies[-1] += added
            if added and task.streams_text:
                emit(Text(text=replies.join_surrogates(added), step=len(progress.replies)))


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
