"""Change a note in the very moment in which two other programs save it, and look for each save afterwards.

A save is lost if it stands neither in the note nor in a copy that was told of, unless the other program saved over it
without our doing. A refused text is seen for as long as its exchange and the way back take, by the clock around both.
"""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from knapper.changes.disk import apply, files
from knapper.changes.disk.files import Files
from knapper.changes.disk.plan import ChangeMeta, Write
from knapper.changes.disk.transaction import State
from knapper.errors import ConflictError, KnapError
from knapper.vault.paths import NotePath
from tests.stress import savers

PROJECT = Path(__file__).parents[2]
NOTE, OTHER = NotePath("note.md"), NotePath("other.md")
LONG_S = 0.25
"""A refused text was waited with if more than this lies between its exchange and the one back. They take under a
millisecond, but a busy machine may stop a program in between for some tens."""
_WAIT_S = 0.2
_HELD_SHARE = 0.01
_AIMED_SHARE = 0.7
_MAX_AIM_S = 0.0006


@dataclass(kw_only=True)
class Report:
    """What the rounds showed."""

    rounds: int = 0
    applied: int = 0
    refused_before: int = 0
    """Changes that were refused before anybody could see them."""
    refused_after: int = 0
    """Changes that were withdrawn because a program saved in the moment of the exchange."""
    read_refused: int = 0
    """Refused texts that a program happened to read in that moment."""
    copies: int = 0
    longest_s: float = 0.0
    """The longest that a refused text stood."""
    seen_long: int = 0
    lost: list[str] = field(default_factory=list[str])
    untold: list[str] = field(default_factory=list[str])
    """Copies that weren't told of once, changes that don't stand although they were applied, files left over."""
    manners: Counter[str] = field(default_factory=Counter[str])
    """Saves by manner."""

    def line(self) -> str:
        """Return it in a line."""
        return (
            f"{self.rounds} rounds, {self.applied} changes applied, {self.refused_before} refused before the exchange,"
            f" {self.refused_after} withdrawn after it ({self.read_refused} of them read), {self.copies} copies kept,"
            f" longest {self.longest_s * 1000:.1f} ms, {self.seen_long} seen for long, {len(self.lost)} saves lost,"
            f" {len(self.untold)} untold"
        )


