"""Events for clients that can't stream: asked for again and again, each time as JSON."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from knapper.server.http import background
from tests.agents.scripted import Call, Model
from tests.server import chats, contracts, tasks
from tests.server.chats import Gate

pytestmark = pytest.mark.timeout(60)


def begin(client: httpx2.Client) -> str:
    """Begin a turn, and leave it to itself; gives its id."""
    with chats.streaming(client, "/chat/stream", {"message": "hello"}) as heard:
        return next(heard).data["turn_id"]


def ask(client: httpx2.Client, turn: str, query: str) -> dict[str, Any]:
    answer = client.get(f"/chat/{turn}/events?{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_events_are_those_of_the_stream_with_the_same_ids(tmp_path: Path) -> None:
    model = Model([["I look.", Call("read_file", {"path": "Rain.md"})], ["Done."]])
    with chats.serving(tmp_path, model.open) as server, server.client() as client:
        with chats.streaming(client, "/chat/stream", {"message": "hello"}) as heard:
            streamed = list(heard)
        turn = streamed[0].data["turn_id"]
        whole = ask(client, turn, "after=0&wait=20")
        rest = ask(client, turn, "after=2")
        nothing = ask(client, turn, f"after={streamed[-1].id}&wait=20")
        document = client.get("/openapi.json").json()

    contracts.check_reply(document, "/chat/{turn_id}/events", whole)
    rows = [{"id": one.id, "event": one.name, "data": one.data} for one in streamed]
    assert whole == {"success": True, "events": rows, "last": rows[-1]["id"], "ended": True}
    assert rest["events"] == rows[2:]
    assert nothing == {"success": True, "events": [], "last": rows[-1]["id"], "ended": True}


def test_who_cannot_stream_begins_with_a_reply_at_once_that_tells_the_id(tmp_path: Path) -> None:
    gate = Gate()
    with chats.serving(tmp_path, gate.open) as server, server.client() as client:
        begun = client.post("/chat/stream", json={"message": "hello", "wait": 0})
        is_waiting = not gate.opened.is_set()
        gate.opened.set()
        assert begun.status_code == 200, begun.text
        (first,) = begun.json()["events"]
        rest = ask(client, first["data"]["turn_id"], f"after={begun.json()['last']}&wait=20")
        own = client.post("/sessions", json={}).json()["session"]["id"]
        other = client.post(f"/sessions/{own}/chat/stream", json={"message": "hello", "wait": 0}).json()

    assert is_waiting
    assert (first["id"], first["event"]) == (1, "start")
    assert rest["events"][0]["id"] == 2
    assert other["events"][0]["data"]["session_id"] == own


def test_who_asks_waits_for_the_next_event_and_no_longer(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        ThreadPoolExecutor(1) as pool,
    ):
        turn = begin(client)
        gate.until_waiting()
        first = ask(client, turn, "after=0&wait=20")
        waiting = pool.submit(ask, other, turn, f"after={first['last']}&wait=50")
        began = time.monotonic()
        empty = ask(client, turn, f"after={first['last']}&wait=0.2")
        waited_s = time.monotonic() - began
        is_waiting = not waiting.done()
        gate.opened.set()
        later = waiting.result(timeout=40)

    assert [row["event"] for row in first["events"]] == ["start", "text"]
    assert (empty["events"], empty["last"], empty["ended"]) == ([], first["last"], False)
    assert waited_s >= 0.2
    assert is_waiting
    assert later["events"][0]["data"]["text"] == "Two."


def test_many_events_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_MAX_POLLED_EVENTS", 2)
    with (
        chats.serving(tmp_path, Gate(words=["a", "b", "c"], opened=opened()).open) as server,
        server.client() as client,
    ):
        with chats.streaming(client, "/chat/stream", {"message": "hello"}) as heard:
            streamed = list(heard)
        answers = [ask(client, streamed[0].data["turn_id"], "after=0")]
        while not answers[-1]["ended"]:
            answers.append(ask(client, streamed[0].data["turn_id"], f"after={answers[-1]['last']}&wait=5"))

    assert [row["id"] for answer in answers for row in answer["events"]] == [one.id for one in streamed]
    assert all(len(answer["events"]) <= 2 for answer in answers)


def opened() -> threading.Event:
    """Let a gate stand open."""
    event = threading.Event()
    event.set()
    return event


def test_an_id_of_other_work_gives_all_again(tmp_path: Path) -> None:
    with chats.serving(tmp_path, Model([["Hi."]]).open) as server, server.client() as client:
        turn = client.post("/chat", json={"message": "hello"}).json()["turn_id"]
        found = ask(client, turn, "after=5000&wait=1")

    assert (found["events"][0]["event"], found["events"][0]["id"]) == ("start", 1)


@pytest.mark.parametrize("query", ["after=-1", "after=x", "wait=61", "wait=-1", "wait=nan", "more=1"])
def test_what_cannot_be_used_is_refused(tmp_path: Path, query: str) -> None:
    with chats.serving(tmp_path, Model([["Hi."]]).open) as server, server.client() as client:
        turn = client.post("/chat", json={"message": "hello"}).json()["turn_id"]
        refused = client.get(f"/chat/{turn}/events?{query}")

    assert (refused.status_code, refused.json()["code"]) == (422, "bad_arguments")


def test_a_server_that_stops_keeps_nobody_waiting(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        ThreadPoolExecutor(1) as pool,
    ):
        turn = begin(client)
        gate.until_waiting()
        last = ask(client, turn, "after=0")["last"]
        waiting = pool.submit(ask, client, turn, f"after={last}&wait=60")
        time.sleep(0.3)
        server.stop.cancel()
        found = waiting.result(timeout=30)

    assert found["events"][0]["data"]["code"] == "stopping"


def test_another_clients_turn_is_not_told_this_way_either(tmp_path: Path) -> None:
    with (
        chats.serving(tmp_path, Model([["Hi."]]).open) as server,
        server.client() as client,
        server.client("page") as page,
    ):
        turn = client.post("/chat", json={"message": "hello"}).json()["turn_id"]
        refused = page.get(f"/chat/{turn}/events?after=0")

    assert (refused.status_code, refused.json()["code"]) == (404, "no_turn")


def test_a_task_tells_its_events_this_way_too(tmp_path: Path) -> None:
    with chats.serving(tmp_path, tasks.answering().open) as server, server.client() as client:
        run = client.post("/ask", json={"task": "rain?", "note": "Rain.md"}).json()["run_id"]
        found = client.get(f"/ask/{run}/events?after=0&wait=20").json()
        contracts.check_reply(client.get("/openapi.json").json(), "/ask/{run_id}/events", found)

    assert (found["events"][0]["event"], found["events"][-1]["event"], found["ended"]) == ("start", "outcome", True)
    assert found["events"][-1]["data"]["run_id"] == run
