"""Indexes are kept while a server runs, and a watcher that dies comes back."""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from knapper import config
from knapper.errors import StorageError
from knapper.index import feed, watch
from knapper.index import status as index_status
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.models.base import EmbedderUnavailable
from knapper.index.status import WatchFailure
from knapper.server import workers
from knapper.tools.notes import vault_status
from knapper.tools.shapes.read import VaultStatus
from tests.server import apps


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(8):
        while not happened():  # noqa: ASYNC110 - what is waited for happens in other threads, or on disk
            await asyncio.sleep(0.02)


def test_a_vault_is_read_and_then_followed(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        engine = world.hub.open().engine

        def notes() -> int:
            return engine.status(Filter()).notes

        async def run() -> tuple[int, int]:
            async with workers.run_watchers(workers.engine_openers(world.hub)):
                await until(lambda: notes() == 3)
                (world.root / "New.md").write_text("# New\n", encoding="utf-8")
                await until(lambda: notes() == 4)
            return notes(), threading.active_count()

        before = threading.active_count()
        found, after = asyncio.run(run())

    assert found == 4
    assert after <= before + 2


class Clock:
    """A clock of the watcher's loop that the test sets, and how often it was looked at."""

    now = 1_000.0
    looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.now


class Deaf:
    """Reports of changes as a network drive gives them: none."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def watch(self, *_: object) -> set[tuple[int, str]]:
        return set()

    def close(self) -> None: ...


def test_the_interval_of_the_settings_file_is_that_of_a_servers_comparisons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, clock = tmp_path / "interval.toml", Clock()
    file.write_text("[index]\ninterval_minutes = 7\n", encoding="utf-8")
    monkeypatch.delenv("INDEX_INTERVAL", raising=False)
    monkeypatch.setattr(feed, "RustNotify", Deaf)
    with apps.world(tmp_path) as world:
        minutes = config.load(config_file=str(file)).index_interval_minutes
        world.hub.settings = replace(world.hub.settings, index_interval_minutes=minutes)
        engine = world.hub.open().engine
        monkeypatch.setattr(watch, "time", clock)

        def notes() -> int:
            return engine.status(Filter()).notes

        async def run() -> tuple[int, int]:
            async with workers.run_watchers(workers.engine_openers(world.hub)):
                # Some rounds of its loop: the first compares the vault once more, as no reports come.
                await until(lambda: notes() == 3 and clock.looks > 5)
                (world.root / "New.md").write_text("# New\n", encoding="utf-8")
                clock.now += 7 * 60 - 1
                seen = clock.looks
                await until(lambda: clock.looks > seen + 3)
                before = notes()
                clock.now += 2
                await until(lambda: notes() == 4)
                return before, notes()

        assert asyncio.run(run()) == (3, 4)


def test_a_watcher_that_dies_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    started: list[int] = []
    failures = [StorageError("the disk is full", code="disk_full"), RuntimeError("secret text of a note")]

    def follow(engine: Engine, stop: threading.Event) -> None:
        del engine
        started.append(1)
        if failures:
            raise failures.pop(0)
        stop.wait()

    async def run() -> None:
        async with workers.run_watchers(workers.engine_openers(world.hub), follow=follow, pause_s=0.01):
            await until(lambda: len(started) == 3)

    with apps.world(tmp_path) as world, caplog.at_level(logging.WARNING):
        asyncio.run(run())

    assert "the watcher of the vault 'v' died (disk_full)" in caplog.text
    assert "(RuntimeError)" in caplog.text
    assert "secret" not in caplog.text


AWAY = EmbedderUnavailable("the server at http://secret:1 doesn't answer", hint="start it")


def test_the_status_tells_of_a_watch_that_fails_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_away = threading.Event()
    is_away.set()
    failed: list[VaultStatus] = []

    def embed(*_: object, **__: object) -> int:
        if is_away.is_set():
            raise AWAY
        return 0

    def tells() -> bool:
        status = vault_status(world.hub.context(client="cli"))
        failed.extend([status] if "watch_failed" in status else [])
        return "watch_failed" in status

    async def run() -> None:
        async with workers.run_watchers(workers.engine_openers(world.hub), pause_s=0.3):
            await until(tells)
            is_away.clear()
            await until(lambda: world.hub.open().engine.is_followed and not tells())

    with apps.world(tmp_path) as world:
        monkeypatch.setattr(Engine, "embed", embed)
        asyncio.run(run())

    remark = next(one for one in failed[0].get("remarks", []) if one.startswith("the watch has failed since "))
    assert f"({AWAY.code})" in remark
    assert "`knap index`" in remark
    assert "secret" not in remark


EARLIER = "2026-01-02T03:04:05+01:00"


def test_a_failed_watch_is_told_from_its_first_failure_on_and_not_after_its_end(tmp_path: Path) -> None:
    def follow(engine: Engine, stop: threading.Event) -> None:
        del stop
        index_status.record_watch_failure(engine.folder, AWAY)
        raise AWAY

    async def run() -> None:
        async with workers.run_watchers(workers.engine_openers(world.hub), follow=follow, pause_s=60):
            await until(lambda: find(folder))

    find = index_status.find_watch_failure
    with apps.world(tmp_path) as world:
        folder = world.hub.open().engine.folder
        asyncio.run(run())
        stopped = find(folder)
        index_status.record_watch_failure(folder, AWAY)
        (file,) = folder.glob("*.failed")
        file.write_text(json.dumps({"since": EARLIER, "reason": "disk_full"}), encoding="utf-8")
        index_status.record_watch_failure(folder, None)
        second = find(folder)
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 3_600))
        killed = find(folder)

    assert (stopped, killed) == (None, None)
    assert second == WatchFailure(since=datetime.fromisoformat(EARLIER), reason="no_reports")


def test_a_vault_that_is_missing_now_is_followed_once_it_is_there(tmp_path: Path) -> None:
    followed: list[Engine] = []
    there = threading.Event()

    def opened() -> Engine:
        if not there.is_set():
            there.set()
            raise StorageError("it isn't there")
        return world.hub.open().engine

    def follow(engine: Engine, stop: threading.Event) -> None:
        followed.append(engine)
        stop.wait()

    async def run() -> None:
        async with workers.run_watchers({"v": opened}, follow=follow, pause_s=0.01):
            await until(lambda: followed)

    with apps.world(tmp_path) as world:
        asyncio.run(run())

    assert len(followed) == 1


def test_stopping_ends_a_first_reading_that_is_not_done(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with apps.world(tmp_path) as world:
        workers.follow_vault(world.hub.open().engine, stop)
        engine = world.hub.open().engine

        assert engine.status(Filter()).notes <= 3
