"""Let clients search over HTTP without a pause, and measure how many answers a second and a processor second give."""

import argparse
import asyncio
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import frame, generate, load, questions, vaults
from bench.frame import Goal, Report, Row
from bench.load import Client, Found, Server
from bench.places import Places

SUMMARY = "searches a second over HTTP, by the server alone and by reader processes"
_MODES = ("hybrid", "keyword")


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
        "and readers."
    )
    return Report(title="Searches a second", about=about, rows=rows)


@dataclass(kw_only=True)
class _Measured:
    """Gather what came of one measurement."""

    times: list[float] = field(default_factory=list[float])
    errors: int = 0
    seconds: float = 0.0
    processor_s: float = 0.0


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
    before = _processor_s(server)
    found = await _search_for(server, asked, mode, options.seconds, options.clients)
    found.processor_s = _processor_s(server) - before
    return found


def _processor_s(server: Server) -> float:
    return sum(each.processor_s() for each in (server, *server.readers()))


async def _search_for(server: Server, asked: list[str], mode: str, seconds: float, clients: int) -> _Measured:
    found, began = _Measured(), time.monotonic()

    async def ask(number: int) -> None:
        client, pick = Client(server, Found(), 0), random.Random(number)
        while time.monotonic() < began + seconds:
            sent = time.monotonic()
            arguments: dict[str, object] = {"query": pick.choice(asked), "n_results": 10, "mode": mode}
            status, _ = await client.post("search_vault", arguments)
            found.times.append((time.monotonic() - sent) * 1000)
            found.errors += status != 200

    await asyncio.gather(*(ask(number) for number in range(clients)))
    found.seconds = time.monotonic() - began
    return found
