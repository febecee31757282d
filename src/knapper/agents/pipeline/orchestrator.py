"""Choose the next agent of a pipeline, and configure each agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

import json_repair
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import loop, prompting
from knapper.agents.chat.turn import ChatConfig
from knapper.agents.loop import StageAgent, StageSpec, TextTask
from knapper.agents.model import replies
from knapper.agents.model import usage as model_usage
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.records import (
    Phase,
    PipelineContext,
    ResearchSettings,
    ScoutSettings,
    TaskLimits,
    check_range,
)
from knapper.agents.pipeline.scout import SCOUT
from knapper.agents.pipeline.store import AgentToggles
from knapper.codemode.tasks import ModelSpend
from knapper.jsontypes import is_object

SettingsT = TypeVar("SettingsT")
STEP_RANGE: Final = (1, 8)
_PHASES_BY_NAME: Final[Mapping[str, Phase]] = {"scout": "scout", "web": "web", "task": "task"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorSettings:
    """Limits for gathering material before the task.

    Raises:
        BadInput: A number is out of its range.
    """

    steps: int = 4
    """Maximum number of agents before the task, 1 to 8."""
    tokens: int = 0
    """Tokens after which the task is carried out with what was gathered; 0 for no limit."""

    def __post_init__(self) -> None:
        """Check the range."""
        check_range("steps", self.steps, STEP_RANGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStep:
    """A step of the pipeline: the agent, and what it works on."""

    phase: Phase
    focus: str = ""
    """What it should look for; empty for the whole task."""
    reason: str = ""


ORCHESTRATOR: Final = StageSpec(prompt="orchestrator")
"""Chooses the next agent."""


async def choose_step(
    agent: StageAgent[OrchestratorSettings],
    request: TaskRequest,
    done: Sequence[PipelineStep],
    findings: PipelineContext,
    usage: RunUsage,
) -> PipelineStep:
    """Choose the next step; where the model's reply can't be used, the default step follows.

    Args:
        agent: Who chooses.
        request: The person's task, and the agents that are switched on.
        done: The earlier steps.
        findings: Their findings.
        usage: Where the cost is added.
    """
    settings, toggles = agent.settings, request.toggles
    is_spent = 0 < settings.tokens <= findings.token_accounting.total_tokens
    if len(done) >= settings.steps or is_spent:
        return PipelineStep(phase="task", reason="the budget for gathering is used up")
    switched_on = [name for name in _PHASES_BY_NAME if name == "task" or toggles.as_dict()[name]]
    worked = "; ".join(f"{step.phase} ({step.focus or 'the task'})" for step in done) or "none yet"
    parts = [
        f"The task: {request.task}",
        f"Switched on: {', '.join(switched_on)}",
        f"Worked already: {prompting.escape_plain(worked)}",
    ]
    if done:
        so_far = prompting.escape(findings.as_dict())[:8_000]
        parts.append(prompting.enclose("found so far", so_far, prompting.new_mark()))
    try:
        written = await agent.ask(TextTask(prompt="\n\n".join(parts), output=str, read=loop.accept), usage)
    except model_usage.MODEL_ERRORS:
        return default_step(toggles, done)
    return _read_step(written.reply, toggles, done) or default_step(toggles, done)


def default_step(toggles: AgentToggles, done: Sequence[PipelineStep] = ()) -> PipelineStep:
    """Return the default step: the agents that are switched on in order, the scout first and the task last."""
    worked = {step.phase for step in done}
    if toggles.scout and "scout" not in worked:
        return PipelineStep(phase="scout")
    if toggles.web and "web" not in worked:
        return PipelineStep(phase="web")
    return PipelineStep(phase="task")


def _read_step(text: str, toggles: AgentToggles, done: Sequence[PipelineStep]) -> PipelineStep | None:
    try:
        decoded: object = json_repair.loads(text)
    except (ValueError, RecursionError):
        return None
    if not is_object(decoded) or replies.is_too_deep(decoded):
        return None
    row = replies.join_surrogates_in_object(decoded)
    phase = _PHASES_BY_NAME.get(str(row.get("next")))
    is_on = phase == "task" or (phase is not None and toggles.as_dict()[phase] is True)
    # Refuses an agent that isn't switched on, and one that would repeat its last step with nothing new.
    if phase is None or not is_on or (done and done[-1].phase == phase and phase != "task"):
        return None
    return PipelineStep(phase=phase, focus=str(row.get("focus", ""))[:500], reason=str(row.get("reason", ""))[:500])


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """The models, prompts and settings of all agents."""

    chat: ChatConfig
    """The model with its tools and prompts, and the account of what it uses."""
    scout: ScoutSettings = field(default_factory=ScoutSettings)
    web: ResearchSettings = field(default_factory=ResearchSettings)
    orchestrator: OrchestratorSettings = field(default_factory=OrchestratorSettings)
    scout_chat: ChatConfig | None = None
    """The same for the scout; None for the same model."""
    limits: UsageLimits | None = None
    """The limits that the owner set for the run."""

    @property
    def models(self) -> list[Model]:
        """Return the models."""
        return [self.chat.model, *([self.scout_chat.model] if self.scout_chat else [])]

    def reporting_retries(self, report: Callable[[str], None]) -> Self:
        """Return the agents with models that report when they are asked again after a temporary failure."""

        def reporting(chat: ChatConfig) -> ChatConfig:
            return replace(chat, model=replies.report_retries(chat.model, report))

        return replace(self, chat=reporting(self.chat), scout_chat=self.scout_chat and reporting(self.scout_chat))

    def after(self, spent: ModelSpend) -> Self:
        """Return the agents for the rest of a run, within what is left of the owner's limits.

        Raises:
            RefusedError: Nothing is left (code ``budget_spent``).
        """
        return replace(self, limits=model_usage.remaining_limits(self._allowed(), spent))

    def within(self, limits: TaskLimits) -> Self:
        """Return the agents with a task's own limits.

        Raises:
            BadInput: A number is out of its range.
        """
        steps, tokens = limits.orchestrator_steps, limits.orchestrator_tokens
        orchestrator = OrchestratorSettings(
            steps=self.orchestrator.steps if steps is None else steps,
            tokens=self.orchestrator.tokens if tokens is None else tokens,
        )
        return replace(
            self, scout=limits.for_scout(self.scout), web=limits.for_web(self.web), orchestrator=orchestrator
        )

    def make_scout(self) -> StageAgent[ScoutSettings]:
        """Return who explores."""
        rows, chat = {row.name: row for row in self.chat.rows}, self.scout_chat or self.chat
        return StageAgent(
            stage=SCOUT,
            model=chat.model,
            prompt=self.chat.prompts.load(SCOUT.prompt),
            rows={name: rows[name] for name in SCOUT.tools if name in self.scout.tools and name in rows},
            settings=self.scout,
            limits=self._allowed(),
            name=chat.name,
            rewriter=self.chat.rewriter,
        )

    def make_stage(self, stage: StageSpec, settings: SettingsT) -> StageAgent[SettingsT]:
        """Return who works on another stage than the scout's.

        Args:
            stage: The stage.
            settings: What it may do.
        """
        chat, prompt = self.chat, self.chat.prompts.load(stage.prompt)
        return StageAgent(stage=stage, model=chat.model, prompt=prompt, settings=settings, limits=self._allowed())

    def _allowed(self) -> UsageLimits:
        return self.limits or UsageLimits(request_limit=model_usage.MAX_REQUESTS)
