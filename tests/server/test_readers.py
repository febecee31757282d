"""Reader processes: they answer as the server does, from no older state, for whom they may, and none is left behind."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.app import Hub, clients
from knapper.config import ClientSettings
from knapper.config.sections import ServerSettings
from knapper.index import database
from knapper.index.models.base import EmbedderKind
from knapper.index.refresh import Freshness
from knapper.server import reader_process, readers
from knapper.server.http.binding import ToolInvoker
from knapper.server.reader_process import ReaderRequest, SearchReader
from knapper.server.readers import KnownState, ReaderPool
from knapper.server.workers import WorkerThreads
from knapper.vault import access
from tests.index import worlds
from tests.server import apps, servers
from tests.server.apps import World

pytestmark = pytest.mark.timeout(180)

ONE = ServerSettings(requests_per_minute=0, readers="1")
NOTES = {**apps.NOTES, "Clippings/Page.md": "# Page\n\nA parsnip of others.\n"}
WAIT_S = 90


def world(base: Path, *named: ClientSettings, server: ServerSettings = ONE) -> contextlib.AbstractContextManager[World]:
    return apps.world(base, *named, server=server, notes=NOTES)


@contextlib.asynccontextmanager
async def pool(hub: Hub, *, idle_s: float = 60.0, count: int = 1) -> AsyncGenerator[ReaderPool]:
    """Give a pool with so many readers."""
    _ = hub.open().engine.refresh()
    found = ReaderPool(hub, WorkerThreads(2), idle_s=idle_s)
    async with asyncio.timeout(WAIT_S), found.run():
        await begin(found, lambda: found.count == count)
        yield found


async def begin(found: ReaderPool, is_enough: Callable[[], bool]) -> None:
    """Have searches side by side until there are readers."""
    with found.under_way("v"):
        while not is_enough():
            with found.under_way("v"):
                await asyncio.sleep(0.005)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nothing tells of a process
        await asyncio.sleep(0.02)


async def search(found: ReaderPool, query: str, client: str = "http", **more: object) -> dict[str, Any] | None:
    arguments = {"query": query, **more}
    content = await found.answer(client, "search_vault", arguments, await found.look(client, arguments))
    return None if content is None else json.loads(content)


def sources(answer: dict[str, Any] | None) -> list[str]:
    assert answer is not None
    return [hit["source"] for hit in answer["results"]]


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def with_pool(hub: Hub, work: Callable[[ReaderPool], Awaitable[None]], *, idle_s: float = 60.0) -> None:
    async def run() -> None:
        async with pool(hub, idle_s=idle_s) as found:
            await work(found)

    asyncio.run(run())


def test_a_reader_answers_as_the_server_does(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        seen.append(await search(found, "tomatoes", explain=True))

    seen: list[dict[str, Any] | None] = []
    with world(tmp_path) as opened:
        with_pool(opened.hub, work)
        own = opened.hub.table.call(
            "search_vault",
            {"query": "tomatoes", "explain": True},
            lambda vault: opened.hub.context(client="http", vault=vault),
        )

    assert seen[0] is not None
    assert {**seen[0], "as_of": ""} == {**own, "as_of": ""}
    assert seen[0]["as_of"]


def test_what_was_just_saved_is_found_by_a_reader(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        for number in range(20):
            _ = (root / "Rain.md").write_text(f"# Rain\n\nzqsaved{number}x\n", encoding="utf-8")
            answer = await search(found, f"zqsaved{number}x")
            seen.append(sources(answer))

    seen: list[list[str]] = []
    with world(tmp_path) as opened:
        root = opened.root
        with_pool(opened.hub, work)

    assert seen == [["Rain.md"]] * 20


def test_a_hidden_note_stays_hidden_in_a_reader(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        seen.extend([sources(await search(found, "secret tomatoes", client)) for client in ("reader", "http")])

    seen: list[list[str]] = []
    reader = ClientSettings(grants=access.default_grants("reader", "http"), hidden=("Private/",))
    with world(tmp_path, reader) as opened:
        with_pool(opened.hub, work)

    assert "Private/Diary.md" not in seen[0]
    assert "Private/Diary.md" in seen[1]


def test_a_vault_that_a_client_may_not_open_is_left_to_the_server(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        seen.append(await search(found, "tomatoes", "reader"))
        seen.append(await search(found, "tomatoes", vault="nowhere"))

    seen: list[dict[str, Any] | None] = []
    reader = ClientSettings(grants=access.default_grants("reader", "http"), vaults=("another",))
    with world(tmp_path, reader) as opened:
        with_pool(opened.hub, work)

    assert seen == [None, None]


def test_foreign_text_from_a_reader_taints_the_client(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        for query, client in (("tomatoes", "http"), ("parsnip", "page"), ("parsnip", "http")):
            seen.append(sources(await search(found, query, client)))
            restricted.append([one.source for one in clients.list_restricted(context)])

    seen: list[list[str]] = []
    restricted: list[list[str]] = []
    with world(tmp_path) as opened:
        context = opened.hub.context(client="page")
        with_pool(opened.hub, work)

    assert seen[1:] == [["Clippings/Page.md"]] * 2
    assert restricted == [[], [], ["Clippings/Page.md"]]


def test_a_mistake_of_the_caller_is_told_by_the_server(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        seen.append(await search(found, " "))
        seen.append(await search(found, "tomatoes", n_results=0))

    seen: list[dict[str, Any] | None] = []
    with world(tmp_path) as opened:
        with_pool(opened.hub, work)

    assert seen == [None, None]


def test_an_index_that_is_not_as_usual_is_left_to_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(found: ReaderPool) -> None:
        for freshness in (
            Freshness(stale=1),
            Freshness(unchecked=True),
            Freshness(incomplete=True),
            Freshness(pending=1),
            Freshness(notices=("something",)),
        ):
            monkeypatch.setattr(engine, "freshen", lambda freshness=freshness: freshness)
            seen.append(await search(found, "tomatoes"))

    seen: list[dict[str, Any] | None] = []
    with world(tmp_path) as opened:
        engine = opened.hub.open().engine
        with_pool(opened.hub, work)

    assert seen == [None] * 5


@pytest.mark.parametrize(("change", "is_answered"), [(0, True), (-1, True), (1, False)])
def test_a_reader_answers_from_no_older_state_than_the_server_knows(
    tmp_path: Path, change: int, *, is_answered: bool
) -> None:
    with world(tmp_path) as opened:
        engine = opened.hub.open().engine
        _ = engine.refresh()
        with engine.store.database.snapshot() as connection:
            uid, generation = database.state_of(connection)
        request: ReaderRequest = {
            "client": "http",
            "vault": "v",
            "tool": "search_vault",
            "arguments": {"query": "tomatoes"},
            "as_of": "",
            "uid": uid,
            "generation": generation + change,
        }
        outcome, _ = reader_process.attempt(lambda: SearchReader(opened.hub).answer(request))
        other, _ = reader_process.attempt(lambda: SearchReader(opened.hub).answer({**request, "uid": "another"}))

    assert (outcome == reader_process.ANSWERED) is is_answered
    assert other == reader_process.DECLINED


def test_a_mistake_of_a_reader_is_told_apart_and_without_the_text_of_a_note() -> None:
    def answer() -> bytes:
        raise ValueError("tomatoes are secret")

    assert reader_process.attempt(answer) == (reader_process.FAILED, b"ValueError")


@pytest.mark.parametrize(
    ("outcome", "level"), [(reader_process.DECLINED, logging.DEBUG), (reader_process.FAILED, logging.WARNING)]
)
def test_the_server_warns_of_a_readers_mistake_and_answers_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, outcome: int, level: int
) -> None:
    async def ask(*_: object) -> tuple[int, bytes]:
        return outcome, b"why"

    async def work(found: ReaderPool) -> None:
        assert await search(found, "tomatoes") is None

    with caplog.at_level(logging.DEBUG, logger=readers.LOG.name), world(tmp_path) as opened:
        monkeypatch.setattr(readers._ReaderProcess, "ask", ask)  # pyright: ignore[reportPrivateUsage]
        with_pool(opened.hub, work)

    told = [
        record.levelno for record in caplog.records if record.message == "a reader left a search to the server: why"
    ]
    assert told == [level]


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed otherwise there")
def test_a_reader_that_dies_is_replaced_and_loses_no_search(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        (process,) = found.processes
        os.kill(process, signal.SIGSTOP)  # so that it has the search when it dies
        asking = asyncio.create_task(search(found, "tomatoes"))
        await asyncio.sleep(0.3)
        os.kill(process, signal.SIGKILL)
        lost.append(await asking)
        await begin(found, lambda: found.count == 1)
        assert found.processes != (process,)
        again.append(sources(await search(found, "tomatoes")))

    lost: list[dict[str, Any] | None] = []
    again: list[list[str]] = []
    with world(tmp_path) as opened:
        with_pool(opened.hub, work)

    assert lost == [None]
    assert "Rain.md" in again[0]


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed otherwise there")
def test_a_reader_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(found: ReaderPool) -> None:
        (process,) = found.processes
        os.kill(process, signal.SIGSTOP)
        seen.append(await search(found, "tomatoes"))
        hung.append(process)

    seen: list[dict[str, Any] | None] = []
    hung: list[int] = []
    monkeypatch.setattr(readers, "_ANSWER_S", 0.5)
    with world(tmp_path) as opened:
        with_pool(opened.hub, work)

    assert seen == [None]
    assert not is_alive(hung[0])


def test_no_reader_is_left_after_the_end(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        processes.extend(found.processes)
        assert is_alive(found.processes[0])

    processes: list[int] = []
    with world(tmp_path) as opened:
        with_pool(opened.hub, work)

    assert not any(is_alive(process) for process in processes)


def test_readers_end_when_searches_come_one_after_another(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        (process,) = found.processes
        await until(lambda: not found.count and not is_alive(process))

    with world(tmp_path) as opened:
        with_pool(opened.hub, work, idle_s=0.2)


def test_readers_that_were_about_to_end_are_waited_for(tmp_path: Path) -> None:
    async def work(found: ReaderPool) -> None:
        processes.extend(found.processes)
        await until(lambda: not found.count)

    processes: list[int] = []
    with world(tmp_path) as opened:
        with_pool(opened.hub, work, idle_s=0.2)

    assert not any(is_alive(process) for process in processes)


def broken_setup(**given: object) -> str:
    return f"not what a reader knows: {len(given)}"


def test_a_reader_that_cannot_start_leaves_searches_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        found = ReaderPool(opened.hub, WorkerThreads(2))
        async with asyncio.timeout(WAIT_S), found.run():
            await begin(found, lambda: "can't be started" in caplog.text)
            assert found.count == 0
            assert await search(found, "tomatoes") is None

    monkeypatch.setattr(readers, "ReaderSetup", broken_setup)
    with world(tmp_path) as opened:
        asyncio.run(run())


def test_with_none_the_server_answers_by_itself(tmp_path: Path) -> None:
    server = replace(ONE, readers="0")
    with world(tmp_path, server=server) as opened:
        assert readers.most_readers(opened.hub) == 0
        with opened.client() as client:
            answer = client.post("/tools/search_vault", json={"query": "tomatoes"}).json()
            health = client.get("/health").json()

    assert "Rain.md" in sources(answer)
    assert health["readers"] == 0


@pytest.mark.parametrize(
    ("kind", "processors", "expected"), [("none", 1, 0), ("none", 2, 2), ("none", 64, 4), ("endpoint", 8, 0)]
)
def test_auto_allows_as_many_as_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: EmbedderKind, processors: int, expected: int
) -> None:
    monkeypatch.setattr(readers.workers, "count_processors", lambda: processors)
    with world(tmp_path, server=replace(ONE, readers="auto")) as opened:
        settings = opened.settings
        opened.hub.settings = replace(settings, embeddings=replace(settings.embeddings, kind=kind))
        allowed = readers.most_readers(opened.hub)

    assert allowed == expected


def test_a_look_that_began_earlier_does_not_answer_for_a_later_search() -> None:
    async def run() -> None:
        looks: list[asyncio.Future[Any]] = []

        def look() -> asyncio.Future[Any]:
            looks.append(asyncio.get_running_loop().create_future())
            return looks[-1]

        checks = readers.StateChecks(look)
        first = asyncio.create_task(checks.state())
        await asyncio.sleep(0)
        later = [asyncio.create_task(checks.state()) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(looks) == 1
        looks[0].set_result("before")
        assert await first == "before"
        await asyncio.sleep(0.01)
        assert len(looks) == 2
        looks[1].set_result("after")
        assert [await one for one in later] == ["after"] * 3

    asyncio.run(run())


def test_searches_that_no_reader_can_take_up_yet_share_the_next_look() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        looks: list[asyncio.Future[Any]] = []
        freed = loop.create_future()

        def look() -> asyncio.Future[Any]:
            looks.append(loop.create_future())
            looks[-1].set_result(len(looks))
            return looks[-1]

        checks = readers.StateChecks(look, lambda: None if freed.done() else freed)
        waiting = [asyncio.create_task(checks.state()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not looks
        freed.set_result(None)

        assert [await one for one in waiting] == [1] * 3
        assert await checks.state() == 2

    asyncio.run(run())


def test_a_look_does_not_wait_for_readers_that_hang() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        look = loop.create_future()
        look.set_result("found")
        never = loop.create_future()

        assert await readers.StateChecks(lambda: look, lambda: never).state() == "found"

    asyncio.run(run())


@pytest.mark.slow  # a server of its own, under load until it has readers
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(sys.platform != "linux", reason="child processes are read from /proc")
def test_a_server_answers_by_readers_and_leaves_none(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    monkeypatch.setenv("KNAP_STATE_DIR", str(own_home / "state"))
    config = "[server]\nrequests_per_minute = 0\nreaders = 1\n"
    failures: list[int] = []
    log = ("--log-file", str(tmp_path / "log"))  # nobody reads the error stream, which would fill up
    with servers.serving(vault, *log, config=config, home=own_home) as server, server.client(timeout_s=60) as client:
        stop = threading.Event()

        def ask() -> None:
            with server.client(timeout_s=60) as own:
                while not stop.is_set():
                    reply = own.get("/search", params={"query": "tomatoes"})
                    if reply.status_code != 200 or not reply.json()["results"]:
                        failures.append(reply.status_code)

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        deadline = time.monotonic() + WAIT_S
        while not client.get("/health").json()["readers"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        children = child_processes(server.process.pid)
        _ = (vault / "Late.md").write_text("zqlate\n", encoding="utf-8")
        late = client.get("/search", params={"query": "zqlate"}).json()
        stop.set()
        for thread in asking:
            thread.join()
        code = server.stop(how)

    assert failures == []
    assert len(children) == 1
    assert late["index_stale"] or [hit["source"] for hit in late["results"]] == ["Late.md"]
    assert code == 0
    assert not is_alive(children[0])


def child_processes(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]


def test_only_searches_side_by_side_share_a_look(tmp_path: Path) -> None:
    async def run() -> None:
        found = ReaderPool(opened.hub, WorkerThreads(2))
        async with asyncio.timeout(WAIT_S), found.run():
            with found.under_way("v"):
                assert await found.look("http", {}) is None
                with found.under_way("v"):
                    state = await found.look("http", {})
                    assert state is not None
                    assert state.is_plain
                    assert await found.look("http", {"vault": "nowhere"}) is None
                    assert await found.answer("http", "search_vault", {"query": "tomatoes"}, state) is None

    with world(tmp_path, server=replace(ONE, readers="0")) as opened:
        asyncio.run(run())


def test_what_others_miss_is_not_told_to_a_client_that_sees_less(tmp_path: Path) -> None:
    async def run() -> None:
        invoker = ToolInvoker(hub=opened.hub, threads=WorkerThreads(2))
        state = KnownState(freshness=Freshness(stale=3), uid="", generation=0)
        for client in ("http", "reader"):
            answer = await invoker.call(client, "search_vault", {"query": "tomatoes"}, state)
            stale[client] = answer["index_stale"]

    stale: dict[str, object] = {}
    reader = ClientSettings(grants=access.default_grants("reader", "http"), hidden=("Private/",))
    with world(tmp_path, reader) as opened:
        asyncio.run(run())

    assert stale == {"http": True, "reader": False}
