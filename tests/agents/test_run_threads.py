"""Work in a thread with a loop of its own: what it gives, how it fails, and how it is cancelled."""

import asyncio
import threading
from collections.abc import Coroutine

import pytest

from knapper.app import runs


def test_work_is_done_in_a_thread_of_its_own_and_gives_what_it_comes_to() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert asyncio.run(runs.run_in_thread(work, "run r1")) == "run r1"


def test_what_it_raises_is_raised_here() -> None:
    async def work() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(runs.run_in_thread(work, "run"))


def test_cancelling_waits_for_what_the_work_still_has_to_keep() -> None:
    kept: list[str] = []
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            kept.append("kept")

    async def cancelled() -> bool:
        task = asyncio.create_task(runs.run_in_thread(work, "run"))
        assert await asyncio.to_thread(begun.wait, 60)
        _ = task.cancel()
        _ = await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert kept == ["kept"]


def test_work_that_is_cancelled_twice_before_it_begins_doesnt_go_on() -> None:
    door = threading.Event()

    def work() -> Coroutine[object, object, None]:
        assert door.wait(60)
        return asyncio.sleep(60)

    async def cancelled() -> bool:
        task = asyncio.create_task(runs.run_in_thread(work, "twice"))
        for _ in range(2):
            await asyncio.sleep(0.01)
            _ = task.cancel()
        _ = await asyncio.wait({task})
        (thread,) = [one for one in threading.enumerate() if one.name == "twice"]
        door.set()
        await asyncio.to_thread(thread.join, 5)
        return not thread.is_alive()

    assert asyncio.run(cancelled())


def test_work_that_blocks_holds_up_nobody_here() -> None:
    door = threading.Event()

    async def work() -> bool:
        return door.wait(60)  # it blocks its own loop

    async def both() -> bool:
        task = asyncio.create_task(runs.run_in_thread(work, "run"))
        await asyncio.sleep(0.01)
        door.set()
        return await task

    assert asyncio.run(both())


def test_many_may_wait_in_threads_of_one_run_at_once() -> None:
    met = threading.Barrier(40)

    async def work() -> int:
        return len(await asyncio.gather(*(asyncio.to_thread(met.wait, 60) for _ in range(40))))

    assert asyncio.run(runs.run_in_thread(work, "run")) == 40
