"""Change a vault on a disk that runs full, and check each time that a change was made whole or not at all.

``python -m tests.stress.full_disk FOLDER ROUNDS SEED UNTIL`` makes vault and state below two folders, each on a small
disk of its own, and prints what was wrong as JSON. Linux only: the disks are memory, mounted in a namespace.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from knapper.changes.disk import apply, plan
from knapper.changes.disk.transaction import State
from knapper.errors import KnapError
from tests.stress import kills, writer

PROJECT = Path(__file__).parents[2]
DISK_BYTES = 4_000_000
CHANGES = 6
"""In a round, on a disk filled up to a point of chance."""


@dataclass(kw_only=True)
class Report:
    """What the rounds showed."""

    rounds: int = 0
    applied: int = 0
    refused: int = 0
    torn: list[str] = field(default_factory=list[str])
    untold: list[str] = field(default_factory=list[str])
    """Failures without an error of ours, and leftovers."""


def can_mount() -> bool:
    """Return whether this account can make small disks."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run([*_namespace(), "true"], check=False, capture_output=True).returncode == 0


def run(rounds: int, *, seed: int, top: Path, until: float) -> Report:
    """Play rounds in a namespace of their own, until a time of the monotonic clock at most."""
    for name in ("vault disk", "state disk"):
        (top / name).mkdir(parents=True)
    mount = f"mount -t tmpfs -o size={DISK_BYTES} t"
    script = f'{mount} "$1/vault disk" && {mount} "$1/state disk" && shift && exec "$@"'
    play = [sys.executable, "-m", "tests.stress.full_disk", str(top), str(rounds), str(seed), str(until)]
    done = subprocess.run(
        [*_namespace(), "sh", "-c", script, "sh", str(top), *play], cwd=PROJECT, check=True, stdout=subprocess.PIPE
    )
    return Report(**json.loads(done.stdout))


def _namespace() -> list[str]:
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def play_round(root: Path, folder: Path, chance: random.Random, report: Report) -> None:
    """Fill one of the disks, change until it refuses, make room, and compare."""
    disk = chance.choice((root.parent, folder.parent))
    filler = disk / "filler"
    state, _ = apply.open_state(root, folder)
    try:
        fill(filler, chance.randrange(0, 60_000))
        for _ in range(CHANGES):
            before = kills.held(root)
            refused = change(state, chance, report)
            if refused and kills.held(root) != before:
                # What couldn't be taken back on a full disk is as soon as there is room.
                filler.unlink(missing_ok=True)
                apply.recover_unfinished(state)
            after = kills.held(root)
            if refused and after != before:
                report.torn.append(f"round {report.rounds}: {sorted(before.items() ^ after.items())[0][0]}")
            if not refused and any(path.rpartition("/")[2].startswith(".knap-tmp-") for path in after):
                report.untold.append(f"round {report.rounds}: a temp file is left")
    finally:
        filler.unlink(missing_ok=True)
        state.journal.shut()
    reopened, _ = apply.open_state(root, folder)
    report.untold += [f"round {report.rounds}: {one.id} is unfinished" for one in reopened.journal.unfinished()]
    reopened.journal.shut()


def fill(filler: Path, left: int) -> None:
    """Take all of a disk but a number of bytes."""
    with filler.open("wb") as file:
        file.truncate(0)
        free = shutil.disk_usage(filler.parent).free
        os.posix_fallocate(file.fileno(), 0, max(free - left, 1))


def change(state: State, chance: random.Random, report: Report) -> bool:
    """Make a change; return whether it was refused."""
    try:
        effects = writer.made_up(state.root, chance)
    except FileNotFoundError:  # a pair whose folder was renamed
        return False
    try:
        apply.apply_effects(state, effects, plan.ChangeMeta(client="stress"))
    except KnapError:
        report.refused += 1
        return True
    except Exception as error:  # noqa: BLE001 - any other error would reach a caller raw
        report.untold.append(f"round {report.rounds}: {type(error).__name__}: {error}")
        return True
    report.applied += 1
    return False


def main(top: Path, rounds: int, seed: int, until: float) -> Report:
    """Play rounds on the two disks."""
    root, folder, report = top / "vault disk/vault", top / "state disk/state", Report()
    chance = random.Random(seed)
    writer.fill(root)
    while report.rounds < rounds and time.monotonic() < until:
        play_round(root, folder, chance, report)
        report.rounds += 1
    return report


if __name__ == "__main__":
    outcome = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    sys.stdout.write(json.dumps(asdict(outcome)))
