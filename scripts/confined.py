"""Run the suites of attacks as an unprivileged user in namespaces of its own.

`python -m scripts.confined [--required] [PYTEST'S ARGUMENTS]`: without arguments all of these suites, two at a time.

What an attack gets away with there is what it gets away with on a user's machine, and it can't harm this one: it has no
capability and can get none, sees no other process, and no network but a loopback of its own. Linux only; elsewhere, and
where the kernel doesn't allow namespaces, it says so and ends with 0, unless ``--required`` comes first.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts import memory

ROOT = Path(__file__).resolve().parents[1]
SUITES = (
    "tests/codemode/test_attacks.py",
    "tests/codemode/test_bridge.py",
    "tests/codemode/test_conversations.py",
    "tests/codemode/test_files.py",
    "tests/codemode/test_guest.py",
    "tests/codemode/test_hostile_retrieval.py",
    "tests/codemode/test_pool.py",
    "tests/codemode/test_results.py",
    "tests/codemode/test_strict.py",
    "tests/codemode/test_walls.py",
    "tests/codemode/test_writing.py",
    "tests/agents/test_injection.py",
    "tests/changes/test_rules.py",
    "tests/changes/test_taint.py",
    "tests/config/test_hostile.py",
    "tests/net/test_guard.py",
    "tests/net/test_guard_limits.py",
    "tests/parity/test_hostile.py",
    "tests/server/test_hostile.py",
    "tests/server/test_places.py",
    "tests/server/test_taint.py",
    "tests/tools/test_hidden.py",
    "tests/tools/test_hostile.py",
    "tests/tools/test_places.py",
    "tests/vault/test_places.py",
    "tests/vault/test_policy.py",
    "tests/vault/test_swapped.py",
    "tests/page/test_hostile.py",
    "tests/page/test_payloads.py",
)
"""The sandbox, policies, injection, the network's guard and the page."""
MACHINE_CODE = ROOT / ".pytest_cache" / "d" / "machine-code"
"""Where tests/compiled.py has pytest's cache keep it."""
NOBODY = 65534
_CACHE = "cache"
_INSIDE = "--inside"
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def main(arguments: Sequence[str]) -> int:
    """Run the suites, or what is named instead of them; pytest's exit code."""
    if arguments[:1] == [_INSIDE]:
        return _run_inside(Path(arguments[1]), arguments[2:])
    required = arguments[:1] == ["--required"]
    chosen = list(arguments[required:]) or [*SUITES, "-q", "-n", "2", "--dist", "worksteal"]
    refusal = _why_not()
    if refusal:
        print(f"confined: left out, since {refusal}")
        return 2 if required else 0
    with tempfile.TemporaryDirectory(prefix="knapper-", dir=memory.find_folder()) as home:
        give_machine_code(Path(home))
        if os.geteuid() == 0:
            for path in (Path(home), *Path(home).rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        again = [sys.executable, "-m", "scripts.confined", _INSIDE, home, *chosen]
        return subprocess.run([*_namespaces(), *again], cwd=ROOT, check=False).returncode


def give_machine_code(home: Path, kept: Path = MACHINE_CODE) -> None:
    """Copy the sandbox's machine code, if the tests made it before: making it takes ten seconds of a processor."""
    if os.access(kept / "private", os.R_OK | os.X_OK):
        _ = shutil.copytree(kept, home / _CACHE / "d" / kept.name)


def _namespaces() -> list[str]:
    """Return the command that enters namespaces of one's own."""
    spaces = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child"]
    return spaces if os.geteuid() == 0 else [*spaces, "--user", "--map-current-user"]


def _why_not() -> str:
    """Return why it can't be done here; empty if it can."""
    if sys.platform != "linux":
        return "namespaces are Linux's"
    missing = [name for name in ("unshare", "setpriv") if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]}"
    tried = subprocess.run([*_namespaces(), "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces can't be made here: {tried.stderr.strip()}"


def _run_inside(home: Path, chosen: Sequence[str]) -> int:
    """Bring the loopback up, open the way to the interpreter and this project, give up all rights, and run pytest."""
    _raise_loopback()
    if os.geteuid() == 0:
        _open_way([ROOT, Path(sys.base_prefix), Path(sys.prefix)])
    identity = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    variables = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "CI") if name in os.environ}
    variables |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["setpriv", *identity, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    if not identity:  # a bounding set is root's to lower
        command.remove("--bounding-set=-all")
    settings = ["-o", f"cache_dir={home / _CACHE}", "-o", "tmp_path_retention_policy=failed"]
    print(f"confined: as user {NOBODY if identity else os.getuid()}, without capabilities or a network", flush=True)
    return subprocess.run(
        [*command, sys.executable, "-m", "pytest", *settings, *chosen],
        cwd=ROOT,
        env=variables,
        check=False,
    ).returncode


def _raise_loopback() -> None:
    """Do `ip link set lo up` without that program, which a small machine lacks."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("16xH", fcntl.ioctl(asking, _SIOCGIFFLAGS, request))
        fcntl.ioctl(asking, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _open_way(places: Sequence[Path]) -> None:
    """Make folders reachable that lie in somebody's closed home: in this namespace alone, and nothing else of it."""
    closed: dict[Path, list[Path]] = {}
    for place in {place.resolve() for place in places}:
        barrier = next((way for way in reversed(place.parents) if not way.stat().st_mode & 1), None)
        if barrier is not None:
            closed.setdefault(barrier, []).append(place)
    for barrier, within in closed.items():
        kept = [(place, Path(tempfile.mkdtemp(prefix="kept-"))) for place in within]
        for place, copy in kept:
            _mount("--bind", place, copy)
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", barrier)
        for place, copy in kept:
            place.mkdir(parents=True, exist_ok=True)
            _mount("--move", copy, place)
            copy.rmdir()


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
