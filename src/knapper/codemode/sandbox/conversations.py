"""Talk with one worker process, which may have been taken over by what it runs: nothing it says is trusted."""

import contextlib
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Final, Literal

from knapper.codemode.sandbox import frames, measures, strict
from knapper.codemode.sandbox.frames import BrokenFrame, Letter
from knapper.codemode.sandbox.strict import NotStrict
from knapper.codemode.sandbox.watchdogs import Watchdog
from knapper.errors import KnapError, SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.cancelling import OnCancel, never
from knapper.tools.sandboxes import Given, Host, Limits

GRACE_S: Final = 0.5
"""How long after its time a worker may stop by itself; then it is killed."""
_START_S: Final = 60
_READY_MOST: Final = 4_000
_WRAPPING: Final = 1_000
"""Bytes around a result."""


@dataclass(slots=True, kw_only=True)
class Talk:
    """Collect what comes of one script."""

    ending: Literal["done", "calls", "timeout", "unwanted", "memory", "crash"] = "crash"
    content: bytes = b""
    """What the guest says became of it, where it is done."""
    output: list[bytes] = field(default_factory=list[bytes])
    output_left: int = 0
    calls: int = 0
    is_unwanted: bool = False
    """Nobody waits for it any more."""


class Conversation:
    """Hold one worker process."""

    def __init__(self, process: subprocess.Popen[bytes], walls: Mapping[str, str] | None = None) -> None:
        """Take over a process that was started; it gets ready by itself.

        Args:
            process: With pipes for input and output.
            walls: Which parts of the second wall stand already; None for none.
        """
        self._process = process
        self._watchdog = Watchdog(process)
        self.walls: Mapping[str, str] = walls or {}
        self.is_usable = True

    @property
    def pid(self) -> int:
        """Give the process's number."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Tell whether the process is still there."""
        return self.is_usable and self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait for the worker's first word.

        Raises:
            SetupError: It doesn't start.
        """
        with self._watchdog.limit(_START_S):
            report = self._ready()
        if report is None:
            self.close()
            raise SetupError("the sandbox doesn't start", hint="`knap doctor` checks what it needs", code="no_sandbox")
        self.walls = {**self.walls, **report}

    def run(self, script: str, host: Host, limits: Limits, given: Given, on_cancel: OnCancel = never) -> Talk:
        """Run one script; the process is killed where nobody waits for the outcome any more."""
        talk = Talk(output_left=limits.stdout_bytes)
        until = time.monotonic() + limits.timeout_s
        measures.reset_peak(self._process.pid)
        self.is_usable = False  # until it has come to a good end
        with self._watchdog.limit(limits.timeout_s + GRACE_S) as bite:

            def end() -> None:
                talk.is_unwanted = True
                bite()

            forget = on_cancel(end)
            try:
                self._send("J", _job(script, limits, given))
                self._listen(talk, host, limits, until)
            except BrokenPipeError:
                talk.ending = "crash"
            finally:
                forget()
        if talk.ending != "done" and talk.is_unwanted:
            talk.ending = "unwanted"
        elif talk.ending != "done" and (self._watchdog.has_bitten or time.monotonic() > until):
            talk.ending = "timeout"
        if talk.ending == "crash" and self.peak_mb() > 0.85 * limits.memory_mb:
            talk.ending = "memory"
        self.is_usable = talk.ending == "done"
        return talk

    def peak_mb(self) -> float:
        """Tell how much memory the process had at most since its script began; 0 where the system doesn't tell."""
        return measures.peak_mb(self._process.pid)

    def close(self) -> None:
        """End the process, whatever it does."""
        self.is_usable = False
        self._watchdog.close()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                _of(pipe).close()
        _ = self._process.wait()

    def _listen(self, talk: Talk, host: Host, limits: Limits, until: float) -> None:
        most = max(limits.request_bytes, limits.result_bytes + _WRAPPING, limits.stdout_bytes)
        while (frame := self._frame(most)) is not None:
            letter, content = frame
            if letter == "C":
                talk.calls += 1
                if talk.calls > limits.calls * 2:
                    talk.ending = "calls"
                if talk.ending == "calls" or time.monotonic() > until:
                    return
                self._send("A", answer(content, talk, host, limits))
            elif letter == "O":
                if talk.output_left < 0:
                    return
                talk.output.append(content[: talk.output_left])
                talk.output_left -= len(content)
            else:
                talk.content = content
                told = content.decode("ascii", "replace") if letter == "T" else "done"
                talk.ending = "timeout" if told == "timeout" else "done" if letter == "D" else "crash"
                return

    def _frame(self, most: int) -> tuple[Letter, bytes] | None:
        try:
            return frames.read(_of(self._process.stdout).read, most)
        except BrokenFrame:
            return None

    def _send(self, letter: Letter, content: bytes) -> None:
        pipe = _of(self._process.stdin)
        _ = pipe.write(frames.pack(letter, content))
        pipe.flush()

    def _ready(self) -> Mapping[str, str] | None:
        frame = self._frame(_READY_MOST)
        if frame is None or frame[0] != "R":
            return None
        try:
            told = strict.read(frame[1])
        except NotStrict:
            return None
        return {name: str(value) for name, value in told.items()} if isinstance(told, dict) else None


def _of(pipe: IO[bytes] | None) -> IO[bytes]:
    """Give a pipe, which is always there: the process was started so."""
    if pipe is None:
        raise BrokenPipeError
    return pipe


def answer(content: bytes, talk: Talk, host: Host, limits: Limits) -> bytes:
    """Carry out one call; what is wrong with it is an answer too."""
    if len(content) > limits.request_bytes:
        return _error("too_large", "the arguments are too large for one call")
    if talk.calls > limits.calls:
        return _error("too_many", f"a script may call {limits.calls:,} times", "read several notes in one call")
    try:
        told = _told(host(*strict.read_call(content)))
    except NotStrict as error:
        told = _error("bad_input", f"the call can't be read: {error}")
    except KnapError as error:
        told = _error(error.code, error.message, error.hint)
    except NotJSON:
        told = _error("not_json", "the answer can't be told as JSON")
    if len(told) > limits.reply_bytes:
        return _error("too_large", "the answer is too large for one call", "ask for fewer or smaller notes")
    return told


class NotJSON(Exception):
    """Say that an answer holds what JSON doesn't, such as an infinite number."""


def _told(result: JSONValue) -> bytes:
    try:
        return json.dumps({"result": result}, ensure_ascii=False, allow_nan=False).encode(errors="replace")
    except (TypeError, ValueError, RecursionError):
        raise NotJSON from None


def _error(code: str, message: str, hint: str = "") -> bytes:
    told = {"error": {"code": code, "message": message, "hint": hint}}
    return json.dumps(told, ensure_ascii=False).encode(errors="replace")


def _job(script: str, limits: Limits, given: Given) -> bytes:
    told: dict[str, JSONValue] = {
        "script": script,
        "now": given.now,
        "offset": given.offset_s,
        "methods": list(given.methods),
        "result_bytes": limits.result_bytes,
    }
    sizes = (limits.stdout_bytes, limits.request_bytes)
    return frames.pack_job(limits.timeout_s, limits.memory_mb << 20, sizes, json.dumps(told).encode())
