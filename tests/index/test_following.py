"""What a single saved note costs the index: one state, no second reading, no second thread in between."""

import os
import threading
import time
from pathlib import Path

import pytest

from knapper.index import reading, turn
from knapper.index.database import Database
from knapper.index.embed import EmbedderError
from knapper.index.engine import Engine
from knapper.index.states import state_of
from knapper.index.turn import Turn
from tests.index import worlds


def vectors(engine: Engine) -> int:
    return int(engine.store.database.reader().execute("SELECT COUNT(*) FROM vectors").fetchone()[0])


def test_a_saved_note_makes_one_state_with_its_words_and_vectors(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.freshen()
        before = engine.store.generation()
        worlds.fill(root, {"a.md": "omega\n", "b.md": "beta\n"})
        outcome = engine.refresh_paths([root / "a.md", root / "b.md"])

        assert (outcome.indexed, vectors(engine), engine.status().pending) == (2, 2, 0)
        assert engine.store.generation() == before + 1


def test_words_are_kept_where_the_vectors_of_a_saved_note_fail(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.freshen()
        embedder.error = EmbedderError("the model is gone")
        worlds.fill(root, {"b.md": "beta\n"})
        outcome = engine.refresh_paths([root / "b.md"])

        assert (outcome.indexed, engine.status().pending) == (1, 1)


@pytest.mark.parametrize("settled", [False, True])
def test_what_is_heard_of_a_note_that_the_index_has_already_makes_no_new_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, settled: bool
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    saved = (root / "a.md").stat().st_mtime_ns
    with worlds.engine(root, tmp_path / "s") as engine:
        monkeypatch.setattr(time, "time_ns", lambda: saved)
        engine.refresh()
        before = engine.store.generation()
        monkeypatch.setattr(time, "time_ns", lambda: saved + 1_000_000_000 * settled)
        monkeypatch.setattr(reading, "read", _not_parsed)
        outcome = engine.refresh_paths([root / "a.md", root])

        assert (outcome.indexed, outcome.unchanged, engine.store.generation()) == (0, 1, before)
        assert [known.racy for known in engine.store.known().values()] == [not settled]


def _not_parsed(*_: object) -> object:
    raise AssertionError("the note was parsed again")


def test_a_note_saved_again_within_the_same_tick_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    before = (root / "a.md").stat()
    monkeypatch.setattr(time, "time_ns", lambda: before.st_mtime_ns)
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"a.md": "omega\n"})
        os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))

        assert engine.refresh_paths([root / "a.md"]).indexed == 1


def test_a_deleted_note_is_forgotten_in_one_state(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        before = engine.store.generation()
        (root / "b.md").unlink()
        outcome = engine.refresh_paths([root / "b.md"])

        assert (outcome.removed, engine.store.generation()) == (1, before + 1)


def test_a_snapshot_is_one_state_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    with Database(tmp_path / "index.db") as database:
        with database.snapshot() as connection:
            first = state_of(connection)
            writer = threading.Thread(target=_write, args=(database,))
            writer.start()
            writer.join()
            again = state_of(connection)
        with database.snapshot() as connection:
            later = state_of(connection)

    assert again == first
    assert later == (first[0], first[1] + 1)


def _write(database: Database) -> None:
    with database.transaction():
        pass


def test_threads_wait_for_their_turn_before_processes_do(tmp_path: Path) -> None:
    line, order = Turn(tmp_path), list[str]()
    inside, end = threading.Event(), threading.Event()

    def first() -> None:
        with line.take(wait_s=0) as mine:
            order.append(f"first {mine}")
            inside.set()
            end.wait(10)
            order.append("first ends")

    def second() -> None:
        with line.take(wait_s=10) as mine:
            order.append(f"second {mine}")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    with line.take(wait_s=0) as mine:
        order.append(f"at once {mine}")
    taken = line.is_taken
    threads[1].start()
    end.set()
    for thread in threads:
        thread.join()

    assert taken
    assert not line.is_taken
    assert order == ["first True", "at once False", "first ends", "second True"]


def test_a_turn_that_another_process_has_is_not_to_be_had(tmp_path: Path) -> None:
    line = Turn(tmp_path)
    with turn.take(tmp_path, wait_s=0), line.take(wait_s=0.05) as mine:
        assert not mine
        assert line.is_taken
