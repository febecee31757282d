"""Let everything go wrong that does in life, and count what was lost, torn, wrong or untold."""

import argparse
import asyncio
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import frame, load, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from tests.stress import collisions, damage, full_disk, index_kill, kills
from tests.stress.vault import Garden

SUMMARY = "kills, races, full disks, bit flips, unreadable files, two servers, an hour of load"
SHORT_S = 60.0
"""The short form's time for all parts together, not counting what a part has begun by then."""
KINDS = ("lost", "torn", "wrong", "untold")
_MANY = 1_000_000
_NOTES = 300
_FEW_NOTES = 60
_WRITERS = 4


@dataclass(kw_only=True)
class Outcome:
    """Hold what one part found."""

    done: int
    unit: str
    lost: Sequence[str] = ()
    """Saves and writes of which nothing is left."""
    torn: Sequence[str] = ()
    """Changes made by half."""
    wrong: Sequence[str] = ()
    """Answers and indexes other than the vault's."""
    untold: Sequence[str] = ()
    """What went wrong without a word, or with an error that isn't ours."""
    remarks: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Hold what a part may use."""

    top: Path
    """An empty folder."""
    seed: int
    seconds: float
    most: int = _MANY
    notes: int = _NOTES

    @property
    def until(self) -> float:
        return time.monotonic() + self.seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=float, default=120.0, help="for all parts together (default: 120, of which 60 are load)"
    )
    parser.add_argument("--races", type=int, default=10_000, help="rounds of races at most (default: 10000)")
    parser.add_argument("--short", action="store_true", help=f"about {SHORT_S:g} s, as the build server does it")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part alone; can be repeated")
    parser.add_argument("--seed", type=int, default=1)


def run(places: Places, options: argparse.Namespace) -> Report:
    names = [name for name in PARTS if name in (options.only or PARTS)]
    seconds = SHORT_S if options.short else options.minutes * 60
    shares = sum(PARTS[name].share for name in names)
    rows: list[Row] = []
    outcomes: list[Outcome] = []
    for name in names:
        share = seconds * PARTS[name].share / shares
        frame.say(f"{name}: at most {share:.0f} s")
        with vaults.scratch(places.cache) as top:
            trial = Trial(
                top=top / "top",
                seed=options.seed,
                seconds=share,
                most=options.races if name == "races" else _MANY,
                notes=_FEW_NOTES if options.short else _NOTES,
            )
            outcome = _play(PARTS[name], trial)
        outcomes.append(outcome)
        rows.append(Row(what=f"{name}: {outcome.unit}", values=[outcome.done]))
    rows += [
        Row(what=kind, values=[sum(len(getattr(one, kind)) for one in outcomes)], goal=Goal(limit=1)) for kind in KINDS
    ]
    remarks = [f"{name}: {remark}" for name, one in zip(names, outcomes, strict=True) for remark in one.remarks]
    remarks += [
        f"{name}, {kind}: {finding}"
        for name, one in zip(names, outcomes, strict=True)
        for kind in KINDS
        for finding in list(getattr(one, kind))[:5]
    ]
    remarks += [f"Left out: {name}." for name in PARTS if name not in names]
    return Report(title="Chaos", about=_ABOUT, rows=rows, remarks=remarks)


def _play(part: "Part", trial: Trial) -> Outcome:
    """Play one part; an error that it doesn't expect ends it, counts as untold, and leaves the others to be played."""
    try:
        return part.play(trial)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        frame.say(traceback.format_exc())
        return Outcome(done=0, unit="ended by an error", untold=[f"{type(error).__name__}: {error}"])


_ABOUT = (
    "Two programs save a note in the very moment in which Knapper changes it. Writers and an indexer are killed. The "
    "vault's disk and the state's run full in the middle of changes. Bits of an index are flipped. Notes become huge, "
    "binary, folders, pipes and links to nowhere, and notes again. Two servers write to one vault. Many clients ask "
    "and write for the rest of the time. Each part ends when its share of the time is over."
)


def _races(trial: Trial) -> Outcome:
    if sys.platform != "linux":
        return Outcome(done=0, unit="left out: it needs leases", remarks=["left out"])
    report = collisions.run(trial.most, seed=trial.seed, top=trial.top, until=trial.until)
    untold = [*report.untold, *[f"refused texts that stood for long: {report.seen_long}"][: report.seen_long]]
    return Outcome(done=report.rounds, unit="rounds", lost=report.lost, untold=untold, remarks=[report.line()])


def _killed_writers(trial: Trial) -> Outcome:
    report = kills.run(trial.most, seed=trial.seed, top=trial.top, until=trial.until)
    return Outcome(done=report.kills, unit="kills", torn=report.failures, remarks=[report.line()])