@dataclass(frozen=True, kw_only=True)
class TimedFiles(Files):
    """The real file operations, which note when names are exchanged, and let a program save in that moment."""

    times: list[float] = field(default_factory=list[float])
    starters: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called before the next exchange."""

    def swap(self, temp: Path, target: Path) -> None:
        while self.starters:
            self.starters.pop()()
        self.times.append(time.monotonic())
        super().swap(temp, target)
        self.times.append(time.monotonic())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one change."""

    is_applied: bool
    begun: float
    exposed_s: float
    """How long a refused text stood."""
    notices: str = ""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One change, and the saves around it."""

    number: int
    outcome: Outcome
    edit: dict[str, float]
    reading: dict[str, float]
    is_edit: bool
    """Whether the editor saved, and not only held the note open."""


@contextmanager
def saver(role: str) -> Generator[subprocess.Popen[str]]:
    """Start a program that saves."""
    command = [sys.executable, "-m", "tests.stress.savers", role]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            yield process
        finally:
            if process.stdin:
                process.stdin.close()


def ask(process: subprocess.Popen[str], order: dict[str, object]) -> None:
    """Give a program an order."""
    assert process.stdin
    process.stdin.write(json.dumps(order) + "\n")


def answer(process: subprocess.Popen[str]) -> dict[str, float]:
    """Wait for a program to have carried out its order."""
    assert process.stdout
    return json.loads(process.stdout.readline())


class Race:
    """A vault, and the two programs that save in it."""

    def __init__(self, top: Path, chance: random.Random) -> None:
        """Make the vault."""
        self.chance = chance
        self.root = top / "vault"
        self.root.mkdir(parents=True)
        self.over = top / "over"
        self.report = Report()
        self.disk = TimedFiles(wait_s=_WAIT_S)
        self.state, _ = apply.open_state(self.root, top / "state", files=self.disk)
        self.told = ""
        self.known: set[Path] = set()
        self.until_exchange_s = 0.005

    def play(self, number: int, editor: subprocess.Popen[str], reader: subprocess.Popen[str]) -> None:
        """Play one round, and check what is left."""
        note, mark = self.root / NOTE, f"mark-{number}"
        note.write_bytes(savers.text(serial=-number))
        (self.root / OTHER).write_bytes(savers.text(serial=-number))
        self.over.unlink(missing_ok=True)
        is_edit = self.chance.random() >= _HELD_SHARE
        manner = self.chance.choice(savers.MANNERS) if is_edit else savers.HOLD
        orders = {"note": str(note), "over": str(self.over), "mark": mark, "seen": number, "serial": number}
        delay_s = max(0.0, self.until_exchange_s + self.chance.uniform(-1, 1) * min(self.until_exchange_s, 0.003))
        saving = {"manner": self.chance.choice(savers.MANNERS), "saves": self.chance.random() < 0.7}
        ask(reader, {**orders, **saving})
        # Most saves are begun right at the exchange, which would seldom be hit by chance.
        is_aimed = is_edit and self.chance.random() < _AIMED_SHARE
        ask(editor, {**orders, "manner": manner, "delay_s": 0 if is_aimed or not is_edit else delay_s})
        if is_aimed:
            self.disk.starters.append(lambda: self.begin(editor))
        else:
            self.begin(editor)
        outcome = self.change(mark, 1 + number % 3 // 2)
        while self.disk.starters:  # there was no exchange
            self.disk.starters.pop()()
        edit = answer(editor)
        self.over.touch()
        reading = answer(reader)
        self.report.manners[manner] += 1
        self.report.manners[str(saving["manner"])] += bool(reading["saved"])
        self.judge(Round(number=number, outcome=outcome, edit=edit, reading=reading, is_edit=is_edit))

    def begin(self, editor: subprocess.Popen[str]) -> None:
        """Have the editor begin its save, and wait a moment of chance that is about as long as its way to the file."""
        assert editor.stdin
        editor.stdin.write("begin\n")
        until = time.monotonic() + self.chance.uniform(0, _MAX_AIM_S)
        while time.monotonic() < until:
            pass

    def change(self, mark: str, count: int) -> Outcome:
        """Change one note or both, on top of what they hold right now."""
        self.disk.times.clear()
        begun = time.monotonic()
        try:
            effects = [touched(self.state, name, mark) for name in (OTHER, NOTE)[-count:]]
            applied = apply.apply_effects(self.state, effects, ChangeMeta(client="stress"))
        except (ConflictError, FileNotFoundError) as error:
            times = self.disk.times
            exposed_s = times[-1] - times[0] if times else 0.0
            between_s = sum(after - before for before, after in zip(times[1::2], times[2::2], strict=False))
            self.report.refused_before += not times
            self.report.refused_after += bool(times)
            self.report.longest_s = max(self.report.longest_s, exposed_s)
            self.report.seen_long += between_s > LONG_S
            notices = error.details.get("notices", "") if isinstance(error, ConflictError) else ""
            return Outcome(is_applied=False, begun=begun, exposed_s=exposed_s, notices=str(notices))
        except KnapError as error:
            # Told, but as something else than what it is: nothing is wrong with the disk.
            self.report.untold.append(f"round {self.report.rounds}: refused as {error.code}: {error}")
            return Outcome(is_applied=False, begun=begun, exposed_s=0.0, notices="")
        self.report.applied += 1
        self.until_exchange_s += 0.1 * (self.disk.times[0] - begun - self.until_exchange_s)
        return Outcome(is_applied=True, begun=begun, exposed_s=0.0, notices=str(applied.notices))

    def judge(self, played: Round) -> None:
        """Look for each save of a round."""
        report, number, outcome = self.report, played.number, played.outcome
        standing = (self.root / NOTE).read_bytes()
        copies = [copy.read_bytes() for copy in self.new_copies(outcome.notices)]
        edit, reading = played.edit, played.reading
        report.rounds += 1
        report.copies += len(copies)
        report.read_refused += bool(reading["read"]) and not outcome.is_applied
        serials, seen = ({savers.line_of(one, name) for one in (standing, *copies)} for name in ("serial", "seen"))
        # Whoever read an applied text, and saved over a later save, did so without our doing; so did the editor, which
        # saves what it holds, whatever the note holds by then.
        read_over = reading["saved"] and outcome.is_applied and reading["ended"] > edit["begun"]
        edited_over = played.is_edit and reading["saved"] and edit["ended"] > reading["begun"]
        if played.is_edit and str(number) not in serials and not read_over:
            report.lost.append(f"round {number}: the editor's save")
        if reading["saved"] and str(number) not in seen and not edited_over:
            report.lost.append(f"round {number}: the reader's save")
        is_last = not played.is_edit or edit["ended"] < outcome.begun
        if outcome.is_applied and is_last and savers.line_of(standing, "touched") != f"mark-{number}":
            report.untold.append(f"round {number}: the applied change")
        left = sorted(path.name for path in self.root.iterdir() if path.name not in {NOTE, OTHER})
        if left:
            report.untold.append(f"round {number}: left over: {left}")

    def new_copies(self, notices: str) -> list[Path]:
        """Return the copies that were kept in a round; each has to be told of once."""
        folder = self.state.conflicts_folder
        new = sorted(set(folder.iterdir()) - self.known) if folder.exists() else []
        self.known.update(new)
        self.report.untold += [str(copy) for copy in new if notices.count(f"{copy}'") != 1]
        return new


def touched(state: State, name: NotePath, mark: str) -> Write:
    """Put the round's mark into a note; one that is half written gets it at its end."""
    content = (state.root / name).read_bytes()
    marked = savers.with_line(content, "touched", mark)
    if marked == content:
        marked = content + f"touched: {mark}\n".encode()
    return Write(path=name, base=files.hash_content(content), content=marked)


def run(rounds: int, *, seed: int, top: Path, until: float = float("inf")) -> Report:
    """Play rounds.

    Args:
        rounds: How many.
        seed: Of the moments and manners.
        top: A folder to make for vault and state.
        until: When to stop before, by the monotonic clock.
    """
    race = Race(top, random.Random(seed))
    with saver("editor") as editor, saver("reader") as reader:
        for number in range(1, rounds + 1):
            race.play(number, editor, reader)
            if time.monotonic() > until:
                break
    race.state.journal.shut()
    return race.report
