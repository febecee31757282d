"""Let a model work with the tools of a box for so many rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

import pydantic_ai
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRequestNode
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import call_ids, deltas, halves, repair
from knapper.agents.events import Event, ToolCall, ToolResult
from knapper.agents.repair import Arguments, Schema
from knapper.agents.synthetic import GET_CONTINUATION
from knapper.agents.toolbox import Box, BoxTools

End = Literal["said", "done", "rounds"]
"""The model said something instead of calling tools; what was looked for is there; the rounds are used up."""
_RETRIES: Final = 50
_MAX_REPLIES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Say what a model is to do."""

    model: Model
    system: str
    prompt: str
    box: Box
    rounds: int
    """Rounds of calls at most."""
    is_done: Callable[[], bool]
    """Asked after each round."""
    uncounted: frozenset[str] = frozenset()
    """Tools whose calls alone are no round, the first time."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    limits: UsageLimits = field(default_factory=lambda: UsageLimits(request_limit=_MAX_REPLIES))


@dataclass(slots=True)
class Progress:
    """Hold how far the work is; it stays right however the work ends."""

    rounds: int = 0
    spared: bool = False
    """Whether calls that are no round were made already."""
    text: str = ""
    """What the model said last."""
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The conversation up to the last answered round, from which it can go on."""


async def carry_out(work: Work, progress: Progress, usage: RunUsage, tell: Callable[[Event], None]) -> End:
    """Let the model work until it is done.

    Args:
        work: What is to be done.
        progress: How far it is already; kept up to date.
        usage: What it costs is added here.
        tell: Hears each event.
    """
    pydantic_ai.BANNER_ENABLED = False  # the library greets on the error stream, which is our person's
    agent = Agent(
        work.model,
        deps_type=Box,
        instructions=work.system,
        toolsets=[BoxTools()],
        retries={"tools": _RETRIES, "output": 1},
    )
    known = call_ids.of(work.history)
    async with agent.iter(
        work.prompt, message_history=list(work.history), deps=work.box, usage=usage, usage_limits=work.limits
    ) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                progress.messages = [*run.all_messages(), node.request]
                if work.is_done():
                    return "done"
                await _reply(node, run, progress)
            elif Agent.is_call_tools_node(node) and node.model_response.tool_calls:
                if _is_over(node, work, progress):
                    return "rounds"
                halves.mend(node.model_response)
                call_ids.part(node.model_response, known)
                await _call(node, run, work, tell)
    return "said"


async def _reply(node: ModelRequestNode[Box, str], run: AgentRun[Box, str], progress: Progress) -> None:
    said = ""
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            said += deltas.text(event)
    progress.text = halves.joined(said).strip() or progress.text


def _is_over(node: CallToolsNode[Box, str], work: Work, progress: Progress) -> bool:
    """Count a round of calls, and tell whether it is one too many."""
    called = {call.tool_name for call in node.model_response.tool_calls}
    if called == {GET_CONTINUATION}:
        return False
    if not progress.spared and called <= work.uncounted | {GET_CONTINUATION}:
        progress.spared = True
        return False
    progress.rounds += 1
    if progress.rounds > work.rounds:
        progress.rounds = work.rounds
        return True
    return False


async def _call(
    node: CallToolsNode[Box, str], run: AgentRun[Box, str], work: Work, tell: Callable[[Event], None]
) -> None:
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            if isinstance(event, FunctionToolCallEvent):
                part = event.part
                tool = work.box.tools.get(part.tool_name)
                schema: Schema = tool.definition.parameters_json_schema if tool else {}
                arguments = cast("Arguments", halves.whole(repair.fit(repair.read(part.args), schema)))
                tell(ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
            elif isinstance(event, FunctionToolResultEvent):
                for told in work.box.told:
                    tell(told)
                work.box.told.clear()
                if event.part.tool_name not in {*work.box.tools, GET_CONTINUATION}:
                    error = f"there is no tool '{event.part.tool_name}'"
                    tell(
                        ToolResult(id=event.part.tool_call_id, name=event.part.tool_name, success=False, summary=error)
                    )
