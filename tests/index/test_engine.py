"""The engine: what is on disk is found, whatever happened since the last look."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.errors import ConflictError, StorageError
from knapper.index import feed as index_feed
from knapper.index import refresh, watch
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.index.models.base import Embedder, EmbedderError, EmbedderStopped
from knapper.index.refresh import RefreshOutcome, RefreshPhase
from knapper.index.search import SearchRequest
from knapper.system import private
from knapper.vault import files
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.index import worlds

PATIENCE_S = 60
"""How long what has to happen may take; what hangs is ended by the test's own limit."""


def notes(engine: Engine, text: str) -> list[str]:
    return sorted({hit.row.note for hit in engine.search(SearchRequest(text=text, mode="keyword", limit=50)).hits})


def test_a_small_vault_is_searched_without_any_command_before(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        freshness = engine.freshen()

        assert (freshness.stale, freshness.incomplete, freshness.pending) == (0, False, 0)
        assert notes(engine, "alpha") == ["a.md"]


def test_edits_renames_and_deletions_made_offline_are_found(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n", "c.md": "gamma\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
    worlds.fill(root, {"a.md": "alpha changed\n"})
    (root / "b.md").rename(root / "renamed.md")
    (root / "c.md").unlink()
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.freshen()

        assert [notes(engine, word) for word in ("changed", "beta", "gamma")] == [["a.md"], ["renamed.md"], []]


@pytest.mark.parametrize("is_told", [False, True])
def test_a_save_within_the_same_tick_of_the_clock_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    before = (root / "a.md").stat()
    monkeypatch.setattr(time, "time_ns", lambda: before.st_mtime_ns)
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"a.md": "omega\n"})
        os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
        engine.refresh_paths([root / "a.md"]) if is_told else engine.freshen()

        assert notes(engine, "omega") == ["a.md"]


@pytest.mark.parametrize("by_watcher", [False, True])
def test_a_search_waits_for_no_huge_note_and_says_that_it_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_watcher: bool
) -> None:
    monkeypatch.setattr("knapper.index.engine.MAX_INLINE_BYTES", 1_000)
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine, contextlib.ExitStack() as feeds:
        engine.refresh()
        if by_watcher:
            feed = feeds.enter_context(ChangeFeed(root, engine.folder))
            feeds.enter_context(engine.followed_by(feed))
        # A film isn't read, so its size doesn't count.
        worlds.fill(root, {"a.md": "omega " * 150, "film.mp4": "x" * 2_000})
        in_time = engine.freshen()
        worlds.fill(root, {"b.md": "omega " * 200})
        too_large = engine.freshen()
        found = notes(engine, "omega")
        engine.refresh()

        assert (in_time.stale, too_large.stale) == (0, 1)
        assert found == ["a.md"]
        assert notes(engine, "omega") == ["a.md", "b.md"]


def test_beside_a_huge_note_small_ones_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knapper.index.engine.MAX_INLINE_BYTES", 1_000)
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"a.md": "omega\n", "b.md": "omega " * 200})
        fresh = [engine.freshen(policy=policy).stale for policy in (None, Policy(client="x", hidden=("b.md",)))]

        assert fresh == [1, 0]
        assert notes(engine, "omega") == ["a.md"]


