"""Threads of the server, and of the libraries that it calls."""

import asyncio
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from knapper.app import tables
from knapper.config import files
from knapper.errors import StorageError
from knapper.server import workers
from knapper.server.workers import WorkerThreads
from knapper.system import arrays
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer


def test_libraries_compute_in_one_thread_unless_the_owner_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "3")
    for name in ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        monkeypatch.setenv(name, "9")  # so that it is put back
        monkeypatch.delenv(name)
    files.keep_libraries_to_one_thread()

    said = os.environ  # noqa: TID251 - what is tested is what it holds
    names = ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    assert [said[name] for name in names] == ["1", "1", "3"]


def nothing(context: Context) -> Answer:
    return {"vault": context.vault, "here": str(Path())}


def test_what_waits_for_other_machines_has_threads_of_its_own() -> None:
    rows = [
        ToolSpec(function=nothing),
        ToolSpec(function=nothing, effect="destructive"),
        ToolSpec(function=nothing, effect="write", open_world=True),
        ToolSpec(function=nothing, effect="write", open_world=True, takes_long=True),
    ]

    assert [workers.kind_of_call(tables.build_table(), row, {}) for row in rows] == ["read", "write", "world", "long"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("read_file", "read"), ("append_to_file", "write"), ("web_search", "world"), ("run_script", "long")],
)
def test_a_tool_that_is_called_by_name_is_of_its_own_kind(name: str, kind: str) -> None:
    table = tables.build_table()

    assert workers.kind_of_call(table, table.find("call_tool"), {"name": name}) == kind
    assert workers.kind_of_call(table, table.find("call_tool"), {"name": ["no name"]}) == "world"


class Counting:
    """Tells how many calls went on at once at most."""

    def __init__(self) -> None:
        self.most = self.now = self.done = 0
        self.lock = threading.Lock()

    def __call__(self, wait: Callable[[], object]) -> int:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        wait()
        with self.lock:
            self.now -= 1
            self.done += 1
            return self.done


async def called(threads: WorkerThreads, count: int, work: Callable[[], int]) -> list[int]:
    return sorted(await asyncio.gather(*(threads.run("read", work) for _ in range(count))))


def test_calls_that_compute_go_on_as_many_at_once_as_the_machine_computes_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knapper.server.workers._LONG_S", 60)  # none waits for something, however busy the machine is
    threads, counting = WorkerThreads(8, at_once=2), Counting()

    found = asyncio.run(called(threads, 60, lambda: counting(lambda: sum(range(2_000)))))
    threads.close()

    assert found == list(range(1, 61))
    assert counting.most <= 2


def test_calls_that_wait_for_something_let_others_begin_until_all_threads_are_taken() -> None:
    threads, counting, door = WorkerThreads(3, at_once=1), Counting(), threading.Event()

    async def work() -> tuple[int, bool, list[int]]:
        slow = [asyncio.create_task(threads.run("read", lambda: counting(door.wait))) for _ in range(2)]
        quick = await threads.run("read", lambda: 7)
        more = [asyncio.create_task(threads.run("read", lambda: counting(door.wait))) for _ in range(2)]
        while counting.now < 3:  # noqa: ASYNC110 - threads count
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.6)
        is_full = counting.now == 3
        door.set()
        return quick, is_full, sorted(await asyncio.gather(*slow, *more))

    found = asyncio.run(asyncio.wait_for(work(), 30))
    threads.close()

    assert found == (7, True, [1, 2, 3, 4])


def test_calls_one_after_another_are_made_in_one_thread_whose_caches_are_warm() -> None:
    threads, meeting = WorkerThreads(4, at_once=3), threading.Barrier(2)

    async def work() -> tuple[set[int], list[int]]:
        together = await asyncio.gather(*(threads.run("write", meet) for _ in range(2)))
        alone: list[int] = []
        for _ in range(20):
            await asyncio.sleep(0.005)  # all threads wait for work by then
            alone.append(await threads.run("write", threading.get_ident))
        return set(together), alone

    def meet() -> int:
        _ = meeting.wait(10)
        return threading.get_ident()

    together, alone = asyncio.run(work())
    threads.close()

    assert len(together) == 2
    assert len(set(alone)) == 1


