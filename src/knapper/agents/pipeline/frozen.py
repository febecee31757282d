"""Write down all that a run goes on from after a question, and read it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import cast

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from knapper.agents.pipeline.orchestrator import Step
from knapper.agents.pipeline.records import Phase
from knapper.agents.research.records import WebResult
from knapper.agents.scout import exploration
from knapper.agents.scout.exploration import Exploration
from knapper.codemode.model import ModelSpend
from knapper.jsontypes import JSONValue


@dataclass(slots=True, kw_only=True)
class Frozen:
    """Hold the state of a run between two steps."""

    exploration: Exploration = field(default_factory=Exploration)
    messages: Sequence[ModelMessage] = ()
    """The scout's conversation; empty where it doesn't go on."""
    rounds: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    web: WebResult | None = None
    spent: dict[Phase, ModelSpend] = field(default_factory=dict[Phase, ModelSpend])


_STEPS = TypeAdapter(list[Step])
_WEB = TypeAdapter(WebResult | None)


def write(state: Frozen) -> dict[str, JSONValue]:
    """Write a state as JSON."""
    spent: dict[str, JSONValue] = {
        phase: {
            "requests": one.requests,
            "input_tokens": one.input_tokens,
            "output_tokens": one.output_tokens,
            "cost_usd": None if one.cost_usd is None else str(one.cost_usd),
        }
        for phase, one in state.spent.items()
    }
    return {
        "exploration": state.exploration.dump(),
        "messages": ModelMessagesTypeAdapter.dump_json(list(state.messages)).decode(),
        "rounds": state.rounds,
        "steps": cast("JSONValue", _STEPS.dump_python(state.steps, mode="json")),
        "web": cast("JSONValue", _WEB.dump_python(state.web, mode="json")),
        "spent": spent,
    }


def read(said: Mapping[str, JSONValue]) -> Frozen:
    """Read a state as `write` wrote it."""
    rows = cast("Mapping[Phase, Mapping[str, JSONValue]]", said["spent"])
    return Frozen(
        exploration=exploration.load(str(said["exploration"])),
        messages=ModelMessagesTypeAdapter.validate_json(str(said["messages"])),
        rounds=int(str(said["rounds"])),
        steps=_STEPS.validate_python(said["steps"]),
        web=_WEB.validate_python(said["web"]),
        spent={phase: _spent(row) for phase, row in rows.items()},
    )


def _spent(row: Mapping[str, JSONValue]) -> ModelSpend:
    cost = row["cost_usd"]
    return ModelSpend(
        requests=int(str(row["requests"])),
        input_tokens=int(str(row["input_tokens"])),
        output_tokens=int(str(row["output_tokens"])),
        cost_usd=None if cost is None else Decimal(str(cost)),
    )
