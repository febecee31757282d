"""Turns as they happen, over real connections: hearing, losing, finding again, stopping."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2
import pytest

from knapper.agents.model import names, usage
from knapper.agents.model.usage import ModelTimeouts
from knapper.server.http import background
from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.scripted import Call, Model
from tests.server import chats, live
from tests.server.chats import Gate, Heard

pytestmark = pytest.mark.timeout(60)
SAY = {"message": "hello"}
EDIT = Call("edit_file", {"path": "Rain.md", "old_text": "rains", "new_text": "snows"})


def streaming(
    client: httpx2.Client, path: str = "/chat/stream", **say: object
) -> AbstractContextManager[Iterator[Heard]]:
    return chats.streaming(client, path, {**SAY, **say})


def again(client: httpx2.Client, name: str, after: int = 0) -> list[Heard]:
    """Hear a turn to its end, from an event on."""
    return chats.again(client, f"/chat/{name}", after)


def test_a_turn_is_told_step_by_step_with_its_ids_first_and_its_answer_last(tmp_path: Path) -> None:
    model = Model([["Let me see. ", Call("read_file", {"path": "Rain.md"})], [EDIT], ["It rains [[Rain]]."]])
    with chats.serving(tmp_path, model.open) as server, server.client() as client, streaming(client) as heard:
        found = list(heard)

    names = [one.name for one in found]
    assert [one.id for one in found] == list(range(1, len(found) + 1))
    assert names[0] == "start"
    assert found[0].data.keys() == {"type", "turn_id", "session_id", "message"}
    assert [name for name in names if name not in {"usage", "start"}] == [
        *("text", "tool_call", "tool_result", "tool_call", "proposal", "tool_result", "text", "done")
    ]
    assert all(one.data["type"] == one.name for one in found)
    assert found[-1].data["session_id"] == found[0].data["session_id"]
    assert found[-1].data["citations"][0]["path"] == "Rain.md"


def test_words_come_while_the_model_still_speaks(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        streaming(client) as heard,
    ):
        first = [next(heard).name, next(heard).data["text"]]
        gate.opened.set()
        rest = list(heard)

    assert first == ["start", "One. "]
    assert rest[-1].data["answer"] == "One. Two."


def test_a_lost_connection_does_not_end_the_turn_and_goes_on_where_it_was(tmp_path: Path) -> None:
    gate = Gate(words=("One. ", "Two. ", "Three."))
    with chats.serving(tmp_path, gate.open, gate=gate) as server, server.client() as client:
        with streaming(client) as heard:
            start, first = next(heard), next(heard)
        gate.until_waiting()
        gate.opened.set()
        rest = again(client, start.data["turn_id"], first.id)
        whole = again(client, start.data["turn_id"])
        by_session = again(client, start.data["session_id"])

    assert [one.data["text"] for one in rest if one.name == "text"] == ["Two. ", "Three."]
    assert rest[-1].data["answer"] == "One. Two. Three."
    assert whole[: first.id] == [start, first]
    assert whole[first.id :] == rest
    assert by_session == whole


def test_an_answer_that_nobody_waited_for_is_kept(tmp_path: Path) -> None:
    gate = Gate()
    with chats.serving(tmp_path, gate.open, gate=gate) as server:
        with live.asked(server.address, server.tokens["api"], "/chat", SAY):
            gate.until_waiting()
        gate.opened.set()
        with server.client() as client:
            session = client.get("/sessions").json()["results"][0]["id"]
            _ = again(client, session)
            kept = client.get(f"/sessions/{session}").json()

    assert [one["content"] for one in kept["messages"]] == ["hello", "One. Two."]


def test_a_turn_that_is_cancelled_says_so_and_what_there_was_is_kept(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        streaming(client) as heard,
    ):
        start, _ = next(heard), next(heard)
        path = f"/chat/{start.data['turn_id']}/cancel"
        told = [other.post(path).json() for _ in range(2)]
        end = list(heard)[-1]
        kept = other.get(f"/sessions/{start.data['session_id']}").json()["messages"]

    assert [(one["cancelled"], one["ended"]) for one in told] == [(True, True), (False, True)]
    assert (end.name, end.data["state"], end.data["answer"]) == ("done", "cancelled", "One. ")
    assert kept[-1]["outcome"]["state"] == "cancelled"


def test_two_windows_on_one_session_are_answered_one_at_a_time_and_hear_the_same(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        streaming(client) as heard,
    ):
        session = next(heard).data["session_id"]
        gate.until_waiting()
        busy = [other.post(path, json=SAY) for path in ("/chat", "/chat/stream", f"/sessions/{session}/chat")]
        held = [other.post(f"/sessions/{session}/clear"), other.delete(f"/sessions/{session}")]
        row = other.get("/sessions").json()["results"][0]
        listed = row["running"]
        gate.opened.set()
        mine = list(heard)
        theirs = again(other, listed)
        after = other.post("/chat", json=SAY)

    assert {(one.status_code, one.json()["code"]) for one in busy + held} == {(409, "session_busy")}
    assert (row["task"], row["busy"]) == (None, True)
    assert theirs[1:] == mine
    assert (after.status_code, after.json()["session_id"]) == (200, session)
    assert len(gate.asked) == 2


def test_a_session_that_waits_holds_no_other_one_up(tmp_path: Path) -> None:
    gate, quick = Gate(), Model([["Quick."]])
    opened = iter([gate.open(), quick.open()])
    with (
        chats.serving(tmp_path, lambda: next(opened), gate=gate) as server,
        server.client() as client,
        server.client() as other,
        streaming(client) as heard,
    ):
        _ = next(heard)
        gate.until_waiting()
        found = other.post("/chat", json={**SAY, "active_file": "Rain.md"}).json()

    assert found["response"] == "Quick."


def test_a_server_that_stops_says_so_in_every_stream_and_keeps_what_there_was(tmp_path: Path) -> None:
    gate = Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client() as other,
        streaming(client) as heard,
    ):
        name = next(heard).data["turn_id"]
        gate.until_waiting()
        with other.stream("GET", f"/chat/{name}/events") as stream:
            second = chats.events(stream.iter_lines())
            assert next(second).name == "start"
            server.end()
            ends = [
                [(one.name, one.data.get("code") or one.data.get("state")) for one in told][-2:]
                for told in (heard, second)
            ]
    with chats.serving(tmp_path, Model([["Hi."]]).open) as server, server.client() as client:
        kept = client.get("/sessions").json()["results"]

    assert ends == [[("error", "stopping"), ("done", "cancelled")]] * 2
    assert [one["turns"] for one in kept] == [1]


def test_a_model_on_another_server_is_streamed_and_its_hanging_is_cancelled(tmp_path: Path) -> None:
    with protocol.serving(Reply(parts=["Real ", "words."]), Reply(parts=["Well", "…"], hang_s=30)) as model:
        wanted = [names.parse_model_name(f"tiny@{model.base_url}")]

        def opens():
            return usage.open_model(wanted, lambda _: "", ModelTimeouts(retries=0))

        with chats.serving(tmp_path, opens) as server, server.client() as client, server.client() as other:
            with streaming(client) as heard:
                told = list(heard)
            with streaming(client) as heard:
                name = next(heard).data["turn_id"]
                assert next(heard).data["text"] == "Well"
                cancelled = other.post(f"/chat/{name}/cancel").json()
                end = list(heard)[-1]

    assert [one.data["text"] for one in told if one.name == "text"] == ["Real ", "words."]
    assert told[-1].data["usage"]["total_tokens"] == 120
    assert cancelled["ended"] is True
    assert (end.data["state"], end.data["answer"]) == ("cancelled", "Well")


def test_a_broken_model_ends_the_stream_with_an_error_and_done(tmp_path: Path) -> None:
    with protocol.serving(Reply(parts=["Half "], cut=True, raw=["data: {not json"])) as model:
        wanted = [names.parse_model_name(f"tiny@{model.base_url}")]
        with (
            chats.serving(tmp_path, lambda: usage.open_model(wanted, lambda _: "", ModelTimeouts(retries=0))) as server,
            server.client() as client,
            streaming(client) as heard,
        ):
            told = list(heard)

    assert [one.name for one in told][-3:] == ["error", "usage", "done"]
    assert told[-1].data["state"] == "failed"


def test_who_listens_slowly_gets_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    monkeypatch.setattr(background.stream_events, "__kwdefaults__", {"heartbeat_s": 0.02})
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        client.stream("POST", "/chat/stream", json=SAY) as stream,
    ):
        lines = stream.iter_lines()
        beat = next(line for line in lines if line.startswith(":"))
        gate.opened.set()
        rest = [one.name for one in chats.events(lines)]

    assert beat == ": still here"
    assert rest[-1] == "done"
