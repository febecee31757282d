"""Let clients search over HTTP without a pause, and measure how many answers a second and a processor second give."""

import argparse
import asyncio
import json
import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import frame, generate, load, questions, vaults
from bench.frame import Goal, Report, Row
from bench.load import Server
from bench.places import Places

SUMMARY = "searches a second over HTTP, by the server alone and by reader processes"
_MODES = ("hybrid", "keyword")
_RESULTS = 10
_HEAD_END = b"\r\n\r\n"
_SUCCESS = b"HTTP/1.1 200 "
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)\r\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000, help="size of the generated vault")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each measurement takes (default: 20)")
    parser.add_argument("--settle", type=float, default=20.0, help="how long they search before (default: 20)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--readers", type=int, nargs="*", default=[0, 2], help="server.readers (default: 0 2)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    generated = generate.vault(places, options.notes)
    if generated is None:
        return "there are no real vaults to generate one from"
    rows: list[Row] = []
    with vaults.scratch(places.cache) as folder:
        vault = folder / "vault"
        shutil.copytree(generated, vault)
        asked = questions.of(vault, 300)
        for readers in options.readers:
            rows += _measure(vault, folder, asked, readers, options)
    about = (
        f"{options.clients} clients that search without a pause, at one `knap serve` over a generated vault of "
        f"{options.notes:,} notes; clients and server share the machine. Processor time is that of server "
        "and readers; that of the clients, which is little, is told beside it."
    )
    return Report(title="Searches a second", about=about, rows=rows)


@dataclass(kw_only=True)
class _Measured:
    """Gather what came of one measurement."""

    times: list[float] = field(default_factory=list[float])
    errors: int = 0
    seconds: float = 0.0
    processor_s: float = 0.0
    """Of server and readers."""
    client_s: float = 0.0
    """Of the clients."""


def _measure(vault: Path, folder: Path, asked: list[str], readers: int, options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    with load.serving(vault, folder, more=f"readers = {readers}\n") as server:
        for mode in _MODES:
            found = asyncio.run(_search(server, asked, mode, options))
            name = f"{readers} readers, {mode}"
            rows += [
                Row(what=f"{name}: answers a second", values=[len(found.times) / found.seconds]),
                Row(
                    what=f"{name}: processor time for an answer",
                    values=[found.processor_s * 1000 / len(found.times)],
                    unit="ms",
                ),
                Row(
                    what=f"{name}: the clients' own, for an answer",
                    values=[found.client_s * 1000 / len(found.times)],
                    unit="ms",
                ),
                Row(what=f"{name}: median", values=[frame.percentile(found.times, 0.5)], unit="ms"),
                Row(what=f"{name}: 95th percentile", values=[frame.percentile(found.times, 0.95)], unit="ms"),
                Row(what=f"{name}: errors", values=[found.errors], goal=Goal(limit=1)),
            ]
        own = [reader.own_mb() for reader in server.readers()]
        if own:
            rows.append(Row(what=f"{readers} readers: memory of its own, each", values=own, unit="MB"))
    return rows


async def _search(server: Server, asked: list[str], mode: str, options: argparse.Namespace) -> _Measured:
    await load.warm(server, asked[0])
    await _search_for(server, asked, mode, options.settle, options.clients)
    frame.say(f"{mode}, {len(server.readers())} readers")
    before, own_before = _processor_s(server), time.process_time()
    found = await _search_for(server, asked, mode, options.seconds, options.clients)
    found.processor_s, found.client_s = _processor_s(server) - before, time.process_time() - own_before
    return found


def _processor_s(server: Server) -> float:
    return sum(each.processor_s() for each in (server, *server.readers()))


async def _search_for(server: Server, asked: list[str], mode: str, seconds: float, clients: int) -> _Measured:
    loop, found, began = asyncio.get_running_loop(), _Measured(), time.monotonic()

    def client(number: int) -> _Client:
        return _Client(_requests(server, asked, mode, number), found, began + seconds)

    opened = [
        await loop.create_connection(lambda number=number: client(number), server.host, server.port)
        for number in range(clients)
    ]
    await asyncio.gather(*(protocol.ended for _, protocol in opened))
    found.seconds = time.monotonic() - began
    return found


def _requests(server: Server, asked: list[str], mode: str, number: int) -> Iterator[bytes]:
    pick = random.Random(number)
    head = (
        f"POST /tools/search_vault HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    while True:
        body = json.dumps({"query": pick.choice(asked), "n_results": _RESULTS, "mode": mode}).encode()
        yield b"%b%d%b%b" % (head, len(body), _HEAD_END, body)


class _Client(asyncio.Protocol):
    """Search over one connection, one request after another; whatever isn't a whole answer of results is an error."""

    def __init__(self, requests: Iterator[bytes], found: _Measured, end: float) -> None:
        self._requests = requests
        self._found = found
        self._end = end
        self._sent = 0.0
        self._size = 0
        self._received = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._size:
            start = self._received.find(_HEAD_END) + len(_HEAD_END)
            length = _LENGTH.search(self._received, 0, start) if start >= len(_HEAD_END) else None
            self._size = start + int(length[1]) if length else 0
        if self._size and len(self._received) >= self._size:
            self._found.times.append((time.monotonic() - self._sent) * 1000)
            is_right = self._received.startswith(_SUCCESS) and self._received.endswith(b"}")
            self._found.errors += len(self._received) != self._size or not is_right
            self._size = 0
            self._received.clear()
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._found.errors += self._sent < self._end
        self.ended.set_result(None)

    def _ask(self) -> None:
        self._sent = time.monotonic()
        if self._sent >= self._end:
            self._transport.close()
        else:
            self._transport.write(next(self._requests))
