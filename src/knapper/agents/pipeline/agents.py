"""Hold what works on tasks, and make each agent of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from knapper.agents import usage
from knapper.agents.pipeline.orchestrator import Orchestrator, OrchestratorSettings
from knapper.agents.prompting import Prompts
from knapper.agents.research.records import ResearchSettings
from knapper.agents.research.research import Researcher
from knapper.agents.scopes import EditRules
from knapper.agents.scout.records import ScoutSettings
from knapper.agents.scout.scout import Scout
from knapper.agents.task.task import TaskAgentConfig
from knapper.codemode.model import ModelSpend
from knapper.tools.registry import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Hold what works on tasks."""

    model: Model
    name: str
    """The model's, as the person wrote it."""
    rows: Sequence[ToolSpec]
    prompts: Prompts
    scout: ScoutSettings
    web: ResearchSettings
    orchestrator: OrchestratorSettings
    scout_model: Model | None = None
    """None for the same."""
    scout_name: str = ""
    limits: UsageLimits | None = None
    """What the owner allows the run."""

    @property
    def models(self) -> list[Model]:
        """Give each model once."""
        looking = self.scout_model
        return [self.model] if looking is None or looking is self.model else [self.model, looking]

    def after(self, spent: ModelSpend) -> Self:
        """Give what works on the rest of a run, within what the owner's limits leave by then.

        Raises:
            RefusedError: Nothing (code ``budget_spent``).
        """
        return replace(self, limits=usage.left(self._allowed(), spent))

    def make_orchestrator(self) -> Orchestrator:
        """Make what says which agent is next."""
        return Orchestrator(
            model=self.model,
            prompt=self.prompts.load("orchestrator"),
            settings=self.orchestrator,
            limits=self._allowed(),
        )

    def make_scout(self) -> Scout:
        """Make what looks for notes."""
        return Scout(
            model=self.scout_model or self.model,
            prompt=self.prompts.load("scout"),
            rows={row.name: row for row in self.rows},
            settings=self.scout,
            limits=self._allowed(),
        )

    def make_researcher(self) -> Researcher:
        """Make what searches the web."""
        return Researcher(model=self.model, prompt=self.prompts.load("web"), settings=self.web, limits=self._allowed())

    def configure_task(self, rules: EditRules) -> TaskAgentConfig:
        """Give what the agent that does the task works with.

        Args:
            rules: What it may edit.
        """
        return TaskAgentConfig(
            model=self.model,
            prompt=self.prompts.load("task"),
            rules=rules,
            limits=self._allowed(),
            repair=self.prompts.load("repair"),
        )

    def _allowed(self) -> UsageLimits:
        return self.limits or UsageLimits(request_limit=usage.MAX_REQUESTS)
