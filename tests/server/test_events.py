"""Events over a connection that breaks: none is lost, none comes twice."""

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from knapper.agents.events import BackgroundJob, BaseEvent, FinalEventSpec, JobEventSink
from knapper.jsontypes import JSONValue
from knapper.server.http import background


@dataclass(frozen=True)
class Count(BaseEvent):
    kind: ClassVar[str] = "count"
    n: int

    def as_dict(self) -> dict[str, JSONValue]:
        return {"n": self.n}


@dataclass(frozen=True)
class Over(BaseEvent):
    kind: ClassVar[str] = "over"
    text: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        return {"text": self.text}


def begun() -> BackgroundJob[Over]:
    return BackgroundJob(id="1", subject_id="x", ending=FinalEventSpec(kind=Over, make=lambda state, _: Over(state)))


async def heard(live: BackgroundJob[Over], after: int = 0, *, most: int = 1_000, heartbeat_s: float = 5.0) -> list[str]:
    found: list[str] = []
    frames = background.encode_frames(live, {"id": live.id}, after, heartbeat_s)
    async for raw in frames:
        found.append(raw.decode())
        if len(found) == most:
            break
    await frames.aclose()
    return found


async def counting(tell: JobEventSink, count: int) -> None:
    for number in range(1, count + 1):
        tell(Count(number))
        await asyncio.sleep(0)


async def counted(count: int, after: int) -> list[str]:
    live = begun()
    live.start(lambda tell: counting(tell, count))
    await live.wait()
    return await heard(live, after)


def ids(frames: list[str]) -> list[int]:
    return [int(one.split("\n")[0].removeprefix("id: ")) for one in frames]


def test_an_event_has_id_name_and_json_on_one_line() -> None:
    async def work() -> list[str]:
        live = begun()
        live.start(lambda _: asyncio.sleep(0))
        await live.wait()
        live.events[0] = Over("a\nb\r\n ü \u2028")
        return await heard(live)

    assert asyncio.run(work()) == [
        'id: 1\nevent: start\ndata: {"type":"start","id":"1"}\n\n',
        'id: 2\nevent: over\ndata: {"text":"a\\nb\\r\\n ü \u2028"}\n\n',
    ]


@given(count=st.integers(0, 30), after=st.integers(0, 40))
def test_who_comes_back_hears_exactly_what_was_missed(count: int, after: int) -> None:
    found = asyncio.run(counted(count, after))

    last = count + 2  # the start before, and the end
    assert ids(found) == list(range(after + 1 if after <= last else 1, last + 1))


def test_silence_is_broken_by_a_comment() -> None:
    async def work() -> list[str]:
        live = begun()
        live.start(lambda _: asyncio.sleep(60))
        found = await heard(live, 1, most=2, heartbeat_s=0.01)
        assert live.cancel()
        await live.wait()
        return found

    assert asyncio.run(work()) == [": still here\n\n"] * 2


def test_all_who_listen_hear_the_same_whenever_they_come() -> None:
    async def work() -> list[list[str]]:
        live = begun()
        live.start(lambda tell: counting(tell, 200))
        early = [asyncio.create_task(heard(live)) for _ in range(5)]
        await asyncio.sleep(0.001)
        return [*await asyncio.gather(*early), await heard(live)]

    found = asyncio.run(work())

    assert ids(found[0]) == list(range(1, 203))
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(
    ("said", "number"), [("", 0), ("7", 7), ("-1", 0), ("x", 0), ("1" * 40, 0), ("\u0663", 0), (" 7", 0)]
)
def test_nonsense_for_a_last_id_means_from_the_beginning(said: str, number: int) -> None:
    scope: dict[str, Any] = {"type": "http", "headers": [(b"last-event-id", said.encode())]}

    assert background.last_event_id(Request(scope)) == number
