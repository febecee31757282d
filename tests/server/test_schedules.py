"""Schedules over HTTP: a person makes, changes, runs and removes them, and hears what becomes of them."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from knapper.app import schedules
from knapper.app.open_clients import ModelOpeners
from knapper.config import ClientSettings, paired
from knapper.server import lifecycle
from knapper.server.http import feed
from knapper.server.http import schedules as routes
from knapper.server.http.background import JobService
from knapper.server.workers import WorkerThreads
from knapper.vault import access
from tests.agents.scripted import Call, Model
from tests.server import apps, chats
from tests.server.chats import Gate, Opens

PROPOSE = Call("append_to_file", {"path": "Rain.md", "content": "- See also [[Diary]]: when it rained"})
REPORT = "Proposed a link."
Asks = Callable[..., Any]


@contextmanager
def serving(base: Path, opens: Opens, *clients: ClientSettings, token: str = "page") -> Generator[TestClient]:
    """Serve the schedules of a small vault, with a model that says what a test tells it to."""
    with apps.world(base, *clients) as world:
        service = JobService(world.hub, ModelOpeners(chat=chats.opener(opens)))
        threads = WorkerThreads(4)
        mounts = [
            lifecycle.mount_jobs(service, world.hub, world.stop),
            routes.mount_schedules(world.hub, threads, lambda: lifecycle.open_schedule_runner(service)),
            feed.mount_feed(world.hub, threads, world.stop),
        ]
        shown = world.token("page") if token == "page" else world.token("api") if token == "api" else token
        with world.client(shown, *mounts) as client:
            yield client
        threads.close()


def quiet() -> Opens:
    return Model([[REPORT]]).open


def ended(page: TestClient, name: str = "weekly-review") -> dict[str, Any]:
    """Return a schedule once it is at work no more."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        (row,) = [one for one in page.get("/schedules").json()["results"] if one["name"] == name]
        if row["last"] is not None and row["last"]["state"] != "running":
            return row
        time.sleep(0.05)
    raise AssertionError("it didn't end")


