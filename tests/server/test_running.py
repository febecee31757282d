"""Slow calls hold nobody up, and the server ends in good order."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from knapper.server.lifecycle import HttpConnection
from knapper.server.workers import StopSignal, WorkerThreads, WorkKind
from tests.server import live
from tests.server.live import Live

T = TypeVar("T")

pytestmark = pytest.mark.timeout(60)


def calls(server: Live, pool: ThreadPoolExecutor, count: int) -> list[Future[int]]:
    def call() -> int:
        with server.client() as client:
            return client.post("/tools/wait").status_code

    return [pool.submit(call) for _ in range(count)]


def test_fifty_slow_calls_hold_up_neither_health_nor_other_kinds_of_calls(tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, threads=WorkerThreads(4)) as server,
        ThreadPoolExecutor(50) as pool,
        server.client() as client,
    ):
        waiting = calls(server, pool, 50)
        server.door.until_waiting(4)
        health = client.get("/health").status_code
        written = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "More."}).status_code
        server.door.opened.set()
        found = {one.result() for one in waiting}

    assert (health, written, found) == (200, 200, {200})


def test_slow_writes_hold_up_no_reading(tmp_path: Path) -> None:
    with live.serving(tmp_path, threads=WorkerThreads(2), effect="write") as server, ThreadPoolExecutor(9) as pool:
        waiting = calls(server, pool, 9)
        server.door.until_waiting(1)
        with server.client() as client:
            read = client.get("/notes/Rain.md").status_code
        server.door.opened.set()
        found = {one.result() for one in waiting}

    assert (read, found) == (200, {200})


def test_calls_that_take_long_hold_up_no_writing(tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, threads=WorkerThreads(2), effect="write", takes_long=True) as server,
        ThreadPoolExecutor(9) as pool,
    ):
        waiting = calls(server, pool, 9)
        server.door.until_waiting(1)
        with server.client() as client:
            written = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "More."}).status_code
        server.door.opened.set()
        found = {one.result() for one in waiting}

    assert (written, found) == (200, {200})


class Heard(WorkerThreads):
    """Tell when a call has come, and when one was given up."""

    def __init__(self, size: int, *, waiting: int) -> None:
        super().__init__(size, waiting=waiting)
        self.come = threading.Semaphore(0)
        self.given_up = threading.Semaphore(0)

    async def run(self, kind: WorkKind, work: Callable[[], T]) -> T:
        self.come.release()
        try:
            return await super().run(kind, work)
        except asyncio.CancelledError:
            self.given_up.release()
            raise


def test_what_waits_for_its_turn_is_left_when_its_client_has_gone(tmp_path: Path) -> None:
    threads = Heard(1, waiting=10)
    with live.serving(tmp_path, threads=threads) as server, ThreadPoolExecutor(3) as pool:
        first = calls(server, pool, 1)
        server.door.until_waiting(1)
        assert threads.come.acquire(timeout=30)
        for _ in range(9):
            with live.asked(server.address, server.token, "/tools/wait"):
                assert threads.come.acquire(timeout=30)
            assert threads.given_up.acquire(timeout=30)
        second = calls(server, pool, 1)
        server.door.opened.set()
        found = [first[0].result(), second[0].result()]

    assert found == [200, 200]
    assert server.door.count == 2


def test_what_has_begun_hears_that_its_client_has_gone(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server:
        with live.asked(server.address, server.token, "/tools/wait"):
            server.door.until_waiting(1)
        heard = server.door.left.wait(30)

        with server.client() as client:
            server.door.left.clear()
            server.door.opened.set()
            _ = client.post("/tools/wait")

        assert (heard, server.door.left.is_set()) == (True, False)


def test_who_comes_when_too_many_wait_is_sent_away(tmp_path: Path) -> None:
    with live.serving(tmp_path, threads=WorkerThreads(1, waiting=0)) as server, ThreadPoolExecutor(1) as pool:
        first = calls(server, pool, 1)
        server.door.until_waiting(1)
        with server.client() as client:
            found = [client.post("/tools/wait") for _ in range(2)]
        server.door.opened.set()
        done = first[0].result()

    assert done == 200
    assert {(one.status_code, one.json()["code"], one.headers["retry-after"]) for one in found} == {(503, "busy", "1")}


def test_a_running_call_finishes_before_the_end(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        waiting = calls(server, pool, 1)
        server.door.until_waiting(1)
        server.stop.cancel()
        server.door.opened.set()
        server.thread.join()

        assert waiting[0].result() == 200


def test_a_call_that_never_ends_does_not_keep_the_server(tmp_path: Path) -> None:
    with live.serving(tmp_path, stop_s=1) as server, ThreadPoolExecutor(1) as pool:
        waiting = calls(server, pool, 1)
        server.door.until_waiting(1)
        server.end()

        assert waiting[0].result() == 503


def test_a_connection_without_a_request_is_closed(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, server.client() as client:
        cut = b""
        with pytest.MonkeyPatch.context() as hasty, live.connected(server.address) as connection:
            hasty.setattr(HttpConnection, "head_timeout_s", 0.05)
            with contextlib.suppress(ConnectionError):  # it may be closed before anything was sent
                connection.sendall(b"GET /health HT")
                cut = connection.recv(100)
        served = [client.get("/health").status_code for _ in range(3)]

    assert cut == b""
    assert served == [200] * 3


def test_whoever_listens_hears_once_that_the_server_stops() -> None:
    stop, heard = StopSignal(), list[str]()
    _ = stop.subscribe(lambda: heard.append("first"))
    forget: Callable[[], None] = stop.subscribe(lambda: heard.append("gone"))
    forget()
    stop.cancel()
    stop.cancel()
    _ = stop.subscribe(lambda: heard.append("late"))

    assert heard == ["first", "late"]


STUCK = """
import threading
from knapper.server import lifecycle
threading.Thread(target=threading.Event().wait).start()
print("leaving")
lifecycle.exit_process(7, wait_s=0.05)
"""


def test_a_process_leaves_although_a_call_runs_on() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=50, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "leaving\n", "")


IDLE = """
from concurrent.futures import ThreadPoolExecutor
from knapper.index.snapshot import RANKING_THREAD_PREFIX
from knapper.server import lifecycle
pool = ThreadPoolExecutor(1, thread_name_prefix=RANKING_THREAD_PREFIX)
pool.submit(int).result()
lifecycle.exit_process(7, wait_s=0.05)
pool.shutdown()
print("closed")
"""


def test_threads_that_wait_to_compute_do_not_keep_a_server_from_closing_its_vaults() -> None:
    ended = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=50, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")
