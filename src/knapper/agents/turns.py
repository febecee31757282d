"""Answer one message: the loop of a model and its tools, as a stream of events."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import pydantic_ai
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRequestNode
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import (
    call_ids,
    citations,
    compaction,
    cuts,
    defusing,
    deltas,
    failures,
    halves,
    mending,
    prompting,
    repair,
    toolset,
    usage,
    workbench,
)
from knapper.agents.chat import Chat, Message, Tell
from knapper.agents.citations import Checked
from knapper.agents.events import Done, Error, Event, State, Text, ToolCall, ToolResult
from knapper.agents.failures import ModelFailure
from knapper.agents.mending import Mender
from knapper.agents.toolset import TableTools
from knapper.agents.workbench import Workbench
from knapper.codemode import model
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context

LIMIT_REACHED: Final = "\n\n[Tool call limit reached]"
_AGAIN: Final = "try again, or take another model"
_RETRIES: Final = 50


class Turn:
    """Answer one message; made anew for each."""

    def __init__(self, chat: Chat, context: Context, message: Message) -> None:
        """Take the message.

        Args:
            chat: What answers.
            context: The vault, as the agent sees it, with the run's id.
            message: What the person says.
        """
        self._chat = chat
        self._context = context
        self._message = message
        rows = toolset.offered(chat.rows, may_write=chat.may_write)
        self._bench = workbench.fresh(rows, context, max_chars=chat.result_chars, essential=chat.essential)
        self._usage = RunUsage()
        self._limits = UsageLimits(request_limit=usage.MAX_REQUESTS)
        self._run: AgentRun[Workbench, str] | None = None
        self._said: list[str] = []
        self._call_ids = call_ids.of(message.history)
        self._rounds = 0
        self._is_capped = False
        self._tell: Tell = _nobody
        self._answer: Checked | None = None
        self._notes: tuple[str, ...] = ()
        self.state: State = "failed"
        """How it ended; *failed* until it has."""

    async def run(self, tell: Tell) -> None:
        """Answer, telling what happens as it does; `Done` comes last.

        A cancelled task tells no `Done`; `done` gives it then, and `messages` what the conversation goes on from.

        Args:
            tell: Takes each event, at once.
        """
        self._tell = tell
        try:
            async with self._chat.model:
                await self._loop()
                await self._settle()
        except asyncio.CancelledError:
            self.state = "cancelled"
            await self._bench.settle()
            self._tell_told()
            raise
        except failures.CAUGHT as error:
            self._fail(failures.of(error, self._chat.name), limit=isinstance(error, UsageLimitExceeded))
        except KnapError as error:
            self._fail(error, limit=error.code == "budget_spent")
        tell(usage.event(self.spent))
        tell(self.done())

    async def events(self) -> AsyncGenerator[Event]:
        """Answer as a stream; closing it cancels the turn."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self.run(queue.put_nowait))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    @property
    def spent(self) -> model.ModelSpend:
        """Tell what was used so far."""
        return usage.of(self._usage)

    @property
    def messages(self) -> list[ModelMessage]:
        """Give what the turn adds to the conversation, so that it can go on, however it ended."""
        made = list(self._run.new_messages()) if self._run else []
        if not made:
            made = [ModelRequest(parts=[UserPromptPart(content=self._message.text)])]
        told = compaction.completed(made, self._bench.answers)
        kept = compaction.answered(compaction.closed(told), self._text())
        return compaction.stubbed(kept, self._bench.answers)

    def done(self) -> Done:
        """Sum the turn up, as far as it got."""
        checked = self._answer or mending.settled(citations.check(self._context, defusing.defused(self._text())[0]))
        proposals: list[JSONValue] = [*self._bench.proposals]
        changes: list[JSONValue] = [*self._bench.changes]
        return Done(
            state=self.state,
            answer=checked.answer,
            citations=[one.as_dict() for one in checked.citations],
            removed=[one.as_dict() for one in checked.failures],
            tools=list(self._bench.used),
            proposals=proposals,
            changes=changes,
            usage=self.spent.as_dict(),
            model=self._chat.name,
            session_id=self._message.run,
            notes=[*self._notes],
        )

    async def _loop(self) -> None:
        chat, message = self._chat, self._message
        system = await asyncio.to_thread(
            prompting.write, chat.prompts.load("chat"), self._context, chat.now(), active_file=message.active_file
        )
        if chat.meter:
            self._limits = chat.meter.allow(message.run)
        async with _agent(chat, system).iter(
            message.text,
            message_history=list(message.history),
            deps=self._bench,
            usage=self._usage,
            usage_limits=self._limits,
        ) as run:
            self._run = run
            async for node in run:
                if Agent.is_model_request_node(node):
                    await self._reply(node, run)
                elif Agent.is_call_tools_node(node) and await self._call(node, run):
                    break

    async def _reply(self, node: ModelRequestNode[Workbench, str], run: AgentRun[Workbench, str]) -> None:
        self._said.append("")
        async with node.stream(run.ctx) as stream:
            async for event in stream:
                added = deltas.text(event)
                if added:
                    self._said[-1] += added
                    self._tell(Text(text=halves.joined(added), step=len(self._said)))
        self._tell(usage.event(self.spent))

    async def _call(self, node: CallToolsNode[Workbench, str], run: AgentRun[Workbench, str]) -> bool:
        """Answer the model's calls; tells whether the turn ends here."""
        halves.mend(node.model_response)
        call_ids.part(node.model_response, self._call_ids)
        self._bench.cut |= {one.tool_call_id for one in node.model_response.tool_calls if repair.is_cut(one.args)}
        if self._is_over(node):
            self.state, self._is_capped = "limit", True
            return True
        async with node.stream(run.ctx) as stream:
            async for event in stream:
                if isinstance(event, FunctionToolCallEvent):
                    part = event.part
                    arguments = toolset.arguments_of(self._bench.rows, part.tool_name, part.args)
                    self._tell(ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
                elif isinstance(event, FunctionToolResultEvent):
                    self._tell_result(event)
        if self._bench.question is not None:
            self.state = "asked"
        return self._bench.question is not None

    def _tell_result(self, event: FunctionToolResultEvent) -> None:
        self._tell_told()
        part = event.part
        if part.tool_call_id not in self._bench.answers and part.outcome == "retried":
            error = f"there is no tool '{part.tool_name}'"
            self._tell(ToolResult(id=part.tool_call_id, name=part.tool_name, success=False, summary=error))

    def _tell_told(self) -> None:
        for told in self._bench.told:
            self._tell(told)
        self._bench.told.clear()

    def _is_over(self, node: CallToolsNode[Workbench, str]) -> bool:
        """Count a round of calls, and tell whether it is one too many; some tools don't count."""
        calls = node.model_response.tool_calls
        if all(call.tool_name in toolset.UNCOUNTED for call in calls):
            return False
        self._rounds += 1
        return self._rounds > self._chat.max_iterations

    async def _settle(self) -> None:
        """Check the answer's citations, and have them mended once."""
        if self.state == "failed":
            self.state = "complete"
        text, left_out = defusing.defused(self._text())
        if self.state == "complete" and not text.strip():
            raise ModelFailure(f"{self._chat.name}: it said nothing", code="model_reply", hint=_AGAIN)
        replies = [one for one in self._run.new_messages() if isinstance(one, ModelResponse)] if self._run else []
        self._notes = (*left_out, *(cuts.of(replies[-1]) if replies else ()))
        checked = await asyncio.to_thread(citations.check, self._context, text)
        if checked.failures and self.state == "complete":
            chat = self._chat
            repair = chat.prompts.load("repair")
            mender = Mender(model=chat.model, prompt=repair, usage=self._usage, limits=self._limits)
            checked = await mending.mend(checked, self._context, mender)
        self._answer = mending.settled(checked)

    def _text(self) -> str:
        """Give the answer as it stands: the last reply that says something."""
        if self._answer is not None:
            return self._answer.answer
        said = next((one for one in reversed(self._said) if one.strip()), "")
        if self.state == "asked" and self._bench.question and not said:
            said = self._bench.question.question
        said = halves.joined(said)
        return said + LIMIT_REACHED if self._is_capped else said

    def _fail(self, error: KnapError, *, limit: bool) -> None:
        self.state = "limit" if limit else "failed"
        self._tell(Error(error=error.message, code=error.code, hint=error.hint))


def _nobody(_: Event) -> None:
    """Tell nobody."""


def _agent(chat: Chat, system: str) -> Agent[Workbench, str]:
    pydantic_ai.BANNER_ENABLED = False  # the library greets on the error stream, which is our person's
    traced: list[AbstractCapability[Workbench]] = (
        [Instrumentation(settings=InstrumentationSettings(include_content=False))] if chat.telemetry else []
    )
    return Agent(
        chat.model,
        deps_type=Workbench,
        instructions=system,
        toolsets=[TableTools()],
        retries={"tools": _RETRIES, "output": 1},
        capabilities=traced,
    )
