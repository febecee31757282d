"""A large index maps its vectors from a file, with the answers of comparing all, whatever happens to the file."""

import sqlite3
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.index import database, status, vectors
from knapper.index.database import Database
from knapper.index.engine import Engine
from knapper.index.models.static import StaticEmbedder
from knapper.index.search import SearchRequest
from knapper.index.vectors import VectorCache
from knapper.system.arrays import open_arrays
from tests.index import worlds

SIZE = 32
COUNT = 2_500
FILES = 50
MODEL = "m"
KINDS = pytest.mark.parametrize("is_coded", [False, True])


class World:
    """An index that holds nothing but vectors, and what they are."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.index = Database(folder / database.INDEX_FILE)
        self.rows: dict[int, NDArray[np.float32]] = {}
        self.random = np.random.default_rng(3)

    def add(self, ids: list[int], model: str = MODEL) -> None:
        """Store a vector for each chunk, anew where it has one."""
        with self.index.transaction() as connection:
            (generation,) = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
            for chunk in ids:
                row = self.random.standard_normal(SIZE)
                raw = (row / np.linalg.norm(row)).astype(np.float16)
                self.rows[chunk] = raw.astype(np.float32)
                values = (chunk, int(generation), model, raw.tobytes(), 0)
                connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", values)

    def remove(self, ids: list[int]) -> None:
        """Remove chunks as a saved note does."""
        with self.index.transaction() as connection:
            (generation,) = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
            connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", [(one,) for one in ids])
            connection.executemany("INSERT INTO removed VALUES (?, ?)", [(int(generation), one) for one in ids])
        for one in ids:
            del self.rows[one]

    def expected(self, query: NDArray[np.float32], limit: int, hidden: set[int]) -> dict[int, float]:
        """Compare the query with all vectors."""
        scores = {chunk: float(row @ query) for chunk, row in self.rows.items() if chunk not in hidden}
        best = sorted(scores.items(), key=lambda item: -item[1])[:limit]
        return {chunk: score for chunk, score in best if score > 0}

    def query(self) -> NDArray[np.float32]:
        row = self.random.standard_normal(SIZE)
        return (row / np.linalg.norm(row)).astype(np.float32)

    def cache(self) -> VectorCache:
        """Open the vectors; codes are read, which else the second question begins."""
        cache = VectorCache(MODEL, self.index.path.parent)
        self.sync(cache)
        return cache

    def sync(self, cache: VectorCache) -> None:
        with self.index.snapshot() as connection:
            cache.sync(connection)
        if cache.file:
            cache.file.read_codes()

    @property
    def files(self) -> list[Path]:
        return sorted(self.index.path.parent.glob(f"{database.VECTORS_PREFIX}*"))


def chunk(number: int) -> int:
    """Return a chunk's id; its file is one of `FILES`."""
    return (number % FILES) << database.CHUNK_BITS | number


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[World]:
    monkeypatch.setattr(vectors, "MIN_ROWS", 100)
    world = World(tmp_path / "index")
    world.add([chunk(number) for number in range(COUNT)])
    yield world
    world.index.close()


def derive(world: World, monkeypatch: pytest.MonkeyPatch, *, is_coded: bool) -> None:
    monkeypatch.setattr(vectors, "MIN_CODED_ROWS", 100 if is_coded else 10**9)
    vectors.build(world.index, MODEL)


def mapped(cache: VectorCache) -> bool:
    return len(cache) > cache.held_rows


def is_same(found: Mapping[int, float], expected: Mapping[int, float], *, share: float) -> bool:
    """Return whether enough of what was expected was found, in order and with exact cosines."""
    common = found.keys() & expected.keys()
    values = list(found.values())
    return (
        len(common) >= share * len(expected)
        and values == sorted(values, reverse=True)
        and all(abs(found[one] - expected[one]) < 1e-5 for one in common)
    )