def test_a_failing_call_fails_for_who_asked_and_gives_its_turn_on() -> None:
    threads = WorkerThreads(1)

    async def work() -> tuple[list[object], int]:
        failing = [threads.run("read", lambda: 1 // 0) for _ in range(3)]
        return await asyncio.gather(*failing, return_exceptions=True), await threads.run("read", lambda: 5)

    failed, found = asyncio.run(work())
    threads.close()

    assert ([type(one) for one in failed], found) == ([ZeroDivisionError] * 3, 5)


def test_a_call_that_stops_an_iteration_fails_too() -> None:
    threads = WorkerThreads(1)

    async def work() -> Sequence[object]:
        return await asyncio.gather(threads.run("read", lambda: next(iter(()))), return_exceptions=True)

    (failed,) = asyncio.run(asyncio.wait_for(work(), 30))
    threads.close()

    assert isinstance(failed, RuntimeError)


def test_where_no_thread_can_be_started_the_call_is_refused_and_later_ones_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, made = WorkerThreads(2), list[int]()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> Sequence[object]:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            refused = [threads.run("write", lambda: made.append(1)) for _ in range(4)]
            failed = await asyncio.gather(*refused, return_exceptions=True)
        await asyncio.gather(*(threads.run("write", lambda: made.append(2)) for _ in range(2)))
        return failed

    failed = asyncio.run(asyncio.wait_for(work(), 30))
    has_ended = threads.finish(5)

    assert [isinstance(one, StorageError) and one.code for one in failed] == ["busy"] * 4
    assert (made, has_ended) == ([2, 2], True)


def test_who_gives_up_waiting_takes_no_turn_and_too_many_are_refused() -> None:
    threads, door, ran = WorkerThreads(1, waiting=2), threading.Event(), list[int]()

    async def work() -> str:
        first = asyncio.create_task(threads.run("read", door.wait))
        waits = [asyncio.create_task(threads.run("read", lambda i=i: ran.append(i))) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(StorageError) as refused:
            await threads.run("read", lambda: None)
        waits[0].cancel()
        await asyncio.sleep(0)
        door.set()
        await asyncio.gather(first, waits[1])
        return refused.value.code

    code = asyncio.run(work())
    threads.close()

    assert (code, ran) == ("busy", [1])


def test_who_gave_up_waiting_leaves_room_for_others() -> None:
    threads, door = WorkerThreads(1, waiting=2), threading.Event()

    async def work() -> int:
        first = asyncio.create_task(threads.run("read", door.wait))
        waits = [asyncio.create_task(threads.run("read", lambda: None)) for _ in range(2)]
        await asyncio.sleep(0)
        for one in waits:
            one.cancel()
        await asyncio.sleep(0)
        later = asyncio.create_task(threads.run("read", lambda: 7))
        await asyncio.sleep(0)
        door.set()
        await first
        return await later

    found = asyncio.run(work())
    threads.close()

    assert found == 7


def test_what_has_begun_comes_to_its_end_though_its_thread_has_not_taken_it_up() -> None:
    async def work() -> list[int]:
        found: list[int] = []
        for number in range(100):
            threads = WorkerThreads(1)
            _ = await threads.run("read", lambda: 0)
            await asyncio.sleep(0.001)  # its thread waits for work by now, most likely
            going = asyncio.create_task(threads.run("read", lambda number=number: number))
            await asyncio.sleep(0)
            threads.close()
            found.append(await asyncio.wait_for(going, 5))
        return found

    assert asyncio.run(work()) == list(range(100))


def test_a_server_that_ends_begins_nothing_more() -> None:
    threads, door = WorkerThreads(1), threading.Event()

    async def work() -> tuple[list[str], bool]:
        going = asyncio.create_task(threads.run("read", door.wait))
        waiting = asyncio.create_task(threads.run("read", lambda: None))
        await asyncio.sleep(0)
        threads.close()
        with pytest.raises(StorageError) as refused:
            await threads.run("read", lambda: None)
        await asyncio.wait([waiting])
        door.set()
        return [refused.value.code, str(await going)], waiting.cancelled()

    assert asyncio.run(work()) == (["stopping", "True"], True)


_COUNT_ARENAS = """
import ctypes, sys, threading
from knapper.server import workers

if sys.argv[1] == "shared":
    assert workers.share_arenas()
library, ready, held = ctypes.CDLL(None), threading.Barrier(9), []

def allocate():
    ready.wait()
    held.append(bytearray(50_000))
    ready.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
[thread.start() for thread in threads]
ready.wait()
ready.wait()
library.fdopen.restype = ctypes.c_void_p
out = library.fdopen(1, b"w")
library.malloc_info(0, ctypes.c_void_p(out))
library.fflush(ctypes.c_void_p(out))
"""


def count_arenas(kind: str) -> int:
    command = [sys.executable, "-c", _COUNT_ARENAS, kind]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no arenas")
def test_the_servers_threads_share_two_arenas_of_the_allocator() -> None:
    assert (count_arenas("shared"), count_arenas("own") > 2) == (2, True)


def test_where_there_are_no_arenas_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not workers.share_arenas()


def test_a_server_that_has_worked_returns_freed_memory_and_one_that_idles_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    returned: list[float] = []
    monkeypatch.setattr(arrays, "return_free_memory", lambda: returned.append(time.process_time()))

    async def serve() -> tuple[int, int]:
        async with workers.return_memory(every_s=0.02, work_s=0.2):
            spin(0.3)
            await asyncio.sleep(0.3)
            after_work = len(returned)
            await asyncio.sleep(0.3)
            return after_work, len(returned)

    assert asyncio.run(serve()) == (1, 1)


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


_FRAGMENT = """
import ctypes
from knapper.system import arrays
from knapper.server import workers

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

workers.share_arenas()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
blocks = [library.malloc(60_000) for _ in range(1_000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
kept = blocks.pop()
for block in blocks:
    library.free(ctypes.c_void_p(block))
before = resident()
arrays.return_free_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators return memory by themselves")
def test_what_lies_free_below_a_block_in_use_is_returned() -> None:
    done = subprocess.run([sys.executable, "-c", _FRAGMENT], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 50_000_000


_LARGE = """
import ctypes, sys
from knapper.server import workers

if sys.argv[1] == "shared":
    workers.share_arenas()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def is_mapped(size):
    info.restype = Info
    before = info().hblkhd
    blocks.append(library.malloc(size))
    return info().hblkhd > before

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks a b c".split()]

info, blocks = library.mallinfo2, []
library.free(ctypes.c_void_p(library.malloc(30_000_000)))
print(is_mapped(1_000_000), is_mapped(6_000_000))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no such limit")
@pytest.mark.parametrize(("kind", "mapped"), [("own", "False False"), ("shared", "False True")])
def test_large_blocks_are_mapped_also_after_larger_ones_were_freed(kind: str, mapped: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LARGE, kind], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == mapped
