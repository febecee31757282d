"""Language models as Code Mode uses them: a prompt, a reply, and its cost.

Which model it is, and how it is reached, is decided in a layer above.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend:
    """What requests to a model used."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    """None where no price is known; the known part where some are."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "ModelSpend") -> "ModelSpend":
        """Return the sum of both."""
        known_costs = [one.cost_usd for one in (self, other) if one.cost_usd is not None]
        return ModelSpend(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(known_costs, Decimal()) if known_costs else None,
        )

    def __sub__(self, before: "ModelSpend") -> "ModelSpend":
        """Return what was used since *before*."""
        return ModelSpend(
            requests=self.requests - before.requests,
            input_tokens=self.input_tokens - before.input_tokens,
            output_tokens=self.output_tokens - before.output_tokens,
            cost_usd=None if self.cost_usd is None else self.cost_usd - (before.cost_usd or 0),
        )

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptData:
    """A value that is data and never an instruction: names and texts that anybody may have written."""

    source: str
    """What it is, in our own words."""
    value: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt for a model."""

    instructions: str
    """Our own text, unchanged; the system prompt."""
    request: str
    """Our own text as well: what to do with the data."""
    data: tuple[PromptData, ...] = ()
    """Put after the request, each item marked so that it can't pass for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply and its cost."""

    text: str
    usage: ModelSpend = ModelSpend(requests=1)


class AskModel(Protocol):
    """A function that asks a model and waits for its reply; any thread may call it."""

    def __call__(self, prompt: Prompt) -> Reply:
        """Ask the model.

        Raises:
            KnapError: The model doesn't answer, or may not be asked any more.
        """
        ...
