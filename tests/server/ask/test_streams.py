"""Tasks as they happen, over real connections: hearing, losing, finding again, stopping."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.server import chats, live, tasks
from tests.server.tasks import again, streaming

pytestmark = pytest.mark.timeout(60)


def test_a_task_is_told_step_by_step_with_its_run_first_and_what_it_came_to_last(tmp_path: Path) -> None:
    cast = Cast({"scout": [[Call("fetch_note", {"path": "Rain.md"})], tasks.SELECT], "task": [tasks.EDIT]})
    with (
        chats.serving(tmp_path, cast.open) as server,
        server.client() as client,
        streaming(client, scout=True, web=True) as heard,
    ):
        found = list(heard)

    names = [one.name for one in found if one.name != "progress"]
    assert [one.id for one in found] == list(range(1, len(found) + 1))
    assert found[0].data.keys() == {"type", "run_id", "task"}
    assert names == [
        *("start", "round", "tool_call", "tool_result", "round", "tool_call", "tool_result", "selection"),
        *("notice", "context", "outcome"),
    ]
    assert [(one.data["phase"], one.data["number"], one.data["limit"]) for one in found if one.name == "round"] == [
        ("scout", 1, 5),
        ("scout", 2, 5),
    ]
    assert all(one.data["type"] == one.name for one in found)
    assert next(one.data["phase"] for one in found if one.name == "progress") == "scout"
    assert found[-1].data["run_id"] == found[0].data["run_id"]
    assert len(found[-1].data["proposals"]) == 1


def test_debug_tells_prompts_and_replies_readably_and_only_where_it_is_asked_for(tmp_path: Path) -> None:
    cast = Cast({"scout": [[Call("fetch_note", {"path": "Rain.md"})], tasks.SELECT], "task": [tasks.EDIT]})
    with chats.serving(tmp_path, cast.open) as server, server.client("page") as client:
        order = {"task": "rain?", "note": "Rain.md", "scout": False}
        with streaming(client, scout=True, debug=True) as heard:
            told = [one.data for one in heard if one.name == "debug"]
        with streaming(client, scout=True) as heard:
            untold = [one.name for one in heard]
        waited = client.post("/ask", json={**order, "debug": True}).json()
        plain = client.post("/ask", json=order).json()

    assert [one["phase"] for one in told] == ["scout", "task"]
    assert 'calls fetch_note\n{\n  "path": "Rain.md"\n}' in told[0]["text"]
    assert "It rains on the tomatoes." in told[0]["text"]
    assert "debug" not in untold
    assert [one["phase"] for one in waited["debug"]] == ["task"]
    assert "It snows on the tomatoes." in waited["debug"][0]["text"]
    assert "debug" not in plain


def test_a_lost_connection_does_not_end_the_task_and_goes_on_where_it_was(tmp_path: Path) -> None:
    gate = tasks.gate("It rained.")
    with chats.serving(tmp_path, gate.open, gate=gate) as server, server.client() as client:
        with streaming(client) as heard:
            start, second = next(heard), next(heard)
        gate.until_waiting()
        gate.opened.set()
        rest = again(client, start.data["run_id"], second.id)
        whole = again(client, start.data["run_id"])
        stranger = again(client, start.data["run_id"], 10_000)

    assert rest[-1].data["answer"] == "It rained."
    assert whole == [start, second, *rest]
    assert stranger == whole


def test_a_task_that_nobody_waited_for_is_done_and_kept(tmp_path: Path) -> None:
    gate = tasks.gate("It rained.")
    with chats.serving(tmp_path, gate.open, gate=gate) as server, server.client() as client:
        session = client.post("/sessions", json={}).json()["session"]["id"]
        order = {"task": "rain?", "note": "Rain.md", "session_id": session}
        with live.asked(server.address, server.tokens["api"], "/ask", order):
            gate.until_waiting()
        gate.opened.set()
        kept = until_kept(client, session)

    assert [one["content"] for one in kept] == ["rain?", "It rained."]


def until_kept(client: httpx2.Client, session: str) -> list[dict[str, str]]:
    while not (kept := client.get(f"/sessions/{session}").json()["messages"]):
        time.sleep(0.02)
    return kept


def test_a_task_that_is_cancelled_gives_what_there_is(tmp_path: Path) -> None:
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        streaming(client) as heard,
    ):
        run_id = next(heard).data["run_id"]
        gate.until_waiting()
        told = [other.post(f"/ask/{run_id}/cancel").json() for _ in range(2)]
        end = list(heard)[-1]

    assert [(one["cancelled"], one["ended"]) for one in told] == [(True, True), (False, True)]
    assert (end.name, end.data["state"], end.data["error"]) == ("outcome", "cancelled", None)
    assert [one["path"] for one in end.data["context"]["notes"]] == ["Rain.md", "Garden.md"]
    assert told[0]["outcome"] == end.data


def test_who_waits_for_the_whole_is_told_that_the_server_stops_with_what_there_is(tmp_path: Path) -> None:
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(client.post, "/ask", json={"task": "rain?", "note": "Rain.md"})
        gate.until_waiting()
        server.end()
        found = asked.result()

    assert (found.status_code, found.json()["code"], found.json()["state"]) == (503, "stopping", "cancelled")
    assert [one["path"] for one in found.json()["context"]["notes"]] == ["Rain.md", "Garden.md"]


def test_two_tasks_go_on_at_once_but_one_session_has_one_at_a_time(tmp_path: Path) -> None:
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        server.client() as third,
    ):
        session = client.post("/sessions", json={}).json()["session"]["id"]
        with streaming(client, session_id=session) as one, streaming(other) as two:
            first, second = next(one).data["run_id"], next(two).data["run_id"]
            gate.until_waiting(2)
            listed = third.get("/sessions").json()["results"]
            busy = [
                third.post("/ask", json={"task": "x", "note": "Rain.md", "session_id": session}),
                third.post("/ask/stream", json={"task": "x", "note": "Rain.md", "session_id": session}),
                third.post(f"/sessions/{session}/chat", json={"message": "x"}),
                third.delete(f"/sessions/{session}"),
            ]
            gate.opened.set()
            ends = [list(one)[-1].data, list(two)[-1].data]
        after = third.get(f"/sessions/{session}").json()["session"]

    assert [(one["task"], one["running"], one["busy"]) for one in listed] == [(first, None, True)]
    assert (after["task"], after["busy"]) == (None, False)
    assert {(one.json()["code"]) for one in busy} == {"session_busy"}
    assert {one.status_code for one in busy} == {409}
    assert [one["run_id"] for one in ends] == [first, second]
    assert {one["state"] for one in ends} == {"complete"}


def test_a_server_that_stops_says_so_in_every_stream_and_keeps_what_there_was(tmp_path: Path) -> None:
    gate = tasks.gate()
    with chats.serving(tmp_path, gate.open, gate=gate) as server, server.client() as client:
        session = client.post("/sessions", json={}).json()["session"]["id"]
        with streaming(client, session_id=session) as heard:
            gate.until_waiting()
            server.end()
            ends = [(one.name, one.data.get("code") or one.data.get("state")) for one in heard][-2:]
    with chats.serving(tmp_path, tasks.answering().open) as server, server.client() as client:
        kept = client.get(f"/sessions/{session}").json()["messages"]

    assert ends == [("error", "stopping"), ("outcome", "cancelled")]
    assert kept[-1]["outcome"]["state"] == "cancelled"


def test_a_question_whose_answer_the_stopping_server_cut_short_can_be_answered_again(tmp_path: Path) -> None:
    with chats.serving(tmp_path, tasks.asking().open) as server, server.client() as client:
        run_id = client.post("/ask", json={"task": "rain?", "scout": True}).json()["run_id"]
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        client.stream("POST", "/ask/stream", json={"run_id": run_id, "answer": "North"}) as stream,
    ):
        gate.until_waiting()
        server.end()
        _ = list(chats.events(stream.iter_lines()))
    with chats.serving(tmp_path, tasks.asking().open) as server, server.client() as client:
        waits = client.get("/ask/waiting").json()["results"]

    assert [one["run_id"] for one in waits] == [run_id]


def test_a_run_that_goes_on_is_heard_by_its_old_name_from_its_new_beginning(tmp_path: Path) -> None:
    with chats.serving(tmp_path, tasks.asking().open) as server, server.client() as client:
        with streaming(client, scout=True) as heard:
            asked = list(heard)
        run_id = asked[0].data["run_id"]
        done = client.post("/ask", json={"run_id": run_id, "answer": "North"}).json()
        again_heard = again(client, run_id)

    assert (asked[-1].data["state"], asked[-1].data["question"]["question"]) == ("asked", "Which garden?")
    assert (again_heard[0].data, again_heard[-1].data["state"]) == (asked[0].data, "complete")
    assert again_heard[-1].data["proposals"] == done["proposals"]


def test_two_who_answer_one_question_at_once_make_it_go_on_once(tmp_path: Path) -> None:
    with chats.serving(tmp_path, tasks.asking().open) as server, server.client() as client:
        run_id = client.post("/ask", json={"task": "rain?", "scout": True}).json()["run_id"]
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        client.stream("POST", "/ask/stream", json={"run_id": run_id, "answer": "North"}) as stream,
    ):
        gate.until_waiting()
        late = other.post("/ask", json={"run_id": run_id, "answer": "South"})
        gate.opened.set()
        first = list(chats.events(stream.iter_lines()))[-1]

    assert (late.status_code, late.json()["code"]) == (404, "no_run")
    assert first.name == "outcome"
