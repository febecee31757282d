"""Let a model do a task: read its reply, hold its edits to the rules, let it correct itself once, and propose them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import citations, cuts, defusing, failures, mending, untrusted
from knapper.agents.citations import Checked
from knapper.agents.contexts.unified import UnifiedContext
from knapper.agents.failures import ModelFailure
from knapper.agents.halves import Whole
from knapper.agents.mending import Mender
from knapper.agents.scopes import EditRules
from knapper.agents.task import blocks, edits, prior, replies, wording
from knapper.agents.task.edits import Grounds, ValidatedEdit
from knapper.agents.task.records import ChatMessage, EditFailure, EditResults, PipelineContext
from knapper.agents.task.replies import Reply
from knapper.changes.writer import Submission
from knapper.errors import BadInput, KnapError
from knapper.tools.context import Context
from knapper.vault.paths import NotePath

_LISTED: Final = 60
_DRAWN: Final = "what waits was changed, and its block in the note was drawn anew"
_REASON: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAgentConfig:
    """Hold what does tasks."""

    model: Model
    prompt: str
    """The system prompt's beginning."""
    rules: EditRules
    limits: UsageLimits
    repair: str = ""
    """The prompt by which citations are mended; empty to leave that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAgentInput:
    """Hold a task, and all that was gathered for it."""

    task: str
    context: UnifiedContext
    current: str = ""
    """The open note; empty for none."""
    chat_history: Sequence[ChatMessage] = ()
    pipeline: PipelineContext = field(default_factory=PipelineContext)
    mark: str = ""
    """That of the turn's blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAgentResult:
    """Hold what a task came to."""

    success: bool
    summary: str
    """The answer, or what was changed and why; its citations hold."""
    checked: Checked
    edits: tuple[ValidatedEdit, ...] = ()
    proposal: Submission | None = None
    """What waits for the person's word; None where nothing does."""
    changed_blocks: tuple[str, ...] = ()
    """Ids of proposals whose pending blocks were changed."""
    opened: tuple[NotePath, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def results(self) -> EditResults:
        """Say how many edits could be made, and why others couldn't."""
        failures = tuple(
            EditFailure(
                file=one.instruction.file,
                error=one.error.message,
                code=one.error.code,
                position=one.instruction.position,
            )
            for one in self.edits
            if one.error is not None
        )
        return EditResults(success=len(self.edits) - len(failures), failures=failures)


class TaskAgent:
    """Do one task; made anew for each."""

    def __init__(self, config: TaskAgentConfig, context: Context, given: TaskAgentInput) -> None:
        """Take the task.

        Args:
            config: What does it.
            context: The vault, as the agent sees it.
            given: The task, and all that was gathered for it.
        """
        self._config = config
        self._given = given
        self._context = context
        self._mark = given.mark or untrusted.new_mark()
        self.usage = RunUsage()
        self.messages: list[ModelMessage] = []
        """What was said so far."""

    async def run(self, tell: Callable[[str], None]) -> TaskAgentResult:
        """Do it.

        Args:
            tell: Hears in words how far it is.
        """
        pydantic_ai.BANNER_ENABLED = False  # the library greets on the error stream, which is our person's
        given = self._given
        grounds = await asyncio.to_thread(self._grounds)
        agent = Agent(Whole(self._config.model), instructions=self._system(grounds), retries=0)
        history = prior.messages(given.chat_history)
        tell("the task agent is at work")
        said, history = await self._ask(agent, self._prompt(), history)
        cut = self._cut()
        reply, checked = await asyncio.to_thread(self._read, grounds, said)
        complaint = _complaint(reply, checked)
        if complaint:
            tell("some edits can't be made: the model may correct itself once")
            try:
                again, _ = await self._ask(agent, complaint, history)
            except failures.CAUGHT:
                if isinstance(reply, KnapError):
                    raise
                tell("it couldn't be asked again: what can be made of its first reply stands")
            else:
                second, rechecked = await asyncio.to_thread(self._read, grounds, again)
                if not isinstance(second, KnapError):
                    reply, checked, cut = second, rechecked, self._cut()
        if isinstance(reply, KnapError):  # its hint is for the model, which has had its second chance
            hint = "try again, ask for less, or take another model"
            raise ModelFailure(f"the model's answer can't be used: {reply.message}", code=reply.code, hint=hint)
        done = await self._finish(grounds, reply, checked)
        return replace(done, notices=(*done.notices, *cut))

    async def _ask(
        self, agent: Agent[None, str], prompt: str, history: Sequence[ModelMessage]
    ) -> tuple[str, list[ModelMessage]]:
        done = await agent.run(
            prompt,
            message_history=list(history),
            usage=self.usage,
            usage_limits=self._config.limits,
            model_settings=_settings(self._config.model),
        )
        self.messages = done.all_messages()
        return done.output, self.messages

    def _cut(self) -> tuple[str, ...]:
        last = self.messages[-1] if self.messages else None
        return cuts.of(last) if isinstance(last, ModelResponse) else ()

    def _grounds(self) -> Grounds:
        given = self._given
        held = edits.narrowed(self._context, self._config.rules, given.current, given.context.paths)
        known = {one.note.path: one.note.hash for one in given.context.notes}
        whole = {given.context.cut: given.context.whole_lines} if given.context.cut else {}
        return Grounds(context=held, rules=self._config.rules, known=known, whole_lines=whole)

    def _system(self, grounds: Grounds) -> str:
        rules = self._config.rules
        asked = grounds.context.asked
        allowed = sorted(asked.scope.paths or ()) if asked else []
        listed = [untrusted.escape(str(path)) for path in allowed[:_LISTED]]
        current = untrusted.escape(self._given.current) if self._given.current else ""
        parts = [
            self._config.prompt.strip(),
            wording.rules(rules, listed, current),
            prior.section(self._given.pipeline),
        ]
        return "\n\n".join(filter(None, parts))

    def _prompt(self) -> str:
        given = self._given
        found = prior.sources(given.pipeline.web, self._mark)
        notes = given.context.text or "(No notes were given.)"
        parts = ["The notes:", notes, *(["From the web:", found] if found else []), f"The task: {given.task}"]
        return "\n\n".join(parts)

    def _read(self, grounds: Grounds, said: str) -> tuple[Reply | KnapError, list[ValidatedEdit]]:
        try:
            reply = replies.parse(said)
        except BadInput as error:
            return error, []
        return reply, edits.check(grounds, blocks.apart(grounds, reply.edits)[0])

    async def _finish(self, grounds: Grounds, reply: Reply, checked: list[ValidatedEdit]) -> TaskAgentResult:
        _, in_blocks = await asyncio.to_thread(blocks.apart, grounds, reply.edits)
        changed, made_in_blocks = await asyncio.to_thread(blocks.change, grounds, in_blocks)
        text, left_out = defusing.defused(reply.summary)
        proposal, checked, notices = await asyncio.to_thread(_proposed, grounds, checked, text or self._given.task)
        answer = await asyncio.to_thread(citations.check, self._context, text)
        if answer.failures and self._config.repair:
            config = self._config
            mender = Mender(model=config.model, prompt=config.repair, usage=self.usage, limits=config.limits)
            answer = await mending.mend(answer, self._context, mender)
        answer = mending.settled(answer)
        return TaskAgentResult(
            success=True,
            summary=answer.answer,
            checked=answer,
            edits=(*checked, *made_in_blocks),
            proposal=proposal,
            changed_blocks=changed,
            opened=tuple(edits.opened(checked)),
            notices=(*notices, *left_out, *((_DRAWN,) if changed else ())),
        )


def _proposed(
    grounds: Grounds, checked: list[ValidatedEdit], reason: str
) -> tuple[Submission | None, list[ValidatedEdit], tuple[str, ...]]:
    """Propose what can be made; where a note changed just now, its edits are told as failures."""
    try:
        done = edits.propose(grounds, checked, " ".join(reason.split())[:_REASON])
    except KnapError:
        again = edits.check(grounds, [one.instruction for one in checked])
        try:
            done = edits.propose(grounds, again, " ".join(reason.split())[:_REASON])
        except KnapError as error:
            failed = [
                ValidatedEdit(instruction=one.instruction, path=one.path, kind=one.kind, error=error) for one in again
            ]
            return None, failed, ()
        checked = again
    return done, checked, done.notices if done else ()


def _complaint(reply: Reply | KnapError, checked: Sequence[ValidatedEdit]) -> str:
    """Say what is wrong with a reply; empty where nothing is."""
    if isinstance(reply, KnapError):
        return f"Your reply can't be used: {reply.message}. {reply.hint}".strip()
    failed = [one for one in checked if one.error is not None]
    if not failed:
        return ""
    lines = [f"- {one.instruction.file} {one.instruction.position}: {_text(one.error)}" for one in failed]
    told = untrusted.plain("\n".join(lines))
    ask = (
        "Nothing was kept yet. Reply once more with the whole JSON object: all edits that you want, those that were "
        "right among them, with line numbers as before. Leave out what is not allowed."
    )
    return f"These edits can't be made:\n\n{told}\n\n{ask}"


def _text(error: KnapError | None) -> str:
    if error is None:
        return ""
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _settings(model: Model) -> ModelSettings | None:
    """Ask for JSON where the provider is known to hold its models to it; other servers may refuse the very wish."""
    if not isinstance(model, FallbackModel) and _knows_json(model):
        return ModelSettings(extra_body={"response_format": {"type": "json_object"}})
    return None


def _knows_json(model: Model) -> bool:
    place = model.base_url or ""
    return model.system in {"ollama", "fireworks"} or place.startswith("https://api.openai.com/")
