"""What was saved a moment ago is found, or the answer says that it may miss it; never a false "not stale"."""

import datetime as dt
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knapper.index import engine as engine_module
from knapper.index import refresh, status, watch
from knapper.index.database import Database
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.index.refresh import RefreshOutcome
from knapper.index.search import SearchRequest
from knapper.system import private
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds


@contextmanager
def followed(engine: Engine) -> Generator[Engine]:
    """Watch a vault within the block, as a server does."""
    stop, ready = threading.Event(), threading.Event()

    def heard(_: RefreshOutcome) -> None:
        ready.set()

    watcher = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
    watcher.start()
    try:
        assert ready.wait(60)
        yield engine
    finally:
        stop.set()
        watcher.join()


def is_found(engine: Engine, word: str) -> bool:
    return bool(engine.search(SearchRequest(text=word, mode="keyword", limit=1)).hits)


@pytest.mark.parametrize("reader", ["own", "other"])
def test_a_note_is_found_right_after_its_save_or_the_answer_says_that_it_may_miss_it(
    tmp_path: Path, reader: str
) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"note{n}\n" for n in range(50)})
    seen: list[tuple[bool, bool]] = []
    # A second engine knows nothing of the watcher but its files, as another process does.
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine), worlds.engine(root, tmp_path / "s") as other:
        asked = engine if reader == "own" else other
        for number in range(50):
            (root / f"{number}.md").write_text(f"saved{number}\n", encoding="utf-8")
            time.sleep(random.uniform(0.01, 0.03))
            freshness = asked.freshen()
            seen.append((is_found(asked, f"saved{number}"), bool(freshness.stale or freshness.unchecked)))

    assert [one for one in seen if one == (False, False)] == []
    assert sum(found for found, _ in seen) > 25


@pytest.fixture(params=["own", "other"])
def beside_watcher(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Engine]:
    """An engine beside a watcher, in its process or as another's, that can't scan the vault."""
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine), worlds.engine(root, tmp_path / "s") as other:
        monkeypatch.setattr(refresh, "VaultScan", _not_scanned)
        yield engine if request.param == "own" else other


def test_a_reader_beside_a_watcher_looks_at_no_files(beside_watcher: Engine) -> None:
    before = dt.datetime.now().astimezone() - dt.timedelta(milliseconds=1)
    freshness = beside_watcher.freshen()

    assert freshness.is_current
    assert before <= dt.datetime.fromisoformat(freshness.as_of) <= dt.datetime.now().astimezone()


def test_a_state_beside_a_watcher_has_what_was_saved(beside_watcher: Engine) -> None:
    worlds.fill(beside_watcher.view.root, {"b.md": "beta\n"})
    freshness = beside_watcher.check_freshness()

    assert freshness.is_current
    assert is_found(beside_watcher, "beta")


def _not_scanned(*_: object) -> object:
    raise AssertionError("the vault was scanned")


@pytest.mark.parametrize("reader", ["own", "other"])
def test_what_cannot_be_indexed_now_makes_the_answer_stale(tmp_path: Path, reader: str) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "Secret/b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine), worlds.engine(root, tmp_path / "s") as other:
        asked = engine if reader == "own" else other
        first = asked.freshen()
        guest = Policy(client="guest", hidden=("Secret/",))
        with private.acquire_process_lock(tmp_path / "s", refresh.WRITE_LOCK_FILE, wait_s=5):
            saved = dt.datetime.now().astimezone()
            worlds.fill(root, {"Secret/b.md": "omega\n"})
            seen = [asked.freshen(), asked.freshen(policy=guest), asked.freshen()]
        deadline = time.monotonic() + 30
        while not (last := asked.freshen()).is_current and time.monotonic() < deadline:
            time.sleep(0.05)

        assert first.is_current
        assert [bool(one.stale) for one in seen] == [True, False, True]
        # The guest isn't told of a hidden file, and what it is told doesn't count for others.
        assert [dt.datetime.fromisoformat(one.as_of) <= saved for one in seen] == [True, False, True]
        assert saved <= dt.datetime.fromisoformat(last.as_of)
        assert is_found(asked, "omega")


def _never_made(_: Path) -> bool:
    return False


