"""`knap serve` with a model on loopback, as a process of its own: tasks of several agents."""

import json
from pathlib import Path

import pytest

from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.index import worlds
from tests.server import apps, chats, servers, tasks

pytestmark = pytest.mark.timeout(90)
ORDER = {"task": "zebras and rain?", "scout": True}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return worlds.fill(tmp_path / "vault", dict(apps.NOTES))


def test_a_question_outlives_the_server_and_its_session_has_the_turn(vault: Path, own_home: Path) -> None:
    replies = (Reply(parts=tasks.ASK), Reply(parts=tasks.SELECT), Reply(parts=tasks.EDIT))
    with protocol.serving(*replies) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n'
        with servers.serving(vault, home=own_home, config=config) as server:
            with server.client(timeout_s=60) as client:
                session = client.post("/sessions", json={}).json()["session"]["id"]
                asked = client.post("/ask", json={**ORDER, "session_id": session}).json()
            code = server.stop()
        with servers.serving(vault, home=own_home, config=config) as again, again.client(timeout_s=60) as client:
            waits = client.get("/ask/waiting").json()["results"]
            done = client.post("/ask", json={"run_id": asked["run_id"], "answer": "North"}).json()
            kept = client.get(f"/sessions/{session}").json()["messages"]
            proposal = client.get(f"/proposals/{done['proposals'][0]}").json()
            _ = again.stop()

    assert [one["run_id"] for one in waits] == [asked["run_id"]]
    assert (asked["state"], done["state"], code) == ("asked", "complete", 0)
    assert [one["content"] for one in kept] == [ORDER["task"], "Now it snows."]
    assert "It snows" in json.dumps(proposal)
    assert "The person answers: North" in json.dumps(model.asked)
    assert "zebras" not in "\n".join([*server.printed, *again.printed])


def test_a_signal_ends_tasks_in_good_order(vault: Path, own_home: Path) -> None:
    with protocol.serving(Reply(parts=["Well", "…"], hang_s=60)) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n'
        with (
            servers.serving(vault, home=own_home, config=config) as server,
            server.client(timeout_s=60) as client,
            client.stream("POST", "/ask/stream", json={"task": "rain?", "note": "Rain.md"}) as stream,
        ):
            heard = chats.events(stream.iter_lines())
            while next(heard).data.get("phase") != "task":
                pass
            code = server.stop()
            end = [(one.name, one.data.get("code") or one.data.get("state")) for one in heard]

    assert end[-2:] == [("error", "stopping"), ("outcome", "cancelled")]
    assert code == 0
    assert not [line for line in server.printed if "Traceback" in line or "ERROR" in line]
