"""MCP over HTTP is opened by its first request: a server's start needn't wait for its libraries."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Scope

from knapper.errors import StorageError
from knapper.server import lifecycle
from knapper.server.workers import StopSignal

FIRST, NEVER = 0.0, 3600.0


async def here(_: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


class Made:
    """An app that says when it began and ended."""

    def __init__(self, *, problem: str = "", problem_at_start: str = "") -> None:
        self.told: list[str] = []
        self.has_begun = asyncio.Event()
        self.problem, self.problem_at_start = problem, problem_at_start

    def make(self) -> Starlette:
        self.told.append("made")
        if self.problem:
            raise ValueError(self.problem)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            if self.problem_at_start:
                raise ValueError(self.problem_at_start)
            self.told.append("begun")
            self.has_begun.set()
            yield
            self.told.append("ended")

        return Starlette(routes=[Route("/mcp", here)], lifespan=lifespan)


async def asked(app: ASGIApp) -> str:
    """Ask once, as a server does; gives the body."""
    said: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message.get("body", b""))

    scope: Scope = {"type": "http", "method": "GET", "path": "/mcp", "headers": [], "query_string": b""}
    await app(scope, receive, send)
    return b"".join(said).decode()


def test_a_servers_start_imports_nothing_of_mcp() -> None:
    program = "import sys, knapper.server.lifecycle; print({'mcp', 'mcp_types', 'fastmcp'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_it_is_made_once_by_the_first_of_requests_that_come_at_once() -> None:
    made = Made()

    async def run() -> list[str]:
        later = lifecycle.AppOpenedLater(made.make, StopSignal(), NEVER)
        async with later.run():
            assert made.told == []
            return await asyncio.gather(*(asked(later) for _ in range(5)))

    assert asyncio.run(run()) == ["here"] * 5
    assert made.told == ["made", "begun", "ended"]


def test_a_server_that_ends_before_anybody_asks_makes_nothing() -> None:
    made = Made()

    async def run() -> None:
        async with lifecycle.AppOpenedLater(made.make, StopSignal(), NEVER).run():
            pass

    asyncio.run(run())
    assert made.told == []


def test_after_a_while_it_is_there_before_the_first_request() -> None:
    made = Made()

    async def run() -> None:
        async with lifecycle.AppOpenedLater(made.make, StopSignal(), FIRST).run():
            _ = await made.has_begun.wait()

    asyncio.run(run())
    assert made.told == ["made", "begun", "ended"]


@pytest.mark.parametrize("made", [Made(problem="no tools"), Made(problem_at_start="no tools")])
def test_what_keeps_it_from_opening_is_logged_and_each_request_fails(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        later = lifecycle.AppOpenedLater(made.make, StopSignal(), NEVER)
        async with later.run():
            for _ in range(2):
                with pytest.raises(ValueError, match="no tools"):
                    await asked(later)

    asyncio.run(run())
    assert made.told == ["made"]
    assert [record.message for record in caplog.records] == ["MCP can't be opened; a request after 5 s tries again"]


@pytest.mark.parametrize("made", [Made(problem="no tools"), Made(problem_at_start="no tools")])
def test_after_a_pause_the_next_request_opens_it_and_each_failure_is_logged_once(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> list[str]:
        later = lifecycle.AppOpenedLater(made.make, StopSignal(), NEVER, retry_pause_s=0)
        async with later.run():
            for problem in ("no tools", "no tools", "no disk"):
                made.problem, made.problem_at_start = made.problem and problem, made.problem_at_start and problem
                with pytest.raises(ValueError, match=problem):
                    await asked(later)
            made.problem = made.problem_at_start = ""
            return await asyncio.gather(*(asked(later) for _ in range(3)))

    assert asyncio.run(run()) == ["here"] * 3
    assert made.told == ["made"] * 4 + ["begun", "ended"]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["no tools", "no disk"]


def test_a_server_ends_after_its_mcp_could_not_be_opened_again() -> None:
    made = Made(problem="no tools")

    async def run() -> list[object]:
        later = lifecycle.AppOpenedLater(made.make, StopSignal(), FIRST, retry_pause_s=0)
        async with later.run():
            return [*await asyncio.gather(asked(later), asked(later), return_exceptions=True)]

    assert [str(error) for error in asyncio.run(run())] == ["no tools", "no tools"]


def test_a_server_ends_while_its_mcp_cannot_be_opened() -> None:
    is_making, may_fail = threading.Event(), threading.Event()

    def make() -> Starlette:
        is_making.set()
        _ = may_fail.wait()
        raise ValueError("no tools")

    async def run() -> None:
        async with lifecycle.AppOpenedLater(make, StopSignal(), FIRST).run():
            _ = await asyncio.to_thread(is_making.wait)
            _ = asyncio.get_running_loop().call_soon(may_fail.set)

    asyncio.run(run())
    assert may_fail.is_set()


def test_a_client_that_goes_while_it_opens_takes_nobody_along() -> None:
    made = Made()

    async def run() -> str:
        later = lifecycle.AppOpenedLater(made.make, StopSignal(), NEVER)
        async with later.run():
            gone = asyncio.create_task(asked(later))
            await asyncio.sleep(0)
            _ = gone.cancel()
            return await asked(later)

    assert asyncio.run(run()) == "here"


def test_a_request_that_waits_while_the_server_stops_is_refused_and_not_broken_off() -> None:
    made, stop = Made(), StopSignal()

    async def run() -> None:
        later = lifecycle.AppOpenedLater(made.make, stop, NEVER)
        async with later.run():
            waiting = asyncio.create_task(asked(later))
            await asyncio.sleep(0)
            stop.cancel()
            with pytest.raises(StorageError) as caught:
                _ = await waiting
            assert caught.value.code == "stopping"

    asyncio.run(run())
