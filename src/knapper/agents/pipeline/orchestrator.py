"""Decide which agent works next, as a model says, within a budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import json_repair
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import failures, halves, repair, untrusted
from knapper.agents.halves import Whole
from knapper.agents.pipeline.records import Phase
from knapper.agents.presets import AgentToggles
from knapper.agents.scout.records import check
from knapper.agents.task.records import PipelineContext
from knapper.jsontypes import JSONValue

STEPS: Final = (1, 8)
_NAMED: Final[Mapping[str, Phase]] = {"scout": "scout", "web": "web", "task": "task"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorSettings:
    """Say how much may be gathered.

    Raises:
        BadInput: A number is out of its range.
    """

    steps: int = 4
    """Agents before the task at most, 1 to 8."""
    tokens: int = 0
    """What gathering may use before the task is done with what there is; 0 for no limit."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check("steps", self.steps, STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Say which agent works next, and on what."""

    phase: Phase
    focus: str = ""
    """What it should look for; empty for the task itself."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestrator:
    """Hold what decides."""

    model: Model
    prompt: str
    settings: OrchestratorSettings
    limits: UsageLimits

    async def next(
        self, task: str, toggles: AgentToggles, done: Sequence[Step], found: PipelineContext, usage: RunUsage
    ) -> Step:
        """Decide on the next step; where the model says nothing that can be used, the usual one follows.

        Args:
            task: The person's.
            toggles: The agents that are switched on.
            done: The steps before.
            found: What they found.
            usage: What it costs is added here.
        """
        usual = following(toggles, done)
        spent = found.token_accounting.total_tokens
        is_spent = 0 < self.settings.tokens <= spent
        if len(done) >= self.settings.steps or is_spent:
            return Step(phase="task", reason="the budget for gathering is used up")
        agent = Agent(Whole(self.model), instructions=self.prompt, retries=0)
        try:
            said = await agent.run(_prompt(task, toggles, done, found), usage=usage, usage_limits=self.limits)
        except failures.CAUGHT:
            return usual
        return _read(said.output, toggles, done) or usual


def following(toggles: AgentToggles, done: Sequence[Step] = ()) -> Step:
    """Give the usual next step: what is switched on and hasn't worked yet, the scout first and the task last."""
    worked = {step.phase for step in done}
    if toggles.scout and "scout" not in worked:
        return Step(phase="scout")
    if toggles.web and "web" not in worked:
        return Step(phase="web")
    return Step(phase="task")


def _prompt(task: str, toggles: AgentToggles, done: Sequence[Step], found: PipelineContext) -> str:
    switched_on = [name for name in _NAMED if name == "task" or toggles.as_dict()[name]]
    worked = "; ".join(f"{step.phase} ({step.focus or 'the task'})" for step in done) or "none yet"
    parts = [
        f"The task: {task}",
        f"Switched on: {', '.join(switched_on)}",
        f"Worked already: {untrusted.plain(worked)}",
    ]
    if done:
        told = untrusted.escape(found.as_dict())[:8_000]
        parts.append(untrusted.enclose("found so far", told, untrusted.new_mark()))
    return "\n\n".join(parts)


def _read(said: str, toggles: AgentToggles, done: Sequence[Step]) -> Step | None:
    try:
        found: object = json_repair.loads(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or repair.is_deep(cast("object", found)):
        return None
    row = cast("dict[str, object]", halves.whole(cast("JSONValue", found)))
    phase = _NAMED.get(str(row.get("next")))
    is_on = phase == "task" or (phase is not None and toggles.as_dict()[phase] is True)
    if phase is None or not is_on or (done and done[-1].phase == phase and phase != "task"):
        return None  # an agent that isn't switched on, or the same one once more with nothing new
    return Step(phase=phase, focus=str(row.get("focus", ""))[:500], reason=str(row.get("reason", ""))[:500])
