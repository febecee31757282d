import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import filelock
import pytest

from knapper.changes.disk import storage
from knapper.errors import ConflictError, StorageError

SPAWN = multiprocessing.get_context("spawn")


def keep(folder: Path, held: Event, done: Event) -> None:
    with storage.hold_write_lock(folder, timeout_s=60):
        held.set()
        done.wait(120)


def test_a_second_process_is_told_who_writes(tmp_path: Path) -> None:
    held, done = SPAWN.Event(), SPAWN.Event()
    holder = SPAWN.Process(target=keep, args=(tmp_path, held, done))
    holder.start()
    assert held.wait(60)

    with pytest.raises(ConflictError) as caught, storage.hold_write_lock(tmp_path, timeout_s=0.05):
        pass
    done.set()
    holder.join()
    with storage.hold_write_lock(tmp_path, timeout_s=1):
        pass

    assert caught.value.code == "locked"
    assert caught.value.details == {"pid": holder.pid}
    assert str(holder.pid) in caught.value.message


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    held, done = SPAWN.Event(), SPAWN.Event()
    holder = SPAWN.Process(target=keep, args=(tmp_path, held, done))
    holder.start()
    assert held.wait(60)
    assert holder.pid is not None

    os.kill(holder.pid, signal.SIGKILL)
    holder.join()

    with storage.hold_write_lock(tmp_path, timeout_s=1):
        assert int((tmp_path / storage.HOLDER_FILE).read_text(encoding="ascii")) == os.getpid()


def test_threads_of_one_process_wait_for_each_other(tmp_path: Path) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with storage.hold_write_lock(tmp_path, timeout_s=60):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1


def test_who_waits_comes_before_who_has_just_written(tmp_path: Path) -> None:
    order: list[str] = []
    next_one = filelock.FileLock(tmp_path / storage.NEXT_FILE, thread_local=False)

    def wait() -> None:
        with storage.hold_write_lock(tmp_path, timeout_s=60):
            order.append("waited")

    waiting = threading.Thread(target=wait)
    with storage.hold_write_lock(tmp_path, timeout_s=60):
        order.append("first")
        waiting.start()
        while _can_take(next_one):
            time.sleep(0.001)
    with storage.hold_write_lock(tmp_path, timeout_s=60):
        order.append("again")
    waiting.join()

    assert order == ["first", "waited", "again"]


def test_who_is_next_waits_no_longer_than_it_wants(tmp_path: Path) -> None:
    with (
        storage.hold_write_lock(tmp_path, timeout_s=0),
        pytest.raises(ConflictError),
        storage.hold_write_lock(tmp_path, timeout_s=0.05),
    ):
        pass

    with storage.hold_write_lock(tmp_path, timeout_s=1):  # who gave up isn't next any more
        pass


def _can_take(one: filelock.BaseFileLock) -> bool:
    try:
        one.acquire(timeout=0)
    except filelock.Timeout:
        return False
    one.release()
    return True


def test_it_is_free_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), storage.hold_write_lock(tmp_path, timeout_s=0):
        raise ZeroDivisionError

    with storage.hold_write_lock(tmp_path, timeout_s=0):
        pass


def test_an_unknown_holder_is_called_another_process(tmp_path: Path) -> None:
    with storage.hold_write_lock(tmp_path, timeout_s=0):
        (tmp_path / storage.HOLDER_FILE).unlink()
        with (
            pytest.raises(ConflictError, match="another process") as caught,
            storage.hold_write_lock(tmp_path, timeout_s=0),
        ):
            pass

    assert caught.value.details == {"pid": None}


def test_a_state_folder_that_cant_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "nowhere").write_bytes(b"a file")

    with pytest.raises(StorageError, match="nowhere"), storage.hold_write_lock(tmp_path / "nowhere/state", timeout_s=0):
        pass
