"""What happens in a vault is told: changes, what waits, and what is settled; as a stream or when asked for."""

import contextlib
import datetime as dt
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.agents.stages import Schedule
from knapper.agents.work_store import open_work
from knapper.app import schedules
from knapper.changes.drafts import EditText
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.errors import StorageError
from knapper.jsontypes import JSONValue
from knapper.server.http import feed
from knapper.server.http.app import Mount
from knapper.server.workers import WorkerThreads
from knapper.tools import proposals
from knapper.tools.context import Context
from knapper.tools.shapes.write import ProposalList
from knapper.vault import access
from tests.server import apps, chats, contracts, live
from tests.server.apps import World


def mounted(world: World, *sources: feed.WaitingSource) -> Mount:
    return feed.mount_feed(world.hub, WorkerThreads(2), world.stop, sources)


@contextlib.contextmanager
def listening(base: Path, *clients: ClientSettings) -> Generator[tuple[World, TestClient]]:
    with apps.world(base, *clients) as world, world.client(None, mounted(world)) as client:
        yield world, client


def ask(client: TestClient, after: int = 0, wait: float = 0) -> tuple[list[dict[str, Any]], int]:
    answer = client.get(f"/events?after={after}&wait={wait}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["ended"] is False
    return answer.json()["events"], answer.json()["last"]


def edit(world: World, path: str, old: str, new: str, *, propose: bool = False) -> str:
    """Edit a note as another client, or propose that; gives the id of what came of it."""
    options = SubmitOptions(propose=propose)
    context = world.hub.context(client="cli", submit_options=options)
    done = context.writer.submit([EditText(path=path, old=old, new=new)], options)
    return done.proposal_id or done.change_id


def test_changes_and_what_waits_are_told_in_their_order_and_once(tmp_path: Path) -> None:
    with listening(tmp_path) as (world, client):
        first, last = ask(client)
        changed = edit(world, "Rain.md", "tomatoes", "beans")
        told, last = ask(client, last, 20)
        waiting = edit(world, "Garden.md", "Every evening", "Never", propose=True)
        asked, last = ask(client, last, 20)
        world.hub.context(client="cli").reviewer.reject(waiting, "no")
        settled, last = ask(client, last, 20)
        nothing, same = ask(client, last, 0.3)
        again, _ = ask(client)

    assert [(row["event"], row["data"]["waiting"], row["data"]["last_change"]) for row in first] == [
        ("start", [], None)
    ]
    assert [(row["event"], row["data"]["id"], row["data"]["files"][0]["path"]) for row in told] == [
        ("change", changed, "Rain.md")
    ]
    assert [(row["event"], row["data"]["kind"], row["data"]["id"]) for row in asked] == [
        ("waiting", "proposal", waiting)
    ]
    assert [(row["event"], row["data"]["kind"], row["data"]["id"]) for row in settled] == [
        ("settled", "proposal", waiting)
    ]
    assert (nothing, same) == ([], last)
    assert (again[0]["data"]["waiting"], again[0]["data"]["last_change"]["id"]) == ([], changed)


def test_what_happened_while_nobody_listened_is_told(tmp_path: Path) -> None:
    with listening(tmp_path) as (world, client):
        _, last = ask(client)
        ids = [edit(world, "Rain.md", *words) for words in (("rains", "snows"), ("snows", "hails"), ("hails", "pours"))]
        time.sleep(0.3)
        told, _ = ask(client, last)

    assert [row["data"]["id"] for row in told] == ids
    assert [row["id"] for row in told] == list(range(last + 1, last + 4))


@pytest.mark.parametrize("after", [1, 10**14])
def test_an_id_that_is_not_known_gives_what_there_is_now(tmp_path: Path, after: int) -> None:
    with listening(tmp_path) as (world, client):
        waiting = edit(world, "Garden.md", "Every evening", "Never", propose=True)
        told, _ = ask(client, after)

    assert [(row["event"], [one["id"] for one in row["data"]["waiting"]]) for row in told] == [("start", [waiting])]


def test_more_than_is_kept_is_told_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_MAX_KEPT", 2)
    with listening(tmp_path) as (world, client):
        _, first = ask(client)
        last = first
        for words in (("rains", "snows"), ("snows", "hails"), ("hails", "pours")):
            edit(world, "Rain.md", *words)
            _, last = ask(client, last, 20)
        told, _ = ask(client, first)
        rest, _ = ask(client, last - 2)

    assert [row["event"] for row in told] == ["start"]
    assert [row["event"] for row in rest] == ["change", "change"]


def test_questions_of_tasks_and_runs_wait_too(tmp_path: Path) -> None:
    rows: list[Mapping[str, JSONValue]] = [{"kind": "task", "id": "t1", "question": "Which?"}]

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        assert (client, vault) == ("http", "v")
        return [*rows]

    with apps.world(tmp_path) as world, world.client(None, mounted(world, source)) as client:
        first, last = ask(client)
        rows.clear()
        edit(world, "Rain.md", "tomatoes", "beans")
        told, _ = ask(client, last, 20)

    assert first[0]["data"]["waiting"] == [{"kind": "task", "id": "t1", "question": "Which?"}]
    assert [row["event"] for row in told] == ["change", "settled"]


def test_a_run_that_asks_a_moment_after_its_question_was_stored_is_told(tmp_path: Path) -> None:
    rows: list[Mapping[str, JSONValue]] = []

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        del client, vault
        return [*rows]

    with apps.world(tmp_path) as world, world.client(None, mounted(world, source)) as client:
        _, last = ask(client)
        _, last = ask(client, last, 1)  # until nothing is new
        rows.append({"kind": "run", "id": "q1", "question": "Which?"})
        open_work(world.hub.open("").folder).shut()
        told, _ = ask(client, last, 2)

    assert [(row["event"], row["data"]["id"]) for row in told] == [("waiting", "q1")]


def test_a_stored_session_has_the_questions_read_again_but_not_the_proposals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"proposals": 0, "questions": 0}
    list_proposals = proposals.list_proposals

    def counted(context: Context, status: str, *, limit: int, offset: int) -> ProposalList:
        counts["proposals"] += 1
        return list_proposals(context, status, limit=limit, offset=offset)

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        assert (client, vault) == ("http", "v")
        counts["questions"] += 1
        return []

    monkeypatch.setattr(proposals, "list_proposals", counted)
    with apps.world(tmp_path) as world, world.client(None, mounted(world, source)) as client:
        waiting = edit(world, "Garden.md", "Every evening", "Never", propose=True)
        work = open_work(world.hub.open("").folder)
        _, last = ask(client)
        _, last = ask(client, last, 1)  # until nothing is new
        before = dict(counts)
        with work.database.writing() as database:
            database.execute("INSERT INTO presets VALUES ('x', 'x', '{}')")
        work.shut()
        nothing, last = ask(client, last, 1)
        after = dict(counts)
        world.hub.context(client="cli").reviewer.reject(waiting, "no")
        settled, _ = ask(client, last, 20)

    assert nothing == []
    assert after["proposals"] == before["proposals"]
    assert after["questions"] > before["questions"]
    assert [row["event"] for row in settled] == ["settled"]
    assert counts["proposals"] > after["proposals"]


