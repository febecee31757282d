"""Run `knap serve` as a process of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx2

KNAP = [sys.executable, "-m", "knapper.cli"]
GRACE_S = 30


@dataclass(kw_only=True)
class Running:
    """Hold a running server."""

    process: subprocess.Popen[str]
    address: str
    token: str
    printed: list[str]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def client(self, *, timeout_s: float = 20.0) -> httpx2.Client:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=timeout_s, trust_env=False, verify=False)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=GRACE_S)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Tell the server to end; gives its exit code."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        rest = self.process.communicate(timeout=GRACE_S)[1]
        self.printed += rest.splitlines()
        return self.process.returncode


@contextmanager
def serving(vault: Path | None, *args: str, config: str = "", home: Path) -> Generator[Running]:
    """Serve a vault at a free port, or those of the configuration."""
    (home / "config.toml").write_text(config, encoding="utf-8")
    env = {**os.environ, "KNAP_EMBEDDINGS": "none"}  # noqa: TID251  # a process of its own gets this one's environment
    named = ["--vault", str(vault)] if vault else []
    command = [*KNAP, *named, "serve", "--port", "0", *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=env) as process:
        assert process.stderr is not None
        try:
            yield _greeted(process, process.stderr)
        finally:
            if process.poll() is None:
                process.kill()


def _greeted(process: subprocess.Popen[str], printed: IO[str]) -> Running:
    first, second = printed.readline(), printed.readline()
    found = re.search(r"at (http://\S+);", first)
    assert found is not None, first + second + printed.read()
    place = re.search(r"the token of (.+)$", second.strip())
    path = Path(place.group(1)) if place else Path()
    token = path.read_text(encoding="ascii").strip() if path.is_file() else ""
    return Running(process=process, address=found.group(1), token=token, printed=[first, second])
