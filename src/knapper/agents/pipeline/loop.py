"""Run the loop of a model with a few tools and a limited number of rounds."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import anyio.to_thread
import pydantic_ai
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRequestNode, RunContext
from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import toolset
from knapper.agents.events import Event, ToolCall, ToolResult
from knapper.agents.model import replies
from knapper.agents.model.replies import Arguments, Schema
from knapper.agents.toolset import GET_CONTINUATION, LOOP_TOOLS, ArgumentValidator, ResultExcerpts
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import registry
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer

_TOOL_RETRIES: Final = 50
_REPEATED_CALL: Final = "This very call was made just before, and its answer stands above."
ToolHandler = Callable[[Arguments], Answer]
"""Carries out a call; runs in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """One tool of an agent."""

    definition: ToolDefinition
    handle: ToolHandler

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return self.definition.name


@dataclass(slots=True, kw_only=True)
class LoopToolSession:
    """The tools of one run, with their events and results."""

    tools: Mapping[str, AgentTool]
    results: ResultExcerpts
    pending_events: list[Event] = field(default_factory=list[Event])
    usage_rows: list[JSONValue] = field(default_factory=list[JSONValue])
    _last: str = ""

    def is_repeat(self, name: str, arguments: Arguments) -> bool:
        """Return whether a call repeats the one just before it."""
        call_key = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
        repeated = call_key == self._last
        self._last = call_key
        return repeated


class LoopToolset(AbstractToolset[LoopToolSession]):
    """The session's tools, as pydantic-ai calls them."""

    @property
    def id(self) -> str:
        """Return the toolset's name."""
        return "agent"

    async def get_tools(self, ctx: RunContext[LoopToolSession]) -> dict[str, ToolsetTool[LoopToolSession]]:
        """Return the tools' definitions."""
        definitions = [tool.definition for tool in ctx.deps.tools.values()]
        definitions += [one for one in LOOP_TOOLS if one.name == GET_CONTINUATION]
        return {
            one.name: ToolsetTool(
                toolset=self, tool_def=one, max_retries=_TOOL_RETRIES, args_validator=ArgumentValidator(one)
            )
            for one in definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[LoopToolSession], tool: ToolsetTool[LoopToolSession]
    ) -> str:
        """Call a tool and return its answer for the model; errors are returned with their hints."""
        del tool
        session, call_id = ctx.deps, ctx.tool_call_id or ""
        arguments = cast("Arguments", replies.join_surrogates_in_json(tool_args))
        if name == GET_CONTINUATION:
            return _read_on(session, call_id, arguments)
        if session.is_repeat(name, arguments):
            answer: Answer = {"success": False, "error": _REPEATED_CALL, "code": "repeated_call"}
        else:
            answer = await anyio.to_thread.run_sync(
                _handle_call, session.tools[name], arguments, abandon_on_cancel=True
            )
        excerpt = session.results.show(call_id, name, answer)
        session.usage_rows.append({"name": name, "success": answer.get("success") is not False})
        session.pending_events.append(_make_result(call_id, name, answer))
        return excerpt.text


def make_row_tool(
    row: ToolSpec,
    context: Context,
    *,
    on_answer: Callable[[Arguments, Answer], None],
    argument_limits: Mapping[str, int],
) -> AgentTool:
    """Make an agent's tool from a row of the table.

    Args:
        row: The table's row.
        context: The vault, as the agent sees it.
        on_answer: Called with each call's arguments and answer.
        argument_limits: The maximum of numeric arguments, which is their default as well.
    """
    parameters = cast("dict[str, Any]", registry.parameter_schema(row))

    def handle(arguments: Arguments) -> Answer:
        fitted = dict(arguments)
        for name, limit in argument_limits.items():
            value = fitted.get(name, limit)
            fitted[name] = min(value, limit) if isinstance(value, int) else value
        answer = registry.invoke_or_error(row, context, fitted)
        on_answer(arguments, answer)
        return answer

    definition = ToolDefinition(name=row.name, description=registry.describe(row), parameters_json_schema=parameters)
    return AgentTool(definition=definition, handle=handle)


def make_tool_session(tools: Sequence[AgentTool], *, mark: str, max_chars: int) -> LoopToolSession:
    """Open the tools' session of one run.

    Args:
        tools: The tools, with different names.
        mark: The mark of the run's blocks.
        max_chars: Characters of an answer that the model is shown at once.
    """
    return LoopToolSession(
        tools={tool.name: tool for tool in tools}, results=ResultExcerpts(mark=mark, max_chars=max_chars)
    )


def _handle_call(tool: AgentTool, arguments: Arguments) -> Answer:
    try:
        return tool.handle(arguments)
    except KnapError as error:
        return cast("Answer", error.as_dict())


