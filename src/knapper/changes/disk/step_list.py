"""Gather the steps of a plan, with the temp files and contents that they need."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from knapper.changes.disk import atomic, effects, files
from knapper.changes.disk.effects import Effect
from knapper.changes.disk.plan import Conflict, Plan
from knapper.changes.disk.steps import Step
from knapper.vault import paths


class StepList:
    """Hold a plan while it is made."""

    def __init__(self, root: Path, change_id: str) -> None:
        """Begin a plan.

        Args:
            root: The vault's real folder, symbolic links followed.
            change_id: Goes into the names of temp files.
        """
        self.plan = Plan()
        self.effect = 0
        """Number of the effect that is planned right now."""
        self._root = root
        self._change_id = change_id
        self._unstable: set[str] = set()

    def expect(self, asked: Iterable[Effect]) -> None:
        """Hear of all effects before the first is planned, so that temp files lie where no folder moves."""
        self._unstable = {path for effect in asked for path in _unsettled(effect)}

    def add(self, step: Step) -> int:
        """Add a step, with a name for the temp file that it needs; tell its number."""
        number = len(self.plan.steps)
        if step.kind in {"replace", "create", "remove", "discard"}:
            step = replace(step, temp=self._temp(step, number))
        self.plan.steps.append(step)
        return number

    def _temp(self, step: Step, number: int) -> str:
        """Name a temp file beside the target, or above where the target's folder comes, goes or moves meanwhile."""
        at = step.target_at or step.source_at
        folder = paths.parent_folder(at)
        while folder and (self._is_unstable(folder) or not (self._root / folder).is_dir()):
            folder = paths.parent_folder(folder)
        name = atomic.name(self._change_id, number)
        return f"{folder}/{name}" if folder else name

    def _is_unstable(self, folder: str) -> bool:
        return any(one in self._unstable for one in (folder, *paths.parent_folders(folder)))

    def keep(self, content: bytes) -> str:
        """Hold what a file is to have or had, for the disk and the journal; tell its hash."""
        name = files.hash_of(content)
        self.plan.contents.setdefault(name, content)
        return name

    def conflict(self, path: str, problem: str, *, expected: str | None, current: str | None) -> None:
        """Note that the effect at hand doesn't fit the disk."""
        self.plan.conflicts.append(
            Conflict(effect=self.effect, path=path, problem=problem, expected=expected, current=current)
        )

    def finished(self) -> Plan:
        """Give the plan, without the notes that got their old text again."""
        plan = self.plan
        kept = [number for number, step in enumerate(plan.steps) if step.kind != "replace" or step.before != step.after]
        plan.stamps = {new: plan.stamps[old] for new, old in enumerate(kept) if old in plan.stamps}
        plan.steps = [plan.steps[number] for number in kept]
        return plan


def _unsettled(effect: Effect) -> tuple[str, ...]:
    match effect:
        case effects.Rename():
            return (effect.source, effect.target)
        case effects.Trash() | effects.RemoveFolder():
            return (effect.path,)
        case _:
            return ()
