"""`knap serve` with a model on loopback, as a process of its own: tasks of several agents."""

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from knapper.app.open_clients import ModelOpeners
from knapper.server import lifecycle
from knapper.server.http import feed
from knapper.server.http.background import JobService
from knapper.server.workers import WorkerThreads
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


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_question_outlives_a_server_that_is_killed_right_after_the_answer(vault: Path, own_home: Path) -> None:
    hanging = Reply(parts=["Well", "…"], hang_s=60)
    replies = (Reply(parts=tasks.ASK), hanging, Reply(parts=tasks.SELECT), Reply(parts=tasks.EDIT))
    with protocol.serving(*replies) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\n'
        with servers.serving(vault, home=own_home, config=config) as server, server.client(timeout_s=60) as client:
            asked = client.post("/ask", json=ORDER).json()
            answer = {"run_id": asked["run_id"], "answer": "North"}
            with client.stream("POST", "/ask/stream", json=answer):
                _wait_until_asked(model, 2)
                goes_on = client.get("/ask/waiting").json()["results"]
                _ = server.stop(signal.SIGKILL)
        with servers.serving(vault, home=own_home, config=config) as again, again.client(timeout_s=60) as client:
            waits = client.get("/ask/waiting").json()["results"]
            done = client.post("/ask", json={**answer, "answer": "South"}).json()
            left = client.get("/ask/waiting").json()["results"]
            _ = again.stop()

    assert goes_on == []
    assert [one["run_id"] for one in waits] == [asked["run_id"]]
    assert (done["state"], len(done["proposals"]), left) == ("complete", 1, [])
    assert "The person answers: South" in json.dumps(model.asked[-2])
    assert "The person answers: North" not in json.dumps(model.asked[-2])


def _wait_until_asked(model: protocol.Server, times: int) -> None:
    deadline = time.monotonic() + 30
    while len(model.asked) < times and time.monotonic() < deadline:
        time.sleep(0.01)


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


def test_a_task_that_asks_waits_in_the_news_of_its_vault_until_it_is_answered(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        chat = chats.opener(tasks.asking().open)
        service = JobService(world.hub, ModelOpeners(chat=chat))
        task_mount = lifecycle.mount_jobs(service, world.hub, world.stop)
        news = feed.mount_feed(world.hub, WorkerThreads(2), world.stop, [feed.task_source(world.hub, service)])
        with world.client(None, task_mount, news) as client:
            start = client.get("/events?after=0").json()
            order = {"task": "rain?", "note": "Rain.md", "scout": True}
            run_id = client.post("/ask", json=order).json()["run_id"]
            asked = client.get(f"/events?after={start['last']}&wait=20").json()
            client.post("/ask", json={"run_id": run_id, "answer": "North"})
            told = client.get(f"/events?after={asked['last']}&wait=20").json()

    assert [(row["event"], row["data"]["kind"], row["data"]["id"]) for row in asked["events"]] == [
        ("waiting", "task", run_id)
    ]
    assert asked["events"][0]["data"]["question"] == "Which garden?"
    assert ("settled", "task") in [(row["event"], row["data"].get("kind")) for row in told["events"]]
