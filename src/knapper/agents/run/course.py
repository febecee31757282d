"""Hold which way a run takes: its order, and the strategy that it is split and done by."""

from dataclasses import replace

from knapper.agents.run.engine import Engine
from knapper.agents.run.records import Run
from knapper.agents.run.strategies import AUTO, USUAL, Strategy


class Course:
    """Hold a run as it stands, and its strategy; the model may choose one on the way."""

    def __init__(self, engine: Engine, run: Run) -> None:
        """Take a run."""
        self.run = run
        self.engine = engine
        self._strategy: Strategy | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether the model is to choose a strategy yet."""
        return self.run.order.strategy == AUTO

    @property
    def strategy(self) -> Strategy:
        """Give the run's strategy; before one is chosen, the usual one."""
        name = USUAL if self.is_open else self.run.order.strategy
        if self._strategy is None or self._strategy.name != name:
            self._strategy = self.engine.strategies.load(name)
        return self._strategy

    def choose(self, name: str) -> None:
        """Take the strategy that the model named, if it is one."""
        chosen = name if name in {one.name for one in self.engine.strategies.all()} else USUAL
        self.run = self.engine.store.save(replace(self.run, order=replace(self.run.order, strategy=chosen)))
