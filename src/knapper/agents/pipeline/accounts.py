"""Count what each agent of a run uses."""

from collections.abc import Mapping

from pydantic_ai.usage import RunUsage

from knapper.agents import usage
from knapper.agents.pipeline.records import Phase
from knapper.codemode.model import ModelSpend


class Accounts:
    """Hold what each phase of a run uses, from now on and before it paused."""

    def __init__(self, before: Mapping[Phase, ModelSpend]) -> None:
        """Begin with what was used before."""
        self._before = before
        self._used: list[tuple[Phase, RunUsage]] = []

    def open(self, phase: Phase, used: RunUsage | None = None) -> RunUsage:
        """Count for a phase whatever comes to stand in what is given.

        Args:
            phase: The phase; it may be counted several times.
            used: What its agent counts in; None for a new one.
        """
        counted = RunUsage() if used is None else used
        self._used.append((phase, counted))
        return counted

    def total(self) -> dict[Phase, ModelSpend]:
        """Tell what each phase used, that before a pause included."""
        return self._added(self._before)

    def now(self) -> dict[Phase, ModelSpend]:
        """Tell what each phase used since the run began or went on."""
        return self._added({})

    def _added(self, before: Mapping[Phase, ModelSpend]) -> dict[Phase, ModelSpend]:
        total = dict(before)
        for phase, used in self._used:
            total[phase] = total.get(phase, ModelSpend()) + usage.of(used)
        return total
