"""GET /history: whose work a client is shown, what is hidden from it, and pages as the terminal has them."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.runs import executor
from knapper.agents.runs.model import RunOrder
from knapper.app import Hub
from knapper.app.runs import open_runs
from knapper.cli import main
from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.tools import files, proposals
from knapper.vault import access
from tests.agents import earlier_files
from tests.agents.run_world import Brain
from tests.agents.scripted import Call, Model
from tests.server import apps, chats, running
from tests.server.running import done

pytestmark = pytest.mark.timeout(60)
KEY = "k" * 43
READER = ClientSettings(grants=access.default_grants("reader", "named"), token_hash=hash_token(KEY))
NARROW = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))


def test_a_client_is_shown_its_own_chats_and_no_answer_of_another(tmp_path: Path) -> None:
    model = Model([[Call("edit_file", {"path": "Rain.md", "old_text": "rains", "new_text": "pours"})], ["Done."]])
    with chats.asking(tmp_path, model, READER) as client:
        session = client.post("/chat", json={"message": "Let it pour"}).json()["session_id"]
        own = client.get("/history").json()
        others = client.get("/history", headers={"authorization": f"Bearer {KEY}"}).json()
        work = client.get("/history", params={"run": session, "kind": "asked"}).json()

    assert [row["kind"] for row in own["results"]] == ["proposed", "found", "asked"]  # the model's clock stands
    assert {row["work"] for row in own["results"]} == {session}
    assert own["results"][2]["text"] == "Let it pour"
    assert "text" not in own["results"][1]
    assert [(row["kind"], row["client"]) for row in others["results"]] == [("proposed", "agent")]
    assert [row["kind"] for row in work["results"]] == ["asked"]
    assert (own["limit"], own["more"], own["next"]) == (20, False, "")


def test_a_restricted_client_hears_of_no_hidden_path(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["x"]]), NARROW) as client:
        with Hub(apps.settings(tmp_path)) as hub:
            context = hub.context(client="cli")
            _ = files.append_to_file(context, "Private/Diary.md", "x")
            _ = files.move_file(context, "Garden.md", "Private/Garden.md")
            _ = files.append_to_file(hub.context(client="agent"), "Private/Diary.md", "y")
            _ = files.append_to_file(context, "Rain.md", "x")
        replies = [
            client.get(f"/history{query}") for query in ("", "?note=Private", "?note=Private/Diary.md", "?run=x")
        ]

    assert [len(reply.json()["results"]) for reply in replies] == [1, 0, 0, 0]
    assert "Private" not in "".join(reply.text for reply in replies)


def test_a_program_sees_its_own_runs_and_the_page_those_of_all(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(), READER) as (client, world):
        run = done(client, "program")
        own = client.get("/history").json()["results"]
        other = world.as_(client, KEY)("GET", "/history").json()["results"]
        page = world.as_(client, world.tokens["page"])("GET", "/history").json()["results"]

    assert [(row["kind"], row["run_id"]) for row in own] == [("found", run), ("asked", run)]
    assert other == []
    assert [row["text"] for row in page] == ["answer of program.", "program"]
    assert page[0]["tokens"] > 0


def test_runs_are_shown_although_a_file_of_an_earlier_version_was_put_back(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(), READER) as (client, world):
        _ = done(client, "program")
    [work] = tmp_path.rglob("work.db")
    put_back = work.with_name("task_runs.db")
    with closing(sqlite3.connect(work)) as database:
        runs = database.execute("SELECT * FROM runs").fetchall()
    earlier_files.write(put_back, {"runs": runs})
    put_back.chmod(0o600)
    with running.asking(tmp_path, Brain(), READER) as (client, world):
        own = client.get("/history").json()
        other = world.as_(client, KEY)("GET", "/history").json()
        page = world.as_(client, world.tokens["page"])("GET", "/history").json()

    assert [row["text"] for row in page["results"]] == ["answer of program.", "program"]
    assert [row["kind"] for row in own["results"]] == ["found", "asked"]
    assert other["results"] == []
    for reply in (own, other, page):
        assert len(reply["notes"]) == 1
        assert "task_runs.db' has entries that are in 'work.db' already; if it is a copy, or" in reply["notes"][0]
        assert str(tmp_path) not in reply["notes"][0]


def test_what_was_refused_is_told_to_the_page_and_to_no_program(tmp_path: Path) -> None:
    refused = ClientSettings(grants=replace(access.default_grants("http"), is_read_only=True))
    with running.asking(tmp_path, Brain(), refused) as (client, world):
        edit = {"path": "Alpha.md", "content": "x"}
        replies = [client.post("/tools/append_to_file", json=edit) for _ in range(3)]
        own = client.get("/history").json()["results"]
        page = world.as_(client, world.tokens["page"])("GET", "/history?kind=refused").json()["results"]

    assert {reply.status_code for reply in replies} == {403}
    assert own == []
    assert [(row["kind"], row["client"], row["notes"], row["times"]) for row in page] == [
        ("refused", "http", ["Alpha.md"], 3)
    ]


def test_pages_and_mistakes_are_told(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, chats.jobs(world.hub, world.stop)) as client:
        for number in range(5):
            _ = files.append_to_file(world.hub.context(client="cli"), "Rain.md", f"{number}")
        first = client.get("/history?limit=3").json()
        second = client.get("/history", params={"limit": 3, "before": first["next"]}).json()
        wrong = [
            client.get(f"/history?{query}") for query in ("kind=seen", "limit=0", "before=now", "since=x", "vault=y")
        ]

    rows = [*first["results"], *second["results"]]
    assert (first["more"], second["more"], second["next"]) == (True, False, "")
    assert len({row["id"] for row in rows}) == len(rows) == 5
    assert [reply.status_code for reply in wrong] == [422, 422, 422, 422, 404]


def test_the_page_and_the_terminal_are_told_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = running.settings(tmp_path)
    with Hub(settings) as hub, open_runs(hub) as tasks:
        run = executor.create_run(tasks.engine_of(Brain().open(), "scripted"), RunOrder(task="typed", code_mode=False))
        _ = asyncio.run(executor.carry_out_run(tasks.engine_of(Brain().open(), "scripted"), run.id, lambda _: None))
        for text in ("one", "two"):
            _ = files.append_to_file(hub.context(client="agent"), "Alpha.md", text)
        context = hub.context(client="cli")
        first, second = (row["id"] for row in proposals.list_proposals(context)["results"])
        _ = proposals.accept_proposal(context, first, proposals.show_proposal(context, first)["digest"])
        _ = proposals.reject_proposal(context, second, "no")
    monkeypatch.setenv("VAULT_PATH", str(settings.vault.path))
    monkeypatch.setenv("KNAP_STATE_DIR", str(settings.state_dir))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    with running.asking(tmp_path, Brain(), found=settings) as (client, world):
        page = world.as_(client, world.tokens["page"])("GET", "/history").json()

    assert main.run(["history", "--json", "--no-server"]) == 0
    assert json.loads(capsys.readouterr().out) == page
    assert sorted(row["kind"] for row in page["results"]) == [
        "accepted",
        "asked",
        "found",
        "proposed",
        "proposed",
        "rejected",
    ]
