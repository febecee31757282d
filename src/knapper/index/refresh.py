"""Bring the index up to what lies on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from knapper.index.records import Known, Record
from knapper.index.store import Store
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from knapper.vault.walk import FileStat, Skipped

if TYPE_CHECKING:
    from knapper.index.chunks import Chunk


Phase = Literal["scan", "read", "embed"]
_BATCH_FILES = 256
_BATCH_BYTES = 4_000_000
"""Files that go into one transaction, so that other writers get their turn."""


class Progress(Protocol):
    """Hear how far a long piece of work has come."""

    def __call__(self, phase: Phase, done: int, total: int) -> None:
        """Take a step; *total* may be 0 where it isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hold how the disk differs from the index."""

    changed: tuple[FileStat, ...] = ()
    """New files, and files whose size or time is another."""
    doubtful: tuple[FileStat, ...] = ()
    """Files that look the same, but were saved so close to their reading that only their hash can tell; or that
    couldn't be read the last time."""
    gone: tuple[NotePath, ...] = ()
    settled: tuple[NotePath, ...] = ()
    """Doubtful files whose hash has told that they are the same, and whose time tells the next save by now."""
    unchanged: int = 0

    @property
    def is_due(self) -> bool:
        """Tell whether there is anything to do."""
        return bool(self.changed or self.doubtful or self.gone or self.settled)

    @property
    def is_small(self) -> bool:
        """Tell whether it is something that goes into one transaction."""
        size = sum(stat.size for stat in self.changed)
        return 0 < self.stale <= _BATCH_FILES and size <= _BATCH_BYTES

    @property
    def stale(self) -> int:
        """Count the files that the index has wrong or not at all."""
        return len(self.changed) + len(self.gone)

    def seen_by(self, policy: Policy) -> int:
        """Count those of them that a client may know of."""
        ends = [(file.path, file.target or file.path) for file in self.changed] + [(path, path) for path in self.gone]
        return sum(policy.visible(path) and policy.visible(target) for path, target in ends)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Count what a refresh did."""

    indexed: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: list[str] = field(default_factory=list[str])


class Scan:
    """Look through the vault's files, and remember what couldn't be looked at."""

    def __init__(self, view: View) -> None:
        """Prepare to look at *view*."""
        self._view = view
        self.skipped: list[Skipped] = []
        """What isn't listed though no rule says so."""

    @property
    def closed(self) -> tuple[str, ...]:
        """Give the files and folders that can't be read right now: what the index has of them stays."""
        return tuple(skipped.path for skipped in self.skipped if skipped.code == "unreadable")

    def __iter__(self) -> Iterator[FileStat]:
        """Give the files, in the order of the walk."""
        return self._view.files(on_problem=self.skipped.append)


def compare(
    known: dict[NotePath, Known], files: Iterable[FileStat], *, closed: Sequence[str] = (), again: bool = False
) -> Plan:
    """Compare the disk with what the index knows, by size and time.

    Args:
        known: Used up.
        files: What is there.
        closed: Files and folders that can't be read now; what the index has of them stays.
        again: Try once more to read what couldn't be read, though nothing about it changed.
    """
    changed: list[FileStat] = []
    doubtful: list[FileStat] = []
    unchanged = 0
    for stat in files:
        old = known.pop(stat.path, None)
        if old is None or (old.size, old.mtime_ns) != (stat.size, stat.mtime_ns):
            changed.append(stat)
        elif old.racy or (old.failed_ns and (again or old.failed_ns != stat.ctime_ns)):
            doubtful.append(stat)
        else:
            unchanged += 1
    return Plan(changed=tuple(changed), doubtful=tuple(doubtful), gone=_gone(known, closed), unchanged=unchanged)


def _gone(missing: Iterable[NotePath], closed: Sequence[str]) -> tuple[NotePath, ...]:
    return tuple(path for path in missing if not any(path == c or path.startswith(f"{c}/") for c in closed))


def compare_some(store: Store, view: View, touched: Iterable[Path]) -> Plan:
    """Compare just these files, and what lies below these folders, with the index."""
    found: dict[NotePath, FileStat] = {}
    known: dict[NotePath, Known] = {}
    for path in touched:
        inside, files = view.files_at(path)
        if inside is not None:
            found.update((stat.path, stat) for stat in files)
            known.update(store.known(below=inside))
    return compare(known, found.values())


def settled(store: Store, view: View, plan: Plan) -> Plan:
    """Look into the doubtful files: only those that don't say what the index holds are read again."""
    if not plan.doubtful:
        return plan
    from knapper.index import reading  # noqa: PLC0415 - as in `carry_out`

    changed: list[FileStat] = []
    same: list[NotePath] = []
    for stat in plan.doubtful:
        racy = reading.is_racy(stat)  # before it is read: only of a save before this moment the bytes tell
        if not reading.says(view, stat, store.hash_of(stat.path)):
            changed.append(stat)
        elif not racy:
            same.append(stat.path)
    unchanged = plan.unchanged + len(plan.doubtful) - len(changed)
    return replace(plan, changed=(*plan.changed, *changed), doubtful=(), settled=tuple(same), unchanged=unchanged)


def carry_out(store: Store, view: View, plan: Plan, *, progress: Progress | None = None) -> Outcome:
    """Read what changed and forget what went, in transactions of whole files; the plan is a `settled` one.

    New files are stored before old ones are forgotten, so that a moved note takes its vectors along.
    """
    from knapper.index import reader  # noqa: PLC0415 - the parser's 60 ms, which only a changed file should cost

    outcome = Outcome(unchanged=plan.unchanged)
    work = plan.changed
    store.settle(plan.settled)
    for read in reader.read(view, list(_batches(work))) if work else ():
        with store.batch():
            for record, found in read:
                _store(store, record, found, outcome)
        if progress:
            progress("read", outcome.indexed + outcome.unchanged - plan.unchanged, len(work))
    store.remove(plan.gone)
    outcome.removed = len(plan.gone)
    return outcome


def _store(store: Store, record: Record, found: Sequence[Chunk], outcome: Outcome) -> None:
    if record.hash and record.hash == store.hash_of(record.path):
        store.touch(record)
        outcome.unchanged += 1
        return
    store.apply(record, found)
    outcome.indexed += 1
    outcome.problems.extend(f"{record.path}: {problem.message}" for problem in record.problems)


def _batches(work: Sequence[FileStat]) -> Iterator[list[FileStat]]:
    batch: list[FileStat] = []
    size = 0
    for stat in work:
        batch.append(stat)
        size += stat.size
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
