"""Say what a language model is to Code Mode: something that is asked and replies, and what that costs.

Which model it is, and how it is reached, is the business of a layer above.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend:
    """What was used."""

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
        """Add up."""
        known_costs = [one.cost_usd for one in (self, other) if one.cost_usd is not None]
        return ModelSpend(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(known_costs, Decimal()) if known_costs else None,
        )

    def __sub__(self, before: "ModelSpend") -> "ModelSpend":
        """Return what came to what there was before."""
        return ModelSpend(
            requests=self.requests - before.requests,
            input_tokens=self.input_tokens - before.input_tokens,
            output_tokens=self.output_tokens - before.output_tokens,
            cost_usd=None if self.cost_usd is None else self.cost_usd - (before.cost_usd or 0),
        )

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptData:
    """A value of which nothing is an order: names and texts that anybody may have written."""

    source: str
    """What it is, in words of our own."""
    value: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is asked."""

    instructions: str
    """Of our own, word for word; the system prompt."""
    request: str
    """Of our own as well: what is to be done with the data."""
    data: tuple[PromptData, ...] = ()
    """To be put after the request, each so that it can't pass for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said, and what that cost."""

    text: str
    usage: ModelSpend = ModelSpend(requests=1)


class AskModel(Protocol):
    """Ask a model, and wait for its reply; several threads may."""

    def __call__(self, prompt: Prompt) -> Reply:
        """Ask.

        Raises:
            KnapError: The model doesn't answer, or may not be asked any more.
        """
        ...
