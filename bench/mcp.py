"""Speak to `knap mcp` over its pipes, as a client does."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import frame, generate, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places

SUMMARY = "MCP over pipes: the handshake before anything is indexed, and round trips of tools"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """Talk with one server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._number = 0
        self.pid = process.pid
        self.received = 0
        """Bytes of the last message."""

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            line = self._from.readline()
            self.received = len(line)
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return answer["result"]

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._to.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._to.flush()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5, help="handshakes (default: 5)")
    parser.add_argument("--calls", type=int, default=100, help="calls of each tool (default: 100)")


def run(where: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(where, options.notes)
    if vault is None:
        return "no real vaults to generate from"
    hellos: list[float] = []
    for _ in range(options.rounds):
        with vaults.scratch(where.cache) as fresh:
            begin = time.perf_counter()
            with started(vault, fresh) as server:
                server.ask("initialize", HELLO)
                hellos.append((time.perf_counter() - begin) * 1000)
    with vaults.scratch(where.cache) as home:
        times = _calls(vault, home, options.calls)
    rows = [Row(what="handshake, nothing indexed", values=hellos, unit="ms", goal=Goal(limit=1_000), digits=0)]
    rows += [
        Row(what=f"{name}, {part}", values=[frame.percentile(values, share)], unit="ms", goal=goal)
        for name, values in times.items()
        for part, share, goal in (("p50", 0.5, Goal(limit=20)), ("p95", 0.95, None))
    ]
    about = (
        f"`knap mcp` on {options.notes:,} generated notes. The handshake counts from the start of the process, with an "
        f"empty state folder, files in the system's cache. Each tool {options.calls} times, when the index was there."
    )
    return Report(title="MCP over pipes", about=about, rows=rows)


def _calls(vault: Path, home: Path, number: int) -> dict[str, list[float]]:
    notes = sorted(path.relative_to(vault).as_posix() for path in vault.rglob("*.md"))[:: max(1, 10_000 // number)]
    with started(vault, home) as server:
        server.ask("initialize", HELLO)
        server.tell("notifications/initialized")
        while (
            server.ask("tools/call", {"name": "vault_status", "arguments": {}})["structuredContent"]["pending"]
            or (
                server.ask("tools/call", {"name": "vault_status", "arguments": {}})["structuredContent"][
                    "index_incomplete"
                ]
            )
        ):
            time.sleep(1)
        return {
            name: [_time(server, name, {argument: _given(argument, note)}) for note in notes[:number]]
            for name, argument in (
                ("read_file", "path"),
                ("find_backlinks", "note_name"),
                ("search_vault", "query"),
                ("note_info", "path"),
            )
        }


def _given(argument: str, note: str) -> str:
    return note if argument == "path" else Path(note).stem


def _time(server: Server, name: str, arguments: Mapping[str, Any]) -> float:
    begin = time.perf_counter()
    result = server.ask("tools/call", {"name": name, "arguments": arguments})
    if result.get("isError"):
        sys.exit(f"bench: {name} failed: {result}")
    return (time.perf_counter() - begin) * 1000


@contextmanager
def started(vault: Path, home: Path, *more: str) -> Generator[Server]:
    """Start `knap mcp` for a vault, with a state folder of its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KNAP_", "VAULT_"))}  # noqa: TID251
    environment = {**own, "KNAP_STATE_DIR": str(home / "state"), "KNAP_CONFIG": str(home / "config.toml")}
    line = [sys.executable, "-m", "knapper.cli", "mcp", "--vault", str(vault), *more]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield Server(process)
        finally:
            process.kill()
