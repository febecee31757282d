"""Runs as they happen: hearing, losing, finding again, cancelling, stopping, and runs of other processes."""

import asyncio
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from knapper.agents.runs import executor
from knapper.agents.runs.engine import RunEngine
from knapper.agents.runs.model import RunEventSink, RunOrder, RunRecord
from knapper.app import Hub
from knapper.app.runs import OpenedRuns, open_runs
from knapper.jsontypes import JSONValue
from knapper.server.http import feed
from knapper.server.http.background import JobService
from tests.agents.run_world import Brain, Part
from tests.server import chats, contracts, running
from tests.server.running import PLAN, Gate, begun, done, heard

pytestmark = pytest.mark.timeout(60)


def test_a_run_is_told_step_by_step_and_its_answer_last(tmp_path: Path) -> None:
    with running.serving(tmp_path, Brain(plans=PLAN)) as server, server.client() as client:
        run_id = begun(client)
        found = heard(client, run_id)

    names = [one.name for one in found]
    assert [one.id for one in found] == list(range(1, len(found) + 1))
    assert names[:2] == ["start", "run_started"]
    assert set(names[2:-1]) == {"node", "usage"}
    assert all(one.data["type"] == one.name for one in found)
    assert found[0].data == {"type": "start", "run_id": run_id, "task": "T"}
    assert (names[-1], found[-1].data["answer"]) == ("run_done", "join of T.")


def test_a_lost_connection_does_not_end_the_run_and_goes_on_where_it_was(tmp_path: Path) -> None:
    gate = Gate(task="Beta stays?")
    with running.serving(tmp_path, Brain(plans=PLAN, before=gate), gate=gate) as server, server.client() as client:
        run_id = begun(client)
        with client.stream("GET", f"/runs/{run_id}/events") as stream:
            lines = chats.events(stream.iter_lines())
            first = [next(lines) for _ in range(4)]
        assert gate.reached.wait(30)
        headers = {"last-event-id": str(first[-1].id)}
        with client.stream("GET", f"/runs/{run_id}/events", headers=headers) as stream:
            gate.opened.set()  # not before it is heard: a run that has ended is told from its beginning
            rest = list(chats.events(stream.iter_lines()))

    assert rest[0].id == first[-1].id + 1
    assert "start" not in [one.name for one in rest]
    assert rest[-1].data["state"] == "complete"


def test_a_run_that_has_ended_is_told_again_above_what_was_heard(tmp_path: Path) -> None:
    with running.serving(tmp_path, Brain(plans=PLAN)) as server, server.client() as client:
        run_id = done(client)
        whole, late = heard(client, run_id), heard(client, run_id, 70)

    assert [one.name for one in whole if one.name == "node"] == ["node"] * 3
    assert (whole[0].id, whole[0].name, whole[-1].name) == (1, "start", "run_done")
    assert [one.id for one in late] == [one.id + 70 for one in whole]
    assert [one.data for one in late] == [one.data for one in whole]


def test_a_run_is_told_to_who_cannot_stream_while_it_goes_on_and_when_it_has_ended(tmp_path: Path) -> None:
    gate = Gate(task="Beta stays?")
    with running.serving(tmp_path, Brain(plans=PLAN, before=gate), gate=gate) as server, server.client() as client:
        run_id = begun(client)
        assert gate.reached.wait(30)
        first = client.get(f"/runs/{run_id}/events?after=0&wait=20").json()
        gate.opened.set()
        told: list[dict[str, Any]] = []
        after = first["last"]
        while not told or not told[-1]["ended"]:
            told.append(client.get(f"/runs/{run_id}/events?after={after}&wait=20").json())
            after = told[-1]["last"]
        document = client.get("/openapi.json").json()

    for answer in (first, *told):
        contracts.check_reply(document, "/runs/{run_id}/events", answer)
    ids = [row["id"] for answer in (first, *told) for row in answer["events"]]
    assert [row["event"] for row in first["events"][:2]] == ["start", "run_started"]
    assert not first["ended"]
    assert ids == list(range(1, len(ids) + 1))
    assert told[-1]["events"][-1]["data"]["state"] == "complete"


def test_who_hears_that_a_run_has_ended_can_go_on_with_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = executor.carry_out_run

    async def late(engine: RunEngine, run_id: str, tell: RunEventSink, **more: Any) -> RunRecord:  # noqa: ANN401 - any of its arguments
        """Take a while after the last word, as on a machine that is busy."""
        run = await carry_out(engine, run_id, tell, **more)
        await asyncio.sleep(0.5)
        return run

    monkeypatch.setattr(executor, "carry_out_run", late)
    with running.serving(tmp_path, Brain()) as server, server.client() as client, server.client() as other:
        run_id = begun(client)
        with client.stream("GET", f"/runs/{run_id}/events") as stream:
            _ = next(one for one in chats.events(stream.iter_lines()) if one.name == "run_done")
            again = other.post(f"/runs/{run_id}/resume", json={"replay": "root"})

    assert again.status_code == 202