def test_changes_are_told_once_where_what_waits_can_not_be_read(tmp_path: Path) -> None:
    failures = [StorageError("the disk is gone")]

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        del client, vault
        if has_changed and failures:
            raise failures.pop()
        return []

    has_changed: list[str] = []
    with apps.world(tmp_path) as world, world.client(None, mounted(world, source)) as client:
        _, last = ask(client)
        has_changed.append(edit(world, "Rain.md", "tomatoes", "beans"))
        failed = client.get(f"/events?after={last}&wait=5")
        time.sleep(feed.LOOK_INTERVAL_S)
        told, last = ask(client, last, 20)
        again, _ = ask(client, last, 0.5)

    assert failed.status_code == 503
    assert [row["data"]["id"] for row in told] == has_changed
    assert again == []


def test_what_is_hidden_from_a_client_is_not_told(tmp_path: Path) -> None:
    guest = ClientSettings(grants=replace(access.default_grants("http")), hidden=("Private/",))
    with listening(tmp_path, guest) as (world, client):
        _, last = ask(client)
        edit(world, "Private/Diary.md", "secret", "riddle")
        edit(world, "Private/Diary.md", "riddle", "mystery", propose=True)
        told, same = ask(client, last, 0.5)
        again, _ = ask(client)

    assert (told, same) == ([], last)
    assert (again[0]["data"]["waiting"], again[0]["data"]["last_change"]) == ([], None)


def test_a_stream_tells_the_same_and_ends_when_the_server_stops(tmp_path: Path) -> None:
    with apps.world(tmp_path / "own") as world:
        mount = feed.mount_feed(world.hub, WorkerThreads(2), world.stop)
        with (
            live.serving(tmp_path, mount) as server,
            server.client() as client,
            client.stream("GET", "/events") as stream,
        ):
            lines = chats.events(stream.iter_lines())
            start = next(lines)
            changed = edit(world, "Rain.md", "tomatoes", "beans")
            told = next(lines)
            server.stop.cancel()
            rest = list(lines)

    assert (start.name, told.name, told.data["id"], told.id) == ("start", "change", changed, start.id + 1)
    assert rest == []


def test_a_vault_that_is_not_there_is_told(tmp_path: Path) -> None:
    with listening(tmp_path) as (_, client):
        refused = client.get("/events?after=0&vault=other")

    assert (refused.status_code, refused.json()["code"]) == (404, "no_vault")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path) -> None:
    with listening(tmp_path) as (world, client):
        contract = contracts.of_app(client.app, world.token(), {"/events"})
        found = contracts.broken_words(contract, GenerationMode.NEGATIVE)

        assert "/events" in client.get("/openapi.json").json()["paths"]
    assert found == []


def test_where_a_schedule_came_and_went_between_two_looks_all_is_told_anew(tmp_path: Path) -> None:
    with listening(tmp_path) as (world, client):
        _, last = ask(client)
        store = schedules.open_schedules(world.hub)
        made = Schedule(name="nightly", agent="weekly-review", cadence="daily", handled=dt.datetime.now())  # noqa: DTZ005
        _ = store.add(made)
        store.remove("nightly")  # whoever listens may have read the list just before
        told, later = ask(client, last, 20)
        quiet, _ = ask(client, later)

        assert [event["event"] for event in told] == ["start"]
        assert quiet == []
