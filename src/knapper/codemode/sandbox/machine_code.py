"""Compile the interpreter to machine code once, keep it private to the user, and start worker processes."""

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import platform
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, cast

from filelock import Timeout

from knapper.codemode.sandbox import confinement
from knapper.codemode.sandbox.confinement import STANDS
from knapper.errors import KnapError, SetupError, StorageError
from knapper.system import private

WorkerEntry = Literal["main", "compile_code"]
_WORKER_PROGRAM: Final = (
    "import sys; sys.path[len(sys.path):] = sys.argv[1:3]; "
    "from knapper.codemode.sandbox import worker; worker.{entry}()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformInfo:
    """Facts on this system."""

    system: str = sys.platform
    executable: str = sys.executable
    prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)
    system_root: str = ""
    """The folder of Windows, without which Python doesn't start there."""


def python_command(entry: WorkerEntry, arguments: Sequence[str], facts: PlatformInfo | None = None) -> list[str]:
    """Return the command that runs one of the worker's functions, isolated from site packages and the environment."""
    info = facts or PlatformInfo()
    return [
        *(info.executable, "-I", "-S", "-X", "utf8", "-c", _WORKER_PROGRAM.format(entry=entry)),
        *(str(folder) for folder in import_folders()),
        *arguments,
    ]


def worker_command(machine_code: Path, memory_mb: int, facts: PlatformInfo, *, walls: bool) -> list[str]:
    """Return the command that runs a worker, inside the confinement that the system offers."""
    arguments = python_command("main", ["walls" if walls else "bare", str(machine_code), str(memory_mb)], facts)
    if walls and facts.system == "darwin":
        readable = (*facts.prefixes, *map(str, import_folders()), str(machine_code.parent))
        return [*confinement.seatbelt_prefix(readable), *arguments]
    return arguments


def worker_environment(facts: PlatformInfo | None = None) -> Mapping[str, str]:
    """Return the whole environment of a worker: empty, except where the system needs a variable."""
    info = facts or PlatformInfo()
    return {"SYSTEMROOT": info.system_root or r"C:\Windows"} if info.system == "win32" else {}


