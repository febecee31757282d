"""Let a model work with a few tools for a limited number of rounds."""

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
from knapper.agents.toolset import GET_CONTINUATION, LOOP_TOOLS, ResultExcerpts
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import registry
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer

_TOOL_RETRIES: Final = 50
_REPEATED_CALL: Final = "This very call was made just before, and its answer stands above."
ToolHandler = Callable[[Arguments], Answer]
"""Carries a call out; runs in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """One tool of an agent."""

    definition: ToolDefinition
    handle: ToolHandler

    @property
    def name(self) -> str:
        """Return its name."""
        return self.definition.name


@dataclass(slots=True, kw_only=True)
class LoopToolSession:
    """The tools of one run, and what came of them."""

    tools: Mapping[str, AgentTool]
    results: ResultExcerpts
    pending_events: list[Event] = field(default_factory=list[Event])
    usage_rows: list[JSONValue] = field(default_factory=list[JSONValue])
    _last: str = ""

    def is_repeat(self, name: str, arguments: Arguments) -> bool:
        """Return whether a call is the one before it once more."""
        call_key = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
        repeated = call_key == self._last
        self._last = call_key
        return repeated


class LoopToolset(AbstractToolset[LoopToolSession]):
    """Offer the tools of a box."""

    @property
    def id(self) -> str:
        """Name the toolset."""
        return "box"

    async def get_tools(self, ctx: RunContext[LoopToolSession]) -> dict[str, ToolsetTool[LoopToolSession]]:
        """Describe the tools."""
        definitions = [tool.definition for tool in ctx.deps.tools.values()]
        definitions += [one for one in LOOP_TOOLS if one.name == GET_CONTINUATION]
        return {
            one.name: ToolsetTool(
                toolset=self, tool_def=one, max_retries=_TOOL_RETRIES, args_validator=_ArgumentValidator(one)
            )
            for one in definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[LoopToolSession], tool: ToolsetTool[LoopToolSession]
    ) -> str:
        """Call a tool; errors are told to the model, with their hints."""
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
    """Make a tool of a row of the table.

    Args:
        row: Which.
        context: The vault, as the agent sees it.
        on_answer: Told of each call with its answer.
        argument_limits: The greatest number that an argument may be; it is taken where none is given, too.
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
    """Put tools into a box.

    Args:
        tools: Each of another name.
        mark: That of the run's blocks.
        max_chars: How much of an answer the model is given at once.
    """
    return LoopToolSession(
        tools={tool.name: tool for tool in tools}, results=ResultExcerpts(mark=mark, max_chars=max_chars)
    )


class _ArgumentValidator:
    """Read a call's arguments, and mend them; stands where pydantic's validator would."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._schema = cast("replies.Schema", definition.parameters_json_schema)

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> Arguments:  # noqa: A002, ANN401 - the validator's own signature
        return replies.fit_arguments(replies.read_arguments(input), self._schema)

    def validate_python(self, input: Any, **_: Any) -> Arguments:  # noqa: A002, ANN401 - the same
        return replies.fit_arguments(replies.read_arguments(input), self._schema)


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
"""The model said something instead of calling tools; what was looked for is there; the rounds are used up."""
_LOOP_RETRIES: Final = 50
_MAX_REPLIES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTask:
    """Say what a model is to do."""

    model: Model
    system: str
    prompt: str
    session: LoopToolSession
    rounds: int
    """Rounds of calls at most."""
    is_done: Callable[[], bool]
    """Asked after each round."""
    uncounted: frozenset[str] = frozenset()
    """Tools whose calls alone are no round, the first time."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    limits: UsageLimits = field(default_factory=lambda: UsageLimits(request_limit=_MAX_REPLIES))


@dataclass(slots=True)
class LoopProgress:
    """How far the work is; it stays right however the work ends."""

    rounds: int = 0
    spared: bool = False
    """Whether calls that are no round were made already."""
    text: str = ""
    """What the model said last."""
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The conversation up to the last answered round, from which it can go on."""


async def run_loop(work: LoopTask, progress: LoopProgress, usage: RunUsage, tell: Callable[[Event], None]) -> LoopEnd:
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
        deps_type=LoopToolSession,
        instructions=work.system,
        toolsets=[LoopToolset()],
        retries={"tools": _LOOP_RETRIES, "output": 1},
    )
    known_call_ids = replies.collect_call_ids(work.history)
    async with agent.iter(
        work.prompt, message_history=list(work.history), deps=work.session, usage=usage, usage_limits=work.limits
    ) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
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
