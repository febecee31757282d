"""Draw progress bars on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from knapper.cli.output import PHASE_NAMES, PHASE_UNITS
from knapper.index.refresh import RefreshPhase


class _RateColumn(ProgressColumn):
    """A column with the rate per second."""

    def render(self, task: Task) -> Text:
        """Draw the column."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "")


class ProgressBar:
    """Progress bars, one for each phase; they disappear at the end."""

    def __init__(self, *, colour: bool) -> None:
        """Prepare the terminal."""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True, no_color=not colour),
            transient=True,
        )
        self._tasks: dict[RefreshPhase, TaskID] = {}

    def __call__(self, phase: RefreshPhase, done: int, total: int) -> None:
        """Move a phase's bar."""
        if phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task(PHASE_NAMES[phase], unit=PHASE_UNITS[phase])
        self._progress.update(self._tasks[phase], completed=done, total=total or None)

    def __enter__(self) -> Self:
        """Show the bars."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take them away."""
        self._progress.stop()
