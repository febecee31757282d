"""Build and ask Knapper's own engines: a derived file, SQLite alone, and PostgreSQL; each function runs in a child."""

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bench import frame, vaults
from bench.places import Places
from knapper.app.vault import open_embedder
from knapper.index import database
from knapper.index import vectors as vector_file
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.models.base import EmbedderSettings
from knapper.index.postgres.connection import PostgresServer
from knapper.index.postgres.publish import Publisher
from knapper.index.postgres.reader import ReaderEngine
from knapper.index.postgres.snapshot import PublishedSnapshots
from knapper.index.search import SearchMode, SearchRequest
from knapper.index.store import IndexStore
from knapper.index.tokenizer import parse_query
from knapper.index.words import fts5, fulltext, postings
from knapper.vault.access import Policy
from tests.postgres import LocalServer

CANDIDATES = 200
"""Chunks that a search takes from each ranking."""
BUILT = ".built.json"
"""Figures of the indexing, beside a whole index."""
HITS = 10
Kind = Literal["codes", "mapped", "fts5"]
"""With a derived file of postings and codes of the vectors, with the file alone, or with neither."""
_EXACT = 1_000
"""Exact rows that are kept for each question, so that equal scores beyond the tenth count, too."""
_RRF_K = 60
_SAVES = 20
_WARM_UP = 20
_CODES_S = 2.0
"""Until the codes are read, which the second question begins."""
_PAUSE_S, _MAX_PAUSES, _QUIET_S = 0.02, 25, 0.0005
_BLOCK_ROWS = 50_000
_FEW = Policy(client="few", read=("*1*.md",))
_MODES: Mapping[str, SearchMode] = {"words": "keyword", "meaning": "semantic", "hybrid": "hybrid"}
_PLACES_SQL = "SELECT c.id, f.path, c.position FROM chunks c JOIN files f ON f.id = c.id >> 20"
_SERVER_SETTINGS = ("shared_buffers=1GB", "max_wal_size=4GB")
Times = dict[str, list[float]]


class Clock(Protocol):
    """Tells processor time."""

    def start(self) -> tuple[float, float]:
        """Begin."""
        ...

    def stop(self, begun: tuple[float, float]) -> float:
        """Return the seconds since."""
        ...


class _OwnClock:
    """Processor time of this process, all threads together."""

    def start(self) -> tuple[float, float]:
        return 0.0, time.process_time()

    def stop(self, begun: tuple[float, float]) -> float:
        return time.process_time() - begun[1]


class _ServerClock:
    """Processor time of this process and of a PostgreSQL, to the nanosecond where Linux tells it."""

    def __init__(self, server: int) -> None:
        """Count the processes of *server*, by the id of the first one."""
        self._server = server

    def start(self) -> tuple[float, float]:
        """Begin; the looking around itself isn't counted.

        A process of the server that has just ended, as that of a closed connection, is counted by its parent a moment
        later, and would count for what is measured then; so it is waited for.
        """
        server = self._read_server()
        for _ in range(_MAX_PAUSES):
            time.sleep(_PAUSE_S)
            before, server = server, self._read_server()
            if server - before < _QUIET_S:
                break
        return server, time.process_time()

    def stop(self, begun: tuple[float, float]) -> float:
        own = time.process_time()
        return own - begun[1] + self._read_server() - begun[0]

    def _read_server(self) -> float:
        # What ended processes took is counted by their parent, in hundredths of a second.
        parent = Path(f"/proc/{self._server}/stat").read_text("ascii").rpartition(")")[2].split()
        spent = (int(parent[13]) + int(parent[14])) / os.sysconf("SC_CLK_TCK")
        for process in server_processes(self._server):
            with suppress(OSError):  # it ended meanwhile, and its parent counts it
                spent += int((process / "schedstat").read_text().split()[0]) / 1e9
        return spent