def _made_elsewhere(_: Path) -> bool:
    return True


def test_no_report_is_lost_however_often_it_is_looked_for(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    paths = [root / f"{number}.md" for number in range(3_000)]

    def write() -> None:
        for path in paths:
            path.touch()

    with ChangeFeed(root, tmp_path / "s") as feed:
        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            _ = feed.collect()
        writer.join()
        assert feed.sync(10)

        assert set(paths) <= set(feed.waiting())


def test_notes_that_are_named_like_signal_files_are_notes(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "watch/b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        worlds.fill(root, {"watch/ask-me.md": "omega\n", "watch/sync-1-1.md": "omega\n"})
        freshness = engine.freshen()
        found = {hit.row.note for hit in engine.search(SearchRequest(text="omega", mode="keyword", limit=5)).hits}

        assert freshness.is_current
        assert found == {"watch/ask-me.md", "watch/sync-1-1.md"}


def test_what_a_watcher_is_indexing_is_not_in_the_index_yet(tmp_path: Path) -> None:
    feed_folder, root = tmp_path / "s", worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with ChangeFeed(root, feed_folder) as feed:
        worlds.fill(root, {"a.md": "beta\n"})
        assert feed.sync(10)
        taken = feed.waiting()
        worlds.fill(root, {"a.md": "gamma\n"})
        assert feed.sync(10)
        feed.settle(taken)

        assert [*taken, *feed.waiting()] == [root / "a.md", root / "a.md"]
        feed.settle(feed.waiting())
        assert feed.waiting() == {}


def test_files_in_a_new_folder_are_found_though_the_system_reports_only_the_folder(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        for number in range(20):
            worlds.fill(root, {f"new{number}/deep/er/b.md": f"fresh{number}\n"})
            freshness = engine.freshen()

            assert is_found(engine, f"fresh{number}") or freshness.stale


def test_new_ignore_rules_hold_for_the_next_reader(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "Old/b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        worlds.fill(root, {".knapignore": "Old/\n"})
        freshness = engine.freshen()

        assert freshness.stale or not is_found(engine, "beta")


def test_a_report_that_does_not_come_leads_to_a_look_at_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        monkeypatch.setattr(private, "make_signal", _never_made)
        worlds.fill(root, {"a.md": "omega\n"})
        freshness = engine.freshen()

        assert freshness.is_current
        assert is_found(engine, "omega")


def test_where_all_files_are_looked_at_in_turn_nobody_relies_on_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine), worlds.engine(root, tmp_path / "s") as other:
        for reader, word in ((engine, "beta"), (other, "gamma")):
            worlds.fill(root, {"a.md": f"{word}\n"})

            assert reader.freshen().is_current
            assert is_found(reader, word)
        assert not refresh.ask_watcher(tmp_path / "s")


def test_lost_reports_are_made_good_by_a_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with ChangeFeed(root, tmp_path / "s") as feed:
        assert feed.sync(10)
        monkeypatch.setattr(private, "make_signal", _made_elsewhere)
        assert not feed.sync(0.01)
        doubts = feed.doubts

        assert feed.is_doubtful
        feed.trust(doubts)
        assert not feed.is_doubtful


def test_a_watcher_goes_on_after_the_index_was_deleted(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        shutil.rmtree(tmp_path / "s" / refresh.SIGNAL_FOLDER)
        worlds.fill(root, {"a.md": "omega\n"})
        freshness = engine.freshen()
        found = is_found(engine, "omega")
        deadline = time.monotonic() + 30
        while not (tmp_path / "s" / refresh.SIGNAL_FOLDER).is_dir() and time.monotonic() < deadline:
            time.sleep(0.02)

        assert freshness.is_current
        assert found
        assert (tmp_path / "s" / refresh.SIGNAL_FOLDER).is_dir()


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="such a name can't be there")
def test_a_name_that_is_not_unicode_ends_neither_a_search_nor_the_watch(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine):
        os.close(os.open(os.fsencode(root) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
        worlds.fill(root, {"a.md": "omega\n"})
        _ = engine.freshen()
        found = is_found(engine, "omega")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (engine.is_followed and refresh.ask_watcher(tmp_path / "s")):
            time.sleep(0.05)
        worlds.fill(root, {"a.md": "later\n"})
        freshness = engine.freshen()

        assert found
        assert freshness.is_current
        assert is_found(engine, "later")


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="such a name can't be there")
def test_a_watch_that_a_name_fails_each_time_starts_over_less_and_less_often(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    os.mkdir(os.fsencode(root) + b"/\xff")  # noqa: PTH102 - a Path holds text
    stop = _HurriedStop(pauses=11)
    with worlds.engine(root, tmp_path / "s") as engine:
        watch.follow_vault(engine, stop, lambda _: None)

    assert stop.pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


class _HurriedStop(threading.Event):
    """Ends after some pauses of a second or more, which it doesn't wait for."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._limit = pauses

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is None or timeout < 1:
            return super().wait(timeout)
        self.pauses.append(timeout)
        if len(self.pauses) == self._limit:
            self.set()
        return self.is_set()


def test_a_name_is_looked_up_without_checking_the_whole_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    checks: list[Database] = []

    def check(index: Database) -> str:
        checks.append(index)
        return ""

    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        monkeypatch.setattr(status, "find_damage", check)
        worlds.fill(root, {"Plan.md": "---\naliases: [The Plan]\n---\n"})
        found = engine.view.locate("The Plan", certain=True)

        assert found == "Plan.md"
    assert checks == []


def test_signal_files_do_not_pile_up(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    folder = tmp_path / "s" / refresh.SIGNAL_FOLDER
    worlds.fill(folder, {"ask-0123": "", "sync-1-1": ""})
    for file in folder.iterdir():
        long_ago = time.time() - 3600
        os.utime(file, (long_ago, long_ago))
    with worlds.engine(root, tmp_path / "s") as engine, followed(engine), worlds.engine(root, tmp_path / "s") as other:
        for _ in range(10):
            _ = engine.freshen(), other.freshen()

        assert list(folder.iterdir()) == []


def test_a_question_that_no_watcher_answers_is_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / refresh.SIGNAL_FOLDER
    folder.mkdir()

    assert not refresh.ask_watcher(tmp_path, wait_s=0.02)
    assert list(folder.iterdir()) == []


def test_a_look_that_is_cut_short_takes_in_what_it_found_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"note{n}\n" for n in range(9)})
    long_ago = time.time() - 60
    for file in root.iterdir():
        os.utime(file, (long_ago, long_ago))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"0.md": "early\n", "8.md": "late\n"})
        with monkeypatch.context() as patch:
            patch.setattr(engine_module, "_SCAN_BUDGET_S", -1)
            patch.setattr(refresh, "_LOOKS_PER_CLOCK", 4)
            cut = engine.freshen()
        found_then = [is_found(engine, word) for word in ("early", "late", "note5")]
        whole = engine.freshen()
        found_now = is_found(engine, "late")

    assert (cut.unchecked, cut.stale, cut.is_current) == (True, 0, False)
    assert found_then == [True, False, True]
    assert (whole.is_current, found_now) == (True, True)


def test_a_brief_look_sees_all_that_changed(tmp_path: Path) -> None:
    texts = {f"{name}.md": f"{name}\n" for name in ("kept", "saved", "gone", "moved", "linked", "folder")}
    root = worlds.fill(tmp_path / "v", texts)
    long_ago = time.time() - 60
    for file in root.iterdir():
        os.utime(file, (long_ago, long_ago))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        (root / "saved.md").write_text("SAVED\n", encoding="utf-8")
        os.utime(root / "saved.md", (long_ago, long_ago))
        (root / "gone.md").unlink()
        (root / "moved.md").rename(root / "else.md")
        for name in ("linked.md", "folder.md"):
            (root / name).unlink()
        (root / "folder.md").mkdir()
        (root / "linked.md").symlink_to("kept.md")
        worlds.fill(root, {"folder.md/new.md": "new\n"})
        assert engine.freshen().is_current
        states = engine.store.file_states()
        found = is_found(engine, "saved"), is_found(engine, "new")

    assert sorted(states) == ["else.md", "folder.md/new.md", "kept.md", "linked.md", "saved.md"]
    assert states[NotePath("linked.md")].target == "kept.md"
    assert found == (True, True)