def _read_on(session: LoopToolSession, call_id: str, arguments: Arguments) -> str:
    offset = arguments.get("offset", 0)
    try:
        if not isinstance(offset, int):
            raise BadInput(f"offset is {str(offset)[:40]!r}", hint="give a whole number")
        return session.results.read_on(str(arguments.get("tool_call_id", "")), offset).text
    except KnapError as error:
        answer = cast("Answer", error.as_dict())
        session.pending_events.append(_make_result(call_id, GET_CONTINUATION, answer))
        return session.results.show(call_id, GET_CONTINUATION, answer).text


def _make_result(call_id: str, name: str, answer: Answer) -> ToolResult:
    success = answer.get("success") is not False
    return ToolResult(id=call_id, name=name, success=success, summary=toolset.summarize_answer(answer), answer=answer)


LoopEnd = Literal["said", "done", "rounds"]
"""The model answered without calling tools; the task is done; the rounds are used up."""
_MAX_REPLIES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTask:
    """A task for the loop, with its model and tools."""

    model: Model
    system: str
    prompt: str
    session: LoopToolSession
    rounds: int
    """Maximum number of rounds of calls."""
    is_done: Callable[[], bool]
    """Checked after each round."""
    uncounted: frozenset[str] = frozenset()
    """Tools whose first round of calls, without others, isn't counted."""
    on_round: Callable[[int], None] | None = None
    """Called with the number of each counted round, before its calls."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    limits: UsageLimits = field(default_factory=lambda: UsageLimits(request_limit=_MAX_REPLIES))


@dataclass(slots=True)
class LoopProgress:
    """The progress of a loop, which stays valid however the loop ends."""

    rounds: int = 0
    spared: bool = False
    """Whether the uncounted round was used."""
    text: str = ""
    """The model's last text."""
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The conversation up to the last answered round, from which it can continue."""


async def run_loop(work: LoopTask, progress: LoopProgress, usage: RunUsage, tell: Callable[[Event], None]) -> LoopEnd:
    """Run the model until the task is done.

    Args:
        work: The task.
        progress: The progress so far; updated in place.
        usage: Where the cost is added.
        tell: Receives each event.
    """
    # The library prints a greeting to stderr, which belongs to the person's terminal.
    pydantic_ai.BANNER_ENABLED = False
    agent = Agent(
        work.model,
        deps_type=LoopToolSession,
        instructions=work.system,
        toolsets=[LoopToolset()],
        retries={"tools": _TOOL_RETRIES, "output": 1},
    )
    known_call_ids = replies.collect_call_ids(work.history)
    async with agent.iter(
        work.prompt, message_history=list(work.history), deps=work.session, usage=usage, usage_limits=work.limits
    ) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                # Before the request is sent: a run that pauses here continues with this request still in its history.
                progress.messages = [*run.all_messages(), node.request]
                if work.is_done():
                    return "done"
                await _stream_reply(node, run, progress)
            elif Agent.is_call_tools_node(node) and node.model_response.tool_calls:
                if _is_last_round(node, work, progress):
                    return "rounds"
                replies.repair_response(node.model_response)
                replies.make_call_ids_unique(node.model_response, known_call_ids)
                await _run_calls(node, run, work, tell)
    return "said"


async def _stream_reply(
    node: ModelRequestNode[LoopToolSession, str], run: AgentRun[LoopToolSession, str], progress: LoopProgress
) -> None:
    text = ""
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            text += replies.added_text(event)
    progress.text = replies.join_surrogates(text).strip() or progress.text


def _is_last_round(node: CallToolsNode[LoopToolSession, str], work: LoopTask, progress: LoopProgress) -> bool:
    """Count a round of calls, and return whether it exceeds the limit."""
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
    if work.on_round is not None:
        work.on_round(progress.rounds)
    return False


async def _run_calls(
    node: CallToolsNode[LoopToolSession, str],
    run: AgentRun[LoopToolSession, str],
    work: LoopTask,
    tell: Callable[[Event], None],
) -> None:
    async with node.stream(run.ctx) as stream:
        async for event in stream:
            if isinstance(event, FunctionToolCallEvent):
                part = event.part
                tool = work.session.tools.get(part.tool_name)
                schema: Schema = tool.definition.parameters_json_schema if tool else {}
                arguments = cast(
                    "Arguments",
                    replies.join_surrogates_in_json(replies.fit_arguments(replies.read_arguments(part.args), schema)),
                )
                tell(ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
            elif isinstance(event, FunctionToolResultEvent):
                for pending_event in work.session.pending_events:
                    tell(pending_event)
                work.session.pending_events.clear()
                if event.part.tool_name not in {*work.session.tools, GET_CONTINUATION}:
                    error = f"there is no tool '{event.part.tool_name}'"
                    tell(
                        ToolResult(id=event.part.tool_call_id, name=event.part.tool_name, success=False, summary=error)
                    )
