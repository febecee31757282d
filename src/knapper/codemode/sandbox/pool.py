"""Keep warm workers, and run scripts in them."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

from knapper.codemode.sandbox import launching, machine_code, strict
from knapper.codemode.sandbox.conversations import Conversation, Talk
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.codemode.sandbox.strict import NotStrict
from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.cancelling import OnCancel, never
from knapper.tools.sandboxes import Given, Host, Kind, Limits, Outcome

MOST_WORKERS: Final = 8
_KINDS: Final[Mapping[str, Kind]] = {
    kind: kind for kind in cast("tuple[Kind, ...]", ("ok", "syntax", "error", "refused", "result", "memory"))
}
"""What a guest may say of itself."""
_ERROR_MOST: Final = 4_000
_NOTHING: Final = Given()


class Sandbox:
    """Run scripts, each in a fresh instance of the interpreter, in one of a few worker processes.

    ``Sandbox(folder).run("__result__ = 1 + 1", host)`` gives an outcome with the result 2.
    """

    def __init__(
        self, folder: Path, limits: Limits | None = None, *, workers: int = MOST_WORKERS, walls: bool = True
    ) -> None:
        """Make a sandbox; nothing is started before the first script, or `warm`.

        Args:
            folder: For machine code; made for this alone, or this user's alone.
            limits: What the owner allows; None for the usual.
            workers: Scripts that run at the same time at most; more of them wait.
            walls: Whether the second wall is raised; only tests of the first one leave it out.
        """
        self.limits = limits or Limits()
        self.code = MachineCode(folder=folder)
        self._walls = walls
        self._turns = threading.BoundedSemaphore(workers)
        self._idle: list[Conversation] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def run(
        self,
        script: str,
        host: Host,
        *,
        limits: Limits | None = None,
        given: Given | None = None,
        on_cancel: OnCancel = never,
    ) -> Outcome:
        """Run one script.

        Args:
            script: Python.
            host: Carries out what it asks for; it is called in this thread.
            limits: Those above the owner's have no effect.
            given: What the script is told of time, methods and tools.
            on_cancel: Tells where nobody waits for the outcome any more; the script is ended then.

        Raises:
            SetupError: Scripts can't be run here.
            StorageError: The machine code can't be kept, or others could have written to it.
        """
        held = (limits or self.limits).within(self.limits)
        size = len(script.encode(errors="replace"))
        if size > held.script_bytes:
            return Outcome(
                kind="syntax", error=f"the script has {size:,} bytes, and {held.script_bytes:,} are the most"
            )
        with self._turns:
            worker = self._take()
            try:
                start = time.monotonic()
                talk = worker.run(script, host, held, given or _NOTHING, on_cancel)
                wall_s = time.monotonic() - start
                return outcome_of(talk, held, wall_s, worker.peak_mb())
            finally:
                self._give_back(worker)

    def warm(self, workers: int = 1) -> Mapping[str, str]:
        """Start so many workers that wait for scripts.

        Returns:
            Which parts of the second wall stand, or why not.
        """
        taken = [self._take() for _ in range(workers)]
        for worker in taken:
            self._give_back(worker)
        return taken[0].walls if taken else {}

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def __enter__(self) -> Self:
        """Use the sandbox in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @property
    def idle(self) -> tuple[Conversation, ...]:
        """Give the workers that wait for scripts."""
        with self._lock:
            return tuple(self._idle)

    def _take(self) -> Conversation:
        with self._lock:
            if self._is_closed:
                raise SetupError("the sandbox is closed")
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.close()
        was_there = self.code.is_ready()
        try:
            return self._start()
        except SetupError:
            if not was_there:
                raise
        self.code.file.unlink(missing_ok=True)  # made on another processor, or cut off by a full disk
        return self._start()

    def _start(self) -> Conversation:
        file = self.code.provide()
        empty = file.parent / "empty"
        machine_code.make_private(empty)
        facts = launching.Facts()
        command = launching.command(file, self.limits.memory_mb, facts, walls=self._walls)
        process = launching.start(command, empty)
        worker = Conversation(process, launching.hold(process, self.limits.memory_mb, facts))
        worker.wait_until_ready()
        return worker

    def _give_back(self, worker: Conversation) -> None:
        with self._lock:
            if worker.is_usable and not self._is_closed:
                self._idle.append(worker)
                return
        worker.close()


def outcome_of(talk: Talk, limits: Limits, wall_s: float, peak_mb: float) -> Outcome:
    """Tell what became of a script, by what was heard from its worker."""
    kind, result, error = _told(talk, limits)
    cut = "\n[more was printed]" if talk.output_left < 0 else ""
    return Outcome(
        kind=kind,
        result=result,
        stdout=b"".join(talk.output).decode(errors="replace") + cut,
        error=error,
        wall_s=round(wall_s, 4),
        peak_mb=peak_mb,
        calls=min(talk.calls, limits.calls),
    )


def _told(talk: Talk, limits: Limits) -> tuple[Kind, JSONValue, str]:
    match talk.ending:
        case "timeout":
            return "timeout", None, f"the script took longer than {limits.timeout_s:g} s, with all that it asked for"
        case "unwanted":
            return "timeout", None, "the script was ended, as nobody waited for it any more"
        case "calls":
            return "refused", None, f"the script went on calling after the {limits.calls:,} times that it may"
        case "memory":
            return "memory", None, f"the script needed more than {limits.memory_mb} MB"
        case "crash":
            return "crash", None, "the script broke its interpreter: too deep a recursion, or a call that isn't there"
        case "done":
            return _said(talk.content, limits)


def _said(content: bytes, limits: Limits) -> tuple[Kind, JSONValue, str]:
    """Read what the guest says of itself, which is checked like all that comes from there."""
    try:
        said = strict.read(content)
    except NotStrict as error:
        return "result", None, f"__result__ can't be taken: {error}"
    if not isinstance(said, dict):
        return "crash", None, "the script broke its interpreter"
    kind = _KINDS.get(str(said.get("kind")), "crash")
    if kind == "ok":
        if len(content) > limits.result_bytes + 100:
            return "result", None, f"__result__ has more than {limits.result_bytes:,} bytes of JSON"
        return "ok", said.get("result"), ""
    error = str(said.get("error", ""))[:_ERROR_MOST]
    if kind == "memory":
        error = f"the script needed more than {limits.memory_mb} MB"
    return kind, None, error
