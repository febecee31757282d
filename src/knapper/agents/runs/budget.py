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
"""Work on the nodes; the run's own answer, which may also use the reserved share."""
CHARS_PER_TOKEN: Final = 3.5
"""A low estimate for the text that models read."""


class OutOfBudget(RefusedError):
    """A limit of the run that is reached."""

    code = "budget_spent"


class Budget:
    """The usage of a run and its limits; for one event loop."""

    def __init__(
        self,
        limits: RunLimits,
        spent: ModelSpend = ModelSpend(),  # noqa: B008 - it is frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the usage so far.

        Args:
            limits: The run's limits.
            spent: The earlier usage of a run that is resumed.
            clock: Returns seconds.
        """
        self.limits = limits
        self.spent = spent
        self._reserved = 0
        self._clock = clock
        self._begun = clock()

    def seconds_left(self, stage: Stage) -> float:
        """Return the seconds that a stage has left, 0 at least."""
        allowed = self.limits.seconds * self._share(stage)
        return max(0.0, self._begun + allowed - self._clock())

    def tokens_left(self, stage: Stage) -> int | None:
        """Return the unreserved tokens that a stage has left; None for no limit."""
        if not self.limits.tokens:
            return None
        allowed = int(self.limits.tokens * self._share(stage))
        return max(0, allowed - self.spent.tokens - self._reserved)

    @contextmanager
    def reserve(self, tokens: int, stage: Stage) -> Generator[None]:
        """Reserve tokens while a request is made, so that parallel nodes don't use the same ones.

        Args:
            tokens: The most that the request may use.
            stage: The stage whose budget is used.

        Raises:
            OutOfBudget: The tokens, the cost or the time are used up.
        """
        self.check(tokens, stage)
        self._reserved += tokens
        try:
            yield
        finally:
            self._reserved -= tokens

    def check(self, tokens: int, stage: Stage) -> None:
        """Check that a request is within the budget.

        Raises:
            OutOfBudget: It isn't.
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
        """Add the usage of a request."""
        self.spent += spent

    def _cost(self, tokens: int) -> float:
        """Return an estimate of the total cost in cents after a request, by the average price of the tokens so far."""
        spent_cents = float(self.spent.cost_usd or 0) * 100
        cents_per_token = spent_cents / self.spent.tokens if self.spent.tokens else 0.0
        return spent_cents + cents_per_token * (tokens + self._reserved)

    def _share(self, stage: Stage) -> float:
        return 1.0 if stage == "answer" else 1.0 - self.limits.kept


def bound_limits(limits: RunLimits, meter: Meter | None, run: str) -> RunLimits:
    """Lower a run's token limit to what the owner's other limits leave, so that a share of that is reserved.

    Args:
        limits: The run's own limits.
        meter: The owner's other limits; None for none.
        run: The run's id.
    """
    if meter is None:
        return limits
    try:
        tokens_left = meter.allow(run).total_tokens_limit
    except RefusedError:
        # The first request will raise the error, with its hint.
        return limits
    if tokens_left is None:
        return limits
    allowed = tokens_left + meter.of_run(run).tokens
    return replace(limits, tokens=min(limits.tokens or allowed, allowed))


def estimate_tokens(*texts: str) -> int:
    """Return a high estimate of the tokens of texts."""
    return int(sum(len(text.encode()) for text in texts) / CHARS_PER_TOKEN) + 1


ShapeT = TypeVar("ShapeT", bound=BaseModel)
OutputT = TypeVar("OutputT")
_SCHEMA_TOKENS: Final = 500
"""Tokens that the description of a JSON shape adds to a request."""
_MAX_TRIES: Final = 2
"""Requests for a reply in JSON, with the repeated one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedText:
    """A text that a model wrote."""

    text: str
    notes: tuple[str, ...] = ()
    """Notes about a cut text."""


@dataclass(slots=True)
class NodeCost:
    """The cost of one node."""

    spent: ModelSpend = field(default_factory=ModelSpend)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedModel:
    """The model of a run, with its budget."""

    model: Model
    name: str
    run: str
    budget: Budget
    meter: Meter | None = None

    async def ask_text(
        self, instructions: str, prompt: str, account: NodeCost, stage: Stage, *, max_tokens: int
    ) -> GeneratedText:
        """Ask the model for a text.

        Args:
            instructions: The instructions for requests of this kind.
            prompt: The prompt of this request.
            account: Where the cost is added, also where the request fails.
            stage: The stage whose budget is used.
            max_tokens: Maximum length of the reply.

        Raises:
            OutOfBudget: The budget is used up.
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
        """Ask the model for JSON; a reply of another shape, or that *check* refuses, is sent back once with the reason.

        Args:
            kind: The model class of the reply.
            ask: The instructions and the prompt.
            account: Where the cost is added.
            check: Raises `BadInput` for a reply that can't be used.
            max_tokens: Maximum length of the reply.

        Raises:
            OutOfBudget: The budget is used up.
            KnapError: The model can't answer in that shape.
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
        # The library prints a greeting to stderr, which belongs to the person's terminal.
        pydantic_ai.BANNER_ENABLED = False
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
        """Return the limits that the owner sets for a request.

        Raises:
            RefusedError: One of them is reached already (code ``budget_spent``).
        """
        return self.meter.allow(self.run) if self.meter else UsageLimits(request_limit=usage.MAX_REQUESTS)

    def count(self, used: RunUsage, account: NodeCost) -> None:
        """Add the usage of requests to the node, to the run and to the owner's account."""
        spent = usage.read_usage(used)
        account.spent += spent
        self.budget.add(spent)
        if self.meter:
            self.meter.record(self.run, self.name, spent)
