"""Hold a run to its limits, and keep a share of each for its answer."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Literal

from knapper.agents.run.records import Limits
from knapper.agents.usage import Meter
from knapper.codemode.model import ModelSpend
from knapper.errors import RefusedError

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
        limits: Limits,
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
        """Tell how much time a stage has; never below 0."""
        allowed = self.limits.seconds * self._share(stage)
        return max(0.0, self._begun + allowed - self._clock())

    def tokens_left(self, stage: Stage) -> int | None:
        """Tell how many tokens a stage has that nobody has reserved; None for no limit."""
        if not self.limits.tokens:
            return None
        allowed = int(self.limits.tokens * self._share(stage))
        return max(0, allowed - self.spent.tokens - self._reserved)

    @contextmanager
    def hold(self, tokens: int, stage: Stage) -> Generator[None]:
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
        left = self.tokens_left(stage)
        if left is not None and tokens > left:
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
        so_far = float(self.spent.cost_usd or 0) * 100
        each = so_far / self.spent.tokens if self.spent.tokens else 0.0
        return so_far + each * (tokens + self._reserved)

    def _share(self, stage: Stage) -> float:
        return 1.0 if stage == "answer" else 1.0 - self.limits.kept


def bounded(limits: Limits, meter: Meter | None, run: str) -> Limits:
    """Lower a run's limit of tokens to what the owner's other limits leave, so that a share is kept of that, too.

    Args:
        limits: The run's own.
        meter: Knows the others; None for none.
        run: The run's id.
    """
    if meter is None:
        return limits
    try:
        left = meter.allow(run).total_tokens_limit
    except RefusedError:
        return limits  # the first request says so
    if left is None:
        return limits
    allowed = left + meter.of_run(run).tokens
    return replace(limits, tokens=min(limits.tokens or allowed, allowed))


def estimate(*texts: str) -> int:
    """Estimate how many tokens texts are, rather too many than too few."""
    return int(sum(len(text.encode()) for text in texts) / CHARS_PER_TOKEN) + 1
