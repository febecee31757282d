"""While vectors and files are derived, which may take hours, everybody else goes on reading and writing the index."""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.index import refresh, watch
from knapper.index.database import Database
from knapper.index.engine import Engine
from knapper.index.refresh import RefreshOutcome
from knapper.index.search import SearchRequest
from knapper.index.words import postings
from knapper.system import private
from tests.index import worlds

NOTES = {f"{word}.md": f"{word} grows\n" for word in ("apple", "birch", "cedar", "daisy", "elder", "fern")}


class Held(worlds.WordEmbedder):
    """An embedder that waits before each batch."""

    def __init__(self, act: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.instant = False
        self.begun, self.free = threading.Event(), threading.Event()
        self.act = act
        self.batches = 0

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        self.batches += 1
        self.begun.set()
        assert self.free.wait(30)
        self.act(self.batches)
        return super().passages(texts, stop=stop)


@contextmanager
def embedding_in_a_thread(engine: Engine, embedder: Held) -> Generator[None]:
    """Embed in a thread of its own, which waits in its first batch for as long as the block lasts."""
    thread = threading.Thread(target=engine.embed)
    thread.start()
    try:
        assert embedder.begun.wait(30)
        yield
    finally:
        embedder.free.set()
        thread.join(30)
    assert not thread.is_alive()


def vectors_by_text(engine: Engine) -> dict[str, bytes]:
    """Return each chunk's vector by its note and text."""
    sql = (
        "SELECT f.path || ': ' || c.text, v.vector FROM chunks c JOIN files f ON f.id = c.id >> 20"
        " LEFT JOIN vectors v ON v.chunk_id = c.id"
    )
    return dict(engine.store.database.reader().execute(sql).fetchall())


def fresh_vectors(root: Path, state: Path) -> dict[str, bytes]:
    """Return what `vectors_by_text` gives for an index that is made in one go."""
    with worlds.engine(root, state, worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        return vectors_by_text(engine)


def test_an_edit_does_not_wait_for_vectors_and_is_found(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = Held()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        with embedding_in_a_thread(engine, embedder):
            worlds.fill(root, {"birch.md": "birch withers\n", "ginkgo.md": "ginkgo grows\n"})
            # A conflict if it had to wait.
            engine.refresh_paths([root / "birch.md", root / "ginkgo.md"])
            freshness = engine.freshen(meaning=False)
            found = engine.search(SearchRequest(text="withers", mode="keyword"))
            states = (engine.is_being_filled, engine.is_being_written)

        assert (freshness.stale, [hit.row.note for hit in found.hits]) == (0, ["birch.md"])
        assert states == (True, False)
        assert engine.status().pending == 0
        assert vectors_by_text(engine) == fresh_vectors(root, tmp_path / "fresh")


def test_another_process_saves_while_vectors_are_computed(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = Held()
    with worlds.engine(root, tmp_path / "s", embedder) as engine, worlds.engine(root, tmp_path / "s") as other:
        engine.refresh()
        with embedding_in_a_thread(engine, embedder):
            worlds.fill(root, {"fern.md": "fern withers\n"})
            outcome = other.refresh(wait_s=0.1)

        assert outcome.indexed == 1
        assert engine.status().pending == 0


def test_vectors_of_an_index_that_is_begun_anew_meanwhile_are_not_stored(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = Held()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        with embedding_in_a_thread(engine, embedder):
            # In the new index, each number is that of another chunk.
            (root / "apple.md").unlink()
            engine.refresh(full=True)

        assert engine.status().pending == 0
        assert vectors_by_text(engine) == fresh_vectors(root, tmp_path / "fresh")


def test_what_comes_before_the_batch_is_embedded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "_BATCH_CHUNKS", 2)
    root = worlds.fill(tmp_path / "v", NOTES)

    def save(batch: int) -> None:
        if batch == 2:
            worlds.fill(root, {"apple.md": "apple withers\n"})
            engine.refresh_paths([root / "apple.md"])

    embedder = Held(save)
    embedder.free.set()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        added = engine.embed()

        assert (added, engine.status().pending) == (7, 0)
        assert vectors_by_text(engine) == fresh_vectors(root, tmp_path / "fresh")


def test_one_process_embeds_at_a_time(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = Held()
    with (
        worlds.engine(root, tmp_path / "s", embedder) as engine,
        worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as other,
    ):
        engine.refresh()
        with embedding_in_a_thread(engine, embedder):
            added, freshness = other.embed(), other.freshen()

        assert (added, freshness.pending, other.status().pending) == (0, 6, 0)


def test_vectors_wait_for_a_writer_and_are_dropped_where_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        with (
            monkeypatch.context() as patched,
            private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0),
        ):
            patched.setattr(refresh, "_STORE_WAIT_S", 0.1)
            refused = engine.embed()
        lasting: list[int] = []
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0):
            thread = threading.Thread(target=lambda: lasting.append(engine.embed()))
            thread.start()
            time.sleep(0.2)
        thread.join(30)

        assert (refused, lasting, engine.status().pending) == (0, [6], 0)


def test_whoever_waits_to_store_vectors_can_be_stopped(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    stop = threading.Event()
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0):
            thread = threading.Thread(target=lambda: engine.embed(stop=stop))
            thread.start()
            time.sleep(0.1)
            stop.set()
            thread.join(5)

            assert not thread.is_alive()


def test_the_first_sign_of_life_does_not_wait_for_vectors(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, known = threading.Event(), list[tuple[bool, bool]]()

    class Slow(worlds.WordEmbedder):
        def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
            known.append((refresh.is_watched(tmp_path / "s"), "b.md" in engine.store.file_states()))
            worlds.fill(root, {"b.md": "beta\n"})
            return super().passages(texts, stop=stop)

    def heard(_: RefreshOutcome) -> None:
        if "b.md" in engine.store.file_states():
            stop.set()

    with worlds.engine(root, tmp_path / "s", Slow()) as engine:
        watch.follow_vault(engine, stop, heard)

    assert known[0] == (True, False)


def test_a_watcher_indexes_what_is_saved_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "_BATCH_CHUNKS", 1)
    root = worlds.fill(tmp_path / "v", NOTES)
    stop, left = threading.Event(), list[int]()

    def save(batch: int) -> None:
        if batch == 2:
            worlds.fill(root, {"ginkgo.md": "ginkgo grows\n"})
            # Reported by the system within a moment.
            time.sleep(0.3)
        if engine.store.count_pending(embedder.model_id) == 0:
            stop.set()

    def heard(_: RefreshOutcome) -> None:
        if "ginkgo.md" in engine.store.file_states():
            left.append(engine.store.count_pending(embedder.model_id))

    embedder = Held(save)
    embedder.free.set()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        watch.follow_vault(engine, stop, heard)

        # Four of the six, and the new one.
        assert left[:1] == [5]
        assert vectors_by_text(engine) == fresh_vectors(root, tmp_path / "fresh")


def test_an_edit_does_not_wait_for_derived_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    root = worlds.fill(tmp_path / "v", NOTES)
    saved: list[tuple[int, bool]] = []
    write = postings.write_file

    def save_first(*given: object, **named: object) -> None:
        worlds.fill(root, {"birch.md": "birch withers\n"})
        with worlds.engine(root, tmp_path / "s") as other:
            # The other one doesn't derive it, too, nor takes this file for a stray one.
            saved.append((other.refresh(wait_s=0.1).indexed, other.is_being_filled))
        write(*given, **named)  # pyright: ignore[reportArgumentType]

    def is_due(_: Database) -> bool:
        return not saved

    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        monkeypatch.setattr(postings, "write_file", save_first)
        monkeypatch.setattr(postings, "is_due", is_due)
        engine.embed()
        monkeypatch.undo()
        with engine.store.database.snapshot() as connection:
            wrong = postings.find_wrong_rows(connection, engine.folder)
            named = postings.name_of(connection)
        found = engine.search(SearchRequest(text="withers", mode="keyword"))

    assert (saved, wrong) == ([(1, True)], "")
    assert (tmp_path / "s" / named).is_file()
    assert [hit.row.note for hit in found.hits] == ["birch.md"]


def test_an_edit_does_not_wait_for_the_file_that_follows_a_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    saved: list[int] = []
    with worlds.engine(root, tmp_path / "s") as engine, worlds.engine(root, tmp_path / "s") as other:

        def save(*_: object, **__: object) -> None:
            worlds.fill(root, {"birch.md": "birch withers\n"})
            # A conflict if it had to wait.
            saved.append(other.refresh_paths([root / "birch.md"]).indexed)

        monkeypatch.setattr(refresh.Deriver, "derive_postings", save)
        engine.refresh()

    assert saved == [1]


@contextmanager
def followed(engine: Engine) -> Generator[None]:
    """Follow the vault in a thread for the block, which begins once the watcher follows it."""
    stop, is_watched = threading.Event(), threading.Event()

    def heard(_: RefreshOutcome) -> None:
        is_watched.set()

    thread = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
    thread.start()
    try:
        assert is_watched.wait(10)
        yield
    finally:
        stop.set()
        thread.join(10)


def wait_for_vectors(engine: Engine) -> int:
    """Wait until no chunk lacks its vector, for some seconds at most; return how many do."""
    deadline = time.monotonic() + 8
    while engine.status().pending and time.monotonic() < deadline:
        time.sleep(0.05)
    return engine.status().pending


def test_a_watcher_takes_over_where_the_process_that_embedded_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_TAKE_OVER_INTERVAL_S", 0.1)
    root = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        worlds.fill(root, {"fern.md": "fern withers\n"})
        engine.refresh()
        with ExitStack() as watching:
            with private.acquire_process_lock(tmp_path / "s", refresh.DERIVING_LOCK_FILE, wait_s=0):
                watching.enter_context(followed(engine))
                # Until it has tried to embed what was there when it began.
                time.sleep(1.5)
                left_before = engine.status().pending
            left = wait_for_vectors(engine)

    assert (left_before, left) == (1, 0)


def test_a_watcher_does_not_replace_the_vectors_of_another_model_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_TAKE_OVER_INTERVAL_S", 0.1)
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = worlds.WordEmbedder("ours")
    with (
        worlds.engine(root, tmp_path / "s", embedder) as engine,
        worlds.engine(root, tmp_path / "s", worlds.WordEmbedder("theirs")) as other,
        followed(engine),
    ):
        assert wait_for_vectors(engine) == 0
        time.sleep(0.2)
        other.embed()
        asked = len(embedder.asked)
        time.sleep(1.5)

        assert (len(embedder.asked), other.status().pending) == (asked, 0)


def test_vectors_are_not_stored_where_their_numbers_now_mean_other_texts(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder = Held()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        # As in an older copy of the index that was put back, and then gave the number to another note.
        with embedding_in_a_thread(engine, embedder), engine.store.database.transaction() as connection:
            connection.execute("UPDATE chunks SET text = 'birch withers' WHERE text LIKE 'birch%'")
        stored = vectors_by_text(engine)["birch.md: birch withers"]
        asked = [text for text in embedder.asked if "withers" in text]

    assert len(asked) == 1
    assert stored == worlds.WordEmbedder().passages(asked)[0].astype(np.float16).tobytes()


def test_what_waits_after_a_search_is_counted_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)

    class Saving(worlds.WordEmbedder):
        def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
            if not self.asked:
                worlds.fill(root, {"ginkgo.md": "ginkgo grows\n"})
                other.refresh()
            return super().passages(texts, stop=stop)

    with worlds.engine(root, tmp_path / "s", Saving()) as engine, worlds.engine(root, tmp_path / "s") as other:
        freshness = engine.freshen()
        left = engine.status().pending

    assert (freshness.pending, left) == (0, 0)
