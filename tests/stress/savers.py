"""Two programs that save a note: one what it holds itself, one on top of what it has just read.

``python -m tests.stress.savers editor`` and ``... reader`` take a line of JSON for each save and answer with one.
"""

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

MANNERS = ("truncate and write", "temp and rename", "backup and rename", "slow write")
HOLD = "hold open"
"""Not a manner of saving: the note is opened for writing, and closed as it was."""
BODY = b"what a person wrote\n" * 200
_LONGEST_S = 0.03
_HELD_S = 0.3
_PATIENCE_S = 5.0
_FIRST_BYTES = 100


def text(*, serial: int, touched: str = "-", seen: int = 0) -> bytes:
    """Write a note's text: a line for each of the programs that change it, and a body."""
    return f"serial: {serial}\ntouched: {touched}\nseen: {seen}\n".encode() + BODY


def line_of(content: bytes, name: str) -> str:
    """Return a line's value; empty while the text is being written."""
    head = content[:_FIRST_BYTES].decode("utf-8", "replace").split("\n")
    return next((line.partition(": ")[2] for line in head if line.startswith(f"{name}: ")), "")


def with_line(content: bytes, name: str, value: str) -> bytes:
    """Return a text with another value in a line."""
    old = f"{name}: {line_of(content, name)}\n".encode()
    return content.replace(old, f"{name}: {value}\n".encode(), 1)


def save(note: Path, content: bytes, manner: str) -> None:
    """Save as programs do."""
    if manner == "temp and rename":
        temp = note.with_name(f".{note.name}.{os.getpid()}")
        temp.write_bytes(content)
        temp.replace(note)
        return
    if manner == "backup and rename":
        backup = note.with_name(f"{note.name}.{os.getpid()}~")
        with contextlib.suppress(FileNotFoundError):  # the other program may just be doing the same
            note.rename(backup)
        note.write_bytes(content)
        backup.unlink(missing_ok=True)
        return
    if manner == HOLD:
        with contextlib.suppress(FileNotFoundError), note.open("r+b"):
            time.sleep(_HELD_S)
        return
    with note.open("wb", buffering=0) as file:
        if manner == "slow write":
            file.write(content[:_FIRST_BYTES])
            time.sleep(random.uniform(0, _LONGEST_S))
            file.write(content[_FIRST_BYTES:])
        else:
            file.write(content)


def edit(order: dict[str, object]) -> dict[str, object]:
    """Save a text after a line that says so and a while, whatever the note holds."""
    sys.stdin.readline()
    time.sleep(float(str(order["delay_s"])))
    begun = time.monotonic()
    save(Path(str(order["note"])), text(serial=int(str(order["serial"]))), str(order["manner"]))
    return {"begun": begun, "ended": time.monotonic()}


def read_and_save(order: dict[str, object]) -> dict[str, object]:
    """Wait for a text with the round's mark, and save on top of it at once."""
    note, over, mark = Path(str(order["note"])), Path(str(order["over"])), str(order["mark"])
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        has_ended = over.exists()  # looked at first, so that a text that stands at the end is still read
        try:
            content = note.read_bytes()
        except FileNotFoundError:
            content = b""
        if line_of(content, "touched") == mark and content.endswith(BODY):
            begun = time.monotonic()
            if not order["saves"]:
                return {"saved": False, "read": True}
            try:
                save(note, with_line(content, "seen", str(order["seen"])), str(order["manner"]))
            except FileNotFoundError:
                return {"saved": False, "read": True}
            return {"saved": True, "read": True, "begun": begun, "ended": time.monotonic()}
        if has_ended:
            break
    return {"saved": False, "read": False}


def main(act: Callable[[dict[str, object]], dict[str, object]]) -> None:
    """Carry out orders until there are no more."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(act(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(edit if sys.argv[1] == "editor" else read_and_save)