def server_processes(server: int) -> Generator[Path]:
    """Yield the folders below /proc of a PostgreSQL's processes."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
            if int(fields[1]) == server or file.parent.name == str(server):
                yield file.parent
        except OSError:
            continue  # ended meanwhile


def build_index(places: Places, vault: Path, folder: Path, *, is_derived: bool) -> None:
    """Index a vault from nothing in a new process, and keep its figures beside it; an ended run leaves nothing.

    Args:
        places: Where to work.
        vault: The notes.
        folder: Where the index is put once it is whole.
        is_derived: Derive files in an index of any size; otherwise from the size on that the program has.
    """
    frame.say(f"indexing {vault.name}")
    with vaults.scratch(places.cache) as work:
        built = frame.in_child(index, vault, work / "index", is_derived=is_derived)
        (work / "index" / BUILT).write_text(json.dumps(built), "utf-8")
        vaults.move(work / "index", folder)


def index(vault: Path, folder: Path, *, is_derived: bool = True) -> dict[str, float]:
    """Index a vault from nothing, as the program does; gives processor seconds, counts and megabytes."""
    if is_derived:
        _choose("codes")
    begin = frame.processor_s()
    with vaults.opened(vault, folder) as engine:
        engine.refresh()
        lexical = frame.processor_s() - begin
        engine.embed()
        chunks = engine.status(Filter()).chunks
    total = frame.processor_s() - begin
    figures = {"words_s": lexical, "total_s": total, "chunks": chunks, "peak_mb": frame.memory_mb()["peak"]}
    return {**figures, "disk_mb": sum(file.stat().st_size for file in folder.iterdir()) / 2**20}


def derive(folder: Path, kind: Kind) -> dict[str, float]:
    """Derive the files anew, or remove them; gives processor seconds, and megabytes on disk."""
    _choose(kind)
    store = IndexStore(folder / database.INDEX_FILE)
    model = str(store.database.reader().execute("SELECT model FROM vectors LIMIT 1").fetchone()[0])
    with store.database.transaction() as connection:
        fts5.stop_recording(connection)
        connection.execute("DELETE FROM meta WHERE key = 'vector_file'")
    begin = time.process_time()
    if kind != "fts5":
        postings.build(store.database)
        vector_file.build(store.database, model)
    spent = time.process_time() - begin
    vector_file.remove_stray_files(store.database)
    if kind == "fts5":
        for file in folder.glob(f"{database.POSTINGS_PREFIX}*"):
            file.unlink()
    store.close()
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / 2**20
    return {"derive_s": spent, "disk_mb": size, "peak_mb": frame.memory_mb()["peak"]}


def _choose(kind: Kind) -> None:
    """Let the engine derive what *kind* has, in an index of any size."""
    least = sys.maxsize if kind == "fts5" else 1
    setattr(postings, "MIN_ROWS", least)  # noqa: B010 - constants of the program
    setattr(vector_file, "MIN_ROWS", least)  # noqa: B010
    if kind != "codes":
        setattr(vector_file, "MIN_CODED_ROWS", sys.maxsize)  # noqa: B010


def first(vault: Path, folder: Path, text: str, kind: Kind) -> float:
    """Open an index in a new process and ask one question; gives milliseconds, imports not counted."""
    _choose(kind)
    begin = time.process_time()
    with vaults.opened(vault, folder) as engine:
        engine.search(SearchRequest(text=text, limit=HITS))
        return (time.process_time() - begin) * 1000


def ask_local(vault: Path, folder: Path, asked: Sequence[str], kind: Kind) -> dict[str, Any]:
    """Ask a local index all questions, then save notes."""
    _choose(kind)
    with vaults.opened(vault, folder) as engine:
        answer = _ask(engine, asked, _OwnClock(), wait_s=_CODES_S)

        def take_in(file: Path) -> None:
            engine.refresh_paths([file])
            engine.embed()

        saves, after = save(vault, take_in, lambda text: engine.search(SearchRequest(text=text, limit=HITS)), asked)
    return {**answer, "save_ms": saves, "after_ms": after}


def _ask(engine: Engine, asked: Sequence[str], clock: Clock, *, wait_s: float = 0.0) -> dict[str, Any]:
    """Ask an open engine: whole searches, and the rankings alone."""
    times: Times = {}
    requests: dict[str, Callable[[str], SearchRequest]] = {
        f"search, {way}": lambda text, mode=mode: SearchRequest(text=text, mode=mode, limit=HITS)
        for way, mode in _MODES.items()
    }
    few = Filter(policy=_FEW)
    requests["search, few"] = lambda text: SearchRequest(text=text, limit=HITS, where=few)
    for text in asked[:2]:
        engine.search(SearchRequest(text=text, limit=HITS))
    time.sleep(wait_s)
    for way, request in requests.items():
        for text in asked[:_WARM_UP]:
            engine.search(request(text))
        times[way] = [_timed(clock, lambda text=text: engine.search(request(text))) for text in asked]  # noqa: B023
    memory = frame.memory_mb()["own"]
    rankings = _rank(engine, asked, clock)
    return {"times": {**times, **rankings["times"]}, "found": rankings["found"], "memory_mb": memory}


def _rank(engine: Engine, asked: Sequence[str], clock: Clock) -> dict[str, Any]:
    """Take the best 200 chunks by words and by meaning, and join both: what engines without notes do."""
    embedder = engine.embedder
    assert embedder is not None
    vectors = [embedder.query(text) for text in asked]
    queries = [parse_query(text) for text in asked]
    snapshots = engine.open_snapshots()
    times: Times = {"words": [], "meaning": [], "hybrid": []}
    found: dict[str, list[list[int]]] = {"words": [], "meaning": []}
    for query, vector in zip(queries, vectors, strict=True):
        with snapshots.snapshot(engine.model) as snapshot:
            ranked: dict[str, Mapping[int, float]] = {}

            def rank_words() -> None:
                ranked["words"] = snapshot.keyword(query, Filter(), limit=CANDIDATES)  # noqa: B023

            def rank_meaning() -> None:
                ranked["meaning"] = snapshot.nearest(vector, Filter(), limit=CANDIDATES)()  # noqa: B023

            spent = {"words": _timed(clock, rank_words), "meaning": _timed(clock, rank_meaning)}
            joined = _timed(clock, lambda: _join(ranked.values()))  # noqa: B023
        for way, milliseconds in spent.items():
            times[way].append(milliseconds)
            found[way].append(list(ranked[way]))
        times["hybrid"].append(sum(spent.values()) + joined)
    return {"times": times, "found": found}


def _join(rankings: Iterable[Mapping[int, float]]) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, chunk in enumerate(ranking, 1):
            scores[chunk] = scores.get(chunk, 0.0) + 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda chunk: -scores[chunk])[:HITS]


def _timed(clock: Clock, work: Callable[[], object]) -> float:
    begin = clock.start()
    work()
    return clock.stop(begin) * 1000


def save(
    vault: Path,
    take_in: Callable[[Path], object],
    ask: Callable[[str], object],
    asked: Sequence[str],
    clock: Clock | None = None,
) -> tuple[list[float], list[float]]:
    """Save notes with one more line, and put them back; gives milliseconds of a save and of the question after it."""
    clock = clock or _OwnClock()
    saves: list[float] = []
    after: list[float] = []
    for file, text in zip(sorted(vault.rglob("*.md"))[:_SAVES], asked, strict=False):
        before = file.read_bytes()
        try:
            file.write_bytes(before + b"\n\nOne more line with a word or two.\n")
            saves.append(_timed(clock, lambda file=file: take_in(file)))
            after.append(_timed(clock, lambda text=text: ask(text)))
        finally:
            file.write_bytes(before)
        take_in(file)
    return saves, after


@contextmanager
def _served() -> Generator[LocalServer]:
    server = LocalServer(settings=_SERVER_SETTINGS)
    try:
        yield server
    finally:
        server.close()


def measure_postgres(vault: Path, folder: Path, asked: Sequence[str], work: Path) -> dict[str, Any]:
    """Publish an index to a PostgreSQL of its own, ask there without the files, and publish saved notes."""
    embedder = open_embedder(EmbedderSettings())
    with _served() as server, vaults.opened(vault, folder) as engine:
        clock = _ServerClock(server.process)
        address = f"{server.address()}&options=-c%20max_parallel_workers_per_gather%3D0"
        publisher = Publisher(PostgresServer(address, "bench"), readers={})
        model = engine.model

        def publish() -> None:
            publisher.publish(engine.store, engine.view, model=model)

        def read() -> ReaderEngine:
            reader = PostgresServer(address, "bench")
            nowhere = folder / "nowhere"
            owner = Policy(client="owner")
            return ReaderEngine(work / "reader", nowhere, owner, reader, open_embedder=lambda: embedder)

        def ask_first() -> None:
            with read() as opened:
                opened.search(SearchRequest(text=asked[0], limit=HITS))

        def take_in(file: Path) -> None:
            engine.refresh_paths([file])
            engine.embed()
            publish()

        try:
            build_s = _timed(clock, publish) / 1000
            mirror_s = _timed(clock, lambda: _refresh(read())) / 1000
            firsts = [_timed(clock, ask_first) for _ in range(5)]
            with read() as reader:
                answer = _ask(reader, asked, clock)
                answer["server_mb"] = sum(_own_mb(one) for one in server_processes(server.process))
                answer["disk_mb"] = _disk_mb(publisher)
                answer["found"] = _local_ids(answer["found"], reader, engine)
                saves, after = save(vault, take_in, lambda text: reader.search(SearchRequest(text=text)), asked, clock)
        finally:
            publisher.close()
    return {
        **answer,
        "build_s": build_s,
        "mirror_s": mirror_s,
        "first_ms": firsts,
        "save_ms": saves,
        "after_ms": after,
    }


def _refresh(reader: ReaderEngine) -> None:
    with reader:
        reader.refresh()


def _disk_mb(publisher: Publisher) -> float:
    sql = "SELECT sum(pg_total_relation_size(oid)) / 2^20 FROM pg_class WHERE relnamespace = %s::regnamespace"
    with publisher.server.snapshot() as session:
        row = session.execute(f"{sql} AND relkind = 'r'", (publisher.server.schema,)).fetchone()
    return float(row[0]) if row else 0.0


def _own_mb(process: Path) -> float:
    try:
        lines = (process / "status").read_text("ascii").splitlines()
    except OSError:
        return 0.0  # it ended meanwhile
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def _local_ids(found: dict[str, list[list[int]]], reader: ReaderEngine, engine: Engine) -> dict[str, list[list[int]]]:
    """Give the ids that the local index has for the chunks that a reader found: they differ between machines."""
    snapshots = cast("PublishedSnapshots", reader.open_snapshots())
    wanted = sorted({chunk for rankings in found.values() for ranking in rankings for chunk in ranking})
    with snapshots.snapshot(engine.model) as snapshot:
        rows = snapshot.state.session.execute(f"{_PLACES_SQL} WHERE c.id = ANY(%s)", (wanted,))
        places = {(str(path), int(position)): int(chunk) for chunk, path, position in rows}
    local: dict[int, int] = {}
    for chunk, path, position in engine.store.database.reader().execute(_PLACES_SQL):
        if (path, position) in places:
            local[places[path, position]] = int(chunk)
    return {way: [[local.get(chunk, -1) for chunk in one] for one in rankings] for way, rankings in found.items()}


def find_exact(folder: Path, asked: Sequence[str], work: Path) -> dict[str, Sequence[Mapping[int, float]]]:
    """Rank all chunks by SQLite's own BM25, and by the cosine with every vector; gives the best thousand of each."""
    store = IndexStore(folder / database.INDEX_FILE)
    ranker = fulltext.KeywordRanker(None)
    with store.database.snapshot() as connection:
        by_words = [ranker.chunks(connection, parse_query(text), limit=_EXACT, allowed=None) for text in asked]
    ranker.close()
    store.close()
    return {"words": by_words, "meaning": _find_nearest(work)}