def start_worker(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a worker in an empty folder, with its standard streams and no other descriptor."""
    return subprocess.Popen(  # noqa: S603 - a command of this package's own
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=worker_environment(),
        cwd=folder,
        close_fds=True,
        start_new_session=True,
    )


def import_folders() -> tuple[Path, Path]:
    """Return the folders that a worker imports from: this package's, and wasmtime's."""
    spec = importlib.util.find_spec("wasmtime")
    wasmtime_folder = Path(spec.origin).parents[1] if spec and spec.origin else Path()
    return Path(__file__).parents[3], wasmtime_folder


def confine_process(process: subprocess.Popen[bytes], memory_mb: int, facts: PlatformInfo) -> Mapping[str, str]:
    """Confine a worker as far as the system lets its parent; return what is on."""
    if facts.system == "darwin":
        return {"seatbelt": STANDS}
    if facts.system != "win32":
        return {}
    kernel = cast("confinement.Kernel32", ctypes.WinDLL("kernel32", use_last_error=True))
    handle = int(process._handle)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]  # noqa: SLF001 - there is no other way to it
    return {"job object": confinement.assign_process(kernel, handle, memory_mb)}


_WALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "linux": ("limits", "landlock", "seccomp"),
    "darwin": ("limits", "seatbelt"),
    "win32": ("job object",),
}
"""Parts of the second wall, by system."""


def find_missing_walls(report: Mapping[str, str], facts: PlatformInfo | None = None) -> Mapping[str, str]:
    """Return the parts of the second wall that this system should have and that don't stand, each with the reason.

    Args:
        report: What a worker and its parent say of each part.
        facts: Facts on the system; None for this one.
    """
    system = (facts or PlatformInfo()).system
    expected = _WALLS.get(system)
    if expected is None:
        return {"confinement": f"there is none for {system}"}
    return {name: report.get(name, "it wasn't raised") for name in expected if report.get(name) != STANDS}


COMPONENT_FILE: Final = Path(__file__).parents[2] / "data" / "scripts" / "interpreter.wasm.xz"
STAMP_FILE: Final = "interpreter.stamp"
_LOCK_TIMEOUT_S: Final = 300
_COMPILE_TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode:
    """The place of the machine code, compiled or not."""

    folder: Path
    """A folder for the machine code alone."""
    component: Path = COMPONENT_FILE

    @property
    def file(self) -> Path:
        """Return the file, named by all that it depends on: component, engine, its options, and the kind of processor.

        Raises:
            SetupError: There is no component, or no engine.
        """
        try:
            component = (self.component.parent / STAMP_FILE).read_text(encoding="utf-8")
        except OSError:
            hint = "install Knapper from its wheel, or run scripts/setup in its sources"
            raise SetupError("this installation has no interpreter of scripts", hint=hint, code="no_sandbox") from None
        try:
            engine = metadata.version("wasmtime")
        except metadata.PackageNotFoundError:
            hint = "there is no wasmtime for every system; without it scripts stay refused"
            raise SetupError(
                "scripts need wasmtime, and it isn't installed here", hint=hint, code="no_sandbox"
            ) from None
        options = hashlib.sha256((Path(__file__).parent / "engine.py").read_bytes()).hexdigest()
        parts = (component, engine, options, platform.system(), platform.machine())
        return self.folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.code"

    def is_ready(self) -> bool:
        """Return whether it is compiled.

        Raises:
            StorageError: Others could have written what is there.
        """
        if not os.path.lexists(self.file):
            return False
        # The machine code is run as it is, so that nobody else may have written it.
        check_private(self.folder, is_folder=True)
        check_private(self.file, is_folder=False)
        return True

    def ensure_compiled(self) -> Path:
        """Return the file, compiled now if it isn't yet; several processes at once compile once.

        Raises:
            SetupError: It can't be compiled.
            StorageError: The folder can't be used.
        """
        if self.is_ready():
            return self.file
        make_private_folder(self.folder)
        try:
            with private.file_lock(self.folder / "compile.lock", timeout_s=_LOCK_TIMEOUT_S):
                # Another process may have compiled it while this one waited.
                if not self.is_ready():
                    self._compile()
        except Timeout:
            raise SetupError("another process is still preparing the sandbox", hint="try again in a minute") from None
        return self.file

    def compile_in_background(self) -> threading.Thread | None:
        """Start to compile in a thread where needed; the compiler's process continues when this one ends.

        Returns:
            The thread; None where there is nothing to do.
        """
        if self.is_ready():
            return None

        def compile_quietly() -> None:
            # The first call that runs a script reports the error.
            with contextlib.suppress(KnapError):
                _ = self.ensure_compiled()

        thread = threading.Thread(target=compile_quietly, daemon=True)
        thread.start()
        return thread

    def _compile(self) -> None:
        if importlib.util.find_spec("_lzma") is None:
            hint = "install Python's lzma: with pyenv, install liblzma-dev (xz on macOS), then this Python once more"
            raise SetupError("this Python has no lzma, which the interpreter of scripts needs", hint=hint)
        part = self.folder / f"{self.file.name}.{os.getpid()}.part"
        part.unlink(missing_ok=True)
        names = [str(self.component), str(part), str(self.file)]
        try:
            # In a session of its own, so that compiling continues when this process ends.
            with subprocess.Popen(  # noqa: S603 - a command of this package's own
                python_command("compile_code", names),
                env=worker_environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                try:
                    code = process.wait(_COMPILE_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    code = process.wait()
        finally:
            part.unlink(missing_ok=True)
        if code or not self.is_ready():
            hint = "it takes about 1 GB of memory for some seconds; `knap doctor` checks what else is needed"
            raise SetupError(f"the sandbox can't be prepared (code {code})", hint=hint)
        # What was compiled before is of no use to this engine.
        for old in self.folder.glob("*.code"):
            if old != self.file:
                old.unlink(missing_ok=True)


def check_private(path: Path, *, is_folder: bool) -> None:
    """Check that others couldn't have written a file or folder; on Windows, the user's own folder ensures that.

    Raises:
        StorageError: It isn't the user's alone.
    """
    status = path.lstat()
    right_kind = stat.S_ISDIR(status.st_mode) if is_folder else stat.S_ISREG(status.st_mode)
    if sys.platform == "win32":
        is_private = right_kind
    else:
        is_private = right_kind and status.st_uid == os.geteuid() and not private.is_open(status)
    if not is_private:
        kind = "folder" if is_folder else "file"
        raise StorageError(
            f"the {kind} {path} holds code that is run, and others could have written to it",
            hint="find out who did; then delete the folder, which is created again",
            code="not_private",
        )


def make_private_folder(folder: Path) -> None:
    """Create a folder for this user alone.

    Raises:
        StorageError: It can't be created, or isn't private.
    """
    try:
        private.make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"the folder {folder} can't be made: {error.strerror}", hint="check its permissions"
        ) from None
    check_private(folder, is_folder=True)
