"""What a single saved note costs the index: one state, no second reading, no second thread in between."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.index import chunker, refresh, watch
from knapper.index import feed as index_feed
from knapper.index.database import Database, state_of
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.index.refresh import RefreshOutcome, RefreshPhase
from knapper.system import private
from tests.index import worlds


def test_a_saved_note_makes_one_state(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.freshen()
        before = engine.store.generation()
        worlds.fill(root, {"a.md": "omega\n", "b.md": "beta\n"})
        outcome = engine.refresh_paths([root / "a.md", root / "b.md"])

        assert (outcome.indexed, engine.store.generation()) == (2, before + 1)


def test_a_saved_note_is_taken_in_whatever_the_embedder_does(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.freshen()
        embedder.error = RuntimeError("boom")
        worlds.fill(root, {"b.md": "beta\n"})
        outcome = engine.refresh_paths([root / "b.md"])

        assert (outcome.indexed, engine.status().pending) == (1, 1)


def test_what_came_and_went_while_another_wrote_is_not_taken_for_there(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"b.md": "beta\n"})
        outcomes: list[int] = []
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0):
            waits = threading.Thread(target=lambda: outcomes.append(engine.refresh_paths([root / "b.md"]).indexed))
            waits.start()
            time.sleep(0.1)
            (root / "b.md").unlink()
        waits.join()

        assert (outcomes, [*engine.store.file_states()]) == ([0], ["a.md"])


def test_nothing_counts_as_known_while_another_writes(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    os.utime(root / "a.md", (1_600_000_000, 1_600_000_000))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        alone = engine.is_up_to_date([root / "a.md"])
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0):
            beside = engine.is_up_to_date([root / "a.md"])

        assert (alone, beside) == (True, False)


def test_a_vault_that_cannot_be_listened_to_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"note{n}\n" for n in range(250)})

    def full(*_: object, **__: object) -> object:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(index_feed, "RustNotify", full)
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        with pytest.raises(OSError, match="limit"):
            watch.follow_vault(engine, threading.Event(), lambda _: None)

        assert (engine.status().notes, engine.status().pending) == (250, 0)
        assert not refresh.is_watched(tmp_path / "s")


def test_what_is_saved_during_the_first_comparison_is_there_before_the_first_sign_of_life(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, known = threading.Event(), list[tuple[bool, bool]]()

    def save(phase: RefreshPhase, done: int, total: int) -> None:
        del done, total
        if phase == "read" and not known:
            known.append((refresh.is_watched(tmp_path / "s"), (root / "b.md").exists()))
            worlds.fill(root, {"b.md": "beta\n"})

    def heard(_: RefreshOutcome) -> None:
        if refresh.is_watched(tmp_path / "s"):
            known.append((True, "b.md" in engine.store.file_states()))
            stop.set()

    with worlds.engine(root, tmp_path / "s") as engine:
        watch.follow_vault(engine, stop, heard, progress=save)

    assert known == [(False, False), (True, True)]


class Pauses(threading.Event):
    """Ends a watcher after some looks, and keeps how long it paused before each."""

    def __init__(self, before: Callable[[int], object]) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.before = before

    def wait(self, timeout: float | None = None) -> bool:
        self.asked.append(timeout or 0.0)
        self.before(len(self.asked))
        time.sleep(0.005)  # the system reports what was saved
        if len(self.asked) > LOOKS:
            self.set()
        return self.is_set()


LOOKS = 30


def test_a_watcher_with_nothing_to_do_looks_less_often_and_at_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    asked: list[Engine] = []

    def is_complete(engine: Engine) -> bool:
        asked.append(engine)
        return True

    monkeypatch.setattr(watch, "_HEARTBEAT_INTERVAL_S", 3_600.0)
    idle, busy = Pauses(abs), Pauses(lambda look: worlds.fill(root, {"b.md": f"beta {look}\n"}))
    with worlds.engine(root, tmp_path / "s") as engine:
        _ = engine.refresh()
        monkeypatch.setattr(Engine, "is_complete", property(is_complete))
        watch.follow_vault(engine, idle, lambda _: None)
        count = len(asked)
        watch.follow_vault(engine, busy, lambda _: None)

    assert (count <= 3, set(idle.asked[5:])) == (True, {0.05})
    assert set(busy.asked[5:]) == {0.02}


def test_a_watcher_that_ends_before_its_first_sign_leaves_that_of_another(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})

    def ended(phase: RefreshPhase, done: int, total: int) -> None:
        raise KeyError(phase, done, total)

    with worlds.engine(root, tmp_path / "s") as engine:
        watch.write_heartbeat(tmp_path / "s")
        with pytest.raises(KeyError):
            watch.follow_vault(engine, threading.Event(), lambda _: None, progress=ended)

        assert refresh.is_watched(tmp_path / "s")


def test_a_watcher_embeds_what_others_have_taken_in(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, begun = threading.Event(), threading.Event()
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:

        def heard(_: RefreshOutcome) -> None:
            begun.set()

        watcher = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
        watcher.start()
        try:
            begun.wait(60)
            worlds.fill(root, {"b.md": "beta\n"})
            engine.refresh_paths([root / "b.md"])
            deadline = time.monotonic() + 60
            while engine.status().pending and time.monotonic() < deadline:
                time.sleep(0.02)
            pending = engine.status().pending
        finally:
            stop.set()
            watcher.join()

    assert pending == 0


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
        monkeypatch.setattr(chunker, "read_file", _not_parsed)
        outcome = engine.refresh_paths([root / "a.md", root])

        assert (outcome.indexed, outcome.unchanged, engine.store.generation()) == (0, 1, before)
        assert [known.racy for known in engine.store.file_states().values()] == [not settled]


def _not_parsed(*_: object) -> object:
    raise AssertionError("the note was parsed again")


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


def test_a_search_does_not_stand_in_line_where_it_embeds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    embedder = worlds.WordEmbedder()
    embedder.instant = False
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        with ChangeFeed(root, tmp_path / "s") as feed, engine.followed_by(feed):
            monkeypatch.setattr(Engine, "is_deriving", False)
            monkeypatch.setattr(private, "acquire_process_lock", _not_taken)

            assert engine.freshen().pending == 1


def _not_taken(*_: object, **__: object) -> object:
    raise AssertionError("it stood in line")


def test_threads_wait_for_their_turn_before_processes_do(tmp_path: Path) -> None:
    line, order = private.FolderLock(tmp_path, refresh.WRITE_LOCK_FILE), list[str]()
    inside, end = threading.Event(), threading.Event()

    def first() -> None:
        with line.acquire(wait_s=0) as mine:
            order.append(f"first {mine}")
            inside.set()
            end.wait(10)
            order.append("first ends")

    def second() -> None:
        with line.acquire(wait_s=10) as mine:
            order.append(f"second {mine}")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    with line.acquire(wait_s=0) as mine:
        order.append(f"at once {mine}")
    taken = line.is_held
    threads[1].start()
    end.set()
    for thread in threads:
        thread.join()

    assert taken
    assert not line.is_held
    assert order == ["first True", "at once False", "first ends", "second True"]


def test_a_turn_that_another_process_has_is_not_to_be_had(tmp_path: Path) -> None:
    line = private.FolderLock(tmp_path, refresh.WRITE_LOCK_FILE)
    with private.acquire_process_lock(tmp_path, refresh.WRITE_LOCK_FILE, wait_s=0), line.acquire(wait_s=0.05) as mine:
        assert not mine
        assert line.is_held
