"""The index is brought up to date over HTTP: started, joined, followed, cancelled."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.config import ClientSettings
from knapper.index import refresh
from knapper.index.engine import Engine
from knapper.index.refresh import Progress, RefreshOutcome
from knapper.server.http import indexing
from knapper.server.http.app import Mount
from knapper.server.workers import WorkerThreads
from knapper.system import private
from knapper.vault import access
from tests.server import apps, contracts
from tests.server.apps import World


def mounted(world: World) -> Mount:
    return indexing.mount_index(world.hub, WorkerThreads(2), world.stop)


def follow(client: TestClient, job: str) -> list[dict[str, Any]]:
    """Ask for the events of a refresh until it has ended."""
    told: list[dict[str, Any]] = []
    after = 0
    while True:
        answer = client.get(f"/index/{job}/events?after={after}&wait=20").json()
        told += answer["events"]
        after = answer["last"]
        if answer["ended"]:
            return told


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Generator[threading.Event]:
    """Hold refreshes after their first step, until the event is set."""
    carry_out, opened = Engine.refresh, threading.Event()

    def slow(self: Engine, *, full: bool, progress: Progress) -> RefreshOutcome:
        for number in range(10_000):
            progress("scan", number, 0)
            if opened.wait(0.005):
                break
        return carry_out(self, full=full, progress=progress)

    monkeypatch.setattr(Engine, "refresh", slow)
    try:
        yield opened
    finally:
        opened.set()


def test_a_refresh_tells_its_progress_and_what_it_did(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        begun = client.post("/index")
        told = follow(client, begun.json()["job_id"])
        (world.root / "New.md").write_text("# New\n", encoding="utf-8")
        again = follow(client, client.post("/index", json={}).json()["job_id"])

    assert (begun.status_code, begun.json()["vault"], begun.json()["joined"]) == (202, "v", False)
    assert (told[0]["event"], told[-1]["event"]) == ("start", "indexed")
    assert {row["data"]["phase"] for row in told if row["event"] == "progress"} >= {"read"}
    assert {name: told[-1]["data"][name] for name in ("state", "indexed", "notes", "problems")} == {
        "state": "complete",
        "indexed": 3,
        "notes": 3,
        "problems": [],
    }
    assert (again[-1]["data"]["indexed"], again[-1]["data"]["unchanged"]) == (1, 3)


def test_a_full_refresh_is_a_persons(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        with world.client(None, mounted(world)) as client:
            follow(client, client.post("/index").json()["job_id"])
            refused = client.post("/index", json={"full": True})
        with world.client(world.token("page"), mounted(world)) as page:
            told = follow(page, page.post("/index", json={"full": True}).json()["job_id"])

    assert (refused.status_code, refused.json()["code"]) == (403, "needs_person")
    assert (told[-1]["data"]["indexed"], told[-1]["data"]["unchanged"]) == (3, 0)


def test_who_asks_while_one_goes_on_joins_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as opened, apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        first, second = client.post("/index").json(), client.post("/index").json()
        opened.set()
        told = follow(client, second["job_id"])
        third = client.post("/index").json()

    assert (first["joined"], second["joined"], third["joined"]) == (False, True, False)
    assert first["job_id"] == second["job_id"] != third["job_id"]
    assert told[-1]["data"]["state"] == "complete"


def test_a_refresh_is_cancelled_and_the_next_one_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as opened, apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        job = client.post("/index").json()["job_id"]
        cancelled = client.post(f"/index/{job}/cancel").json()
        told = follow(client, job)
        opened.set()
        again = follow(client, client.post("/index").json()["job_id"])

    assert (cancelled["cancelled"], cancelled["ended"]) == (True, True)
    assert (told[-1]["event"], told[-1]["data"]["state"]) == ("indexed", "cancelled")
    assert again[-1]["data"]["state"] == "complete"


def test_a_server_that_stops_ends_a_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch), apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        job = client.post("/index").json()["job_id"]
        world.stop.cancel()
        told = follow(client, job)
        refused = client.post("/index")

    assert [row["data"]["code"] for row in told if row["event"] == "error"] == ["stopping"]
    assert told[-1]["data"]["state"] == "cancelled"
    assert (refused.status_code, refused.json()["code"]) == (503, "stopping")


def test_an_index_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        engine = world.hub.open("v").engine
        with private.acquire_process_lock(engine.folder, refresh.WRITE_LOCK_FILE, wait_s=1):
            monkeypatch.setattr(Engine, "refresh", partialmethod(Engine.refresh, wait_s=0.1))
            told = follow(client, client.post("/index").json()["job_id"])

    error = next(row["data"] for row in told if row["event"] == "error")
    assert (error["code"], told[-1]["data"]["state"]) == ("conflict", "failed")
    assert str(tmp_path) not in error["error"]


def test_who_does_not_see_the_whole_vault_learns_nothing_of_its_size(tmp_path: Path) -> None:
    guest = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))
    with apps.world(tmp_path, guest) as world, world.client(None, mounted(world)) as client:
        answers = [client.post("/index"), client.get("/index/any/events"), client.post("/index/any/cancel")]

    assert {(each.status_code, each.json()["code"]) for each in answers} == {(403, "not_all_visible")}


def test_what_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        answers = [
            client.post("/index", json={"vault": "other"}),
            client.get("/index/none/events"),
            client.post("/index/none/cancel"),
        ]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [
        (404, "no_vault"),
        (404, "no_refresh"),
        (404, "no_refresh"),
    ]


def test_searches_are_answered_while_a_refresh_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        follow(client, client.post("/index").json()["job_id"])
        with held(monkeypatch):
            job = client.post("/index").json()["job_id"]
            found = client.get("/search?query=tomatoes").json()
            is_running = not client.get(f"/index/{job}/events?after=0").json()["ended"]
            client.post(f"/index/{job}/cancel")

    assert len(found["results"]) == 2
    assert is_running


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world, world.client(world.token("page"), mounted(world)) as client:
        paths = {"/index", "/index/{job_id}/events", "/index/{job_id}/cancel"}
        job = client.post("/index").json()["job_id"]
        follow(client, job)
        found = contracts.broken_words(contracts.of_app(client.app, world.token("page"), paths, {"job_id": job}), mode)

        assert paths <= set(client.get("/openapi.json").json()["paths"])
    assert found == []


def test_nobody_clears_the_index_before_a_refresh_counts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[bool] = []
    embed = Engine.embed

    def clear_first(self: Engine, *, progress: Progress, stop: threading.Event, publishes: bool = True) -> int:
        with private.acquire_process_lock(self.folder, refresh.DERIVING_LOCK_FILE, wait_s=0) as is_acquired:
            cleared.append(is_acquired)
            if is_acquired:
                self.store.clear()
        return embed(self, progress=progress, stop=stop, publishes=publishes)

    with apps.world(tmp_path) as world, world.client(world.token("page"), mounted(world)) as client:
        monkeypatch.setattr(Engine, "embed", clear_first)
        told = follow(client, client.post("/index", json={"full": True}).json()["job_id"])

    assert (told[-1]["data"]["notes"], cleared) == (3, [False])
