"""Run `knap` at a terminal of its own, as a person does."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

INTERRUPT = "\x03"
AGAIN_S = 3.0
"""After this Ctrl-C is pressed again: a signal that comes just before a read begins doesn't end the read."""
ECHO = b"^C"
KNAP = [sys.executable, "-m", "knapper.cli"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Press a single key once the program reads single keys, whatever it asks."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Type text once the terminal shows a question."""

    after: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    printed: str
    code: int


def run(args: Sequence[str], typed: Sequence[Key | Line], **more: str) -> Ended:
    """Run a command whose streams are a terminal, and answer what it asks.

    Args:
        args: Of the command.
        typed: What the person types, in order.
        **more: Variables of the environment.
    """
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **more}  # noqa: TID251  # a process of its own gets this one's environment
    process = subprocess.Popen(
        [*KNAP, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C becomes a signal
    )
    os.close(theirs)
    try:
        printed = _Conversation(ours, termios).hold(typed)
    finally:
        os.close(ours)
        code = process.wait(60)
    return Ended(printed=printed.replace("\r\n", "\n"), code=code)


class _Conversation:
    def __init__(self, terminal: int, termios: Any) -> None:  # noqa: ANN401  # a module that Windows lacks
        self._terminal: int = terminal
        self._termios: Any = termios
        self._printed: bytes = b""
        self._seen: int = 0

    def hold(self, typed: Sequence[Key | Line]) -> str:
        for one in typed:
            match one:
                case Key(name=name):
                    self._wait_for("? ]", "?] ")
                    while not self._reads_keys():
                        time.sleep(0.005)
                    os.write(self._terminal, name.encode())
                case Line(after=after, text=text):
                    self._wait_for(after)
                    os.write(self._terminal, text.encode())
                    if text == INTERRUPT:
                        self._insist()
        while self._read():
            pass
        return self._printed.decode()

    def _wait_for(self, *endings: str) -> None:
        while not any(end.encode() in self._printed[self._seen :] for end in endings):
            assert self._read(), f"it ended before it asked:\n{self._printed.decode()}"
        self._seen = len(self._printed)

    def _insist(self) -> None:
        """Press until something is said to it: pressed once more, the program would be stopped while it ends."""
        before = len(self._printed)
        while not self._printed[before:].replace(ECHO, b"").strip():
            if not select.select([self._terminal], [], [], AGAIN_S)[0]:
                os.write(self._terminal, INTERRUPT.encode())
            elif not self._read():
                return

    def _read(self) -> bool:
        try:
            piece = os.read(self._terminal, 65_536)
        except OSError:  # Linux ends a terminal so
            return False
        self._printed += piece
        return bool(piece)

    def _reads_keys(self) -> bool:
        """Tell whether the program has left the mode in which lines are edited, so that no key is lost."""
        return not self._termios.tcgetattr(self._terminal)[3] & self._termios.ICANON
