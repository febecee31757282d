"""What MCP keeps of its streams: the last messages, for a minute, each stream's own."""

import asyncio

import pytest
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from knapper.server.mcp.session import EventLimits, RecentEvents


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def message(name: str) -> JSONRPCMessage:
    return JSONRPCNotification(jsonrpc="2.0", method=name)


def replay(store: RecentEvents, last: str) -> tuple[str | None, list[str]]:
    sent: list[str] = []

    async def send(event: EventMessage) -> None:
        assert isinstance(event.message, JSONRPCNotification)
        sent.append(event.message.method)

    return asyncio.run(store.replay_events_after(last, send)), sent


def store_all(store: RecentEvents, *events: tuple[str, str]) -> list[str]:
    async def run() -> list[str]:
        return [await store.store_event(stream, message(name) if name else None) for stream, name in events]

    return asyncio.run(run())


def test_a_client_gets_what_followed_in_its_stream_alone() -> None:
    store = RecentEvents()
    ids = store_all(store, ("a", ""), ("b", "theirs"), ("a", "one"), ("a", ""), ("a", "two"))

    assert replay(store, ids[0]) == ("a", ["one", "two"])
    assert replay(store, ids[2]) == ("a", ["two"])
    assert replay(store, ids[4]) == ("a", [])


def test_an_unknown_message_finds_nothing() -> None:
    assert replay(RecentEvents(), "made-up") == (None, [])


@pytest.mark.parametrize("limits", [EventLimits(events=2), EventLimits(events_per_stream=2)])
def test_the_oldest_are_forgotten_where_there_are_too_many(limits: EventLimits) -> None:
    store = RecentEvents(limits)
    ids = store_all(store, ("a", "one"), ("a", "two"), ("a", "three"))

    assert replay(store, ids[0]) == (None, [])
    assert replay(store, ids[1]) == ("a", ["three"])


def test_what_is_old_is_forgotten() -> None:
    clock = Clock()
    store = RecentEvents(EventLimits(age_s=60), clock)
    (first,) = store_all(store, ("a", "one"))
    clock.now = 40
    (second,) = store_all(store, ("a", "two"))
    before = replay(store, first)
    clock.now = 70

    assert before == ("a", ["two"])
    assert replay(store, first) == (None, [])
    assert replay(store, second) == ("a", [])