def _find_nearest(work: Path) -> list[dict[int, float]]:
    ids, rows = np.load(work / "ids.npy"), np.load(work / "vectors.npy", mmap_mode="r")
    asked: NDArray[np.float32] = np.load(work / "questions.npy")
    best: list[dict[int, float]] = [{} for _ in asked]
    for start in range(0, len(rows), _BLOCK_ROWS):
        scores = asked @ rows[start : start + _BLOCK_ROWS].astype(np.float32).T
        kept = np.argpartition(-scores, min(_EXACT, scores.shape[1] - 1), axis=1)[:, :_EXACT]
        for one, places, row in zip(best, kept, scores, strict=True):
            one.update(zip((int(i) for i in ids[start + places]), row[places].tolist(), strict=True))
            if len(one) > _EXACT:
                cut = sorted(one.items(), key=lambda item: -item[1])[:_EXACT]
                one.clear()
                one.update(cut)
    return [dict(sorted(one.items(), key=lambda item: -item[1])) for one in best]


def share_found(found: Sequence[Sequence[int]], exact: Sequence[Mapping[int, float]], *, first: int = HITS) -> float:
    """Give the share of the exact first rows that were found; one with the score of the last of them counts as well."""
    shares: list[float] = []
    for ranking, scores in zip(found, exact, strict=True):
        best = sorted(scores.values(), reverse=True)[:first]
        if not best or best[0] <= 0:
            continue
        least = min(score for score in best if score > 0) - 1e-6
        wanted = sum(score > 0 for score in best)
        shares.append(min(sum(scores.get(chunk, -1.0) >= least for chunk in ranking[:first]), wanted) / wanted)
    return sum(shares) / len(shares)
