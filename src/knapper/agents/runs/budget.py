"""Ask a run's model within the run's budget, and count the cost once."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

import pydantic_ai
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResult, ModelRetry, PromptedOutput
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents.model import replies, usage
from knapper.agents.model.usage import Meter
from knapper.agents.runs.model import RunLimits
from knapper.codemode.model import ModelSpend
from knapper.errors import BadInput, RefusedError

Stage = Literal["work", "answer"]
"""Work on the nodes; the run's own answer, which may use what was kept for it."""
CHARS_PER_TOKEN: Final = 3.5
"""Of text that models read, at the least."""


class OutOfBudget(RefusedError):
    """Say which limit of the run is reached."""

    code = "budget_spent"


class Budget:
    """Count what a run uses; for one event loop."""

    def __init__(
        self,
        limits: RunLimits,
        spent: ModelSpend = ModelSpend(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            limits: The run's.
            spent: What it used before, if it goes on.
            clock: Tells the seconds.
        """
        self.limits = limits
        self.spent = spent
        self._reserved = 0
        self._clock = clock
        self._begun = clock()

    def seconds_left(self, stage: Stage) -> float:
        """Return how much time a stage has; never below 0."""
        allowed = self.limits.seconds * self._share(stage)
        return max(0.0, self._begun + allowed - self._clock())

    def tokens_left(self, stage: Stage) -> int | None:
        """Return how many tokens a stage has that nobody has reserved; None for no limit."""
        if not self.limits.tokens:
            return None
        allowed = int(self.limits.tokens * self._share(stage))
        return max(0, allowed - self.spent.tokens - self._reserved)

    @contextmanager
    def reserve(self, tokens: int, stage: Stage) -> Generator[None]:
        """Reserve tokens for a request while it is made, so that nodes side by side don't use the same ones.

        Args:
            tokens: That it may use at most.
            stage: What it is for.

        Raises:
            OutOfBudget: They aren't there, or the cost or the time is used up.
        """
        self.check(tokens, stage)
        self._reserved += tokens
        try:
            yield
        finally:
            self._reserved -= tokens

    def check(self, tokens: int, stage: Stage) -> None:
        """Refuse a request for which nothing is left.

        Raises:
            OutOfBudget: That is so.
        """
        if self.seconds_left(stage) <= 0:
            raise OutOfBudget(f"the time of {self.limits.seconds:g} s is used up", hint="give the run more time")
        tokens_left = self.tokens_left(stage)
        if tokens_left is not None and tokens > tokens_left:
            raise OutOfBudget(
                f"the limit of {self.limits.tokens:,} tokens is reached: {self.spent.tokens:,} are used",
                hint="give the run more tokens",
            )
        if self.limits.cents and self._cost(tokens) > self.limits.cents * self._share(stage):
            raise OutOfBudget(
                f"the limit of {self.limits.cents} cents is reached",
                hint="let the run cost more, or take another model",
            )

    def add(self, spent: ModelSpend) -> None:
        """Count what a request used, once."""
        self.spent += spent

    def _cost(self, tokens: int) -> float:
        """Estimate, in cents, what will be spent after a request, by what tokens cost so far."""
        spent_cents = float(self.spent.cost_usd or 0) * 100
        cents_per_token = spent_cents / self.spent.tokens if self.spent.tokens else 0.0
        return spent_cents + cents_per_token * (tokens + self._reserved)

    def _share(self, stage: Stage) -> float:
        return 1.0 if stage == "answer" else 1.0 - self.limits.kept


def bound_limits(limits: RunLimits, meter: Meter | None, run: str) -> RunLimits:
    """Lower a run's limit of tokens to what the owner's other limits leave, so that a share is kept of that, too.

    Args:
        limits: The run's own.
        meter: Knows the others; None for none.
        run: The run's id.
    """
    if meter is None:
        return limits
    try:
        tokens_left = meter.allow(run).total_tokens_limit
    except RefusedError:
        return limits  # the first request says so
    if tokens_left is None:
        return limits
    allowed = tokens_left + meter.of_run(run).tokens
    return replace(limits, tokens=min(limits.tokens or allowed, allowed))


def estimate_tokens(*texts: str) -> int:
    """Estimate how many tokens texts are, rather too many than too few."""
    return int(sum(len(text.encode()) for text in texts) / CHARS_PER_TOKEN) + 1


ShapeT = TypeVar("ShapeT", bound=BaseModel)
OutputT = TypeVar("OutputT")
_SCHEMA_TOKENS: Final = 500
"""What describing a shape adds to a request."""
_MAX_TRIES: Final = 2
"""Requests for a reply in JSON, the repair among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedText:
    """What a model wrote."""

    text: str
    notes: tuple[str, ...] = ()
    """Whether it isn't whole."""


@dataclass(slots=True)
class NodeCost:
    """Add up what one node costs."""

    spent: ModelSpend = field(default_factory=ModelSpend)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedModel:
    """The model of a run."""

    model: Model
    name: str
    run: str
    budget: Budget
    meter: Meter | None = None

    async def ask_text(
        self, instructions: str, prompt: str, account: NodeCost, stage: Stage, *, max_tokens: int
    ) -> GeneratedText:
        """Ask for a text.

        Args:
            instructions: What holds for every such request.
            prompt: This one.
            account: What it costs is added here, however it ends.
            stage: What it is for.
            max_tokens: Tokens of the reply at most.

        Raises:
            OutOfBudget: Nothing is left for it.
            KnapError: The model can't answer.
        """
        agent = Agent(self.model, instructions=instructions, retries=0)
        result = await self._ask(agent, (instructions, prompt), account, stage, max_tokens=max_tokens)
        return GeneratedText(text=result.output, notes=replies.truncation_notices(result.response))

    async def ask_json(
        self,
        kind: type[ShapeT],
        ask: tuple[str, str],
        account: NodeCost,
        *,
        check: Callable[[ShapeT], object],
        max_tokens: int,
    ) -> ShapeT:
        """Ask for JSON of a shape; a reply that isn't, or that *check* refuses, is sent back once with the reason.

        Args:
            kind: The shape.
            ask: The instructions, and the prompt.
            account: What it costs is added here.
            check: Raises `BadInput` for what can't be used.
            max_tokens: Tokens of the reply at most.

        Raises:
            OutOfBudget: Nothing is left for it.
            KnapError: The model can't answer, or not in that shape.
        """
        instructions, _ = ask
        agent = Agent(self.model, output_type=PromptedOutput(kind), instructions=instructions, retries=_MAX_TRIES - 1)

        def checked(reply: ShapeT) -> ShapeT:
            try:
                _ = check(reply)
            except BadInput as error:
                raise ModelRetry(f"{error.message}. {error.hint}") from error
            return reply

        _ = agent.output_validator(checked)
        return (await self._ask(agent, ask, account, "work", max_tokens=max_tokens + _SCHEMA_TOKENS)).output

    async def _ask(
        self, agent: Agent[object, OutputT], ask: tuple[str, str], account: NodeCost, stage: Stage, *, max_tokens: int
    ) -> AgentRunResult[OutputT]:
        pydantic_ai.BANNER_ENABLED = False  # the library greets on the error stream, which is our person's
        used = RunUsage()
        limits = self.usage_limits()
        settings = ModelSettings(max_tokens=max_tokens)
        with self.budget.reserve(estimate_tokens(*ask) + max_tokens, stage):
            try:
                return await agent.run(ask[1], usage=used, usage_limits=limits, model_settings=settings)
            except usage.MODEL_ERRORS as error:
                raise usage.convert_model_error(error, self.name) from error
            finally:
                self.count(used, account)

    def usage_limits(self) -> UsageLimits:
        """Return what the owner's limits leave for a request.

        Raises:
            RefusedError: One is reached already (code ``budget_spent``).
        """
        return self.meter.allow(self.run) if self.meter else UsageLimits(request_limit=usage.MAX_REQUESTS)

    def count(self, used: RunUsage, account: NodeCost) -> None:
        """Count what requests used: for the node, the run and the owner's limits."""
        spent = usage.read_usage(used)
        account.spent += spent
        self.budget.add(spent)
        if self.meter:
            self.meter.record(self.run, self.name, spent)
