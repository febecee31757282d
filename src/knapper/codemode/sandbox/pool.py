"""Keep warm worker processes and run scripts in them; no output of a worker is trusted."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Literal, NoReturn, Self

from knapper.codemode.sandbox import frames, machine_code
from knapper.codemode.sandbox.confinement import STANDS
from knapper.codemode.sandbox.frames import BrokenFrame, Letter
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.errors import KnapError, SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.context import (
    HostFunction,
    OnCancel,
    ScriptExit,
    ScriptInputs,
    ScriptLimits,
    ScriptResult,
    never_cancelled,
)

MAX_DEPTH: Final = 64
_CALL_DIGITS: Final = 19
"""Most digits of whole numbers in calls, so that databases can hold them."""
_LONG_DIGITS: Final = 1_000


class UntrustedJSONError(Exception):
    """Input that isn't JSON within the limits here; the message reveals nothing of the host."""


def read_untrusted_json(content: bytes, *, digits: int = _LONG_DIGITS) -> JSONValue:
    """Read one value.

    Args:
        content: UTF-8.
        digits: Most digits of a whole number.

    Raises:
        UntrustedJSONError: It isn't UTF-8 or JSON, holds NaN or unpaired surrogates, or is nested too deeply.
    """

    # Before int(): converting thousands of digits takes quadratic time.
    def whole(text: str) -> int:
        if len(text) > digits:
            raise UntrustedJSONError("a number is too large")
        return int(text)

    def refuse(constant: str) -> NoReturn:
        raise UntrustedJSONError(f"{constant} isn't a number")

    try:
        text = content.decode()
        value: JSONValue = json.loads(text, parse_int=whole, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise UntrustedJSONError("it isn't JSON") from None
    # Only an escape can bring a surrogate into valid UTF-8, and most texts have none.
    if "\\u" in text:
        try:
            _ = json.dumps(value, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            raise UntrustedJSONError("it holds an unpaired surrogate") from None
    # An upper bound on the depth: most values needn't be walked.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


def read_untrusted_call(content: bytes) -> tuple[str, Mapping[str, JSONValue]]:
    """Read a call: ``{"method": …, "arguments": {…}}`` and nothing else.

    Raises:
        UntrustedJSONError: It isn't a call.
    """
    value = read_untrusted_json(content, digits=_CALL_DIGITS)
    if isinstance(value, dict) and value.keys() == {"method", "arguments"}:
        method, arguments = value["method"], value["arguments"]
        if isinstance(method, str) and isinstance(arguments, dict):
            return method, arguments
    raise UntrustedJSONError("it isn't a call")


def _check_depth(value: JSONValue) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [each for values in inner for each in values if isinstance(each, list | dict)]
        if not level:
            return
    raise UntrustedJSONError("it is nested too deeply")


_CLEAR_PEAK_RSS: Final = "5"
_KB_PER_MB: Final = 1_024


def reset_peak_memory(process: int) -> None:
    """Reset the peak of a process's memory.

    Source: proc_pid_clear_refs(5).
    """
    try:
        _ = Path(f"/proc/{process}/clear_refs").write_text(_CLEAR_PEAK_RSS, encoding="ascii")
    except OSError:
        return


def peak_memory_mb(process: int) -> float:
    """Return the peak of a process's memory; 0 where the system doesn't report it."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / _KB_PER_MB, 1)
    return 0.0


class Watchdog:
    """A watchdog of one process, with a thread that is started once.

    Starting a thread waits until it runs, which takes longer than a short script on a busy machine.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Start the thread; nothing happens before there is a limit."""
        self._process = process
        self._changed = threading.Condition()
        self._until: float | None = None
        self._has_killed = False
        self._generation = 0
        self._is_over = False
        self._sleeps_until: float | None = None
        threading.Thread(target=self._watch, name=f"watchdog {process.pid}", daemon=True).start()

    @property
    def has_killed(self) -> bool:
        """Return whether the process was killed since its last limit was set."""
        return self._has_killed

    @contextmanager
    def limit(self, seconds: float) -> Generator[Callable[[], None]]:
        """Limit the time of the process; it is killed if the block takes longer.

        Yields a function that kills it at once, and does nothing after the block.
        """

        def kill() -> None:
            with self._changed:
                # A late call must not kill the process while it runs the next script.
                if self._generation == generation and self._until is not None:
                    self._until = None
                    self._has_killed = True
                    self._process.kill()

        with self._changed:
            self._has_killed = False
            self._generation += 1
            generation = self._generation
            self._until = time.monotonic() + seconds
            # Notified only where it would wake too late; otherwise it finds the new time when it wakes.
            if self._sleeps_until is None or self._sleeps_until > self._until:
                self._changed.notify()
        try:
            yield kill
        finally:
            with self._changed:
                # Without a notification: the thread wakes at the old time, and finds nothing to do.
                self._until = None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                now = time.monotonic()
                if self._until is not None and now >= self._until:
                    self._until = None
                    self._has_killed = True
                    self._process.kill()
                self._sleeps_until = self._until
                _ = self._changed.wait(None if self._until is None else self._until - now)


KILL_GRACE_S: Final = 0.5
"""How long after its limit a worker may stop by itself before it is killed."""
_START_TIMEOUT_S: Final = 60
_MAX_READY_BYTES: Final = 4_000
_RESULT_OVERHEAD: Final = 1_000
"""Bytes around a result."""


@dataclass(slots=True, kw_only=True)
class ScriptOutput:
    """The output of one script."""

    outcome: Literal["done", "calls", "timeout", "unwanted", "memory", "crash"] = "crash"
    content: bytes = b""
    """The guest's report, where it is done."""
    output: list[bytes] = field(default_factory=list[bytes])
    output_left: int = 0
    calls: int = 0
    is_unwanted: bool = False
    """Whether it was cancelled."""


class WorkerConnection:
    """The connection to one worker process."""

    def __init__(self, process: subprocess.Popen[bytes], walls: Mapping[str, str] | None = None) -> None:
        """Connect to a process that was started; it gets ready by itself.

        Args:
            process: With pipes for input and output.
            walls: Which parts of the second wall stand already; None for none.
        """
        self._process = process
        self._watchdog = Watchdog(process)
        self.walls: Mapping[str, str] = walls or {}
        self.missing_walls: Mapping[str, str] = {"all": "the worker hasn't reported yet"}
        """Parts of the second wall that don't stand, each with the reason."""
        self.is_usable = True

    @property
    def pid(self) -> int:
        """Return the process's number."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is still there."""
        return self.is_usable and self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until the worker reports that it is ready.

        Raises:
            SetupError: It doesn't start.
        """
        report: JSONValue = None
        with self._watchdog.limit(_START_TIMEOUT_S):
            frame = self._frame(_MAX_READY_BYTES)
            if frame is not None and frame[0] == "R":
                with contextlib.suppress(UntrustedJSONError):
                    report = read_untrusted_json(frame[1])
        if not isinstance(report, dict):
            self.close()
            raise SetupError("the sandbox doesn't start", hint="`knap doctor` checks what it needs", code="no_sandbox")
        self.walls = {**self.walls, **{name: str(value) for name, value in report.items()}}
        self.missing_walls = machine_code.find_missing_walls(self.walls)

    def run(
        self,
        script: str,
        host: HostFunction,
        limits: ScriptLimits,
        inputs: ScriptInputs,
        on_cancel: OnCancel = never_cancelled,
    ) -> ScriptOutput:
        """Run one script; a cancellation kills the process."""
        output = ScriptOutput(output_left=limits.stdout_bytes)
        deadline = time.monotonic() + limits.timeout_s
        reset_peak_memory(self._process.pid)
        # Until the script has ended well: after any error the worker's state is unknown, and it isn't used again.
        self.is_usable = False
        with self._watchdog.limit(limits.timeout_s + KILL_GRACE_S) as kill:

            def end() -> None:
                output.is_unwanted = True
                kill()

            unsubscribe = on_cancel(end)
            try:
                job: dict[str, JSONValue] = {
                    "script": script,
                    "now": inputs.now,
                    "offset": inputs.offset_s,
                    "methods": list(inputs.methods),
                    "result_bytes": limits.result_bytes,
                }
                sizes = (limits.stdout_bytes, limits.request_bytes)
                self._send(
                    "J", frames.pack_job(limits.timeout_s, limits.memory_mb << 20, sizes, json.dumps(job).encode())
                )
                self._receive_frames(output, host, limits, deadline)
            except BrokenPipeError:
                output.outcome = "crash"
            finally:
                unsubscribe()
        if output.outcome != "done" and output.is_unwanted:
            output.outcome = "unwanted"
        elif output.outcome != "done" and (self._watchdog.has_killed or time.monotonic() > deadline):
            output.outcome = "timeout"
        # Running out of memory looks like a crash; only the peak tells them apart.
        if output.outcome == "crash" and self.peak_mb() > 0.85 * limits.memory_mb:
            output.outcome = "memory"
        self.is_usable = output.outcome == "done"
        return output

    def peak_mb(self) -> float:
        """Return the peak of the process's memory since its script began; 0 where the system doesn't report it."""
        return peak_memory_mb(self._process.pid)

    def close(self) -> None:
        """End the process, whatever it does."""
        self.is_usable = False
        self._watchdog.close()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                _open_pipe(pipe).close()
        _ = self._process.wait()

    def _receive_frames(self, output: ScriptOutput, host: HostFunction, limits: ScriptLimits, deadline: float) -> None:
        max_bytes = max(limits.request_bytes, limits.result_bytes + _RESULT_OVERHEAD, limits.stdout_bytes)
        while (frame := self._frame(max_bytes)) is not None:
            letter, content = frame
            if letter == "C":
                output.calls += 1
                # Calls above the limit are refused first; a script that ignores the refusals is ended.
                if output.calls > limits.calls * 2:
                    output.outcome = "calls"
                # The worker interrupts only its own code, but time in the host counts too.
                if output.outcome == "calls" or time.monotonic() > deadline:
                    return
                self._send("A", answer_call(content, output, host, limits))
            elif letter == "O":
                if output.output_left < 0:
                    return
                output.output.append(content[: output.output_left])
                # An empty piece counts, too: a worker that was taken over could send them without end.
                output.output_left -= max(len(content), 1)
            else:
                output.content = content
                trap = content.decode("ascii", "replace") if letter == "T" else "done"
                output.outcome = "timeout" if trap == "timeout" else "done" if letter == "D" else "crash"
                return

    def _frame(self, most: int) -> tuple[Letter, bytes] | None:
        try:
            return frames.read(_open_pipe(self._process.stdout).read, most)
        except BrokenFrame:
            return None

    def _send(self, letter: Letter, content: bytes) -> None:
        pipe = _open_pipe(self._process.stdin)
        _ = pipe.write(frames.pack(letter, content))
        pipe.flush()


def _open_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe, which is always there, since the process was started with pipes."""
    if pipe is None:
        raise BrokenPipeError
    return pipe


def answer_call(content: bytes, output: ScriptOutput, host: HostFunction, limits: ScriptLimits) -> bytes:
    """Carry out one call, and return an error as its answer."""
    if len(content) > limits.request_bytes:
        return _encode_error("too_large", "the arguments are too large for one call")
    if output.calls > limits.calls:
        return _encode_error("too_many", f"a script may call {limits.calls:,} times", "read several notes in one call")
    try:
        answer = host(*read_untrusted_call(content))
    except UntrustedJSONError as error:
        reply = _encode_error("bad_input", f"the call can't be read: {error}")
    except KnapError as error:
        reply = _encode_error(error.code, error.message, error.hint)
    else:
        # An answer may hold a value that JSON doesn't have, such as an infinite number.
        try:
            reply = json.dumps({"result": answer}, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        except (TypeError, ValueError, RecursionError):
            reply = _encode_error("not_json", "the answer can't be written as JSON")
    if len(reply) > limits.reply_bytes:
        return _encode_error("too_large", "the answer is too large for one call", "ask for fewer or smaller notes")
    return reply


def _encode_error(code: str, message: str, hint: str = "") -> bytes:
    message_fields = {"error": {"code": code, "message": message, "hint": hint}}
    return json.dumps(message_fields, ensure_ascii=False).encode(errors="replace")


MAX_WORKERS: Final = 8
_GUEST_EXITS: Final[Mapping[str, ScriptExit]] = {
    "ok": "ok",
    "syntax": "syntax",
    "error": "error",
    "refused": "refused",
    "result": "result",
    "memory": "memory",
}
"""Outcomes that a guest may report."""
_MAX_ERROR: Final = 4_000
_NO_INPUTS: Final = ScriptInputs()


class WorkerPool:
    """A sandbox that runs each script in a fresh instance of the interpreter, in one of a few worker processes.

    ``WorkerPool(folder).run("__result__ = 1 + 1", host)`` returns an outcome with the result 2.
    """

    def __init__(
        self,
        folder: Path,
        limits: ScriptLimits | None = None,
        *,
        workers: int = MAX_WORKERS,
        walls: bool = True,
        walls_required: bool = False,
    ) -> None:
        """Create a sandbox; nothing is started before the first script, or `warm`.

        Args:
            folder: The folder of the machine code; created, or private to this user.
            limits: What the owner allows; None for the defaults.
            workers: Most scripts that run at the same time; more of them wait.
            walls: Whether the second wall is raised; only tests of the first one leave it out.
            walls_required: Refuse scripts where a part of it doesn't stand.
        """
        self.limits = limits or ScriptLimits()
        self.code = MachineCode(folder=folder)
        self._walls = walls
        self.walls_required = walls_required
        self._slots = threading.BoundedSemaphore(workers)
        self._idle: list[WorkerConnection] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def run(
        self,
        script: str,
        host: HostFunction,
        *,
        limits: ScriptLimits | None = None,
        given: ScriptInputs | None = None,
        on_cancel: OnCancel = never_cancelled,
    ) -> ScriptResult:
        """Run one script.

        Args:
            script: Python.
            host: Carries out its calls, in this thread.
            limits: Those above the owner's have no effect.
            given: The script's inputs.
            on_cancel: Subscribes to the call's cancellation, which ends the script.

        Raises:
            SetupError: Scripts can't be run here, or a wall that is required doesn't stand (code ``no_walls``).
            StorageError: The machine code can't be kept, or others could have written to it.
        """
        effective = (limits or self.limits).within(self.limits)
        size = len(script.encode(errors="replace"))
        if size > effective.script_bytes:
            return ScriptResult(
                kind="syntax", error=f"the script has {size:,} bytes, and {effective.script_bytes:,} are the most"
            )
        with self._slots:
            worker = self._acquire()
            try:
                start = time.monotonic()
                output = worker.run(script, host, effective, given or _NO_INPUTS, on_cancel)
                wall_s = time.monotonic() - start
                standing = tuple(name for name, state in worker.walls.items() if state == STANDS)
                outcome = result_from_output(output, effective, wall_s, worker.peak_mb())
                return replace(outcome, walls=standing, missing_walls=worker.missing_walls)
            finally:
                self._release(worker)

    def warm(self, workers: int = 1) -> Mapping[str, str]:
        """Start some workers in advance.

        Returns:
            ``on`` or why not, for each part of the second wall.
        """
        connections = [self._acquire() for _ in range(workers)]
        for worker in connections:
            self._release(worker)
        return connections[0].walls if connections else {}

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
    def idle(self) -> tuple[WorkerConnection, ...]:
        """Return the workers that wait for scripts."""
        with self._lock:
            return tuple(self._idle)

    def _acquire(self) -> WorkerConnection:
        worker = self._find_worker()
        if worker.missing_walls and self.walls_required:
            worker.close()
            parts = ", ".join(f"{name} ({why})" for name, why in worker.missing_walls.items())
            raise SetupError(
                f"scripts.walls is required, and a part of the second wall doesn't stand: {parts}",
                hint='scripts.walls = "best" runs scripts behind the first wall, WebAssembly, and what else stands',
                code="no_walls",
            )
        return worker

    def _find_worker(self) -> WorkerConnection:
        with self._lock:
            if self._is_closed:
                raise SetupError("the sandbox is closed")
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.close()
        was_compiled = self.code.is_ready()
        try:
            return self._start()
        except SetupError:
            if not was_compiled:
                raise
        # Compiled on another processor, or cut off by a full disk: it is compiled once more.
        self.code.file.unlink(missing_ok=True)
        return self._start()

    def _start(self) -> WorkerConnection:
        file = self.code.ensure_compiled()
        empty = file.parent / "empty"
        machine_code.make_private_folder(empty)
        facts = machine_code.PlatformInfo()
        command = machine_code.worker_command(file, self.limits.memory_mb, facts, walls=self._walls)
        process = machine_code.start_worker(command, empty)
        worker = WorkerConnection(process, machine_code.confine_process(process, self.limits.memory_mb, facts))
        worker.wait_until_ready()
        return worker

    def _release(self, worker: WorkerConnection) -> None:
        with self._lock:
            if worker.is_usable and not self._is_closed:
                self._idle.append(worker)
                return
        worker.close()


def result_from_output(output: ScriptOutput, limits: ScriptLimits, wall_s: float, peak_mb: float) -> ScriptResult:
    """Return the outcome of a script, from its worker's output."""
    ends: Mapping[str, tuple[ScriptExit, str]] = {
        "timeout": ("timeout", f"the script took longer than {limits.timeout_s:g} s, with all that it asked for"),
        "unwanted": ("timeout", "the script was ended, as nobody waited for it any more"),
        "calls": ("refused", f"the script went on calling after the {limits.calls:,} times that it may"),
        "memory": ("memory", f"the script needed more than {limits.memory_mb} MB"),
        "crash": ("crash", "the script broke its interpreter: too deep a recursion, or a call that isn't there"),
    }
    if output.outcome == "done":
        kind, result, error = _parse_guest_result(output.content, limits)
    else:
        (kind, error), result = ends[output.outcome], None
    suffix = "\n[more was printed]" if output.output_left < 0 else ""
    return ScriptResult(
        kind=kind,
        result=result,
        stdout=b"".join(output.output).decode(errors="replace") + suffix,
        error=error,
        wall_s=round(wall_s, 4),
        peak_mb=peak_mb,
        calls=min(output.calls, limits.calls),
    )


def _parse_guest_result(content: bytes, limits: ScriptLimits) -> tuple[ScriptExit, JSONValue, str]:
    """Parse the guest's report, which is untrusted like all of its output."""
    try:
        report = read_untrusted_json(content)
    except UntrustedJSONError as error:
        return "result", None, f"__result__ can't be taken: {error}"
    if not isinstance(report, dict):
        return "crash", None, "the script broke its interpreter"
    kind: ScriptExit = _GUEST_EXITS.get(str(report.get("kind")), "crash")
    if kind == "ok":
        if len(content) > limits.result_bytes + 100:
            return "result", None, f"__result__ has more than {limits.result_bytes:,} bytes of JSON"
        return "ok", report.get("result"), ""
    error = str(report.get("error", ""))[:_MAX_ERROR]
    if kind == "memory":
        error = f"the script needed more than {limits.memory_mb} MB"
    return kind, None, error
