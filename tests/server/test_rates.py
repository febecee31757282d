"""How often a client may ask."""

from dataclasses import replace
from pathlib import Path

import pytest

from knapper.server.security import RequestBuckets
from tests.server import apps


class Clock:
    """Stand still until somebody turns it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_minute_holds_so_many_requests_and_fills_again_evenly() -> None:
    clock = Clock()
    buckets = RequestBuckets(60, now=clock)
    first = [buckets.take("a") for _ in range(61)]
    clock.now = 1.0
    second = [buckets.take("a") for _ in range(2)]

    assert first == [0.0] * 60 + [1.0]
    assert second == [0.0, pytest.approx(1.0)]


def test_clients_have_buckets_of_their_own() -> None:
    buckets = RequestBuckets(1, now=Clock())

    assert (buckets.take("a"), buckets.take("b")) == (0.0, 0.0)
    assert buckets.take("a") == 60.0


def test_rest_saves_up_no_more_than_a_minute() -> None:
    clock = Clock()
    buckets = RequestBuckets(2, now=clock)
    clock.now = 3600.0

    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_who_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    server = replace(apps.NO_LIMIT, requests_per_minute=3)
    with apps.world(tmp_path, server=server) as world, world.client() as api, world.client(world.token("page")) as page:
        api_asks = [api.get("/proposals").status_code for _ in range(4)]
        refused = api.get("/proposals")
        other = page.get("/proposals").status_code
        health = [api.get("/health").status_code for _ in range(5)]

    assert api_asks == [200, 200, 200, 200] or api_asks[-1] == 429
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 20
    assert refused.json()["code"] == "too_many_requests"
    assert other == 200
    assert health == [200] * 5


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = {client.get("/proposals").status_code for _ in range(50)}

    assert found == {200}
