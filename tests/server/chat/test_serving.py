"""`knap serve` with a model on loopback, as a process of its own."""

import json
from pathlib import Path

import pytest

from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.scripted import Call
from tests.index import worlds
from tests.server import apps, chats, servers

pytestmark = pytest.mark.timeout(90)
SAY = {"message": "zebras and rain?", "active_file": "Rain.md"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return worlds.fill(tmp_path / "vault", dict(apps.NOTES))


def test_the_configured_model_answers_with_the_vaults_tools_and_sessions_survive(vault: Path, own_home: Path) -> None:
    calls = Reply(parts=[Call("read_file", {"path": "Rain.md"})])
    with protocol.serving(calls, Reply(parts=["It rains [[Rain]]."])) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n'
        with servers.serving(vault, home=own_home, config=config) as server:
            with server.client(timeout_s=60) as client:
                told = client.post("/chat", json=SAY).json()
            code = server.stop()
        with servers.serving(vault, home=own_home, config=config) as again, again.client() as client:
            kept = client.get(f"/sessions/{told['session_id']}").json()
            _ = again.stop()

    assert told["response"] == "It rains [[Rain]]."
    assert [one["name"] for one in told["tools"]] == ["read_file"]
    assert [one["content"] for one in kept["messages"]] == [SAY["message"], told["response"]]
    assert code == 0
    assert "zebras" not in "\n".join(server.printed)
    assert "It rains on the tomatoes" in json.dumps(model.asked)


def test_streams_of_chats_and_runs_tell_that_the_model_is_tried_again(vault: Path, own_home: Path) -> None:
    busy = Reply(status=429, headers={"retry-after-ms": "1"})
    with protocol.serving(busy, Reply(parts=["It rains [[Rain]]."]), busy) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n[runs]\ncode_mode = "off"\n'
        with (
            servers.serving(vault, home=own_home, config=config) as server,
            server.client(timeout_s=60) as client,
        ):
            with client.stream("POST", "/chat/stream", json=SAY) as stream:
                chat = list(chats.events(stream.iter_lines()))
            run_id = client.post("/runs", json={"task": "Compare the rain"}).json()["id"]
            with client.stream("GET", f"/runs/{run_id}/events") as stream:
                run = list(chats.events(stream.iter_lines()))
            _ = server.stop()

    text = f'trying again in 1 s (1 of 2): tiny@{model.base_url}: too many requests; it says: "status 429"'
    assert [one.data["text"] for one in chat if one.name == "notice"] == [text]
    assert next(one.data["text"] for one in run if one.name == "notice") == text
    assert (chat[-1].data["notes"], chat[-1].data["answer"]) == ([], "It rains [[Rain]].")


def test_a_signal_ends_streams_in_good_order(vault: Path, own_home: Path) -> None:
    with protocol.serving(Reply(parts=["Well", "…"], hang_s=60)) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n'
        with (
            servers.serving(vault, home=own_home, config=config) as server,
            server.client(timeout_s=60) as client,
            client.stream("POST", "/chat/stream", json=SAY) as stream,
        ):
            heard = chats.events(stream.iter_lines())
            assert [next(heard).name, next(heard).name] == ["start", "text"]
            code = server.stop()
            end = [(one.name, one.data.get("code") or one.data.get("state")) for one in heard]

    assert end[-2:] == [("error", "stopping"), ("done", "cancelled")]
    assert code == 0
    assert not [line for line in server.printed if "Traceback" in line or "ERROR" in line]