def test_an_unchanged_vault_is_not_read_again(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    for name in ("a.md", "b.md"):
        os.utime(root / name, (1_600_000_000, 1_600_000_000))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        generation = engine.store.generation()
        outcome = engine.refresh()

        assert (outcome.indexed, outcome.unchanged) == (0, 2)
        assert engine.store.generation() <= generation + 1


def test_a_file_with_a_new_time_and_the_same_bytes_is_not_indexed_again(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        os.utime(root / "a.md", (1_600_000_000, 1_600_000_000))
        outcome = engine.refresh()

        assert (outcome.indexed, outcome.unchanged) == (0, 1)


def test_a_note_that_was_saved_between_the_look_and_its_reading_is_current_after_the_next_look(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        earlier = tuple(engine.view.list_files())
        worlds.fill(root, {"a.md": "alpha and more\n"})
        os.utime(root / "a.md", (1_600_000_000, 1_600_000_000))
        refresh.apply_plan(engine.store, engine.view, refresh.RefreshPlan(changed=earlier))
        engine.refresh()

        assert engine.check_freshness().stale == 0
        assert engine.store.file_states()[NotePath("a.md")].size == len("alpha and more\n")


def test_a_large_difference_is_said_and_left_to_the_index_command(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"note{n}\n" for n in range(250)})
    with worlds.engine(root, tmp_path / "s") as engine:
        freshness = engine.freshen()

        assert (freshness.stale, freshness.incomplete) == (250, True)


def test_a_full_rebuild_forgets_and_reads_all(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    steps: list[tuple[RefreshPhase, int, int]] = []
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        outcome = engine.refresh(full=True, progress=lambda phase, done, total: steps.append((phase, done, total)))

        assert (outcome.indexed, notes(engine, "alpha"), steps[-1]) == (1, ["a.md"], ("read", 1, 1))


def test_only_one_process_writes_and_the_other_is_told(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"b.md": "beta\n"})
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=0) as mine:
            assert mine
            other = threading.Thread(target=lambda: results.append(engine.freshen().stale))
            results: list[int] = []
            other.start()
            other.join()
            with pytest.raises(ConflictError, match="another process"):
                engine.refresh(wait_s=0)

        assert results == [1]


def test_hard_cases_are_listed_with_their_problem_and_searchable_as_far_as_they_can_be(tmp_path: Path) -> None:
    root = worlds.fill(
        tmp_path / "v", {"yaml.md": "---\na: [1\n---\nbody alpha\n", "empty.md": "", "crlf.md": "# A\r\n\r\nalpha\r\n"}
    )
    (root / "latin.md").write_bytes(b"caf\xe9 alpha\n")
    (root / "nul.md").write_bytes(b"alpha\x00beta\n")
    (root / "bom.md").write_bytes(b"\xef\xbb\xbf# alpha\n")
    (root / "broken.canvas").write_text("{not json")
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        status = engine.status()

        assert notes(engine, "alpha") == ["bom.md", "crlf.md", "latin.md", "nul.md", "yaml.md"]
        assert notes(engine, "café") == ["latin.md"]
        assert {row.path: row.code for row in status.skipped} == {
            "broken.canvas": "invalid_json",
            "latin.md": "not_utf8",
            "nul.md": "nul_bytes",
            "yaml.md": "invalid_yaml",
        }
        assert (status.notes, status.files, status.problems) == (6, 7, 4)


def test_an_unreadable_note_is_listed_and_the_others_are_indexed(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    (root / "pipe.md").symlink_to(root / "missing.md")
    os.mkfifo(root / "fifo.md")
    with worlds.engine(root, tmp_path / "s") as engine:
        outcome = engine.refresh()
        told = engine.status()
        again = engine.refresh()
        (root / "fifo.md").unlink()
        (root / "pipe.md").unlink()
        engine.refresh()
        after = engine.status()

        assert notes(engine, "alpha") == ["a.md"]
        assert [(row.path, row.code) for row in told.skipped] == [
            ("fifo.md", "not_a_file"),
            ("pipe.md", "broken_link"),
        ]
        assert [len(outcome.problems), len(again.problems), len(after.skipped)] == [2, 0, 0]


def test_a_note_that_could_not_be_read_is_tried_again_when_anything_about_it_changed(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"big.md": "alpha\n"})
    os.truncate(root / "big.md", files.DEFAULT_MAX_BYTES + 1)
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        (stat,) = engine.view.list_files()
        changed = replace(stat, ctime_ns=stat.ctime_ns + 1)
        seen = [
            refresh.compare_files(engine.store.file_states(), [file], retry_failed=again)
            for file, again in ((stat, False), (changed, False), (stat, True))
        ]

    assert [(plan.unchanged, len(plan.doubtful)) for plan in seen] == [(1, 0), (0, 1), (0, 1)]


def test_what_is_there_is_searched_although_nothing_can_be_written(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.store.database.reader().execute("PRAGMA max_page_count = 1")
        worlds.fill(root, {"b.md": "alpha beta\n" * 20_000})
        freshness = engine.freshen()

        assert (freshness.stale, freshness.pending) == (1, 1)
        assert notes(engine, "alpha") == ["a.md"]


@pytest.mark.parametrize("watched", [False, True])
def test_what_is_ignored_by_now_is_gone_though_the_index_still_holds_it(tmp_path: Path, *, watched: bool) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "alpha beta\n"})
    (root / "link.md").symlink_to("b.md")
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
    worlds.fill(root, {".knapignore": "b.md\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        if watched:
            with ChangeFeed(root, tmp_path / "s") as feed, engine.followed_by(feed):
                engine.freshen()

        assert notes(engine, "alpha") == ["a.md"]
        assert notes(engine, "beta") == []
        assert engine.status().notes == 1
        assert engine.store.hash_of(NotePath("b.md"))
        engine.freshen()
        assert engine.store.hash_of(NotePath("b.md")) == ""


def test_a_part_taken_in_by_other_rules_makes_nobody_trust_the_whole(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "old") as late:
        late.refresh()
        worlds.fill(root, {".knapignore": "b.md\n", "b.md": "alpha\n"})
        with worlds.engine(root, tmp_path / "old") as engine:
            engine.refresh()
            late.refresh_paths([root / "b.md"])

            assert notes(engine, "alpha") == ["a.md"]


def test_a_watcher_follows_the_rules(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "alpha\n"})
    stop = threading.Event()
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        watcher = threading.Thread(target=watch.follow_vault, args=(engine, stop, _ignore))
        watcher.start()
        try:
            assert _eventually(lambda: notes(engine, "alpha") == ["a.md", "b.md"])
            worlds.fill(root, {".knapignore": "b.md\n"})
            assert _eventually(lambda: engine.store.hash_of(NotePath("b.md")) == "")
        finally:
            stop.set()
            watcher.join()


def _ignore(_: RefreshOutcome) -> None:
    pass


def _eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not holds():
        time.sleep(0.02)
    return holds()


def test_an_empty_vault_is_complete_after_one_look(tmp_path: Path) -> None:
    with worlds.engine(tmp_path / "v", tmp_path / "s") as engine:
        assert not engine.freshen().incomplete


def test_many_threads_search_while_one_writes(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"alpha note{n}\n" for n in range(50)})
    errors: list[BaseException] = []
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    assert len(engine.search(SearchRequest(text="alpha", limit=5)).hits) == 5
            except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
                errors.append(error)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(20):
            worlds.fill(root, {f"{n}.md": f"alpha changed{n}\n"})
            engine.refresh()
            engine.embed()
        done.set()
        for reader in readers:
            reader.join()

    assert errors == []


