"""Save two notes as editors do, each save with a serial number, and look for each save afterwards.

``python -m tests.stress.editor VAULT ROUNDS SEED`` waits for a line, and prints the serial numbers
that were lost.
"""

import random
import sys
import time
from pathlib import Path

NOTES = ("a.md", "b.md")
BURST = 3
PATIENCE_S = 60.0
LONGEST_PAUSE_S = 0.004


def text(serial: int) -> bytes:
    """Write a note's text."""
    return b"serial: %d\ntouched: 0\n" % serial + b"what a person wrote\n" * 200


def serial_of(content: bytes) -> int:
    """Read a note's serial number; -1 while it is being written."""
    first = content.split(b"\n", 1)[0]
    return int(first.split()[1]) if first.startswith(b"serial: ") and content.endswith(b"wrote\n") else -1


def save(note: Path, content: bytes, chance: random.Random) -> None:
    """Save by renaming over the note, or by cutting and writing it, at once or in pieces."""
    manner = chance.choice(["rename", "write", "write slowly"])
    if manner == "rename":
        temp = note.with_name(f".{note.name}.editor")
        temp.write_bytes(content)
        temp.replace(note)
        return
    with note.open("wb", buffering=0) as file:
        if manner == "write slowly":
            time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
        file.write(content[:100])
        file.write(content[100:])


def is_there(note: Path, serial: int) -> bool:
    """Tell whether the note has the save that was made last, as soon as it has."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if note.exists() and serial_of(note.read_bytes()) == serial:
            return True
        time.sleep(0.0005)
    return False


def run(root: Path, rounds: int, chance: random.Random) -> list[int]:
    """Save so many times, in bursts, and list those last of their burst that are gone."""
    lost: list[int] = []
    serial = 0
    while serial < rounds:
        note = root / chance.choice(NOTES)
        for _ in range(chance.randint(1, BURST)):
            serial += 1
            save(note, text(serial), chance)
            time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
        if not is_there(note, serial):
            lost.append(serial)
    return lost


if __name__ == "__main__":
    sys.stdin.readline()
    gone = run(Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])))
    sys.stdout.write(" ".join(map(str, gone)))
