"""Answer one message: the loop of a model and its tools, and the history for the next message."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Final

from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now, estimate_message_tokens

from knapper.agents import citations, loop, prompting, toolset
from knapper.agents.citations import REPAIR, CheckedAnswer
from knapper.agents.events import Debug, Done, Error, Notice, TurnState
from knapper.agents.loop import EventSink, LoopProgress, LoopTask, Question, Rewriter, StageAgent
from knapper.agents.model import replies as model_replies
from knapper.agents.model import usage as model_usage
from knapper.agents.model.replies import SurrogateSafeModel
from knapper.agents.model.usage import Meter, ModelFailure, TurnAllowance
from knapper.agents.prompting import Clock, Prompts
from knapper.agents.stages import Stage
from knapper.agents.toolset import MAX_RESULT_CHARS
from knapper.codemode import tasks
from knapper.errors import KnapError, SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec

MAX_ITERATIONS: Final = 20
"""Rounds of tool calls in a turn."""
MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCaps:
    """Limits of a turn, of the chat's or those that come with a message; 0 is none."""

    rounds: int = 0
    """Of tool calls."""
    calls: int = 0
    """Of tools."""
    tokens: int = 0
    """Within the owner's limits."""
    minutes: float = 0
    """How long the model may work."""
    cents: int = 0
    """Of a US dollar, where the price is known."""

    def lowered_by(self, other: "TurnCaps") -> "TurnCaps":
        """Return the lower one of each limit."""
        pairs = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return TurnCaps(**{name: min(pair) if all(pair) else max(pair) for name, pair in pairs.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatConfig:
    """The model and the settings of a chat."""

    model: Model
    name: str
    """The model's, as the person wrote it."""
    rows: Sequence[ToolSpec]
    """The tools that the model may call."""
    prompts: Prompts
    now: Clock
    """The local time."""
    meter: Meter | None = None
    caps: TurnCaps = TurnCaps(rounds=MAX_ITERATIONS)
    result_chars: int = MAX_RESULT_CHARS
    context_tokens: int = 24_000
    """Length at which a conversation is summarized."""
    essential: bool = False
    """Whether only the essential tools are shown until the model finds others."""
    small_models: set[str] = field(default_factory=set[str])
    """Names of models that are known to read little at once; those that refuse a request for its length are added."""
    read_context: Callable[[], int] | None = None
    """Asks the model's server how many tokens the model reads at once, 0 where it doesn't say; None not to ask."""
    may_write: bool = True
    telemetry: bool = False
    """Whether the turn is traced with OpenTelemetry, without the messages' contents."""
    instructions: str = ""
    """What stands in the place of the chat's prompt; empty for that."""
    may_ask: bool = True
    """Whether the model may ask the person a question."""
    rewriter: Rewriter | None = None
    """Rewrites each message into search queries before it is answered; None not to."""


def configure_stage(chat: ChatConfig, stage: Stage) -> ChatConfig:
    """Return a chat's settings with those of an agent in their place.

    Raises:
        SetupError: The agent's file names tools that no agent has (code ``agent_invalid``).
    """
    unknown = sorted(stage.tools - set(toolset.choose_tools(chat.rows)))
    if unknown:
        hint = f"correct 'tools' in agents/{stage.name}.md; `knap tools` lists them"
        message = f"the agent '{stage.name}' names tools that no agent has: {', '.join(unknown)[:200]}"
        raise SetupError(message, hint=hint, code="agent_invalid")
    own = chat.prompts.own_text(stage.name) or stage.prompt
    return replace(
        chat,
        # Its rules about data come last, and from here alone, whoever wrote the rest.
        instructions=f"{own.strip()}\n\n{prompting.read_built_in('stage').strip()}",
        rows=[row for row in chat.rows if row.name in stage.tools],
        caps=replace(chat.caps, rounds=stage.rounds),
        may_ask=False,
        # It has few tools, and each is needed: none waits to be found.
        essential=False,
        small_models=set(),
        read_context=None,
        rewriter=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The person's message; a conversation adds the history before it."""

    text: str
    run: str = ""
    """The session's or run's id."""
    active_file: str = ""
    """The note that is open; empty for none."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    debug: bool = False
    """Whether the model's conversation is reported."""
    notices: tuple[str, ...] = ()
    """What the person is to be told of that history."""
    may_apply: bool = False
    """Whether an agent that the message names may apply changes, as far as the rules allow; otherwise it proposes."""
    caps: TurnCaps = field(default_factory=TurnCaps)
    """Limits of this message, which only lower the chat's."""


COMPACTED_KEY: Final = "compacted"
"""The key in a part's metadata, which pydantic-ai doesn't send to the model."""
_MAX_STUB_FILES: Final = 20
_STUB_FIELDS: Final = (
    "path",
    "hash",
    "heading",
    "start_line",
    "end_line",
    "change_id",
    "proposal_id",
    "message",
    "reason",
)
_MESSAGES_PLACEHOLDER: Final = "{messages}"
AnswersByCall = Mapping[str, Mapping[str, JSONValue]]


def stub_tool_answers(messages: Sequence[ModelMessage], answers: AnswersByCall) -> list[ModelMessage]:
    """Replace each tool's answer by a stub, and drop the system prompts.

    Args:
        messages: The messages of a turn that has ended.
        answers: The tools' answers by call id.
    """
    stubbed: list[ModelMessage] = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            stubbed.append(message)
            continue
        parts: list[ModelRequestPart] = []
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and not is_stub(part):
                answer = answers.get(part.tool_call_id)
                outcome: JSONValue = {"status": "success" if part.outcome == "success" else "error"}
                stub = stub_answer(answer) if answer is not None else outcome
                parts.append(replace(part, content=prompting.escape(stub), metadata={COMPACTED_KEY: True}))
            else:
                parts.append(part)
        stubbed.append(replace(message, parts=parts, instructions=None))
    return stubbed


def stub_answer(answer: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return a short summary of a tool's answer.

    Five hits in two notes give ``{"status": "success", "result_count": 5, "files": ["a.md", "b.md"]}``; a note that was
    read gives its path, hash and lines; a change gives its id; an error gives its text and code.
    """
    if answer.get("success") is False:
        return {"status": "error", **{name: answer[name] for name in ("error", "code") if name in answer}}
    summary: dict[str, JSONValue] = {"status": "success"}
    results = answer.get("results")
    if isinstance(results, list):
        named: dict[str, None] = {}
        for row in results:
            path = row if isinstance(row, str) else ""
            if isinstance(row, dict):
                path = next((str(row[name]) for name in ("source", "path", "file") if row.get(name)), "")
            if path:
                named[path] = None
        files = list(named)
        summary |= {"result_count": len(results), "files": [*files[:_MAX_STUB_FILES]]}
        if len(files) > _MAX_STUB_FILES:
            summary["more_files"] = len(files) - _MAX_STUB_FILES
        if isinstance(answer.get("total"), int):
            summary["total"] = answer["total"]
        return summary
    if "status" in answer:
        summary["result"] = answer["status"]
    return summary | {name: answer[name] for name in _STUB_FIELDS if answer.get(name)}


def is_stub(part: ToolReturnPart) -> bool:
    """Return whether a tool's answer is a stub already."""
    metadata: object = part.metadata
    return isinstance(metadata, Mapping) and COMPACTED_KEY in metadata


def add_missing_answers(messages: Sequence[ModelMessage], answers: AnswersByCall) -> list[ModelMessage]:
    """Add the answers of tools that a cancelled conversation lacks; `stub_tool_answers` fills them in.

    Args:
        messages: The messages of a turn that has ended.
        answers: The tools' answers by call id.
    """
    history = list(messages)
    last_index = next((at for at in range(len(history) - 1, -1, -1) if isinstance(history[at], ModelResponse)), -1)
    response = history[last_index] if last_index >= 0 else None
    next_request = history[last_index + 1] if last_index + 1 < len(history) else None
    answered_ids = (
        {part.tool_call_id for part in next_request.parts if isinstance(part, ToolReturnPart)}
        if next_request
        else set[str]()
    )
    calls = response.tool_calls if isinstance(response, ModelResponse) else []
    missing = [
        ToolReturnPart(tool_name=call.tool_name, content="", tool_call_id=call.tool_call_id)
        for call in calls
        if call.tool_call_id in answers and call.tool_call_id not in answered_ids
    ]
    if missing:
        parts = [*(next_request.parts if isinstance(next_request, ModelRequest) else ()), *missing]
        history[last_index + 1 :] = [ModelRequest(parts=parts)]
    return history


def drop_open_calls(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Remove unanswered calls from the end of a conversation, which providers would refuse to continue."""
    history = list(messages)
    while history and isinstance(history[-1], ModelResponse) and history[-1].tool_calls:
        last = history.pop()
        parts = [part for part in last.parts if isinstance(part, TextPart)]
        if parts:
            history.append(replace(last, parts=parts))
    return history


def replace_answer(messages: Sequence[ModelMessage], answer: str) -> list[ModelMessage]:
    """Replace the model's answer by the one that the person was shown."""
    history = list(messages)
    if history and isinstance(history[-1], ModelResponse):
        others = [part for part in history[-1].parts if not isinstance(part, TextPart)]
        history[-1] = replace(history[-1], parts=[*others, TextPart(content=answer)])
    else:
        history.append(ModelResponse(parts=[TextPart(content=answer)]))
    return history


def estimate_history_tokens(messages: Sequence[ModelMessage]) -> int:
    """Return an estimate of a conversation's length in tokens."""
    return sum(estimate_message_tokens(messages))


async def summarize_history(
    messages: Sequence[ModelMessage], model: Model, *, budget: int, prompt: str, usage: RunUsage
) -> list[ModelMessage] | None:
    """Summarize the beginning of a conversation that exceeds its budget, and keep the last half of the budget.

    Args:
        messages: A conversation without unanswered calls.
        model: The model that writes the summary.
        budget: In tokens.
        prompt: Instructions for it, with ``{messages}`` where the conversation goes.
        usage: Where its cost is added.

    Returns:
        The shorter conversation; None where the model wrote no summary that can be used.

    Raises:
        Exception: One of `model_usage.MODEL_ERRORS`; the model failed.
    """
    history = list(messages)
    if estimate_history_tokens(history) <= budget:
        return history
    if _MESSAGES_PLACEHOLDER not in prompt:
        prompt = f"{prompt}\n\n{_MESSAGES_PLACEHOLDER}"
    strategy = SummarizingCompaction[None](
        max_tokens=budget, keep_tokens=budget // 2, summary_prompt=prompt, preserve_first_user_message=False
    )
    shorter = await compact_now(strategy, history, model=SurrogateSafeModel(model), usage=usage)
    tokens = estimate_history_tokens(shorter)
    return shorter if tokens <= budget and tokens < estimate_history_tokens(history) else None


def drop_beginning(history: list[ModelMessage], budget: int) -> list[ModelMessage]:
    """Drop whole turns at the beginning of a conversation until the rest fits; the last turn always stays.

    Args:
        history: A conversation without unanswered calls.
        budget: In tokens.
    """
    turn_starts = [
        number
        for number, one in enumerate(history)
        if isinstance(one, ModelRequest) and any(isinstance(part, UserPromptPart) for part in one.parts)
    ]
    for start in turn_starts:
        if estimate_history_tokens(history[start:]) <= budget:
            return history[start:]
    return history[turn_starts[-1] :] if turn_starts else history


LIMIT_REACHED: Final = "\n\n[Tool call limit reached]"
SMALL_CONTEXT: Final = 16_000
"""Tokens: a model that reads fewer at once is offered the essential tools, since all of them take 13,000."""
TOOLS_REDUCED: Final = (
    "the model can't read all tools at once, so it was offered the essential ones; it finds the others by find_tool"
)
TIME_IS_UP: Final = "the time for it was up"
ROUNDS_ARE_UP: Final = "the limit of {limit:,} rounds of tool calls was reached"
CALLS_ARE_UP: Final = "the limit of {limit:,} tool calls was reached"
NO_PRICE: Final = "no price is known for {model}, so the cost limit of {cents:,} cents wasn't applied"
_RETRY_HINT: Final = "try again, or take another model"
_TRACED: Final = InstrumentationSettings(include_content=False)


class ChatTurn:
    """The answer to one message; made anew for each."""

    def __init__(self, chat: ChatConfig, context: Context, message: Message) -> None:
        """Prepare the turn.

        Args:
            chat: The model and its settings.
            context: The vault, as the agent sees it, with the run's id.
            message: The person's message.
        """
        self._chat = replace(chat, caps=chat.caps.lowered_by(message.caps))
        self._context = context
        self.message = message
        rows = toolset.choose_tools(chat.rows, may_write=chat.may_write)
        essential = chat.essential or chat.name in chat.small_models
        self._session = toolset.open_tool_session(rows, context, max_chars=chat.result_chars, essential=essential)
        if not chat.may_ask:
            self._session.withhold_question()
        self._usage = RunUsage()
        self._limits: UsageLimits = TurnAllowance(request_limit=model_usage.MAX_REQUESTS)
        self._progress = LoopProgress()
        self._earlier: list[ModelMessage] = []
        """Messages of this turn from before its tools were reduced."""
        self._emit: EventSink = lambda _: None
        """Where events go; nowhere, before the turn has a listener."""
        self._answer: CheckedAnswer | None = None
        self._notes: tuple[str, ...] = ()
        self._tool_notices: tuple[str, ...] = ()
        self.state: TurnState = "failed"
        """How the turn ended; *failed* until it has."""

    async def run(self, emit: EventSink) -> None:
        """Answer the message and report events as they happen; `Done` comes last.

        A cancelled task reports no `Done`; `done` returns it afterwards, and `messages` what to continue with.

        Args:
            emit: Receives each event at once.
        """
        self._emit = emit
        for text in self.message.notices:
            self._notice(text)
        # Not as the turn's own notices are: once an answer is there, nobody needs to know of them.
        model = model_replies.report_retries(self._chat.model, lambda text: emit(Notice(text=text)))
        self._chat = replace(self._chat, model=model)
        try:
            async with self._chat.model:
                await self._loop()
                # Say that a limit of the cost held nothing back, where what was used has no known price.
                if self._chat.caps.cents and self._usage.requests and self._usage.cost is None:
                    self._notice(NO_PRICE.format(model=self._chat.name, cents=self._chat.caps.cents))
                await self._check_answer()
        except asyncio.CancelledError:
            self.state = "cancelled"
            # Cancelled or not, a write that has started is finished, so that its result is in the history.
            await self._session.finish_writes()
            loop.tell_pending(self._session, emit)
            self._emit_debug()
            raise
        except (*model_usage.MODEL_ERRORS, KnapError) as error:
            failure = model_usage.convert_model_error(error, self._chat.name)
            self.state = "limit" if failure.code == "budget_spent" else "failed"
            emit(Error.of(failure))
        self._emit_debug()
        emit(model_usage.make_usage_event(self.spent))
        emit(self.done())

    @property
    def spent(self) -> tasks.ModelSpend:
        """Return what was used so far."""
        return model_usage.read_usage(self._usage)

    @property
    def messages(self) -> list[ModelMessage]:
        """Return the messages to add to the conversation, which can continue however the turn ended."""
        new_messages = [*self._earlier, *self._progress.new_messages]
        if not new_messages:
            new_messages = [ModelRequest(parts=[UserPromptPart(content=self.message.text)])]
        complete = add_missing_answers(new_messages, self._session.answers)
        finished = replace_answer(drop_open_calls(complete), self._text())
        return stub_tool_answers(finished, self._session.answers)

    def done(self) -> Done:
        """Return the turn's outcome so far."""
        checked = self._answer or citations.drop_failed_citations(
            citations.check_citations(self._context, prompting.sanitize_answer(self._text())[0])
        )
        return Done(
            state=self.state,
            answer=checked.answer,
            citations=[one.as_dict() for one in checked.citations],
            removed=[one.as_dict() for one in checked.failures],
            tools=list(self._session.usage_rows),
            proposals=[*self._session.proposals],
            changes=[*self._session.changes],
            usage=self.spent.as_dict(),
            model=self._chat.name,
            session_id=self.message.run,
            notes=[*(self._notes or self._tool_notices)],
        )

    async def _loop(self) -> None:
        chat, message = self._chat, self.message
        system = await asyncio.to_thread(
            prompting.write_system_prompt,
            chat.instructions or chat.prompts.load("chat"),
            self._context,
            chat.now(),
            active_file=message.active_file,
        )
        if chat.meter:
            self._limits = chat.meter.allow(message.run)
        if chat.caps.tokens:
            allowed = self._limits.total_tokens_limit
            most = chat.caps.tokens if allowed is None else min(allowed, chat.caps.tokens)
            self._limits = replace(self._limits, total_tokens_limit=most)
        if chat.caps.cents:
            left, own = self._limits.cost_limit, Decimal(chat.caps.cents) / 100
            self._limits = replace(self._limits, cost_limit=own if left is None else min(left, own))
        if chat.read_context and not self._session.brief:
            context_tokens = await asyncio.to_thread(chat.read_context)
            if 0 < context_tokens < SMALL_CONTEXT:
                chat.small_models.add(chat.name)
                self._session.show_essential_tools()
        task = LoopTask(
            model=chat.model,
            system="\n\n".join(filter(None, (system, await self._find_beforehand()))),
            prompt=message.text,
            session=self._session,
            rounds=chat.caps.rounds,
            calls=chat.caps.calls,
            timeout_s=chat.caps.minutes * MINUTE_S,
            is_done=lambda: self._session.question is not None,
            uncounted=toolset.UNCOUNTED_TOOLS,
            streams_text=True,
            history=message.history,
            limits=self._limits,
            capabilities=[Instrumentation(settings=_TRACED)] if chat.telemetry else [],
        )
        try:
            await self._converse(task)
        except model_usage.MODEL_ERRORS as error:
            if self._session.brief or not model_usage.is_too_long(error):
                raise
            self._reduce_tools()
            # What was asked and called already isn't asked or called again.
            prompt = None if self._earlier else message.text
            await self._converse(replace(task, prompt=prompt, history=[*message.history, *self._earlier]))

    async def _find_beforehand(self) -> str:
        """Rewrite the message into search queries where that is wanted, and return what they find, for the prompt."""
        chat = self._chat
        if chat.rewriter is None:
            return ""
        by = StageAgent(
            stage=loop.REWRITE, model=chat.model, prompt="", settings=None, limits=self._limits, name=chat.name
        )
        parts = (part for one in reversed(self.message.history) if isinstance(one, ModelRequest) for part in one.parts)
        last = next((str(part.content) for part in parts if isinstance(part, UserPromptPart)), "")
        question = Question(text=self.message.text, earlier=last)
        answer = await loop.find_by_rewriting(chat.rewriter, by, self._usage, question, self._context, self._emit)
        return loop.describe(answer, self._session.results.mark)

    async def _converse(self, task: LoopTask) -> None:
        ended = await loop.run_loop(task, self._progress, self._usage, self._emit)
        if ended != "said":
            self.state = "asked" if ended == "done" else "limit"
        if ended == "timeout":
            self._notice(TIME_IS_UP)
        elif ended == "calls":
            self._notice(CALLS_ARE_UP.format(limit=self._chat.caps.calls))
        elif ended == "rounds":
            self._notice(ROUNDS_ARE_UP.format(limit=self._chat.caps.rounds))

    def _notice(self, text: str) -> None:
        self._tool_notices = (*self._tool_notices, text)
        self._emit(Notice(text=text))

    def _reduce_tools(self) -> None:
        """Offer the essential tools alone, after the model's server refused a request for its length."""
        self._chat.small_models.add(self._chat.name)
        self._session.show_essential_tools()
        self._earlier = self._progress.new_messages
        while self._earlier and isinstance(self._earlier[-1], ModelResponse):  # the library's, for the refused request
            self._earlier.pop()
        self._progress.run = None
        self._notice(TOOLS_REDUCED)

    def _emit_debug(self) -> None:
        """Report the conversation as the model had it, where that is asked for."""
        if self.message.debug and self._progress.run is not None:
            text = model_replies.format_conversation(self._progress.run.all_messages())
            self._emit(Debug(phase="chat", title="conversation", text=text))

    async def _check_answer(self) -> None:
        """Check the answer's citations, and have failing ones repaired once."""
        if self.state == "failed":
            self.state = "complete"
        text, left_out = prompting.sanitize_answer(self._text())
        if self.state == "complete" and not text.strip():
            raise ModelFailure(f"{self._chat.name}: its reply is empty", code="model_reply", hint=_RETRY_HINT)
        replies = [one for one in self._progress.new_messages if isinstance(one, ModelResponse)]
        self._notes = (
            *self._tool_notices,
            *left_out,
            *(model_replies.truncation_notices(replies[-1]) if replies else ()),
        )
        checked = await asyncio.to_thread(citations.check_citations, self._context, text)
        if checked.failures and self.state == "complete":
            chat = self._chat
            repair = chat.prompts.load(REPAIR.prompt)
            repairer = StageAgent(stage=REPAIR, model=chat.model, prompt=repair, settings=None, limits=self._limits)
            checked = await citations.repair_citations(checked, self._context, repairer, self._usage)
        self._answer = citations.drop_failed_citations(checked)

    def _text(self) -> str:
        """Return the current answer: the last reply with text."""
        if self._answer is not None:
            return self._answer.answer
        answer = next((one for one in reversed(self._progress.replies) if one.strip()), "")
        if self.state == "asked" and self._session.question and not answer:
            answer = self._session.question.question
        answer = model_replies.join_surrogates(answer)
        return answer + LIMIT_REACHED if self._progress.is_capped else answer
