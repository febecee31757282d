"""Start worker processes: nothing inherited, and what each system has to hold them."""

import ctypes
import importlib.util
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from knapper.codemode.sandbox.walls import job_object, seatbelt

Entry = Literal["main", "compile_code"]
_PROGRAM: Final = (
    "import sys; sys.path[len(sys.path):] = sys.argv[1:3]; "
    "from knapper.codemode.sandbox import worker; worker.{entry}()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Say what is known of this system."""

    system: str = sys.platform
    executable: str = sys.executable
    prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)
    system_root: str = ""
    """Of Windows, where Python doesn't start without it."""


def python(entry: Entry, arguments: Sequence[str], facts: Facts | None = None) -> list[str]:
    """Give the command that runs one of the worker's functions: no site, no variables, no folder of the caller's."""
    known = facts or Facts()
    return [
        *(known.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM.format(entry=entry)),
        *(str(folder) for folder in folders()),
        *arguments,
    ]


def command(machine_code: Path, memory_mb: int, facts: Facts, *, walls: bool) -> list[str]:
    """Give the command that runs a worker, within what the system offers for that."""
    made = python("main", ["walls" if walls else "bare", str(machine_code), str(memory_mb)], facts)
    if walls and facts.system == "darwin":
        readable = (*facts.prefixes, *map(str, folders()), str(machine_code.parent))
        return [*seatbelt.prefix(readable), *made]
    return made


def environment(facts: Facts | None = None) -> Mapping[str, str]:
    """Give the whole environment of a worker: nothing, where the system lets it start so."""
    known = facts or Facts()
    return {"SYSTEMROOT": known.system_root or r"C:\Windows"} if known.system == "win32" else {}


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a worker in an empty folder, with three pipes' ends and no other descriptor."""
    return subprocess.Popen(  # noqa: S603 - a command of this package's own
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        cwd=folder,
        close_fds=True,
        start_new_session=True,
    )


def folders() -> tuple[Path, Path]:
    """Name the folders that a worker imports from: this package's, and wasmtime's."""
    spec = importlib.util.find_spec("wasmtime")
    found = Path(spec.origin).parents[1] if spec and spec.origin else Path()
    return Path(__file__).parents[3], found


def hold(process: subprocess.Popen[bytes], memory_mb: int, facts: Facts) -> Mapping[str, str]:
    """Do what the system lets a parent do to hold a worker; tells what stands."""
    if facts.system == "darwin":
        return {"seatbelt": "on"}
    if facts.system != "win32":
        return {}
    kernel = cast("job_object.Kernel", ctypes.WinDLL("kernel32", use_last_error=True))
    handle = int(process._handle)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]  # noqa: SLF001 - there is no other way to it
    return {"job object": job_object.hold(kernel, handle, memory_mb)}
