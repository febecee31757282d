"""Publish a vault to a PostgreSQL of one's own, and search it as a machine without files does."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.app.vault import open_embedder
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.models.base import EmbedderSettings
from knapper.index.postgres.connection import PostgresServer
from knapper.index.postgres.publish import Publisher
from knapper.index.postgres.reader import ReaderEngine
from knapper.index.postgres.snapshot import PublishedSnapshots
from knapper.index.search import SearchMode, SearchRequest
from knapper.index.tokenizer import parse_query
from knapper.vault.access import Policy
from tests.postgres import LocalServer

SUMMARY = "an index in PostgreSQL: publishing, one note, and searches without the files, in processor time"
_SIZES = {"10,000": 1_900, "100,000": 19_200}
"""Generated notes that make about so many chunks."""
_MILLION = {"a million": 192_000}
_OWNER = Policy(client="owner")
_FEW = Policy(client="few", read=("*1*.md",))
_SAVES = 10
_FIRST = 10
_PERCENTILES = (("p50", 0.5), ("p95", 0.95))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--million", action="store_true", help="also a million chunks, which takes an hour")
    parser.add_argument("--only", help="one size alone, such as 10,000")
    parser.add_argument("--questions", type=int, default=200, help="how many different questions (default: 200)")
    parser.add_argument("--keep", action="store_true", help="use the local indexes of the last run, if there are any")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    sizes = {**_SIZES, **(_MILLION if options.million else {})}
    if options.only:
        sizes = {name: notes for name, notes in sizes.items() if name == options.only}
    rows: list[Row] = []
    server = LocalServer(settings=("shared_buffers=1GB", "max_wal_size=4GB"))
    try:
        for size, notes in sizes.items():
            vault = generate.vault(places, notes)
            if vault is None:
                return "there are no real vaults to generate one from"
            folder = places.cache / f"published-{notes}"
            if not (options.keep and (folder / "index.db").exists()):
                frame.say(f"indexing {notes:,} notes")
                frame.in_child(vaults.index, vault, folder)
            rows += _measure(size, vault, folder, server, options.questions)
    finally:
        server.close()
    about = (
        f"{options.questions} questions of 1 to 12 words over generated vaults of about so many chunks, whole searches "
        "of ten hits, in one connection through a socket on the same machine. Processor time of the asking process and "
        "of the server together, without parallel workers; by the clock on a machine that others used at the same time."
    )
    return Report(title="Index in PostgreSQL", about=about, rows=rows)


class _ProcessorClock:
    """Processor time of this process and of the server's, to the nanosecond where Linux tells it."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def start(self) -> tuple[float, float]:
        """Begin; the looking around itself isn't counted."""
        server = self._read_server()
        return server, time.process_time()

    def stop(self, begun: tuple[float, float]) -> float:
        """Return the seconds since."""
        own = time.process_time()
        return own - begun[1] + self._read_server() - begun[0]

    def _read_server(self) -> float:
        # What ended processes took is counted by their parent, in hundredths of a second.
        parent = Path(f"/proc/{self._server.process}/stat").read_text("ascii").rpartition(")")[2].split()
        spent = (int(parent[13]) + int(parent[14])) / os.sysconf("SC_CLK_TCK")
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = file.read_text().rpartition(")")[2].split()
                if int(fields[1]) == self._server.process or file.parent.name == str(self._server.process):
                    spent += int((file.parent / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                continue
        return spent


def _measure(size: str, vault: Path, folder: Path, server: LocalServer, count: int) -> list[Row]:
    asked = questions.of(vault, count)
    clock = _ProcessorClock(server)
    rows: list[Row] = []

    def took(what: str, work: Callable[[], object]) -> None:
        begin, wall = clock.start(), time.perf_counter()
        work()
        taken = time.perf_counter() - wall
        rows.append(Row(what=f"{size}: {what}", values=[clock.stop(begin)], unit="s"))
        rows.append(Row(what=f"{size}: {what}, by the clock", values=[taken], unit="s"))

    embedder = open_embedder(EmbedderSettings())
    name = f"bench {size}"
    address = f"{server.address()}&options=-c%20max_parallel_workers_per_gather%3D0"
    with ExitStack() as stack:
        engine = stack.enter_context(vaults.opened(vault, folder))
        publisher = Publisher(stack.enter_context(PostgresServer(address, name)), readers={})
        model = engine.model
        frame.say(f"publishing {size} chunks")
        took("published whole", lambda: publisher.publish(engine.store, engine.view, model=model))
        reader = ReaderEngine(
            stack.enter_context(vaults.scratch(folder.parent)) / "reader",
            folder / "nowhere",
            _OWNER,
            PostgresServer(address, name),
            open_embedder=lambda: embedder,
        )
        _ = stack.enter_context(reader)
        took("a reader's first copy of the records", reader.refresh)
        with publisher.server.snapshot() as session:
            sql = "SELECT sum(pg_total_relation_size(oid)) / 2^20 FROM pg_class WHERE relnamespace = %s::regnamespace"
            row = session.execute(f"{sql} AND relkind = 'r'", (publisher.server.schema,)).fetchone()
        rows.append(
            Row(what=f"{size}: on the server's disk", values=[float(row[0]) if row else 0], unit="MB", digits=0)
        )
        _ = reader.search(SearchRequest(text=asked[0]))
        for label, mode, where in (
            ("words", "keyword", Filter()),
            ("meaning", "semantic", Filter()),
            ("hybrid", "hybrid", Filter()),
            ("hybrid, a policy that shows few", "hybrid", Filter(policy=_FEW)),
        ):
            rows += _ask(f"{size}: {label}", reader, asked, cast("SearchMode", mode), where, clock)
        rows += _saves(size, engine, publisher, vault, model, clock)
        rows += _compare(size, engine, reader, asked)
    return rows


def _ask(
    what: str, reader: ReaderEngine, asked: Sequence[str], mode: SearchMode, where: Filter, clock: _ProcessorClock
) -> list[Row]:
    spent: list[float] = []
    walls: list[float] = []
    for text in asked:
        begin, wall = clock.start(), time.perf_counter()
        _ = reader.search(SearchRequest(text=text, mode=mode, limit=10, where=where))
        walls.append((time.perf_counter() - wall) * 1000)
        spent.append((clock.stop(begin)) * 1000)
    is_goal = mode == "hybrid" and where.trivial
    rows = [
        Row(
            what=f"{what}, {label}",
            values=[frame.percentile(spent, share)],
            unit="ms",
            goal=Goal(limit=60) if is_goal and label == "p95" else None,
        )
        for label, share in _PERCENTILES
    ]
    return [
        *rows,
        *(
            Row(what=f"{what}, {label}, by the clock", values=[frame.percentile(walls, share)], unit="ms")
            for label, share in _PERCENTILES
        ),
    ]


def _saves(
    size: str, engine: Engine, publisher: Publisher, vault: Path, model: str, clock: _ProcessorClock
) -> list[Row]:
    """Save notes with one more line, publish each, and put them back."""
    spent: list[float] = []
    files = sorted(vault.rglob("*.md"))[:_SAVES]
    before = {file: file.read_bytes() for file in files}
    try:
        for file, text in before.items():
            file.write_bytes(text + b"\n\nOne more line with a word or two.\n")
            engine.refresh_paths([file])
            engine.embed()
            begin = clock.start()
            publisher.publish(engine.store, engine.view, model=model)
            spent.append((clock.stop(begin)) * 1000)
    finally:
        for file, text in before.items():
            file.write_bytes(text)
        engine.refresh_paths(files)
        engine.embed()
        publisher.publish(engine.store, engine.view, model=model)
    return [Row(what=f"{size}: one saved note published", values=spent, unit="ms")]


def _compare(size: str, engine: Engine, reader: ReaderEngine, asked: Sequence[str]) -> list[Row]:
    """Compare with the local index: the scores by words, and which chunks are nearest in meaning."""
    different = 0
    shared: list[float] = []
    kept: list[float] = []
    opened = cast("PublishedSnapshots", reader.open_snapshots())
    own = engine.open_snapshots()
    for text in asked:
        query = parse_query(text)
        vector = cast("Any", engine.embedder).query(text)
        with opened.snapshot(engine.model) as there, own.snapshot(engine.model) as here:
            words = [list(one.keyword(query, Filter(), limit=_FIRST).values()) for one in (there, here)]
            different += [round(score, 6) for score in words[0]] != [round(score, 6) for score in words[1]]
            near = [one.nearest(vector, Filter(), limit=200)() for one in (there, here)]
            least = sorted(near[1].values(), reverse=True)
            for number, share in ((_FIRST, shared), (200, kept)):
                found = sorted(near[0].values(), reverse=True)[:number]
                if len(least) >= number:
                    share.append(sum(cosine >= least[number - 1] - 1e-3 for cosine in found) / number)
    return [
        Row(
            what=f"{size}: questions of which the first {_FIRST} scores by words aren't exact BM25",
            values=[different],
            goal=Goal(limit=1),
        ),
        Row(
            what=f"{size}: nearest {_FIRST} found",
            values=[sum(shared) / max(len(shared), 1)],
            goal=Goal(limit=0.99, sense="at least"),
        ),
        Row(what=f"{size}: nearest 200 found", values=[sum(kept) / max(len(kept), 1)]),
    ]