def test_a_run_that_is_cancelled_says_so_and_keeps_what_is_done(tmp_path: Path) -> None:
    gate = Gate(task="Beta stays?")
    brain = Brain(plans=PLAN, wait_s={"Beta stays?": 30})
    with running.serving(tmp_path, brain, gate=gate) as server, server.client() as client:
        run_id = begun(client)
        until(client, run_id, "Beta stays?", "running", brain)
        told = [client.post(f"/runs/{run_id}/cancel").json() for _ in range(2)]
        end = heard(client, run_id)[-1]
        brain.asked.clear()
        brain.wait_s = {}
        _ = client.post(f"/runs/{run_id}/resume")
        after = heard(client, run_id)[-1]

    assert [(one["cancelled"], one["ended"], one["state"]) for one in told] == [
        (True, True, "cancelled"),
        (False, True, "cancelled"),
    ]
    assert (end.data["state"], "Alpha grows?" in end.data["answer"]) == ("cancelled", True)
    assert after.data["state"] == "complete"
    assert ("answer", "Alpha grows?") not in brain.asked


def test_a_server_that_stops_leaves_its_runs_to_be_resumed(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, wait_s={"Beta stays?": 30})
    with running.serving(tmp_path, brain) as server, server.client() as client:
        run_id = begun(client)
        until(client, run_id, "Beta stays?", "running", brain)
        with client.stream("GET", f"/runs/{run_id}/events") as stream:
            lines = chats.events(stream.iter_lines())
            assert next(lines).name == "start"
            server.stop.cancel()
            end = list(lines)
    brain.asked.clear()
    brain.wait_s = {}
    with running.serving(tmp_path, brain) as again, again.client() as client:
        shown = client.get(f"/runs/{run_id}").json()
        ended = heard(client, run_id)[-1].data["state"]
        _ = client.post(f"/runs/{run_id}/resume")
        after = heard(client, run_id)[-1]

    assert [one.data["code"] for one in end if one.name == "error"] == ["stopping"]
    assert (end[-1].name, end[-1].data["state"]) == ("run_done", "interrupted")
    assert (shown["state"], shown["is_live"], ended) == ("interrupted", False, "interrupted")
    assert after.data["state"] == "complete"
    assert not {("answer", "Alpha grows?"), ("judge", "T"), ("plan", "T")} & set(brain.asked)


def test_a_run_that_another_process_carries_out_is_followed_and_ended_from_here(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, wait_s={"Beta stays?": 30})
    with (
        running.serving(tmp_path, Brain()) as server,
        server.client("page") as client,
        elsewhere(tmp_path, brain, "T") as (run_id, _),
    ):
        until(client, run_id, "Beta stays?", "running", brain)
        shown = client.get(f"/runs/{run_id}").json()
        busy = [client.post(f"/runs/{run_id}/resume"), client.delete(f"/runs/{run_id}")]
        cancelled = client.post(f"/runs/{run_id}/cancel").json()
        found = heard(client, run_id)

    assert (shown["state"], shown["is_live"], shown["client"]) == ("running", True, "cli")
    assert {(one.status_code, one.json()["code"]) for one in busy} == {(409, "run_busy")}
    assert cancelled["cancelled"] is True
    assert [one.name for one in found][:2] == ["start", "run_started"]
    assert {"node", "usage"} <= {one.name for one in found}
    assert (found[-1].name, found[-1].data["state"]) == ("run_done", "cancelled")


def test_a_run_of_this_server_is_ended_by_another_process(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, wait_s={"Beta stays?": 30})
    with running.serving(tmp_path, brain) as server, server.client() as client:
        run_id = begun(client)
        until(client, run_id, "Beta stays?", "running", brain)
        with Hub(running.settings(tmp_path)) as hub, open_runs(hub) as other:
            asked = other.store.cancel(run_id)
        end = heard(client, run_id)[-1]

    assert asked is True
    assert end.data["state"] == "cancelled"


def test_a_runs_question_waits_for_who_may_see_the_run(tmp_path: Path) -> None:
    async def listed(hub: Hub) -> list[list[Mapping[str, JSONValue]]]:
        service = JobService(hub)
        source = feed.run_source(hub, service)
        try:
            return [[*await source(client, "v")] for client in ("page", "http")]
        finally:
            await service.shut()

    with Hub(running.settings(tmp_path)) as hub:
        before = asyncio.run(listed(hub))
        with running.serving(tmp_path, Brain(), retrieve=running.poor) as server, server.client("page") as page:
            run_id = begun(page)
            with page.stream("GET", f"/runs/{run_id}/events") as stream:
                point = next(one for one in chats.events(stream.iter_lines()) if one.name == "checkpoint")
                mine, others = asyncio.run(listed(hub))

    assert before == [[], []]
    assert [(row["kind"], row["id"], row["run_id"]) for row in mine] == [("run", point.data["id"], run_id)]
    assert mine[0]["options"] == ["go on", "skip"]
    assert others == []


