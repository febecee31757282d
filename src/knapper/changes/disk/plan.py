"""Hold what is to be done to files, and what stands in its way."""

from dataclasses import dataclass, field

from knapper.changes.disk.files import Stamp
from knapper.changes.disk.steps import Step
from knapper.errors import ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Say which effect doesn't fit the disk any more."""

    effect: int
    """Its place in the list."""
    path: str
    problem: str
    expected: str | None
    current: str | None
    """Hash of what is there; None if nothing is, or if it is a folder."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """Hold what is to be done; nothing of it is unless ``conflicts`` is empty."""

    steps: list[Step] = field(default_factory=list[Step])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """What the steps replace, remove and write, by hash."""
    stamps: dict[int, Stamp] = field(default_factory=dict[int, Stamp])
    """What the moved files looked like, by step."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])
    notices: list[str] = field(default_factory=list[str])


def check(plan: Plan) -> None:
    """Refuse a plan that doesn't fit the disk.

    Raises:
        ConflictError: With each file, the hash that was expected and the current one in ``details["conflicts"]``.
    """
    if not plan.conflicts:
        return
    told = list(dict.fromkeys(f"'{one.path}' {one.problem}" for one in plan.conflicts))
    more = len(told) - 5
    raise ConflictError(
        "; ".join(told[:5]) + (f"; and {more} more" if more > 0 else "") + "; nothing was changed",
        hint="read the file again and make the change against what it holds now",
        details={
            "current_hash": plan.conflicts[0].current,
            "conflicts": [
                {"path": one.path, "problem": one.problem, "expected_hash": one.expected, "current_hash": one.current}
                for one in plan.conflicts
            ],
        },
    )
