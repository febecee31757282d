"""Say what a run works with: a model, a way to retrieve, a person who may be asked, and where all is kept."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic_ai.models import Model

from knapper.agents.prompting import Prompts
from knapper.agents.run.asking import Account, Asker
from knapper.agents.run.events import Checkpoint
from knapper.agents.run.nodes import Found, Node
from knapper.agents.run.records import Order
from knapper.agents.run.store import Store
from knapper.agents.run.strategies import Strategies
from knapper.agents.run.wording import Wording
from knapper.agents.usage import Meter
from knapper.codemode.tasks import RegenerationBudget
from knapper.tools.context import Context

AskPerson = Callable[[Checkpoint], Awaitable[str]]
"""Asks, and waits for the answer; an empty one is that nobody gave any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Say what is to be found, and for whom."""

    node: Node
    order: Order
    context: Context
    """The vault, as the agent sees it, with the run's id."""
    asker: Asker
    account: Account
    """What it costs is added here."""
    regenerations: RegenerationBudget
    """What the run has left of scripts that may be written anew."""
    attended: bool = False
    """Somebody is there to be asked."""
    word: str = ""
    """What a person said when they were asked about it."""
    checkpoint: str = ""
    """The id of that question."""


class Retrieve(Protocol):
    """Find what a node needs."""

    async def __call__(self, need: Need) -> Found:
        """Find it; where nothing is found, the context is empty.

        Raises:
            OutOfBudget: Nothing is left for it.
            KnapError: It can't be looked for.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Hold what carries runs out, for one vault."""

    model: Model
    name: str
    """The model's, as the person wrote it."""
    store: Store
    folder: Path
    """The vault's state folder."""
    context_of: Callable[[str], Context]
    """Opens the vault as the agent sees it, for a run; cheap."""
    retrieve: Retrieve
    """In Code Mode, or without, as the order says."""
    words: Wording = field(default_factory=Wording)
    strategies: Strategies = field(default_factory=Strategies)
    prompts: Prompts = field(default_factory=Prompts)
    meter: Meter | None = None
    person: AskPerson | None = None
    """None where nobody is there."""
    context_tokens: int = 24_000
    """How much the model reads at once."""
    clock: Callable[[], float] = time.monotonic
    look_s: float = 1.0
    """How often is looked whether somebody wants a run to end."""
    is_leaving: Callable[[], bool] = lambda: False
    """Tells whether the program ends, so that a run which ends with it was interrupted, and nobody cancelled it."""
