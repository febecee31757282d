"""Events over a connection that breaks: none is lost, none comes twice."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from knapper.server import events
from knapper.server.events import Channel
from knapper.server.http.app import Mount
from tests.server import apps


async def gather(channel: Channel, after: int = 0, *, most: int = 1_000, heartbeat_s: float = 5.0) -> list[str]:
    found: list[str] = []
    listening = channel.listen(after, heartbeat_s=heartbeat_s)
    async for raw in listening:
        found.append(raw.decode())
        if len(found) == most:
            await listening.aclose()
            break
    return found


def filled(count: int, *, kept: int = events.KEPT) -> Channel:
    channel = Channel(kept=kept)
    for number in range(1, count + 1):
        channel.publish("text", {"n": number})
    channel.close()
    return channel


def test_an_event_has_id_name_and_json_on_one_line() -> None:
    channel = Channel()
    channel.publish("text", {"text": "a\nb\r\n ü \u2028"})
    channel.close()

    assert asyncio.run(gather(channel)) == ['id: 1\nevent: text\ndata: {"text":"a\\nb\\r\\n ü \u2028"}\n\n']


@given(count=st.integers(0, 30), heard=st.integers(0, 40), kept=st.integers(1, 40))
def test_who_comes_back_hears_exactly_what_was_missed_and_how_much_is_gone(count: int, heard: int, kept: int) -> None:
    found = asyncio.run(gather(filled(count, kept=kept), heard))

    start = heard if heard <= count else 0
    gone = max(count - kept - start, 0)
    ids = [int(one.split("\n")[0].removeprefix("id: ")) for one in found if "event: text" in one]
    assert ids == list(range(start + gone + 1, count + 1))
    assert [one for one in found if "event: gap" in one] == (
        [f'id: {start + gone}\nevent: gap\ndata: {{"missed":{gone}}}\n\n'] if gone else []
    )


def test_nothing_is_published_after_the_end() -> None:
    channel = filled(1)

    assert channel.publish("text", {}) == 0
    assert channel.is_closed


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "a:b"])
def test_a_name_that_would_break_the_stream_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="isn't an event's name"):
        Channel().publish(name, {})


def test_silence_is_broken_by_a_comment() -> None:
    assert asyncio.run(gather(Channel(), most=2, heartbeat_s=0.01)) == [": still here\n\n"] * 2


def test_events_of_other_threads_reach_all_who_listen() -> None:
    channel = Channel()

    def publish() -> None:
        for number in range(500):
            channel.publish("text", {"n": number})
        channel.close()

    async def listen() -> list[list[str]]:
        thread = threading.Thread(target=publish)
        heard = [asyncio.create_task(gather(channel)) for _ in range(5)]
        await asyncio.sleep(0)
        thread.start()
        found = await asyncio.gather(*heard)
        thread.join()
        return found

    found = asyncio.run(listen())

    assert all(len(one) == 500 for one in found)
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(
    ("said", "heard"), [("", 0), ("7", 7), ("-1", 0), ("x", 0), ("1" * 40, 0), ("\u0663", 0), (" 7", 0)]
)
def test_nonsense_for_a_last_id_means_from_the_beginning(said: str, heard: int) -> None:
    scope: dict[str, Any] = {"type": "http", "headers": [(b"last-event-id", said.encode())]}

    assert events.last_heard(Request(scope)) == heard


def test_a_stream_goes_on_after_the_last_id_through_all_middleware(tmp_path: Path) -> None:
    channel = filled(5)

    async def endpoint(request: Request) -> Response:
        return events.stream(channel, request)

    mount = Mount(routes=[Route("/events", endpoint)])
    with apps.world(tmp_path) as world, world.client(None, mount) as client:
        found = client.get("/events", headers={"last-event-id": "3"})

    assert found.headers["content-type"].startswith("text/event-stream")
    assert found.headers["cache-control"] == "no-store"
    assert [line for line in found.text.split("\n") if line.startswith("id")] == ["id: 4", "id: 5"]
