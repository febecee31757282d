"""Tell what runs ask a person, and nobody has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.agents.runs import service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.agents.runs.model import CheckpointEvent, RunRecord
    from knapper.app.runs.opening import TaskRuns


def of(tasks: TaskRuns, run_id: str) -> Sequence[CheckpointEvent]:
    """List what a run asks, as it is told while the run goes on.

    Raises:
        NotFound: There is no such run.
    """
    open_ids = {one.id for one in tasks.checkpoints.waiting(run_id)}
    asked = (service.make_checkpoint_event(node) for node in tasks.runs.show(run_id).nodes if node.asking)
    return [one for one in asked if one.id in open_ids]


def counted(tasks: TaskRuns, found: Sequence[RunRecord]) -> Mapping[str, int]:
    """Count what runs of a list ask; those that ask nothing are left out."""
    asked = {one.run for one in tasks.checkpoints.waiting()}
    numbers = {run.id: len(of(tasks, run.id)) for run in found if run.id in asked}
    return {run_id: number for run_id, number in numbers.items() if number}
