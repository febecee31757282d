"""Change a vault without end, in changes of one and of several files, until killed.

Every note holds a serial number; a change raises it by one in each note that it touches, so that a note's number and
the journal's newest content for it must agree. ``python -m tests.stress.writer VAULT STATE SEED``
"""

import random
import sys
from pathlib import Path

from knapper.changes.disk import apply, files
from knapper.changes.disk.plan import ChangeMeta, Effect, MoveToTrash, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.errors import ConflictError
from knapper.vault.paths import NotePath

NOTES = 12
PAIRS = 4
LOCK_TIMEOUT_S = 60.0


def fill(root: Path) -> None:
    """Make the vault's notes."""
    for number in range(NOTES):
        note = root / f"folder {number % 3}" / f"{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(text(number, 0))
    for number in range(PAIRS):
        for half in ("left", "right"):
            note = root / half / f"pair {number}.md"
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_bytes(text(number, 0))


def text(number: int, serial: int) -> bytes:
    """Write a note's text: its serial number, and some weight."""
    return b"---\nserial: %d\n---\n# Note %d\n\n" % (serial, number) + b"words and more words\r\n" * (50 + number)


def serial_of(content: bytes) -> int:
    """Read a note's serial number."""
    return int(content.split(b"\n")[1].split()[1])


def rewritten(root: Path, path: str) -> Write:
    """Raise a note's serial number."""
    content = (root / path).read_bytes()
    raised = content.replace(b"serial: %d\n" % serial_of(content), b"serial: %d\n" % (serial_of(content) + 1), 1)
    return Write(path=NotePath(path), base=files.hash_content(content), content=raised)


def made_up(root: Path, chance: random.Random) -> list[Effect]:
    """Think of a change: pairs are always changed together, loose notes alone or by the dozen."""
    kind = chance.choice(["one", "several", "pair", "create and trash", "folder"])
    loose = sorted(path.relative_to(root).as_posix() for path in root.glob("folder*/*.md"))
    if kind == "pair":
        number = chance.randrange(PAIRS)
        return [rewritten(root, f"{half}/pair {number}.md") for half in ("left", "right")]
    if kind == "create and trash":
        new, old = root / "made/new.md", NotePath("made/new.md")
        return [MoveToTrash(path=old)] if new.exists() else [Write(path=old, content=b"new")]
    if kind == "folder":
        here, there = ("left", "left moved") if (root / "left").exists() else ("left moved", "left")
        return [
            Rename(source=NotePath(here), target=NotePath(there)),
            rewritten(root, "right/journey.md")
            if (root / "right/journey.md").exists()
            else Write(path=NotePath("right/journey.md"), content=text(99, 0)),
        ]
    return [rewritten(root, path) for path in chance.sample(loose, 1 if kind == "one" else 6)]


def run(state: State, chance: random.Random) -> None:
    """Change until killed; a change that the other writer was quicker with is thought of anew."""
    while True:
        try:
            apply.apply_effects(
                state, made_up(state.root, chance), ChangeMeta(client="stress", run=str(chance.random()))
            )
        except (ConflictError, FileNotFoundError):
            continue


if __name__ == "__main__":
    vault, folder, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    opened, _ = apply.open_state(vault, folder, lock_timeout_s=LOCK_TIMEOUT_S)
    run(opened, random.Random(seed))