def test_a_watcher_takes_in_saves_folders_and_deletions(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, taken = threading.Event(), threading.Semaphore(0)
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:

        def heard(outcome: RefreshOutcome) -> None:
            del outcome
            taken.release()

        watcher = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
        watcher.start()
        try:
            assert taken.acquire(timeout=PATIENCE_S)
            assert refresh.is_watched(tmp_path / "s")
            worlds.fill(root, {"b.md": "beta\n", "deep/er/c.md": "gamma\n"})
            (root / "a.md").unlink()
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and (notes(engine, "gamma"), notes(engine, "alpha")) != (
                ["deep/er/c.md"],
                [],
            ):
                taken.acquire(timeout=0.2)
            assert (notes(engine, "beta"), notes(engine, "gamma"), notes(engine, "alpha")) == (
                ["b.md"],
                ["deep/er/c.md"],
                [],
            )
        finally:
            stop.set()
            watcher.join()

        assert not refresh.is_watched(tmp_path / "s")


def test_a_watcher_finds_by_itself_what_the_system_did_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, outcomes = threading.Event(), list[RefreshOutcome]()

    class Silent:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def watch(self, *_: object) -> set[tuple[int, str]]:
            return set()

        def close(self) -> None:
            pass

    def heard(outcome: RefreshOutcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) == 1:
            worlds.fill(root, {"b.md": "beta\n"})
            (root / "a.md").unlink()
        if outcome.removed:
            stop.set()

    monkeypatch.setattr(index_feed, "RustNotify", Silent)
    view = View.open(root, Policy(client="owner"))
    with Engine(tmp_path / "s", view, open_embedder=lambda: None, compare_every_s=0.01) as engine:
        watch.follow_vault(engine, stop, heard)
        found = (notes(engine, "alpha"), notes(engine, "beta"))

    assert found == ([], ["b.md"])


def test_a_watcher_gives_no_sign_of_life_before_the_whole_vault_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    stop, watched = threading.Event(), list[bool]()
    with worlds.engine(root, tmp_path / "s") as engine:
        refresh_all = engine.refresh

        def compare(*, progress: refresh.Progress | None) -> RefreshOutcome:
            watched.append(refresh.is_watched(tmp_path / "s"))
            return refresh_all(progress=progress)

        def heard(_: RefreshOutcome) -> None:
            watched.append(refresh.is_watched(tmp_path / "s"))
            stop.set()

        monkeypatch.setattr(engine, "refresh", compare)
        watch.follow_vault(engine, stop, heard)

    assert watched == [False, True]


def test_a_sign_of_life_from_a_clock_that_was_set_back_is_none(tmp_path: Path) -> None:
    watch.write_heartbeat(tmp_path)
    ahead = time.time() + 3_600
    os.utime(tmp_path / "watch.beat", (ahead, ahead))

    assert not refresh.is_watched(tmp_path)


def test_an_index_of_which_only_a_part_was_taken_in_is_not_complete(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "[[a]]\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh_paths([root / "a.md"])

        with ChangeFeed(root, tmp_path / "s") as feed, engine.followed_by(feed):
            assert engine.freshen().incomplete
            engine.catch_up()
        assert not engine.freshen().incomplete
        assert [edge.source for edge in engine.graph.incoming(NotePath("a.md"))] == ["b.md"]


def test_a_file_saved_in_the_future_is_not_read_at_each_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    ahead = time.time() + 86_400
    os.utime(root / "a.md", (ahead, ahead))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.freshen()
        monkeypatch.setattr(files, "read_bytes", _not_read)
        engine.freshen()

        assert notes(engine, "alpha") == ["a.md"]


def _not_read(*_: object, **__: object) -> bytes:
    raise AssertionError("the file was read again")


def test_words_answer_where_the_embedder_is_not_set_up_and_the_reason_is_said(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})

    def refuse() -> Embedder | None:
        raise EmbedderError("embeddings.model isn't set")

    with Engine(tmp_path / "s", View.open(root, Policy(client="owner")), open_embedder=refuse) as engine:
        freshness = engine.freshen()
        answer = engine.search(SearchRequest(text="alpha"))

        assert (freshness.pending, [hit.row.note for hit in answer.hits]) == (0, ["a.md"])
        assert answer.remarks == ("searched by words only: embeddings.model isn't set",)


def test_an_index_that_cannot_be_locked_still_answers_and_says_what_it_misses(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        (tmp_path / "s" / "index.lock").unlink()
        (tmp_path / "s" / "index.lock").mkdir()
        worlds.fill(root, {"b.md": "beta\n"})

        assert engine.freshen().stale == 1
        assert notes(engine, "alpha") == ["a.md"]
        with pytest.raises(StorageError, match="locked"):
            engine.refresh()


def test_who_searches_side_by_side_after_a_save_finds_it(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": "alpha\n" for n in range(50)})
    found: list[tuple[int, list[str]]] = []
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()

        def look(word: str, together: threading.Barrier) -> None:
            together.wait()
            stale = engine.freshen(meaning=False).stale
            found.append((stale, notes(engine, word)))

        for n in range(8):
            worlds.fill(root, {f"new{n}.md": f"word{n}x\n"})
            together = threading.Barrier(4)
            threads = [threading.Thread(target=look, args=(f"word{n}x", together)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert found == [(0, [f"new{n}.md"]) for n in range(8) for _ in range(4)]


def test_an_embedding_that_is_stopped_while_it_waits_keeps_what_is_done(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"A.md": "alpha\n"})
    stop = threading.Event()
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder(error=EmbedderStopped("ended"))) as engine:
        engine.refresh()

        assert engine.embed(stop=stop) == 0
        assert engine.status().pending == 1


def test_closing_an_index_closes_its_embedder(tmp_path: Path) -> None:
    used, unused = worlds.WordEmbedder(), worlds.WordEmbedder()
    with worlds.engine(tmp_path / "v", tmp_path / "s", used) as engine:
        assert engine.model == "words"
    with worlds.engine(tmp_path / "v", tmp_path / "s", unused):
        pass

    assert (used.is_closed, unused.is_closed) == (True, False)
