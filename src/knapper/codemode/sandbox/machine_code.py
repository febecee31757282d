"""Keep the interpreter's machine code: compiled once on this machine, in a folder that only its user can write to.

Loading machine code is running it, so a folder or file that others could have written to is refused, not repaired.
"""

import contextlib
import hashlib
import os
import platform
import stat
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from knapper.codemode.sandbox import launching
from knapper.errors import KnapError, SetupError, StorageError

COMPONENT: Final = Path(__file__).parents[2] / "data" / "scripts" / "interpreter.wasm"
STAMP: Final = "interpreter.stamp"
_PRIVATE: Final = 0o700
_OTHERS: Final = 0o077
_WAIT_S: Final = 300
_COMPILE_S: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode:
    """Know where the machine code is, or would be."""

    folder: Path
    """Made for this alone."""
    component: Path = COMPONENT

    @property
    def file(self) -> Path:
        """Name the file by all that it depends on: component, engine, its options, and the kind of processor.

        Raises:
            SetupError: There is no component, or no engine.
        """
        parts = (self._component_hash(), _engine_version(), _options_hash(), platform.system(), platform.machine())
        return self.folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.code"

    def is_ready(self) -> bool:
        """Tell whether it is compiled.

        Raises:
            StorageError: Others could have written what is there.
        """
        if not os.path.lexists(self.file):
            return False
        check(self.folder, is_folder=True)
        check(self.file, is_folder=False)
        return True

    def provide(self) -> Path:
        """Give the file, compiled now if it isn't yet; several processes at once compile once.

        Raises:
            SetupError: It can't be compiled.
            StorageError: The folder can't be used.
        """
        if self.is_ready():
            return self.file
        make_private(self.folder)
        try:
            with FileLock(self.folder / "compile.lock", timeout=_WAIT_S, mode=0o600):
                if not self.is_ready():
                    self._compile()
        except Timeout:
            raise SetupError("another process is still preparing the sandbox", hint="try again in a minute") from None
        return self.file

    def in_background(self) -> threading.Thread | None:
        """Begin to compile where it isn't done; the process that does goes on when this one ends.

        Returns:
            What can be waited for; None where there is nothing to do.
        """
        if self.is_ready():
            return None
        thread = threading.Thread(target=self._quietly, daemon=True)
        thread.start()
        return thread

    def _quietly(self) -> None:
        with contextlib.suppress(KnapError):  # whoever runs a script is told
            _ = self.provide()

    def _compile(self) -> None:
        part = self.folder / f"{self.file.name}.{os.getpid()}.part"
        part.unlink(missing_ok=True)
        names = [str(self.component), str(part), str(self.file)]
        try:
            with subprocess.Popen(  # noqa: S603 - a command of this package's own
                launching.python("compile_code", names),
                env=launching.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                code = _wait(process)
        finally:
            part.unlink(missing_ok=True)
        if code or not self.is_ready():
            hint = "it takes about 1 GB of memory for some seconds; `knap doctor` checks what else is needed"
            raise SetupError(f"the sandbox can't be prepared (code {code})", hint=hint)
        self._forget_others()

    def _forget_others(self) -> None:
        for old in self.folder.glob("*.code"):
            if old != self.file:
                old.unlink(missing_ok=True)

    def _component_hash(self) -> str:
        try:
            return (self.component.parent / STAMP).read_text(encoding="utf-8")
        except OSError:
            hint = "install Knapper from its wheel, or run scripts/setup in its sources"
            raise SetupError("this installation has no interpreter of scripts", hint=hint, code="no_sandbox") from None


def check(path: Path, *, is_folder: bool) -> None:
    """Refuse what others own or could have written to; on Windows the user's own folder sees to that.

    Raises:
        StorageError: It isn't the user's alone.
    """
    found = path.lstat()
    right_kind = stat.S_ISDIR(found.st_mode) if is_folder else stat.S_ISREG(found.st_mode)
    if sys.platform == "win32":
        is_private = right_kind
    else:
        is_private = right_kind and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
    if not is_private:
        kind = "folder" if is_folder else "file"
        raise StorageError(
            f"the {kind} {path} holds code that is run, and others could have written to it",
            hint="look who did; delete the folder, and it is made anew",
            code="not_private",
        )


def make_private(folder: Path) -> None:
    """Make a folder for this user alone.

    Raises:
        StorageError: It can't be made, or is there and isn't.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {folder} can't be made: {error.strerror}", hint="check its permissions"
        ) from None
    check(folder, is_folder=True)


def _engine_version() -> str:
    try:
        return metadata.version("wasmtime")
    except metadata.PackageNotFoundError:
        hint = "there is no wasmtime for every system; without it scripts stay refused"
        raise SetupError("scripts need wasmtime, and it isn't installed here", hint=hint, code="no_sandbox") from None


def _options_hash() -> str:
    return hashlib.sha256((Path(__file__).parent / "engine.py").read_bytes()).hexdigest()


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_COMPILE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