def test_a_person_makes_changes_pauses_and_removes_a_schedule(tmp_path: Path) -> None:
    with serving(tmp_path, quiet()) as page:
        options = page.get("/schedules/options").json()
        order = {"agent": "weekly-review", "cadence": "weekly", "weekday": "friday", "at": "7:30", "tokens": 5_000}
        added = page.post("/schedules", json=order)
        again = page.post("/schedules", json=order)
        edited = page.patch("/schedules/weekly-review", json={"cadence": "daily", "at": "23:59", "results": ""})
        paused = page.patch("/schedules/weekly-review", json={"paused": True})
        resumed = page.patch("/schedules/weekly-review", json={"paused": False})
        listed = page.get("/schedules").json()
        removed = page.delete("/schedules/weekly-review").json()
        gone = page.delete("/schedules/weekly-review")
        left = page.get("/schedules").json()["total"]

    row = added.json()["schedule"]
    assert [one["name"] for one in options["agents"]] == ["weekly-review"]
    assert (options["clients"], options["defaults"]["at"], options["problems"]) == (["schedule"], "18:00", [])
    assert (added.status_code, row["when"], row["tokens"]) == (201, "weekly on friday at 07:30", 5_000)
    assert (row["last"], row["runs"], row["apply"], row["paused"]) == (None, [], False, False)
    assert (again.status_code, again.json()["code"]) == (409, "schedule_exists")
    now = edited.json()["schedule"]
    assert (now["when"], now["results"], now["tokens"]) == ("daily at 23:59", "", 5_000)
    assert (paused.json()["schedule"]["paused"], paused.json()["schedule"]["next"]) == (True, None)
    assert resumed.json()["schedule"]["next"] is not None
    assert listed["results"] == [resumed.json()["schedule"]]
    assert (removed["deleted"], gone.status_code, gone.json()["code"], left) == ("weekly-review", 404, "no_schedule", 0)


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({}, "bad_arguments"),
        ({"agent": "nobody"}, "no_agent"),
        ({"agent": "weekly-review", "at": "25:00"}, "bad_input"),
        ({"agent": "weekly-review", "cadence": "hourly"}, "bad_arguments"),
        ({"agent": "weekly-review", "name": "../x"}, "bad_input"),
        ({"agent": "weekly-review", "tokens": 10}, "bad_arguments"),
        ({"agent": "weekly-review", "client": "page"}, "bad_input"),
        ({"agent": "weekly-review", "cadence": "changed", "folder": "Nowhere"}, "no_such_folder"),
        ({"agent": "weekly-review", "cadence": "changed", "folder": "Private", "results": "private"}, "bad_input"),
        ({"agent": "weekly-review", "results": "../outside"}, "outside_vault"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_and_not_kept(tmp_path: Path, order: dict[str, Any], code: str) -> None:
    with serving(tmp_path, quiet()) as page:
        refused = page.post("/schedules", json=order)
        left = page.get("/schedules").json()["total"]

    assert (refused.status_code >= 400, refused.json()["code"], left) == (True, code, 0)


def test_no_program_may_see_or_change_schedules(tmp_path: Path) -> None:
    with serving(tmp_path, quiet(), token="api") as program:
        asked = [
            program.get("/schedules"),
            program.get("/schedules/options"),
            program.post("/schedules", json={"agent": "weekly-review"}),
            program.patch("/schedules/weekly-review", json={"paused": True}),
            program.delete("/schedules/weekly-review"),
            program.post("/schedules/weekly-review/run"),
            program.post("/schedules/weekly-review/cancel"),
        ]

    assert {(one.status_code, one.json()["code"]) for one in asked} == {(403, "needs_person")}


def test_a_person_with_less_sight_neither_sees_nor_makes_what_would_show_more(tmp_path: Path) -> None:
    hiding = ClientSettings(grants=access.default_grants("page"), hidden=("Private/",))
    with serving(tmp_path, quiet()) as page:
        _ = page.post("/schedules", json={"agent": "weekly-review"})
    with serving(tmp_path, quiet(), hiding) as page:
        listed = page.get("/schedules").json()["total"]
        made = page.post("/schedules", json={"agent": "weekly-review", "name": "mine"})
        run = page.post("/schedules/weekly-review/run")
        options = page.get("/schedules/options").json()

    assert (listed, options["clients"]) == (0, [])
    assert (made.status_code, made.json()["code"]) == (403, "client_hidden")
    assert (run.status_code, run.json()["code"]) == (404, "no_schedule")


def test_only_the_page_lets_an_agent_apply_by_itself(tmp_path: Path) -> None:
    token = "phone-token-of-a-person-0123456789"
    phone = ClientSettings(
        grants=replace(access.default_grants("page"), client="phone"), token_hash=paired.hash_token(token)
    )
    with serving(tmp_path, quiet(), phone) as page:
        made = page.post("/schedules", json={"agent": "weekly-review", "apply": True})
    with serving(tmp_path, quiet(), phone, token=token) as person:
        refused = [
            person.post("/schedules", json={"agent": "weekly-review", "name": "b", "apply": True}),
            person.patch("/schedules/weekly-review", json={"tokens": 9_000}),
        ]
        paused = person.patch("/schedules/weekly-review", json={"paused": True})
        resumed = person.patch("/schedules/weekly-review", json={"paused": False})

    assert made.json()["schedule"]["apply"] is True
    assert {(one.status_code, one.json()["code"]) for one in refused} == {(403, "needs_owner")}
    assert (paused.json()["schedule"]["paused"], resumed.json()["schedule"]["paused"]) == (True, False)


def heard_of_schedules(page: TestClient, after: int, last: object) -> list[Any]:
    """Give what the feed tells of schedules until it tells how the last run ended, a moment after it has."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        events = page.get("/events", params={"after": after, "wait": 1}).json()["events"]
        told = [one["data"]["schedule"] for one in events if one["event"] == "schedule"]
        if told and told[-1]["last"] == last:
            return told
    raise AssertionError("the feed doesn't tell how the run ended")


@pytest.mark.timeout(60)
def test_a_run_is_begun_and_what_became_of_it_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, Model([[PROPOSE], [REPORT]]).open) as page:
        _ = page.post("/schedules", json={"agent": "weekly-review"})
        first = page.get("/events", params={"after": 0}).json()
        begun = page.post("/schedules/weekly-review/run")
        row = ended(page)
        told = heard_of_schedules(page, first["last"], row["last"])
        waiting = page.get("/proposals").json()
        session = page.get(f"/sessions/{row['last']['session_id']}").json()
        _ = page.delete("/schedules/weekly-review")
        removed = page.get("/events", params={"after": 0}).json()

    last = row["last"]
    assert begun.status_code == 202
    assert (last["state"], last["proposals"], row["runs"]) == ("complete", 1, [last["session_id"]])
    assert {one["run"] for one in waiting["results"]} == {last["session_id"]}
    assert session["total"] == 1
    assert (told[-1]["name"], told[-1]["last"]) == ("weekly-review", last)
    assert removed["events"][0]["event"] == "start"


def test_the_document_has_what_a_run_shows_and_nothing_else_of_it(tmp_path: Path) -> None:
    with serving(tmp_path, quiet()) as page:
        assert page.post("/schedules", json={"agent": "weekly-review", "cadence": "daily"}).status_code == 201
        assert page.post("/schedules/weekly-review/run", json={}).status_code == 202
        last = ended(page)["last"]
        path = page.get("/openapi.json").json()["paths"]["/schedules/{name}/run"]["post"]

    reply = path["responses"]["202"]["content"]["application/json"]["schema"]
    described, nothing = reply["properties"]["schedule"]["properties"]["last"]["anyOf"]
    assert nothing == {"type": "null"}
    assert set(last) == set(described["properties"]) == set(described["required"])
    assert described["properties"]["at"] == {"type": "string"}
    assert described["properties"]["cancelled"] == {
        "type": "boolean",
        "description": "Whether what is at work is to end.",
    }


@pytest.mark.timeout(60)
def test_a_run_is_followed_refused_twice_and_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "CANCEL_POLL_S", 0.05)
    gate = Gate()
    with serving(tmp_path, gate.open) as page:
        _ = page.post("/schedules", json={"agent": "weekly-review"})
        idle = page.post("/schedules/weekly-review/cancel")
        _ = page.post("/schedules/weekly-review/run")
        gate.until_waiting()
        (at_work,) = page.get("/schedules").json()["results"]
        busy = page.post("/schedules/weekly-review/run")
        kept = page.delete("/schedules/weekly-review")
        stopping = page.post("/schedules/weekly-review/cancel").json()["schedule"]
        row = ended(page)

    assert (idle.status_code, idle.json()["code"]) == (409, "schedule_idle")
    assert (at_work["last"]["state"], bool(at_work["last"]["session_id"])) == ("running", True)
    assert (busy.status_code, busy.json()["code"]) == (409, "schedule_busy")
    assert (kept.status_code, kept.json()["code"]) == (409, "schedule_busy")
    assert stopping["last"]["cancelled"] is True
    assert (row["last"]["state"], row["last"]["session_id"]) == ("cancelled", at_work["last"]["session_id"])


@pytest.mark.timeout(60)
def test_a_server_that_stops_keeps_what_a_run_has(tmp_path: Path) -> None:
    gate = Gate()
    with serving(tmp_path, gate.open) as page:
        _ = page.post("/schedules", json={"agent": "weekly-review"})
        _ = page.post("/schedules/weekly-review/run")
        gate.until_waiting()
    with serving(tmp_path, quiet()) as page:
        (row,) = page.get("/schedules").json()["results"]

    assert (row["last"]["state"], bool(row["last"]["session_id"])) == ("interrupted", True)


def test_a_damaged_file_is_told_and_the_news_go_on(tmp_path: Path) -> None:
    with serving(tmp_path, quiet()) as page:
        _ = page.post("/schedules", json={"agent": "weekly-review"})
        (file,) = tmp_path.glob("state/vaults/*/schedules.json")
        file.write_text("[{", "utf-8")
        listed, heard = page.get("/schedules"), page.get("/events", params={"after": 0})

    assert (listed.status_code, listed.json()["code"]) == (503, "schedules")
    assert (heard.status_code, heard.json()["events"][0]["event"]) == (200, "start")
