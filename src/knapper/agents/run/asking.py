"""Ask a run's model, within the run's budget, and count what that costs, once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import pydantic_ai
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResult, ModelRetry, PromptedOutput
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import cuts, failures, usage
from knapper.agents.run import budget as budgets
from knapper.agents.run.budget import Budget, Stage
from knapper.agents.usage import Meter
from knapper.codemode.model import ModelSpend
from knapper.errors import BadInput

Shape = TypeVar("Shape", bound=BaseModel)
Said = TypeVar("Said")
_SCHEMA_TOKENS: Final = 500
"""What describing a shape adds to a request."""
_TRIES: Final = 2
"""Requests for a reply in JSON, the repair among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Hold what a model wrote."""

    text: str
    notes: tuple[str, ...] = ()
    """Whether it isn't whole."""


@dataclass(slots=True)
class Account:
    """Add up what one node costs."""

    spent: ModelSpend = field(default_factory=ModelSpend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Hold the model of a run."""

    model: Model
    name: str
    run: str
    budget: Budget
    meter: Meter | None = None

    async def text(self, instructions: str, prompt: str, account: Account, stage: Stage, *, most: int) -> Text:
        """Ask for a text.

        Args:
            instructions: What holds for every such request.
            prompt: This one.
            account: What it costs is added here, however it ends.
            stage: What it is for.
            most: Tokens of the reply at most.

        Raises:
            OutOfBudget: Nothing is left for it.
            KnapError: The model can't answer.
        """
        agent = Agent(self.model, instructions=instructions, retries=0)
        done = await self._ask(agent, (instructions, prompt), account, stage, most=most)
        return Text(text=done.output, notes=cuts.of(done.response))

    async def shape(
        self,
        kind: type[Shape],
        ask: tuple[str, str],
        account: Account,
        *,
        check: Callable[[Shape], object],
        most: int,
    ) -> Shape:
        """Ask for JSON of a shape; a reply that isn't, or that *check* refuses, is sent back once with the reason.

        Args:
            kind: The shape.
            ask: The instructions, and the prompt.
            account: What it costs is added here.
            check: Raises `BadInput` for what can't be used.
            most: Tokens of the reply at most.

        Raises:
            OutOfBudget: Nothing is left for it.
            KnapError: The model can't answer, or not in that shape.
        """
        instructions, _ = ask
        agent = Agent(self.model, output_type=PromptedOutput(kind), instructions=instructions, retries=_TRIES - 1)

        def checked(found: Shape) -> Shape:
            try:
                _ = check(found)
            except BadInput as error:
                raise ModelRetry(f"{error.message}. {error.hint}") from error
            return found

        _ = agent.output_validator(checked)
        return (await self._ask(agent, ask, account, "work", most=most + _SCHEMA_TOKENS)).output

    async def _ask(
        self, agent: Agent[object, Said], ask: tuple[str, str], account: Account, stage: Stage, *, most: int
    ) -> AgentRunResult[Said]:
        pydantic_ai.BANNER_ENABLED = False  # the library greets on the error stream, which is our person's
        used = RunUsage()
        limits = self.allowed()
        settings = ModelSettings(max_tokens=most)
        with self.budget.hold(budgets.estimate(*ask) + most, stage):
            try:
                return await agent.run(ask[1], usage=used, usage_limits=limits, model_settings=settings)
            except failures.CAUGHT as error:
                raise failures.of(error, self.name) from error
            finally:
                self.count(used, account)

    def allowed(self) -> UsageLimits:
        """Tell what the owner's limits leave for a request.

        Raises:
            RefusedError: One is reached already (code ``budget_spent``).
        """
        return self.meter.allow(self.run) if self.meter else UsageLimits(request_limit=usage.MAX_REQUESTS)

    def count(self, used: RunUsage, account: Account) -> None:
        """Count what requests used: for the node, the run and the owner's limits."""
        spent = usage.of(used)
        account.spent += spent
        self.budget.add(spent)
        if self.meter:
            self.meter.record(self.run, self.name, spent)
