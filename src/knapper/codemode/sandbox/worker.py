"""The process that scripts run in: it reads jobs from one pipe, and writes results to another.

It is started with an empty environment, in an empty folder, and has only the standard library, wasmtime and this
package's own modules. Once it is ready it needs no file and starts nothing, which the walls enforce.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Final

import wasmtime
from wasmtime import component

from knapper.codemode.sandbox import confinement, engine, frames
from knapper.system import private

TICK_S: Final = 0.05
_JOB_MOST: Final = 64_000_000
_WARM: Final = json.dumps(
    {"script": "import datetime, re\n__result__ = [datetime.date.today().year, re.findall('a', 'a')]"}
)
_TOO_LARGE: Final = '{"error": {"code": "too_large", "message": "the arguments are too large for one call"}}'


class Worker:
    """The compiled interpreter, loaded once, and a fresh instance for each job."""

    def __init__(self, machine_code: Path) -> None:
        self.engine = engine.make_engine()
        self.component = component.Component.deserialize_file(self.engine, str(machine_code))
        self.linker = component.Linker(self.engine)
        with self.linker.root() as root:
            root.add_func("call", self._call)
            root.add_func("emit", self._emit)
        self.busy = threading.Event()
        self._output = self._request = 0

    def tick(self) -> None:
        """Advance the engine's epoch while a job runs; a script past its deadline is interrupted by the next tick."""
        while True:
            _ = self.busy.wait()
            time.sleep(TICK_S)
            self.engine.increment_epoch()

    def work(self) -> None:
        """Run jobs until there are no more."""
        while (frame := frames.read(_receive, _JOB_MOST)) is not None:
            timeout_s, memory_bytes, self._output, self._request, job = frames.unpack_job(frame[1])
            self.busy.set()
            try:
                letter, content = self.run(job, timeout_s, memory_bytes)
            finally:
                self.busy.clear()
            _send(letter, content)

    def run(self, job: str, timeout_s: float, memory_bytes: int) -> tuple[frames.Letter, bytes]:
        """Run one job in an instance of its own."""
        store = wasmtime.Store(self.engine)
        store.set_limits(memory_size=memory_bytes, instances=64, tables=64, memories=4)
        store.set_epoch_deadline(int(timeout_s / TICK_S) + 2)
        try:
            function = self.linker.instantiate(store, self.component).get_func(store, "run")
            if function is None:
                return "T", b"crash"
            return "D", function(store, job).encode()
        except wasmtime.WasmtimeError as error:
            return "T", b"timeout" if "wasm trap: interrupt" in str(error) else b"crash"
        finally:
            store.close()

    def _call(self, _: wasmtime.StoreContext, request: str) -> str:
        content = request.encode()
        # An answer lets the script continue; a frame above the limit would end it.
        if len(content) > self._request:
            return _TOO_LARGE
        _send("C", content)
        frame = frames.read(_receive, _JOB_MOST)
        if frame is None:
            os._exit(0)
        return frame[1].decode()

    def _emit(self, _: wasmtime.StoreContext, text: str) -> None:
        content = text.encode()[: self._output]
        self._output -= len(content)
        if content:
            _send("O", content)


def main() -> None:
    """Get ready, raise the walls, and run jobs."""
    wants_walls, machine_code, memory_mb = sys.argv[-3:]
    worker = Worker(Path(machine_code))
    _ = worker.run(_WARM, 60, 1 << 30)
    report = confinement.limit_resources(int(memory_mb))
    if wants_walls == "walls":
        # Landlock binds this thread and those that it starts, so it comes before the ticking thread.
        report |= confinement.raise_before_threads()
    threading.Thread(target=worker.tick, daemon=True).start()
    if wants_walls == "walls":
        # The filter forbids starting threads, so it comes after the last one.
        report |= confinement.raise_after_threads()
    _send("R", json.dumps(report).encode())
    worker.work()


def compile_code() -> None:
    """Compile a component to machine code, in a process that has nothing else to do."""
    import lzma  # noqa: PLC0415 - no worker that runs scripts needs it

    source, part, target = sys.argv[-3:]
    compiled = component.Component(engine.make_engine(), lzma.decompress(Path(source).read_bytes()))
    # Written to a new file, flushed, and renamed: a crash or a full disk leaves no partial code under the final name.
    descriptor = private.open_new(Path(part))
    with os.fdopen(descriptor, "wb") as file:
        _ = file.write(compiled.serialize())
        file.flush()
        os.fsync(descriptor)
    _ = Path(part).replace(target)


def _receive(length: int) -> bytes:
    return os.read(0, length)


def _send(letter: frames.Letter, content: bytes) -> None:
    left = memoryview(frames.pack(letter, content))
    while left:
        left = left[os.write(1, left) :]