def test_a_question_is_answered_over_http_by_a_person(tmp_path: Path) -> None:
    with running.serving(tmp_path, Brain(), retrieve=running.poor) as server, server.client("page") as page:
        run_id = begun(page)
        with page.stream("GET", f"/runs/{run_id}/events") as stream:
            lines = chats.events(stream.iter_lines())
            point = next(one for one in lines if one.name == "checkpoint")
            with server.client("page") as other:
                waiting = other.get(f"/runs/{run_id}").json()["checkpoints"]
                wrong = other.post(f"/runs/{run_id}/checkpoints/nothing", json={"answer": "go on"})
                path = f"/runs/{run_id}/checkpoints/{point.data['id']}"
                told = [other.post(path, json={"answer": "Look in the attic."}) for _ in range(2)]
            rest = list(lines)

    answered = next(one for one in rest if one.name == "checkpoint")
    assert [one["id"] for one in waiting] == [point.data["id"]]
    assert point.data["options"] == ["go on", "skip"]
    assert (wrong.status_code, wrong.json()["code"]) == (404, "no_checkpoint")
    assert [one.status_code for one in told] == [200, 409]
    assert told[0].json()["answer"]["text"] == "Look in the attic."
    assert (answered.data["answer"], answered.data["unattended"]) == ("Look in the attic.", False)
    assert rest[-1].data["state"] == "complete"


def test_each_question_is_answered_by_itself_and_skip_leaves_a_node_out(tmp_path: Path) -> None:
    brain = Brain(plans={"T": [Part("Alpha?"), Part("Beta?")]})
    with running.serving(tmp_path, brain, retrieve=running.poor) as server, server.client("page") as page:
        run_id = begun(page)
        while len(waiting := page.get(f"/runs/{run_id}").json()["checkpoints"]) < 2:
            time.sleep(0.02)
        for point, word in zip(waiting, ("skip", "go on"), strict=True):
            _ = page.post(f"/runs/{run_id}/checkpoints/{point['id']}", json={"answer": word})
        end = heard(page, run_id)[-1]
        states = {one["id"]: one["state"] for one in page.get(f"/runs/{run_id}").json()["nodes"]}

    assert end.data["state"] == "partial"
    assert states == {"root": "partial", "1": "failed", "2": "done"}
    assert "the person skipped it" in " ".join(end.data["reasons"])


def test_where_nobody_is_there_a_run_goes_on_and_says_so(tmp_path: Path) -> None:
    with running.serving(tmp_path, Brain(), retrieve=running.poor) as server, server.client() as program:
        run_id = begun(program)
        found = heard(program, run_id)
        node = program.get(f"/runs/{run_id}/nodes/root").json()

    point = next(one for one in found if one.name == "checkpoint")
    assert (point.data["unattended"], point.data["id"]) == (True, "")
    assert "nobody was there to be asked" in " ".join(node["notes"])


def test_a_program_does_not_answer_for_a_person_and_a_run_waits_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.app.client_runs.ANSWER_S", 0.3)
    with running.serving(tmp_path, Brain(), retrieve=running.poor) as server, server.client("page") as page:
        run_id = begun(page)
        found = heard(page, run_id)
        waiting = page.get(f"/runs/{run_id}").json()["checkpoints"]

    points = [one.data["unattended"] for one in found if one.name == "checkpoint"]
    assert points == [False, True]
    assert len(waiting) == 1


@contextmanager
def elsewhere(base: Path, brain: Brain, task: str) -> Generator[tuple[str, OpenedRuns]]:
    """Carry a run out beside the server, as the command line does; ends when it has ended."""
    with Hub(running.settings(base)) as hub, open_runs(hub) as tasks:
        engine = replace(tasks.engine_of(brain.open(), "scripted"), poll_s=0.02)
        run = executor.create_run(engine, RunOrder(task=task, code_mode=False))
        thread = threading.Thread(target=lambda: asyncio.run(executor.carry_out_run(engine, run.id, lambda _: None)))
        thread.start()
        try:
            yield run.id, tasks
        finally:
            thread.join()


def until(client: httpx2.Client, run_id: str, task: str, state: str, brain: Brain) -> None:
    """Wait until a node is in a state, and its model is asked for an answer."""
    while True:
        nodes = client.get(f"/runs/{run_id}").json()["nodes"]
        if any((one["title"], one["state"]) == (task, state) for one in nodes) and ("answer", task) in brain.asked:
            return
        time.sleep(0.02)
