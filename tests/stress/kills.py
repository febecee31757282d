"""Kill two writers at random moments, and check each time that every change was made whole or not at all.

Each round kills both, recovers, and compares journal and files; ``kill.py`` runs many.
"""

import math
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from knapper.changes.disk import apply
from knapper.changes.disk.journal import Change
from knapper.changes.disk.transaction import State
from tests.stress import writer

PROJECT = Path(__file__).parents[2]
LONGEST_S = 0.25
READY_S = 30.0


@dataclass(kw_only=True)
class Report:
    """What the rounds showed."""

    rounds: int = 0
    kills: int = 0
    changes: int = 0
    finished: int = 0
    taken_back: int = 0
    failures: list[str] = field(default_factory=list[str])

    def line(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills, {self.changes} changes: {self.finished} cut short and finished,"
            f" {self.taken_back} taken back, {len(self.failures)} failures"
        )


def run(rounds: int, *, seed: int, top: Path, until: float = math.inf) -> Report:
    """Run rounds on one vault.

    Args:
        rounds: Each with two killed writers.
        seed: Of the moments and changes.
        top: An empty folder for vault and state.
        until: When to stop before, by the monotonic clock.
    """
    chance = random.Random(seed)
    root, folder = top / "vault", top / "state"
    writer.fill(root)
    expected = held(root)
    report = Report()
    last = 0
    for number in range(rounds):
        report.kills += kill_two(root, folder, chance, seed + number)
        state, recovered = apply.open_state(root, folder)
        report.finished += sum(one.outcome == "finished" for one in recovered)
        report.taken_back += sum(one.outcome == "taken back" for one in recovered)
        made = state.journal.select("seq > :last ORDER BY seq", {"last": last})
        last = newest(state)
        replay(state, made, expected)
        report.changes += len(made)
        report.failures += check(state, expected, number)
        report.rounds += 1
        state.journal.shut()
        if report.failures or time.monotonic() > until:
            break
    return report


def kill_two(root: Path, folder: Path, chance: random.Random, seed: int) -> int:
    """Start two writers, let them write a while, and kill them one after the other."""
    command = [sys.executable, "-m", "tests.stress.writer", str(root), str(folder)]
    before = journal_size(folder)
    pair = [subprocess.Popen([*command, str(2 * seed + which)], cwd=PROJECT) for which in (0, 1)]
    until = time.monotonic() + READY_S
    while journal_size(folder) == before and time.monotonic() < until:
        time.sleep(0.005)
    for one in pair:
        time.sleep(chance.uniform(0, LONGEST_S))
        one.kill()
    codes = [one.wait() for one in pair]
    return sum(code < 0 for code in codes)


def journal_size(folder: Path) -> tuple[int, int]:
    """Tell by what the journal's log looks like whether anything was written."""
    log = folder / "journal.db-wal"
    return (log.stat().st_size, log.stat().st_mtime_ns) if log.exists() else (0, 0)


def newest(state: State) -> int:
    with state.journal.reading() as database:
        return int(database.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])


def held(root: Path) -> dict[str, bytes]:
    """Read all files, temp files among them."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def replay(state: State, made: Sequence[Change], expected: dict[str, bytes]) -> None:
    """Do to a picture of the vault what the journal says was done."""
    for change in made:
        for step in change.steps:
            if step.is_folder:
                for path in [path for path in expected if path.startswith(step.source + "/")]:
                    expected[step.target + path[len(step.source) :]] = expected.pop(path)
            elif step.kind == "move":
                expected[step.target] = expected.pop(step.source)
            elif step.kind in {"replace", "create"}:
                expected[step.target] = state.journal.content(step.after or "")


def check(state: State, expected: dict[str, bytes], number: int) -> list[str]:
    """Compare journal and files; list what differs."""
    actual = held(state.root)
    wrong = [
        f"round {number}: {path} differs" for path in expected.keys() & actual.keys() if expected[path] != actual[path]
    ]
    wrong += [f"round {number}: {path} is missing" for path in expected.keys() - actual.keys()]
    wrong += [f"round {number}: {path} is left over" for path in actual.keys() - expected.keys()]
    wrong += [f"round {number}: {change.id} is unfinished" for change in state.journal.unfinished()]
    for pair in range(writer.PAIRS):
        left = next(content for path, content in actual.items() if path.startswith("left") and f"pair {pair}." in path)
        if writer.serial_of(left) != writer.serial_of(actual[f"right/pair {pair}.md"]):
            wrong.append(f"round {number}: half of pair {pair}")
    return wrong