def _killed_indexer(trial: Trial) -> Outcome:
    result = index_kill.run(
        trial.top, kills=trial.most, notes=trial.notes, seed=trial.seed, compare_every=5, until=trial.until
    )
    return Outcome(done=result.kills, unit="kills", torn=result.corrupt, wrong=result.different)


def _full_disks(trial: Trial) -> Outcome:
    if not full_disk.can_mount():
        return Outcome(done=0, unit="rounds", remarks=["left out: this account can't mount a small disk"])
    report = full_disk.run(trial.most, seed=trial.seed, top=trial.top, until=trial.until)
    remark = f"{report.applied} changes applied, {report.refused} refused"
    return Outcome(done=report.rounds, unit="rounds", torn=report.torn, untold=report.untold, remarks=[remark])


def _flipped_bits(trial: Trial) -> Outcome:
    report = damage.run_flips(trial.most, seed=trial.seed, top=trial.top, until=trial.until)
    remark = f"{report.told} told, {report.right} answered right from an index that was rebuilt or unharmed"
    return Outcome(done=report.rounds, unit="indexes", wrong=report.wrong, untold=report.untold, remarks=[remark])


def _unreadable_files(trial: Trial) -> Outcome:
    report = damage.run_unreadable(trial.most, seed=trial.seed, top=trial.top, until=trial.until)
    return Outcome(done=report.rounds, unit="rounds", wrong=report.wrong, untold=report.untold)


def _two_servers(trial: Trial) -> Outcome:
    garden = _garden(trial)
    with load.serving(garden.root, trial.top) as one, load.serving(garden.root, trial.top) as other:
        found = asyncio.run(_write_to_both((one, other), garden.root, trial.seconds))
    return _served(found, trial.top, garden.root, "writes")


async def _write_to_both(servers: tuple[load.Server, load.Server], vault: Path, seconds: float) -> load.Found:
    found = load.Found()
    # Few notes, so that both servers often write to the same one at the same moment.
    notes = load.notes_of(vault)[:5]
    end = time.monotonic() + seconds
    writers = [load.Client(servers[number % 2], found, end).write(number, notes) for number in range(_WRITERS)]
    await asyncio.gather(*writers)
    return found


def _an_hour_of_load(trial: Trial) -> Outcome:
    garden = _garden(trial)
    options = argparse.Namespace(readers=8, writers=_WRITERS, seconds=trial.seconds)
    with load.serving(garden.root, trial.top) as server:
        found = asyncio.run(load.load(server, garden.root, questions.of(garden.root, 50), options))
    return _served(found, trial.top, garden.root, "answers")


def _served(found: load.Found, top: Path, vault: Path, unit: str) -> Outcome:
    """Judge what servers answered, and the index that they leave; a refusal with a code of ours is told."""
    refused = {error: count for error, count in found.errors.items() if ": 409 " in error or ": 423 " in error}
    untold = [f"{count} of {error}" for error, count in found.errors.items() if error not in refused]
    lost = load.lost_lines(vault, found.written)
    remarks = [f"refused, and told: {refused}"] if refused else []
    done = len(found.reads) + len(found.writes)
    lines = [f"{lost} lines that don't stand once"] * min(lost, 1)
    (index,) = top.glob("state/vaults/*/index")
    wrong = index_kill.broken(index / "index.db")
    with index_kill.engine(vault, index) as opened:
        taken_in = opened.refresh()
        opened.embed()
    wrong += ["the index was damaged"] if taken_in.was_damaged else []
    remarks.append(
        f"{taken_in.indexed} notes of the last moment were taken in before the index was compared with a new one"
    )
    wrong += index_kill.compare(vault, index, top / "fresh")
    return Outcome(done=done, unit=unit, lost=lines, wrong=wrong, untold=untold, remarks=remarks)


def _garden(trial: Trial) -> Garden:
    return Garden.plant(trial.top / "vault", random.Random(trial.seed), trial.notes)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Hold one part, and its share of the time."""

    play: Callable[[Trial], Outcome]
    share: float


PARTS: dict[str, Part] = {
    "races": Part(play=_races, share=20),
    "killed writers": Part(play=_killed_writers, share=8),
    "killed indexer": Part(play=_killed_indexer, share=10),
    "full disks": Part(play=_full_disks, share=5),
    "flipped bits": Part(play=_flipped_bits, share=10),
    "unreadable files": Part(play=_unreadable_files, share=10),
    "two servers": Part(play=_two_servers, share=7),
    "an hour of load": Part(play=_an_hour_of_load, share=70),
}