@KINDS
def test_the_nearest_are_those_of_comparing_all(world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    cache = world.cache()
    for _ in range(20):
        query = world.query()

        assert is_same(cache.rank(query, limit=50, allowed=None), world.expected(query, 50, set()), share=0.98)
    assert mapped(cache)
    assert cache.held_rows == 0


@KINDS
def test_what_was_added_replaced_and_removed_since_counts(
    world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool
) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    early = world.cache()
    world.add([chunk(number) for number in range(COUNT, COUNT + 40)])
    world.add([chunk(number) for number in range(60)])
    world.remove([chunk(number) for number in range(30, 90)])
    world.remove([chunk(COUNT + 3)])
    world.sync(early)
    for cache in (early, world.cache()):
        for number in (0, 29, COUNT, COUNT + 39, 2_000):
            query = world.rows[chunk(number)]
            found = cache.rank(query, limit=30, allowed=None)

            assert next(iter(found)) == chunk(number)
            assert is_same(found, world.expected(query, 30, set()), share=0.98)
        assert len(cache) == len(world.rows)
        ids, rows = cache.rows_of([chunk(2), chunk(2_000), chunk(COUNT), chunk(31), 5, chunk(COUNT + 3)])
        assert sorted(ids) == sorted([chunk(2), chunk(2_000), chunk(COUNT)])
        assert all(np.array_equal(row, world.rows[one]) for one, row in zip(ids, rows, strict=True))


@KINDS
@pytest.mark.parametrize("shown", [{7}, set(range(0, FILES, 2)), set[int]()])
def test_a_filter_is_complete(world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool, shown: set[int]) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    cache = world.cache()
    allowed = np.zeros(FILES, np.bool_)
    allowed[list(shown)] = True
    without = [chunk(number) for number in range(7, 200, 10)]
    hidden = {one for one in world.rows if one >> database.CHUNK_BITS not in shown} | set(without)
    for _ in range(5):
        query = world.query()
        found = cache.rank(query, limit=COUNT, allowed=allowed, without=without)

        assert found.keys() == world.expected(query, COUNT, hidden).keys()
        found = cache.rank(query, limit=20, allowed=allowed, without=without)
        assert is_same(found, world.expected(query, 20, hidden), share=0.98)
        assert not found.keys() & hidden


def test_a_file_is_derived_where_it_is_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_MIN_CHANGED_ROWS", 20)
    due = [vectors.is_due(world.index, MODEL)]
    derive(world, monkeypatch, is_coded=False)
    due += [vectors.is_due(world.index, MODEL), vectors.is_due(world.index, "other")]
    monkeypatch.setattr(vectors, "MIN_CODED_ROWS", 100)
    due += [vectors.is_due(world.index, MODEL)]
    derive(world, monkeypatch, is_coded=True)
    world.remove([chunk(number) for number in range(100)])
    due += [vectors.is_due(world.index, MODEL)]
    world.add([chunk(number) for number in range(COUNT, COUNT + 50)])
    due += [vectors.is_due(world.index, MODEL)]
    derive(world, monkeypatch, is_coded=True)
    monkeypatch.setattr(vectors, "coder", lambda: "99.0")
    due += [vectors.is_due(world.index, MODEL)]

    assert due == [True, False, True, True, False, True, True]
    assert len(world.files) == 1


def test_a_newer_file_takes_the_place_of_the_older_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    derive(world, monkeypatch, is_coded=True)
    cache = world.cache()
    world.add([chunk(number) for number in range(COUNT, COUNT + 50)])
    world.sync(cache)
    held = [cache.held_rows]
    derive(world, monkeypatch, is_coded=True)
    world.add([chunk(COUNT + 50)])
    world.sync(cache)
    held.append(cache.held_rows)
    query = world.rows[chunk(COUNT + 20)]

    assert held == [50, 1]
    assert is_same(cache.rank(query, limit=30, allowed=None), world.expected(query, 30, set()), share=0.98)


def test_a_reader_of_an_earlier_state_does_without_a_later_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.index.snapshot() as connection:
        connection.execute("SELECT 1 FROM vectors LIMIT 1").fetchone()
        before = dict(world.rows)
        other = Database(world.index.path)
        writer, world.index = world.index, other
        world.add([chunk(number) for number in range(COUNT, COUNT + 50)])
        derive(world, monkeypatch, is_coded=False)
        cache = VectorCache(MODEL, other.path.parent)
        cache.sync(connection)
        found = cache.rank(world.query(), limit=COUNT * 2, allowed=None)
        world.index = writer
        other.close()

    assert not mapped(cache)
    assert found.keys() <= before.keys()


@KINDS
def test_without_the_package_the_exact_rows_are_compared(
    world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool
) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    monkeypatch.setattr(vectors, "coder", lambda: "")
    cache, query = world.cache(), world.query()

    assert mapped(cache)
    assert is_same(cache.rank(query, limit=200, allowed=None), world.expected(query, 200, set()), share=1)


@pytest.mark.parametrize("place", [0, 20, 8_300, -40, -70_000])
@KINDS
def test_flipped_bytes_and_cut_files_change_no_answer(
    world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool, place: int
) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    (file,) = world.files
    raw = bytearray(file.read_bytes())
    for at in range(4):
        raw[place + at] ^= 0xFF
    file.write_bytes(raw)
    with world.index.snapshot() as connection:
        vectors.remove_wrong(connection, file.parent)
    cache, query = world.cache(), world.query()

    assert is_same(cache.rank(query, limit=50, allowed=None), world.expected(query, 50, set()), share=0.98)
    if world.files:  # between two arrays, where nothing is read
        assert not vectors.is_due(world.index, MODEL)
    else:
        assert vectors.is_due(world.index, MODEL)
    for size in (0, 100, len(raw) - 1):
        file.write_bytes(raw[:size])

        assert not mapped(world.cache())
        assert world.files == []


@KINDS
def test_rows_that_are_none_are_noticed_by_the_next_question(
    world: World, monkeypatch: pytest.MonkeyPatch, is_coded: bool
) -> None:
    derive(world, monkeypatch, is_coded=is_coded)
    (file,) = world.files
    raw = bytearray(file.read_bytes())
    rows = np.frombuffer(raw, np.float32, count=COUNT * SIZE, offset=8_192)
    rows[:] = np.nan
    file.write_bytes(raw)
    cache = world.cache()
    with pytest.raises(LookupError):
        cache.rank(world.query(), limit=50, allowed=None)
    world.sync(cache)
    query = world.query()

    assert is_same(cache.rank(query, limit=50, allowed=None), world.expected(query, 50, set()), share=1)
    assert vectors.is_due(world.index, MODEL)


@pytest.mark.parametrize("name", ["../vectors-x", "/etc/passwd", "vectors-/../../x", "index.db", ""])
def test_a_name_in_a_damaged_database_leads_nowhere(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    derive(world, monkeypatch, is_coded=False)
    (file,) = world.files
    (tmp_path / "vectors-x").write_bytes(file.read_bytes())
    with world.index.transaction(counts=False) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'vector_file'", (name,))

    assert not mapped(world.cache())
    assert (tmp_path / "vectors-x").exists()


def test_a_full_disk_leaves_neither_a_part_nor_a_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors.np, "ascontiguousarray", _no_space, raising=False)
    with pytest.raises(OSError, match="No space"):
        derive(world, monkeypatch, is_coded=False)
    monkeypatch.undo()

    assert [path.name for path in world.index.path.parent.iterdir() if "vectors" in path.name] == []
    assert not mapped(world.cache())


def _no_space(*_args: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_search_answers_the_same_with_a_file_without_and_with_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {
        f"{n}.md": f"# Note {n}\n\nThe {word} grows beside the {word} of {n}.\n" for n, word in enumerate(WORDS * 9)
    }
    asked = SearchRequest(text="the apple grows beside the pear", mode="semantic", limit=20)
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s", StaticEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        plain = _found(engine, asked)
        monkeypatch.setattr(vectors, "MIN_ROWS", 10)
        engine.embed()
        (file,) = engine.folder.glob(f"{database.VECTORS_PREFIX}*")
    with worlds.engine(tmp_path / "v", tmp_path / "s", StaticEmbedder()) as engine:
        from_file = _found(engine, asked)
        raw = bytearray(file.read_bytes())
        raw[8_192:9_192] = b"\xff" * 1_000
        file.write_bytes(raw)
    with worlds.engine(tmp_path / "v", tmp_path / "s", StaticEmbedder()) as engine:
        damaged = _found(engine, asked)
        damage = status.find_damage(engine.store.database)
        is_kept = file.exists()
        engine.embed()
        (again,) = engine.folder.glob(f"{database.VECTORS_PREFIX}*")
        engine.refresh(full=True)

    assert plain
    assert from_file == damaged == plain
    assert (damage, is_kept, again != file) == ("", False, True)
    assert not again.exists()


WORDS = ("apple", "pear", "cherry", "plum", "river", "stone", "engine", "letter", "window", "harbour")


def _found(engine: Engine, asked: SearchRequest) -> list[tuple[str, float]]:
    return [(hit.row.note, round(hit.score, 6)) for hit in engine.search(asked).hits]


def test_the_third_question_is_answered_by_codes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    derive(world, monkeypatch, is_coded=True)
    cache = VectorCache(MODEL, world.index.path.parent)
    with world.index.snapshot() as connection:
        cache.sync(connection)
    assert cache.file
    read = [cache.file.codes is not None]
    for _ in range(2):
        cache.rank(world.query(), limit=5, allowed=None)
        read.append(
            "knapper-codes" in {thread.name for thread in threading.enumerate()} or cache.file.codes is not None
        )
    deadline = time.monotonic() + 20
    while cache.file.codes is None and time.monotonic() < deadline:
        time.sleep(0.01)

    assert read == [False, False, True]
    assert cache.file.codes is not None


def test_damaged_codes_answer_nothing_and_their_file_is_derived_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive(world, monkeypatch, is_coded=True)
    (path,) = world.files
    stored = open_arrays(path, "vectors 1")
    assert stored
    raw = bytearray(path.read_bytes())
    raw[-len(stored.arrays["codes"]) // 2] ^= 1  # the codes come last
    path.write_bytes(raw)
    query = world.query()
    cache = world.cache()

    assert cache.file
    assert cache.file.codes is None
    assert cache.rank(query, limit=5, allowed=None) == pytest.approx(world.expected(query, 5, set()), abs=1e-3)
    assert not path.exists()
    with world.index.snapshot() as connection:
        cache.sync(connection)
    assert cache.rank(query, limit=5, allowed=None) == pytest.approx(world.expected(query, 5, set()), abs=1e-3)
    assert vectors.is_due(world.index, MODEL)


def test_memory_databases_have_no_file() -> None:
    cache = VectorCache(MODEL)
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"
            "CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY, generation INTEGER, model TEXT, vector BLOB);"
            "INSERT INTO meta VALUES ('uid', 'u'), ('generation', '1');"
        )
        cache.sync(connection)

    assert len(cache) == 0


def test_a_process_with_another_model_leaves_the_file_to_those_with_its_own(tmp_path: Path) -> None:
    world = World(tmp_path / "index")
    world.add(list(range(vectors.MIN_ROWS)))
    vectors.build(world.index, MODEL)
    (path,) = world.index.path.parent.glob(f"{database.VECTORS_PREFIX}*")
    other = VectorCache("another of other length", world.index.path.parent)

    world.sync(other)
    vectors.build(world.index, other.model)
    own = world.cache()

    assert other.file is None
    assert own.file is not None
    assert own.file.path == path
    assert not vectors.is_due(world.index, MODEL)
